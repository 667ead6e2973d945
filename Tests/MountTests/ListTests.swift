import MountKit
import Testing

/// Lists as people read them: what was deleted, what happened, who takes part.
@Suite(.serialized) struct ListTests {
  /// Whoever stands at the top of a mount names it.
  @Test func theTopOfAMountIsEverything() throws {
    try withMount { library in
      try library.shell("mkdir plans; echo one >plans/a; echo two >gone; rm gone; echo three >plans/b; rm plans/b")
      for path in [library.mountpoint, "\(library.mountpoint)/."] {
        #expect(try library.sheafSucceeds("deleted", path).text.contains("Documents/plans/b"))
        #expect(try library.sheafSucceeds("find", "--name", "a", "--in", path).text.hasSuffix("Documents/plans/a"))
        #expect(try library.sheafSucceeds("activity", path).text.contains("created plans"))
        #expect(try library.sheafSucceeds("usage", path).text.contains("Documents/plans"))
      }
      let other = try library.sheaf("deleted", library.mountpoint, "--as", "bob@example.com")
      #expect(other.status == 1 && other.errorText.contains("leave out --as"), "\(other)")
      // One item is meant elsewhere.
      #expect(try library.sheaf("versions", library.mountpoint).errorText.contains("is not below Documents or Shared"))
      try library.sheafSucceeds("purge", "--deleted", library.mountpoint, "--yes")
      #expect(try library.sheafSucceeds("deleted", library.mountpoint).text == "Nothing deleted that can come back.")
      let mistyped = try library.sheaf("versions", "\(library.folder.path)/Shef/Documents/a")
      #expect(
        mistyped.status == 1 && mistyped.errorText.contains("does not exist, and is in no mounted"), "\(mistyped)")
      let elsewhere = try library.sheaf("versions", library.folder.path)
      #expect(elsewhere.status == 1 && !elsewhere.errorText.contains("does not exist"), "\(elsewhere)")
    }
  }

  @Test func aDeletedTreeIsOneLine() throws {
    try withMount { library in
      try library.shell(
        """
        same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; exit 1; }; }
        mkdir -p trip/deep/er; for i in $(seq 40); do echo "$i" >"trip/$i"; echo "$i" >"trip/deep/er/$i"; done
        echo early >trip/early; rm trip/early; echo single >single
        rm -r trip; rm single
        lines() { "$SHEAF" deleted "$@" | tail -n +2; }
        same "$(lines | wc -l)" 2
        # The two folders, forty documents in each of two, and the one that was deleted before.
        lines | grep -E "Documents/trip +83 items "
        lines | grep -E "Documents/single  "
        # Its path tells what was in it, that of a folder in it in turn.
        same "$(lines trip | grep -c "Documents/trip/[0-9]")" 40
        lines trip | grep -E "Documents/trip/deep +41 items "
        lines trip | grep -E "Documents/trip/early "
        same "$(lines trip/deep/er | grep -c "Documents/trip/deep/er/[0-9]")" 40
        # Programs are told of each.
        same "$("$SHEAF" deleted --json | grep -c '"path"')" 85
        # With the folder it comes back into, what else was in that is lines of their own.
        "$SHEAF" recover trip/deep
        same "$(lines | wc -l)" 42
        ls trip/deep/er/40
        """)
      // Pages.
      try library.shell(
        """
        for i in $(seq 60); do echo "$i" >"page-$i"; done; rm page-*
        same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; exit 1; }; }
        same "$("$SHEAF" deleted | grep -c page-)" 50
        "$SHEAF" deleted | tail -n 1 | grep -E "^and [0-9]+ more: --limit [0-9]+ shows them"
        same "$("$SHEAF" deleted --limit 1000 | grep -c page-)" 60
        same "$("$SHEAF" deleted --limit 7 --json | grep -c '"path"')" 7
        "$SHEAF" deleted --limit 0 2>/dev/null && exit 1; same $? 64
        """)
    }
  }

  @Test func activityHasPathsThatCommandsTake() throws {
    try withSharedMounts { mounts in
      try mounts.shell(
        """
        cd "$ALICE/Documents"; mkdir -p work/plans; echo one >work/plans/a.md; echo two >work/plans/c.md
        invite work/plans bob edit
        mv "$BOB/Shared/alice@example.com/plans" "$BOB/Shared/alice@example.com/hers"
        mv work/plans/a.md work/plans/b.md; rm work/plans/c.md
        # Told once the programs are known to have ended.
        until [ "$("$SHEAF" activity | grep -c -e "renamed a.md to b.md" -e "deleted c.md")" = 2 ]; do :; done
        "$SHEAF" activity >"${LIBRARY%/*}/alice"; (cd "$BOB"; "$SHEAF" activity >"${LIBRARY%/*}/bob")
        grep -F "renamed a.md to b.md" "${LIBRARY%/*}/alice" | grep -E " Documents/work/plans/b.md$"
        grep -F "renamed a.md to b.md" "${LIBRARY%/*}/bob" | grep -E " Shared/alice@example.com/hers/b.md$"
        # Each of them is taken by a command, what is deleted by recover.
        cd "$ALICE"
        sed 's/.*  //' "${LIBRARY%/*}/alice" | grep / | sort -u | while read -r path; do
          "$SHEAF" activity "$path" >/dev/null
        done
        "$SHEAF" recover "$(grep deleted "${LIBRARY%/*}/alice" | sed 's/.*  //')"
        until "$SHEAF" activity | grep "recovered c.md"; do :; done
        "$SHEAF" status Documents/work/plans >"${LIBRARY%/*}/status"
        grep -E "alice@example.com +recovered +c.md" "${LIBRARY%/*}/status"
        grep -E "alice@example.com +renamed +b.md" "${LIBRARY%/*}/status"
        grep -E "bob@example.com .* participant, can edit" "${LIBRARY%/*}/status"
        if grep -e persistence -e privateUser "${LIBRARY%/*}/status"; then exit 1; fi
        """)
    }
  }
}
