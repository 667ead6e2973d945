import CTestSystem
import Foundation
import Fuse
import Glibc
import MountKit
import Testing

/// Who checks permissions: the kernel where others get into the mount, and the library where its user alone does
/// (RestrictedFolders). What they check is the conformance suite's, which runs on both.
@Suite(.serialized) struct PermissionTests {
  @Test(arguments: Owner.possible) func theLibraryChecksWhereNobodyElseGetsIn(_ owner: Owner) throws {
    try withMount(as: try owner.user()) { library in
      let options = try options(of: library)
      #expect(options.contains("default_permissions") != KernelRelease.expiresNames)
      #expect(!options.contains("allow_other"))
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "others are let in by root")) func theKernelChecksWhereOthersGetIn() throws {
    try withMount(options: ["--allow-other"]) { library in
      let options = try options(of: library)
      #expect(options.contains("default_permissions") && options.contains("allow_other"))
    }
  }

  private func options(of library: MountedLibrary) throws -> [Substring] {
    let mounts = MountedLibrary.mounts
    let fields = mounts.map { $0.split(separator: " ") }.first { $0[1] == library.mountpoint }
    return try #require(fields)[3].split(separator: ",")
  }

  /// As nfsd(8) and other servers of root's ask: with the ids of those for whom they do.
  @Test(.enabled(if: TestUser.isRoot, "acting for others needs root"))
  func whoServesOthersGetsNoFurtherThanThey() throws {
    try withMount { library in
      try library.shell(
        """
        cat >'\(library.folder.path)/serve.py' <<'END'
        import ctypes, os, sys
        ctypes.CDLL(None).setfsgid(65533); ctypes.CDLL(None).setfsuid(65533)
        for path in sys.argv[2:]:
            for call in os.stat, lambda path: os.close(os.open(path, os.O_RDONLY)):
                try:
                    call(path)
                    found = "found"
                except PermissionError:
                    found = "refused"
                except FileNotFoundError:
                    found = "absent"
                if found != sys.argv[1]: sys.exit(f"{path}: {found}")
        END
        served() { python3 '\(library.folder.path)/serve.py' "$@"; }
        mkdir folder other; mkdir -p folder/deep; echo text | tee folder/file >folder/deep/file
        chmod 755 . folder folder/deep; chmod 644 folder/file folder/deep/file
        for round in 1 2 3; do
          cat folder/file folder/deep/file; ls -R . >/dev/null; stat folder/nothing 2>/dev/null && exit 1
          served found folder folder/file folder/deep/file; served absent folder/nothing
          for mode in 700 600 750 754; do
            chmod 755 folder; served found folder/file folder/deep/file
            chmod "$mode" folder; served refused folder/file folder/deep/file folder/nothing
            ls -lR . >/dev/null; cat folder/deep/file >/dev/null; served refused folder/file folder/deep/file
          done
          chmod 711 folder; served found folder/file folder/deep/file
          # What is moved into such a folder is remembered no longer either.
          mkdir other/moved; echo text >other/moved/file; chmod 700 folder; served found other/moved/file
          mv other/moved folder/; served refused folder/moved folder/moved/file
          mv folder/moved other/; served found other/moved/file; rm -r other/moved
          chmod 755 folder
        done
        """)
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "acting for others needs root"))
  func whomADocumentKeepsOutItsHistoryDoes() throws {
    try withMount(options: ["--allow-other"]) { library in
      try library.shell(
        """
        other() { setpriv --reuid 65533 --regid 65533 --clear-groups "$@"; }
        refused() { if other "$@" 2>/dev/null; then echo "not refused: $*" >&2; exit 1; fi; }
        chmod 755 .; umask 077; echo secret >doc; echo second >doc; chmod 600 doc
        refused cat doc; refused cat .versions/doc/0001*; refused cat .versions/doc/0002*
        test "$(cat .versions/doc/0001*)" = secret
        # Nor where its user has brought pages of it.
        refused cat .versions/doc/0001*
        chmod 644 doc
        test "$(other cat .versions/doc/0001*)" = secret
        chmod 600 doc; rm doc
        refused cat .versions/doc/0001*
        """)
    }
  }

  /// The other mount's kernel has passed through the folder, and remembers what is in it.
  @Test(.enabled(if: TestUser.isRoot, "acting as an ordinary user needs root"))
  func aFolderClosedByAnotherMountIsClosedHere() throws {
    try withMount(as: try TestUser.ordinary()) { library in
      let second = try library.folder.folder("second", for: library.user)
      try library.sheafSucceeds("mount", second, "--library", library.library, "--as", library.handle)
      // Where the test fails, too; after that there is nothing to unmount.
      defer { _ = try? library.sheaf("unmount", second) }
      try library.shell(
        """
        there='\(second)/Documents'
        refused() { if "$@" 2>/dev/null; then echo "not refused: $*" >&2; exit 1; fi; }
        mkdir -p folder/deep; echo text > folder/deep/file; echo text > folder/file
        for round in 1 2 3 4 5; do
          cat "$there/folder/file" "$there/folder/deep/file"; refused stat "$there/folder/nothing"
          exec 7<"$there/folder/deep/file"
          chmod 600 folder
          # A moment later it is closed there, too.
          until ! stat "$there/folder/file" 2>/dev/null; do :; done
          refused cat "$there/folder/file"; refused stat "$there/folder/deep/file"
          ls "$there/folder" >/dev/null; refused stat "$there/folder/deep"
          test "$(cat <&7)" = text; exec 7<&-
          chmod 700 folder
          until stat "$there/folder/file" 2>/dev/null; do :; done
        done
        """, limit: .seconds(60))
      try library.sheafSucceeds("unmount", second)
    }
  }

  @Test(.enabled(if: TestUser.isRoot, "open_by_handle_at(2) is for root")) func aHandleOfADeletedFileIsStale() throws {
    try withMount { library in
      try library.shell("echo text | tee removed replaced named >/dev/null; mkdir folder; ln named other; sync")
      for name in ["removed", "replaced"] {
        #expect(sheaf_test_unlink_and_open_handle(library.path(name)) == -1 && errno == ESTALE)
        try library.shell("echo new >replaced")
      }
      // One that has another name is there.
      let file = sheaf_test_unlink_and_open_handle(library.path("named"))
      #expect(file >= 0)
      close(file)
      // One that is open is there until it is closed.
      let held = open(library.path("other"), O_RDONLY | O_CLOEXEC)
      let again = sheaf_test_unlink_and_open_handle(library.path("other"))
      #expect(again >= 0)
      var text = [UInt8](repeating: 0, count: 10)
      #expect(read(again, &text, 10) == 5)
      close(again)
      close(held)
    }
  }
}
