import Foundation
import Glibc
import MountKit
import Testing

/// Stories of people who share, each at a mount of their own.
@Suite(.serialized) struct SharingTests {
  @Test(arguments: Owner.possible)
  func aFolderIsSharedEditedAndTakenBack(_ owner: Owner) throws {
    try withSharedMounts(as: owner.user()) { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"; echo one >"$ALICE/Documents/plans/a.md"
        ls "$BOB/Shared"
        "$SHEAF" share "$ALICE/Documents/plans" --with bob@example.com --can edit
        same "$(ls "$BOB/Shared")" ""
        accept bob "$(url "$ALICE/Documents/plans")"
        plans="$BOB/Shared/alice@example.com/plans"
        same "$(ls "$BOB/Shared/alice@example.com")" plans
        same "$(cat "$plans/a.md")" one
        same "$(stat -c %u "$plans/a.md")" "$(id -u)"
        # What one saves, makes, renames and deletes, the other sees at once.
        for round in 1 2 3 4 5; do
          echo "two $round" >"$plans/a.md"; same "$(cat "$ALICE/Documents/plans/a.md")" "two $round"
          echo "three $round" >"$ALICE/Documents/plans/a.md"; same "$(cat "$plans/a.md")" "three $round"
          same "$(stat -c %s "$plans/a.md")" 8
          mkdir "$plans/sub"; echo x >"$plans/sub/x"; same "$(ls "$ALICE/Documents/plans/sub")" x
          mv "$ALICE/Documents/plans/sub" "$ALICE/Documents/plans/moved"; same "$(ls "$plans")" "a.md
        moved"
          rm -r "$plans/moved"; same "$(ls "$ALICE/Documents/plans")" a.md
        done
        same "$(attribute editor "$plans/a.md")" alice@example.com
        same "$(attribute share.status "$plans")" sharedWithMe
        same "$(attribute share.status "$ALICE/Documents/plans/a.md")" sharedByMe
        same "$(attribute share.root "$plans/a.md")" ..
        exec 7<"$plans/a.md"
        cd "$plans"
        "$SHEAF" participant remove "$ALICE/Documents/plans" bob@example.com
        refused "Permission denied" cat <&7
        refused "Permission denied" stat .
        refused "Permission denied" ls .
        refused "No such file" cat "$plans/a.md"
        same "$(ls "$BOB/Shared")" ""
        same "$(cat "$ALICE/Documents/plans/a.md")" "three 5"
        """)
    }
  }

  @Test(arguments: Owner.possible)
  func readersAreToldSo(_ owner: Owner) throws {
    try withSharedMounts(as: owner.user()) { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"; echo one >"$ALICE/Documents/plans/a.md"; chmod 666 "$ALICE/Documents/plans/a.md"
        invite "$ALICE/Documents/plans" bob view
        plans="$BOB/Shared/alice@example.com/plans"
        same "$(stat -c %a "$plans/a.md")" 444
        same "$(cat "$plans/a.md")" one
        refused "Permission denied" tee "$plans/a.md" </dev/null
        refused "Permission denied" touch "$plans/new"
        refused "Permission denied" mkdir "$plans/new"
        refused "Permission denied" rm -f "$plans/a.md"
        refused "Permission denied" mv "$plans/a.md" "$plans/b.md"
        refused "Permission denied" chmod 600 "$plans/a.md"
        refused "Permission denied" setfattr -n user.x -v 1 "$plans/a.md"
        refused "" rm -r "$plans"
        same "$(attribute share.summary "$plans")" "Only invited people can view"
        "$SHEAF" participant set "$ALICE/Documents/plans" bob@example.com --can edit
        same "$(stat -c %a "$plans/a.md")" 666
        echo two >"$plans/a.md"
        exec 7>>"$plans/a.md"
        "$SHEAF" participant set "$ALICE/Documents/plans" bob@example.com --can view
        if echo three >&7; then exit 1; fi
        same "$(stat -c %a "$plans/a.md")" 444
        same "$(cat "$ALICE/Documents/plans/a.md")" two
        """)
    }
  }

  @Test(arguments: Owner.possible)
  func entriesAreRenamedAndLeftWithoutLoss(_ owner: Owner) throws {
    try withSharedMounts(["alice", "bob", "carol"], as: owner.user()) { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans" "$ALICE/Documents/x" "$ALICE/Documents/y"; echo one >"$ALICE/Documents/plans/a.md"
        echo first >"$ALICE/Documents/x/note.md"; echo second >"$ALICE/Documents/y/note.md"
        for item in plans x/note.md y/note.md; do invite "$ALICE/Documents/$item" bob edit; done
        invite "$ALICE/Documents/plans" carol edit
        mine="$BOB/Shared/alice@example.com"
        same "$(ls "$mine")" "note (2).md
        note.md
        plans"
        same "$(cat "$mine/note (2).md")" second
        refused "Permission denied" touch "$mine/new"
        refused "Permission denied" mkdir "$BOB/Shared/new"
        refused "Operation not permitted" mv "$mine/plans" "$BOB/Documents/plans"
        touch "$BOB/Documents/own"; refused "Permission denied" mv "$BOB/Documents/own" "$mine/own"
        # An editor that could not make the name again must not set it aside.
        for name in 'plans~' plans.bak .plans.swp plans.tmp; do refused "Permission denied" mv "$mine/plans" "$mine/$name"; done
        mv "$mine/plans" "$mine/ours"
        same "$(cat "$mine/ours/a.md")" one
        same "$(ls "$CAROL/Shared/alice@example.com")" plans
        mv "$ALICE/Documents/plans" "$ALICE/Documents/renamed"
        same "$(ls "$CAROL/Shared/alice@example.com")" renamed
        same "$(cat "$CAROL/Shared/alice@example.com/renamed/a.md")" one
        rmdir "$mine/ours"
        rm "$mine/note.md"
        same "$(ls "$mine")" note.md
        same "$(cat "$mine/note.md")" second
        same "$(cat "$ALICE/Documents/renamed/a.md" "$ALICE/Documents/x/note.md")" "one
        first"
        same "$(cat "$CAROL/Shared/alice@example.com/renamed/a.md")" one
        """)
    }
  }

  @Test func hostileInputIsRefusedInWords() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        #"""
        mkdir "$ALICE/Documents/plans"; plans="$ALICE/Documents/plans"
        invite "$plans" bob edit; link=$(url "$plans"); token=${link##*/}
        for title in '' $'two\nlines' $'\e[31mred' $'\x7f' $'turned \u202egnp' $'\u2028' "$(printf 'x%.0s' {1..256})"; do
          refused "the title" "$SHEAF" share "$plans" --title "$title"
        done
        for handle in '' bob 'BOB@example.com' '../x@y' 'a@b/c' $'bob@example.com\n' 'bøb@example.com' "$(printf 'x%.0s' {1..300})@y"; do
          refused "is not a handle" "$SHEAF" share "$plans" --with "$handle"
          refused "is not a handle" "$SHEAF" account add "$handle" --library "$LIBRARY"
        done
        for bad in '' x "$token$token" "../$token" "sheaf://x/t/$token" "sheaf://elsewhere/s/$token" "https://example.org/s/$token" "$token%00" $'\n' "$(printf 'x%.0s' {1..9000})" "/s/$(printf 'A%.0s' {1..24})"; do
          refused "the link" "$SHEAF" inspect "$bad" --library "$LIBRARY" --as bob@example.com
          refused "the link" "$SHEAF" accept "$bad" --library "$LIBRARY" --as bob@example.com
        done
        "$SHEAF" library set --public-address example.org --library "$LIBRARY" >/dev/null
        for good in "$token" "/s/$token" "$link" "https://example.org/s/$token" "https://example.org/s/$token/?a=b#c"; do
          "$SHEAF" inspect "$good" --library "$LIBRARY" --as bob@example.com >/dev/null
        done
        # Ten megabytes of title, which no command line holds.
        python3 - "$LIBRARY" "$plans" <<'END'
        import http.client, json, socket, sys
        library = sys.argv[1]
        class Connection(http.client.HTTPConnection):
            def connect(self):
                self.sock = socket.socket(socket.AF_UNIX)
                self.sock.connect(library + '-socket')
        def ask(body):
            connection = Connection('localhost')
            connection.request('POST', '/v1/items/share?as=alice@example.com&path=Documents/plans', body, {'Content-Type': 'application/json'})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        status, text = ask(json.dumps({'title': 'x' * 10_000_000, 'with': [], 'newLink': False}))
        assert status in (400, 413), (status, text[:200])
        assert len(text) < 2000, len(text)
        status, text = ask(json.dumps({'title': 'a\x00b', 'with': [], 'newLink': False}))
        assert status == 400 and 'title' in text, (status, text)
        END
        same "$("$SHEAF" share "$plans" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["title"])')" plans
        # What looks like something else is said to.
        "$SHEAF" share "$plans" --title 'Pаypal plans' >/dev/null
        "$SHEAF" inspect "$link" --library "$LIBRARY" --as bob@example.com | grep -q 'Beware.*Cyrillic and Latin'
        "$SHEAF" status "$BOB/Shared/alice@example.com/plans" | grep -q 'Beware.*Cyrillic and Latin'
        "$SHEAF" account add al1ce@example.com --library "$LIBRARY" >/dev/null
        "$SHEAF" account add a1ice@example.com --library "$LIBRARY" >/dev/null
        "$SHEAF" share "$plans" --title 'Plans' --anyone view >/dev/null
        said=$("$SHEAF" accept "$link" --library "$LIBRARY" --as al1ce@example.com 2>&1); case $said in *"a1ice@example.com, though it looks alike"*) ;; *) echo "$said"; exit 1 ;; esac
        # Nothing of all that is in a log, and the token in no message.
        if grep -F "$token" "$LIBRARY-log"; then exit 1; fi
        said=$("$SHEAF" accept "sheaf://x/s/${token}AAAA" --library "$LIBRARY" --as bob@example.com 2>&1) && exit 1
        case $said in *"$token"*) echo "$said"; exit 1 ;; esac
        """#)
    }
  }

  @Test(arguments: [
    ("a.md", "\"$SHEAF\" participant remove \"$ALICE/Documents/plans\" bob@example.com"),
    (".versions/a.md", "\"$SHEAF\" participant remove \"$ALICE/Documents/plans\" bob@example.com"),
    (".versions/a.md", "mv \"$ALICE/Documents/plans/a.md\" \"$ALICE/Documents\""),
  ])
  func aMappingIsTakenAwayToo(_ name: String, _ taking: String) throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"; printf 'one%4093s' x >"$ALICE/Documents/plans/a.md"
        invite "$ALICE/Documents/plans" bob edit
        """)
      var path = try #require(mounts.places["bob"]) + "/Shared/alice@example.com/plans/" + name
      let isVersion = name != "a.md"
      if isVersion { path += try "/" + #require(FileManager.default.contentsOfDirectory(atPath: path).first) }
      let file = open(path, O_RDONLY | O_CLOEXEC)
      try #require(file >= 0)
      defer { close(file) }
      let mapping = try #require(mmap(nil, 4096, PROT_READ, MAP_SHARED, file, 0))
      defer { munmap(mapping, 4096) }
      #expect(mapping.load(as: UInt8.self) == UInt8(ascii: "o"))
      // What the other one writes in place shows in the mapping.
      try mounts.shell("printf two | dd of=\"$ALICE/Documents/plans/a.md\" conv=notrunc status=none")
      if !isVersion { try eventually("the other's bytes") { mapping.load(as: UInt8.self) == UInt8(ascii: "t") } }
      try mounts.shell(taking)
      // A touch would be SIGBUS; a system call that touches it for us says EFAULT.
      var pipes: [Int32] = [0, 0]
      try #require(pipe(&pipes) == 0)
      defer { pipes.forEach { close($0) } }
      #expect(write(pipes[1], mapping, 1) == -1 && errno == EFAULT)
      var byte: UInt8 = 0
      #expect(pread(file, &byte, 1, 0) == -1 && errno == EACCES)
      var status = stat()
      #expect(fstat(file, &status) == -1 && errno == EACCES)
    }
  }

  @Test func historyBelowSharedBeginsWhereTheShareDoes() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"
        for text in 1 2 3; do echo $text >"$ALICE/Documents/plans/a.md"; done
        echo secret >"$ALICE/Documents/plans/secret.md"; rm "$ALICE/Documents/plans/secret.md"
        invite "$ALICE/Documents/plans" bob edit
        plans="$BOB/Shared/alice@example.com/plans"
        echo 4 >"$plans/a.md"
        echo gone >"$plans/gone.md"; rm "$plans/gone.md"
        same "$(ls "$plans/.versions")" "a.md
        gone.md"
        same "$(ls "$plans/.versions/a.md" | cut -d~ -f1 | tr '\n' ' ')" "0003 0004 "
        same "$(cat "$plans/.versions/a.md/0003"*)" 3
        same "$("$SHEAF" versions "$plans/a.md" --json | grep -c '"number"')" 2
        refused "" "$SHEAF" show "$plans/a.md" --version 1
        same "$(ls "$ALICE/Documents/plans/.versions/a.md" | wc -l)" 4
        "$SHEAF" recover "$plans/gone.md"; same "$(cat "$ALICE/Documents/plans/gone.md")" gone
        refused "" "$SHEAF" recover "$plans/secret.md"
        "$SHEAF" restore "$plans/a.md" --version 3; same "$(cat "$ALICE/Documents/plans/a.md")" 3
        """)
    }
  }

  @Test func theLinkIsInNoLog() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"
        invite "$ALICE/Documents/plans" bob edit
        token=$(url "$ALICE/Documents/plans"); token=${token##*/}
        [ ${#token} -ge 22 ]
        refused "" "$SHEAF" accept "sheaf://x/s/${token}AAAA" --library "$LIBRARY" --as bob@example.com
        # By every way that a link goes, also where the log is everything that the process says.
        "$SHEAF" unmount "$BOB"; "$SHEAF" unmount "$ALICE"
        "$SHEAF" mount "$ALICE" --foreground --library "$LIBRARY" --as alice@example.com >"$LIBRARY-all" 2>&1 & process=$!
        for n in $(seq 200); do mountpoint -q "$ALICE" && break; sleep 0.05; done
        plans="$ALICE/Documents/plans"; same "$(attribute share.url "$plans")" "$(url "$plans")"
        once=$("$SHEAF" invite "$plans" --one-time); once=${once##*/}
        "$SHEAF" account add carol@example.com --library "$LIBRARY" >/dev/null
        accept carol "$once" >/dev/null; refused "" accept bob "$once"
        for command in inspect accept; do "$SHEAF" $command "$token" --library "$LIBRARY" --as bob@example.com >/dev/null; done
        "$SHEAF" share "$plans" --new-link >/dev/null; new=$(url "$plans"); new=${new##*/}
        [ "$new" != "$token" ]; refused "" accept dan "$token"
        "$SHEAF" status "$plans" >/dev/null; "$SHEAF" activity "$plans" >/dev/null; "$SHEAF" unshare "$plans" --yes
        "$SHEAF" unmount "$ALICE"; wait $process
        for secret in "$token" "$once" "$new"; do
          if grep -aF "$secret" "$LIBRARY-all" "$LIBRARY-log"; then exit 1; fi
        done
        if grep -F "$token" "$LIBRARY-log"; then exit 1; fi
        "$SHEAF" mount "$ALICE" --library "$LIBRARY" --as alice@example.com
        """)
    }
  }

  /// All in this process: a program that it starts would get duplicates of its handles, and closing those is a close.
  @Test func twoWhoWriteAtOnceBothHaveTheirVersion() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        echo one >"$ALICE/Documents/a.md"
        invite "$ALICE/Documents/a.md" bob edit
        """)
      let mine = try #require(mounts.places["alice"]) + "/Documents/a.md"
      let theirs = try #require(mounts.places["bob"]) + "/Shared/alice@example.com/a.md"
      let reader = open(theirs, O_RDONLY | O_CLOEXEC)
      let (alice, bob) = (open(mine, O_RDWR | O_CLOEXEC), open(theirs, O_RDWR | O_CLOEXEC))
      try #require(reader >= 0 && alice >= 0 && bob >= 0)
      #expect(pwrite(alice, "from alice\n", 11, 0) == 11 && pwrite(bob, "from bob\n", 9, 0) == 9)
      #expect(text(alice) == "from alice\n" && text(bob) == "from bob\n" && text(reader) == "from bob\n")
      #expect(close(alice) == 0)
      #expect(text(bob) == "from bob\n")
      #expect(close(bob) == 0)
      let after = open(mine, O_RDONLY | O_CLOEXEC)
      #expect(text(after) == "from bob\n")
      for file in [reader, after] { close(file) }
      try mounts.shell(
        """
        bob="$BOB/Shared/alice@example.com/a.md"
        same "$(attribute conflict "$ALICE/Documents/a.md")" 2
        same "$(attribute conflict "$bob")" 2
        same "$("$SHEAF" show "$bob" --version 2)" "from alice"
        "$SHEAF" status "$bob" | grep -q "not based on version 2"
        "$SHEAF" resolve "$bob"
        refused "" attribute conflict "$bob"
        # What is saved in place reaches handles that are open for reading.
        exec 7<"$bob"
        echo "saved in place" >"$ALICE/Documents/a.md"
        same "$(cat <&7)" "saved in place"
        """)
    }
  }

  /// Both open version 1 in an editor that saves by a new file; alice saves, then bob.
  @Test(arguments: ["new file renamed over", "old file renamed away"])
  func whoSavesAnewWithoutHavingSeenIsTold(_ way: String) throws {
    try withSharedMounts { mounts in
      let folder = try mounts.library.folder.folder("editors", for: nil)
      try mounts.shell(
        #"""
        cd '\#(folder)'; mkfifo alice bob
        mkdir "$ALICE/Documents/plans"; echo one >"$ALICE/Documents/plans/a.md"
        invite "$ALICE/Documents/plans" bob edit
        mine="$ALICE/Documents/plans/a.md"; theirs="$BOB/Shared/alice@example.com/plans/a.md"
        cat >editor.py <<'END'
        import os, sys
        path, orders = sys.argv[1:3]
        text = open(path).read()
        for line in open(orders):
            text += orders + '\n'
            if '\#(way)'.startswith('new'):
                with open(path + '.new', 'w') as new: new.write(text)
                os.rename(path + '.new', path)
            else:
                os.rename(path, path + '~')
                with open(path, 'w') as new: new.write(text)
                os.unlink(path + '~')
            open(orders + '.done', 'w').close()
        END
        python3 editor.py "$mine" alice & python3 editor.py "$theirs" bob &
        exec 7>alice 8>bob
        saves() { rm -f $1.done; echo save >&$2; until [ -e $1.done ]; do sleep 0.01; done; }
        last() { "$SHEAF" versions "$mine" --json | python3 -c 'import json, sys; last = max(json.load(sys.stdin), key=lambda v: v["number"]); print(last["number"], last["base"], last["author"])'; }
        saves alice 7; same "$(last)" "2 1 alice@example.com"
        saves bob 8; same "$(last)" "3 1 bob@example.com"
        same "$(attribute conflict "$mine")" 2
        same "$(attribute conflict "$theirs")" 2
        "$SHEAF" status "$mine" | grep -q 'not based on version 2'
        "$SHEAF" status "$theirs" | grep -q 'not based on version 2'
        same "$("$SHEAF" show "$theirs" --version 2)" "one
        alice"
        saves bob 8; same "$(last)" "4 3 bob@example.com"
        refused "" attribute conflict "$mine"
        exec 7>&- 8>&-; wait
        """#, limit: .seconds(60))
    }
  }

  private func text(_ file: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = pread(file, &buffer, buffer.count, 0)
    return count < 0 ? "errno \(errno)" : String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  @Test func whatCouldNotBeSavedIsKeptForItsWriter() throws {
    try withSharedMounts { mounts in
      let (begin, done) = ("\(mounts.library.folder.path)/begin", "\(mounts.library.folder.path)/done")
      // Started before the file is open, so that it has no duplicate of the handle.
      try mounts.shell(
        """
        echo one >"$ALICE/Documents/plan.md"
        invite "$ALICE/Documents/plan.md" bob edit
        mkfifo "\(begin)" "\(done)"
        { read line <"\(begin)"; "$SHEAF" participant set "$ALICE/Documents/plan.md" bob@example.com --can view
          echo done >"\(done)"; } >/dev/null 2>&1 &
        """)
      let path = try #require(mounts.places["bob"])
      let file = open("\(path)/Shared/alice@example.com/plan.md", O_RDWR | O_CLOEXEC)
      try #require(file >= 0)
      #expect(write(file, "work", 4) == 4)
      let first = open(begin, O_WRONLY | O_CLOEXEC)
      #expect(write(first, "begin\n", 6) == 6)
      let second = open(done, O_RDONLY | O_CLOEXEC)
      var line = [UInt8](repeating: 0, count: 16)
      #expect(read(second, &line, line.count) == 5)
      for pipe in [first, second] { close(pipe) }
      #expect(write(file, "more", 4) == -1 && errno == EACCES)
      #expect(close(file) == -1 && errno == EACCES)
      try mounts.shell(
        """
        same "$(head -c 4 "$BOB/Documents/plan (not saved).md")" work
        same "$(cat "$ALICE/Documents/plan.md")" one
        rm "\(begin)" "\(done)"
        """)
    }
  }

  /// Root gives each of two Linux users a mount of their own.
  @Test(.enabled(if: TestUser.isRoot)) func rootMountsForOthers() throws {
    try withSharedMounts { mounts in
      let user = try TestUser.ordinary()
      try mounts.shell(
        """
        mkdir "$ALICE/Documents/plans"; echo one >"$ALICE/Documents/plans/a.md"
        invite "$ALICE/Documents/plans" bob edit
        "$SHEAF" unmount "$BOB"; chown \(user.name): "$BOB"; chmod 711 "$BOB/.." "$BOB/../.." 2>/dev/null || true
        "$SHEAF" mount "$BOB" --library "$LIBRARY" --as bob@example.com --for \(user.name)
        them() { setpriv --reuid=\(user.user) --regid=\(user.group) --clear-groups "$@"; }
        nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
        plans="$BOB/Shared/alice@example.com/plans"
        same "$(them cat "$plans/a.md")" one
        same "$(them stat -c %u "$plans/a.md" "$BOB/Documents" | sort -u)" \(user.user)
        them sh -c 'echo two >"$0"' "$plans/a.md"
        same "$(cat "$ALICE/Documents/plans/a.md")" two
        same "$(stat -c %u "$ALICE/Documents/plans/a.md")" 0
        same "$(attribute editor "$ALICE/Documents/plans/a.md")" bob@example.com
        them sh -c 'echo mine >"$0/Documents/mine"; chmod 600 "$0/Documents/mine"; mkdir "$0/Documents/sub"' "$BOB"
        same "$(them cat "$BOB/Documents/mine")" mine
        for path in "$BOB" "$BOB/Documents" "$BOB/Documents/mine" "$plans/a.md"; do
          refused "Permission denied" nobody ls "$path"
        done
        refused "Permission denied" nobody cat "$plans/a.md"
        # Their commands go by a socket of their own, and act for that account alone.
        same "$(them "$SHEAF" versions "$plans/a.md" --json | grep -c '"number"')" 2
        refused "is bob@example.com's" them "$SHEAF" versions Documents/mine --library "$LIBRARY" --as alice@example.com
        refused "" them "$SHEAF" account list --library "$LIBRARY"
        # They have one such mount of a library, and its socket goes on to be that one's.
        mkdir "$BOB-2"; chown \(user.name): "$BOB-2"
        for account in bob alice; do
          refused "has a mount of this library already, at $BOB; unmount that first" \
            "$SHEAF" mount "$BOB-2" --library "$LIBRARY" --as $account@example.com --for \(user.name)
        done
        them "$SHEAF" versions "$plans/a.md" >/dev/null
        "$SHEAF" unmount "$BOB"
        "$SHEAF" mount "$BOB-2" --library "$LIBRARY" --as bob@example.com --for \(user.name)
        them "$SHEAF" versions "$BOB-2/Documents/mine" >/dev/null
        "$SHEAF" unmount "$BOB-2"; rmdir "$BOB-2"
        "$SHEAF" mount "$BOB" --library "$LIBRARY" --as bob@example.com --for \(user.name)
        refused "" nobody "$SHEAF" versions "$plans/a.md"
        them rmdir "$plans"
        same "$(them ls "$BOB/Shared")" ""
        same "$(cat "$ALICE/Documents/plans/a.md")" two
        """)
    }
  }
}
