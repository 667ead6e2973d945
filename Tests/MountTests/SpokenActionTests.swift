import Foundation
import MountKit
import Testing

/// Commands say what they did, ask before what concerns many, and change nothing where nothing can be changed.
@Suite(.serialized) struct SpokenActionTests {
  @Test func commandsSayWhatTheyDid() throws {
    try withSharedMounts(["alice", "bob", "carol"]) { mounts in
      try mounts.shell(
        """
        sheaf() { "$SHEAF" "$@" --library "$LIBRARY"; }
        cd "$ALICE/Documents"; mkdir plans; for i in $(seq 58); do echo "$i" >"plans/$i"; done
        invite plans bob view
        same "$("$SHEAF" participant set plans bob@example.com --can edit)" \
          "bob@example.com is a participant of Documents/plans, and can edit."
        same "$("$SHEAF" participant set plans bob@example.com --can edit)" \
          "Nothing changed: bob@example.com is a participant of Documents/plans, and can edit."
        "$SHEAF" participant add plans carol@example.com --can view | grep "carol@example.com .* can view; invited"
        "$SHEAF" participants plans >"${LIBRARY%/*}/people"
        grep -E "carol@example.com .* participant +view +invited" "${LIBRARY%/*}/people"
        if grep -e User -e pending "${LIBRARY%/*}/people"; then exit 1; fi
        same "$("$SHEAF" participant remove plans carol@example.com)" \
          "carol@example.com takes no part in Documents/plans any more."
        "$SHEAF" status plans | grep -E " bob@example.com +joined +plans"
        same "$("$SHEAF" resolve plans/1)" "Nothing changed: Documents/plans/1 has no conflict."
        same "$("$SHEAF" resolve "id:$(attribute id plans/1)")" "Nothing changed: Documents/plans/1 has no conflict."
        (cd "$BOB"; same "$("$SHEAF" leave "id:$(attribute id Shared/alice@example.com/plans)")" \
          "Left Shared/alice@example.com/plans; nothing of it was deleted.")
        invite plans bob edit
        same "$("$SHEAF" unshare plans --yes)" "Stopped sharing Documents/plans; bob@example.com lost access."
        refused "lists what others share with you" "$SHEAF" leave plans
        mkdir node_modules; "$SHEAF" share node_modules 2>&1 >/dev/null | grep -F "beware: it is ignored"
        "$SHEAF" transfer node_modules bob@example.com 2>&1 >/dev/null | grep -F "beware: it is ignored"
        same "$("$SHEAF" share plans 2>&1 >/dev/null)" ""; "$SHEAF" unshare plans
        refused "is not among the deleted" "$SHEAF" recover plan
        mkdir given; echo x >given/x; invite given bob view
        same "$("$SHEAF" purge given --yes)" "Destroyed Documents/given with 1 item in it. bob@example.com lost access."
        "$SHEAF" purge plans --yes | grep -F "Destroyed Documents/plans with 58 items in it."
        echo x >"$CAROL/Documents/x"; "$SHEAF" unmount "$CAROL"
        refused "give them to somebody first: sheaf transfer" sheaf account remove carol@example.com
        sheaf purge Documents/x --as carol@example.com --yes
        same "$(sheaf account remove carol@example.com)" "Removed carol@example.com from $LIBRARY."
        """)
    }
  }

  @Test func commandsSayThatNothingChanged() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        (cd "$BOB/Documents"; "$SHEAF" status | grep -E "^You +bob@example.com, whose mount this is")
        (cd "$ALICE"; "$SHEAF" status "$BOB" | grep -E "^You +bob@example.com, whose mount this is")
        cd "$ALICE/Documents"; mkdir plans; echo 1 >plans/a
        "$SHEAF" label plans/a final
        same "$("$SHEAF" label plans/a final)" 'Nothing changed: version 1 of Documents/plans/a is already "final".'
        echo 2 >plans/a
        moved='Version 1, which had that label, has none now.'
        same "$("$SHEAF" label plans/a final)" "Version 2 of Documents/plans/a is now \\"final\\". $moved"
        "$SHEAF" share plans --with bob@example.com --can edit >"${LIBRARY%/*}/said"
        if grep -F "Nothing changed" "${LIBRARY%/*}/said"; then exit 1; fi
        "$SHEAF" share plans --with bob@example.com --can edit | grep -Fx "Nothing changed."
        "$SHEAF" retain plans --keep-versions 2y >"${LIBRARY%/*}/said"
        if grep -F "Nothing changed" "${LIBRARY%/*}/said"; then exit 1; fi
        "$SHEAF" retain plans --keep-versions 2y | grep -Fx "Nothing changed."
        "$SHEAF" library set --keep-deleted 90d --library "$LIBRARY" >"${LIBRARY%/*}/said"
        same "$(cat "${LIBRARY%/*}/said")" "Deleted items are kept for 90 days."
        "$SHEAF" library set --keep-deleted 90d --library "$LIBRARY" | grep -Fx "Nothing changed."
        link=$("$SHEAF" share plans --with bob@example.com | grep -o 'sheaf://[^ ]*')
        for said in "" "nothing changed: you take part in it already"; do
          "$SHEAF" accept "$link" --as bob@example.com --library "$LIBRARY" 2>"${LIBRARY%/*}/said" | \
            grep -Fx "Shared/alice@example.com/plans"
          same "$(cat "${LIBRARY%/*}/said")" "${said:+sheaf: $said}"
        done
        "$SHEAF" backup "${LIBRARY%/*}/copy" --library "$LIBRARY"
        status=0; "$SHEAF" backup "${LIBRARY%/*}/copy" --library "$LIBRARY" 2>"${LIBRARY%/*}/said" || status=$?
        same "$status" 1; grep -F "copy: is there already; name a file that is not there yet" "${LIBRARY%/*}/said"
        """)
    }
  }

  /// The names of some documents cannot be printed as they are; what is printed beside them is a name, too.
  @Test func whatIsPrintedIsTaken() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        cd "$ALICE/Documents"; mkdir odd
        # Another program, which has ended: what was made is told then.
        sh -c 'echo 1 >"$1/$(printf "two\\nlines")"; echo 2 >"$1/$(printf "no\\377utf")"; echo 3 >"$1/plain"' sh odd
        "$SHEAF" find --in odd --name '*' >"${LIBRARY%/*}/found"
        same "$(wc -l <"${LIBRARY%/*}/found")" 3
        same "$(grep -c '  id:' "${LIBRARY%/*}/found")" 2
        grep -Fx "$ALICE/Documents/odd/plain" "${LIBRARY%/*}/found"
        for id in $(grep -o 'id:.*' "${LIBRARY%/*}/found"); do "$SHEAF" show "$id"; done | sort >"${LIBRARY%/*}/said"
        same "$(cat "${LIBRARY%/*}/said")" "$(printf '1\n2')"
        "$SHEAF" send-copy "id:$(attribute id odd)" "${LIBRARY%/*}"; diff -r odd "${LIBRARY%/*}/odd"
        rm odd/plain; "$SHEAF" deleted "id:$(attribute id odd)" | grep -F Documents/odd/plain
        """)
      try eventually("what another program made is told, since it has ended", within: .seconds(30)) {
        let told = try mounts.shell("cd \"$ALICE/Documents\"; \"$SHEAF\" activity odd").text
        return told.split(separator: "\n").count { $0.contains("  id:") } == 2
      }
      try eventually("its id tells of it, too", within: .seconds(30)) {
        try mounts.attempt(
          """
          cd "$ALICE/Documents"
          same "$("$SHEAF" activity "id:$(attribute id odd)")" "$("$SHEAF" activity odd)"
          """
        ).status == 0
      }
    }
  }

  /// What script(1) runs has a terminal.
  @Test func aTerminalAsks() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        cd "$ALICE/Documents"; mkdir plans; for i in 1 2 3; do echo "$i" >"plans/$i"; done
        invite plans bob edit
        on_terminal() { printf '%s\\n' "$1" | script --quiet --return --command "$2" /dev/null; }
        if on_terminal n "'$SHEAF' unshare plans" >"${LIBRARY%/*}/said"; then exit 1; fi
        grep -F "Stop sharing Documents/plans? bob@example.com will lose it" "${LIBRARY%/*}/said"
        ls "$BOB/Shared/alice@example.com/plans"
        if on_terminal "" "'$SHEAF' purge plans" >"${LIBRARY%/*}/said"; then exit 1; fi
        grep -F "Destroy Documents/plans with 3 items in it for good? bob@example.com will lose it." "${LIBRARY%/*}/said"
        ls plans/1
        on_terminal y "'$SHEAF' unshare plans"
        if ls "$BOB/Shared/alice@example.com"; then exit 1; fi
        on_terminal yes "'$SHEAF' purge plans"
        if ls plans; then exit 1; fi
        # A script is not asked, and says for itself that it means it.
        mkdir plans; invite plans bob edit
        refused "is shared with bob@example.com, who would lose it" "$SHEAF" unshare plans </dev/null
        ls "$BOB/Shared/alice@example.com/plans"
        "$SHEAF" unshare plans --yes </dev/null
        # Nobody loses anything.
        "$SHEAF" share plans; "$SHEAF" unshare plans </dev/null
        echo 1 >plans/1; refused "plans with 1 item in it: would be destroyed for good" "$SHEAF" purge plans </dev/null
        ls plans/1; rm plans/1
        refused "bytes: would be destroyed for good" "$SHEAF" purge --deleted plans </dev/null
        "$SHEAF" purge --deleted plans --older-than 1d </dev/null | grep -F "Nothing was destroyed"
        if on_terminal n "'$SHEAF' retain plans --keep-deleted 2d" >"${LIBRARY%/*}/said"; then exit 1; fi
        grep -F "Keep deleted items for 2 days instead of 30 days? What is older goes" "${LIBRARY%/*}/said"
        on_terminal y "'$SHEAF' retain plans --keep-deleted 2d"
        """)
    }
  }

  @Test func commandsThroughAReadOnlyMountChangeNothing() throws {
    try withSharedMounts { mounts in
      let place = try mounts.library.folder.folder("readonly")
      try mounts.library.sheafSucceeds(
        "mount", place, "--library", mounts.library.library, "--as", "alice@example.com", "--read-only")
      defer { _ = try? mounts.library.sheaf("unmount", place) }
      try mounts.shell(
        """
        cd "$ALICE/Documents"; mkdir plans; echo one >plans/a; echo two >plans/a; echo gone >gone; rm gone
        invite plans bob edit
        cd '\(place)/Documents'
        "$SHEAF" versions plans/a | grep -c . >/dev/null; "$SHEAF" status plans >/dev/null; "$SHEAF" deleted | grep gone
        facts() { "$SHEAF" status plans --json; "$SHEAF" versions plans/a --json; "$SHEAF" deleted --json; }
        before=$(facts)
        no() { refused "is mounted read-only, and commands change nothing through it" "$SHEAF" "$@"; }
        no restore plans/a --version 1; no label plans/a final; no recover gone; no purge plans --yes
        no share plans --anyone view; no unshare plans; no participant add plans bob@example.com
        no participant set plans bob@example.com --can view; no participant remove plans bob@example.com
        no invite plans --one-time; no requests block plans bob@example.com; no comment plans Hello; no resolve plans/a
        no notices --clear; no accept "$(url plans)"
        no account add kim@example.com; no account remove bob@example.com; no compact
        export SHEAF_LIBRARY="$LIBRARY"
        no account add kim@example.com; no compact; no library set --rapid-saves keep; no notices --clear
        unset SHEAF_LIBRARY
        no library set --rapid-saves keep; no disconnect; no device add; no device remove x; no sync --pause
        "$SHEAF" account list >/dev/null; "$SHEAF" library show >/dev/null
        same "$(facts)" "$before"
        """)
    }
  }

  /// The socket of a user to whom root gave a mount changes nothing for them either, by whatever path.
  @Test(.enabled(if: TestUser.isRoot, "mounting for another user needs root"))
  func aReadOnlyMountGivenToAUserChangesNothing() throws {
    let user = try TestUser.ordinary()
    try withMount { library in
      try library.shell("echo one > document")
      let place = try library.folder.folder("theirs", for: user)
      try library.sheafSucceeds(
        "mount", place, "--library", library.library, "--as", library.handle, "--for", user.name, "--read-only")
      defer { _ = try? library.sheaf("unmount", place) }
      let document = "Documents/document"
      for command in [
        ["label", document, "x"], ["purge", document, "--yes"], ["comment", document, "x"], ["share", document],
      ] {
        let output = try SheafProgram.run(command + ["--library", library.library], as: user)
        #expect(output.status == 1 && output.errorText.contains("is mounted read-only"), "\(command): \(output)")
      }
      let read = try SheafProgram.run(["show", document, "--library", library.library], as: user)
      #expect(read.text == "one", "\(read)")
      #expect(try library.versions("document").map(\.label) == [nil])
    }
  }
}
