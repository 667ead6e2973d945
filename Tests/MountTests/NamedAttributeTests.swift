import Foundation
import MountKit
import Testing

/// Copies on plain disks and in backups bear none of what Sheaf computes, where the mount lists none of it.
@Suite(.serialized) struct NamedAttributeTests {
  @Test func whatIsNotListedIsNotCopied() throws {
    let options = ["-o", "xattrs=named"]
    try withMount(options: options) { library in
      let script = """
        same() { [ "$1" = "$2" ] || { echo "expected: $2; is: $1" >&2; exit 1; }; }
        mkdir plans; echo one >plans/a.md; setfattr -n user.mine -v kept plans/a.md; setfattr -n user.mine -v kept plans
        "$SHEAF" share plans >/dev/null
        for item in plans plans/a.md; do
          same "$(getfattr -d --absolute-names "$item" | grep -c user.sheaf || true)" 0
          same "$(getfattr -d "$item" | grep user.)" 'user.mine="kept"'
          getfattr --only-values -n user.sheaf.id "$item" | grep -E '^[0-9a-f-]{36}$'
          getfattr --only-values -n user.sheaf.share.url "$item" | grep -F /s/
        done
        copies="${LIBRARY%/*}/copies"; mkdir "$copies"
        cp -a plans "$copies/cp"
        rsync -aX plans/ "$copies/rsync"
        mkdir "$copies/tar"; tar --xattrs --xattrs-include='user.*' -c plans | tar --xattrs --xattrs-include='user.*' -x -C "$copies/tar"
        same "$(getfattr -R -d "$copies" | grep -c user.sheaf || true)" 0
        same "$(getfattr -R -d "$copies" | grep -c 'user.mine="kept"')" 6
        # Back again it is a document like any other, and no part of the share.
        cp -a "$copies/cp" back; same "$(getfattr --only-values -n user.sheaf.share.status back)" notShared
        """
      try library.shell(script)
      // Any other mount lists them, as ever.
      let second = try library.folder.folder("second")
      try library.sheafSucceeds("mount", second, "--library", library.library)
      defer { _ = try? library.sheaf("unmount", second) }
      let listed = try Command(["getfattr", "-d", "--absolute-names", "\(second)/Documents/plans/a.md"]).succeed().text
      #expect(listed.contains("user.sheaf.share.url=") && listed.contains("user.mine="), "\(listed)")
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "mounting for another user needs root"))
  func aBackupsUserGetsThemByName() throws {
    let user = try TestUser.ordinary()
    try withMount { library in
      try library.shell("echo one > document")
      let place = try library.folder.folder("theirs", for: user)
      try library.sheafSucceeds(
        "mount", place, "--library", library.library, "--as", library.handle, "--for", user.name, "--read-only", "-o",
        "xattrs=named")
      defer { _ = try? library.sheaf("unmount", place) }
      let document = "\(place)/Documents/document"
      #expect(try Command(["getfattr", "-d", "--absolute-names", document], as: user).succeed().text == "")
      let id = try Command(["getfattr", "--only-values", "-n", "user.sheaf.id", document], as: user).succeed().text
      #expect(id.count == 36, "\(id)")
    }
  }

  /// What Linux lets whom set in the other namespaces is what it lets them set on a disk.
  @Test(arguments: Owner.possible) func otherNamespacesAreAsOnADisk(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      let plain = try library.folder.folder("plain", for: library.user)
      try library.shell(
        """
        try() {
          touch "$1/file"
          for name in security.selinux security.other security.capability trusted.other system.other; do
            setfattr -n "$name" -v text "$1/file" 2>/dev/null; echo "$name: set $?"
            getfattr --absolute-names --only-values -n "$name" "$1/file" 2>/dev/null; echo " got $?"
            setfattr -x "$name" "$1/file" 2>/dev/null; echo "removed $?"
          done
        }
        here=$(try .); there=$(try '\(plain)')
        [ "$here" = "$there" ] || { echo "here: $here; on a disk: $there" >&2; exit 1; }
        """)
    }
  }
}
