import Fuse
import Testing

@testable import SheafCommand

/// Disks that fstab(5) names and that are not mounted.
@Suite struct FileSystemTableTests {
  private let mounted = MountTable(
    parsing: Array("36 35 8:1 / /mnt/here rw - ext4 /dev/sda1 rw\n37 35 8:2 / / rw - ext4 /dev/sda2 rw\n".utf8))

  @Test func aLibraryOnAnAbsentDiskIsSeen() {
    let text = """
      # a comment
      UUID=1 / ext4 defaults 0 1
      /dev/sda1 /mnt/here ext4 defaults 0 2
      LABEL=usb /mnt/usb\\040stick/ ext4 noauto,user 0 2
      LABEL=b /mnt/b ext4 noauto 0 2
      UUID=2 none swap sw 0 0

      """
    let table = FileSystemTable(parsing: Array(text.utf8))
    #expect(table.absentDisk(for: "/mnt/usb stick/sheaf/l.sqlite", mounted) == "/mnt/usb stick")
    #expect(table.absentDisk(for: "/mnt/b/l.sqlite", mounted) == "/mnt/b")
    for path in ["/mnt/here/l.sqlite", "/mnt/bb/l.sqlite", "/home/a/l.sqlite", "/mnt/b"] {
      #expect(table.absentDisk(for: path, mounted) == nil)
    }
    for text in ["", "\n", "a", "# /mnt/b\n", "a b\nLABEL=b"] {
      #expect(FileSystemTable(parsing: Array(text.utf8)).absentDisk(for: "/mnt/b/l.sqlite", mounted) == nil)
    }
  }
}
