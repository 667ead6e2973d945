import CTestSystem
import Foundation
import Glibc
import MountKit
import Testing

/// Access times, which FUSE leaves to the file system: who does not want them noted, by mount(8) or by open(2), gets
/// none.
@Suite(.serialized) struct AccessTimeTests {
  /// What is read of `file`, `folder` and `link`, and whether access times are to tell it, by the options of the mount.
  private static let options: [(options: [String], noted: Set<String>)] = [
    ([], ["file", "folder", "link"]), (["-o", "relatime,strictatime,lazytime"], ["file", "folder", "link"]),
    (["-o", "noatime"], []), (["-o", "nodiratime"], ["file", "link"]),
    (["-o", "noatime,atime"], ["file", "folder", "link"]),
  ]

  @Test(arguments: options) func theMountsOptionSaysWhatIsNoted(options: [String], noted: Set<String>) throws {
    try withMount(options: options) { library in
      try prepare(library)
      try library.shell("cat file >/dev/null; ls folder >/dev/null; readlink link >/dev/null")
      for name in ["file", "folder", "link"] {
        #expect(try isNoted(library.path(name)) == noted.contains(name), "\(name) with \(options)")
      }
    }
  }

  @Test func whoOpensWithoutAccessTimesLeavesThem() throws {
    try withMount { library in
      // Each is read once: what the kernel keeps it does not ask for again.
      for (number, (flag, noted)) in [(sheaf_test_no_access_time, false), (0, true)].enumerated() {
        for (kind, flags) in [("file", O_RDONLY), ("folder", O_DIRECTORY)] {
          let name = "\(kind)-\(number)"
          try library.shell(
            "\(kind == "file" ? "echo text >" : "mkdir") \(name); touch -a -d 2001-01-01 \(name)")
          let file = open(library.path(name), flags | flag | O_CLOEXEC)
          try #require(file >= 0)
          if kind == "file" {
            var byte: UInt8 = 0
            #expect(read(file, &byte, 1) == 1)
            close(file)
          } else {
            let listing = try #require(fdopendir(file))
            while readdir(listing) != nil {}
            closedir(listing)
          }
          #expect(try isNoted(library.path(name)) == noted, "\(name)")
        }
      }
    }
  }

  /// Makes what is to be read, not read since it was changed.
  private func prepare(_ library: MountedLibrary) throws {
    try library.shell(
      """
      mkdir -p folder; [ -e file ] || echo text >file; [ -L link ] || ln -s file link
      touch -h -a -d 2001-01-01 file folder link
      """)
  }

  private func isNoted(_ path: String) throws -> Bool {
    var status = stat()
    try #require(lstat(path, &status) == 0)
    return status.st_atim.tv_sec > 1_000_000_000
  }
}
