import Foundation
import Fuse
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
    let mounts = try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8).split(separator: "\n")
    let fields = mounts.map { $0.split(separator: " ") }.first { $0[1] == library.mountpoint }
    return try #require(fields)[3].split(separator: ",")
  }

  /// The other mount's kernel has passed through the folder, and remembers what is in it.
  @Test(.enabled(if: TestUser.isRoot, "acting as an ordinary user needs root"))
  func aFolderClosedByAnotherMountIsClosedHere() throws {
    try withMount(as: try TestUser.ordinary()) { library in
      let second = try library.folder.folder("second", for: library.user)
      try library.sheafSucceeds("mount", second, "--library", library.library, "--as", library.handle)
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
}
