internal import CLinux
internal import Glibc
internal import SheafModel
internal import Synchronization

/// Room on the disk for the growth of the library's file, which is there before the log is copied into it.
///
/// A full log can only be copied, and its own room be had back, if the file can grow; and other programs fill the disk
/// at any moment. So after each commit the file gets the blocks that copying its pages will need, behind its end. It
/// gets no longer by that, and SQLite takes no notice. Once all of the log is copied, SQLite cuts off what was left.
final class FileRoom: Sendable {
  /// -1 once closed.
  private let descriptor: Mutex<Int32>

  private static let pageBytes: Int64 = 4096
  /// Bytes for which it is tried whether the disk has room for them. If it has not, the attempt uses up what is left.
  private static let triedRoom: Int64 = 1 << 20

  /// - Throws: ``SheafError``.
  init(of library: String) throws(SheafError) {
    let opened = LibraryFolder.open(library, O_RDWR)
    guard opened >= 0 else { throw SheafError(systemError: errno, subject: library) }
    descriptor = Mutex(opened)
  }

  deinit { close() }

  /// To be called after the last connection is closed: this drops the POSIX locks that SQLite has on the file.
  func close() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { Glibc.close(descriptor) }
      descriptor = -1
    }
  }

  /// Allocates what a file of so many pages lacks. Where the disk has no room for that, or cannot allocate blocks, the
  /// commit goes on without.
  func allocate(pages: Int64) {
    let end = pages * Self.pageBytes
    descriptor.withLock { descriptor in
      var status = stat()
      guard descriptor >= 0, fstat(descriptor, &status) == 0, end > Int64(status.st_size) else { return }
      let lacking = end - max(Int64(status.st_size), Int64(status.st_blocks) * 512)
      guard lacking > 0, lacking <= Self.triedRoom || hasRoom(for: lacking, descriptor) else { return }
      // Blocks that are there already stay as they are.
      _ = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, status.st_size, off_t(end) - status.st_size)
    }
  }

  private func hasRoom(for bytes: Int64, _ descriptor: Int32) -> Bool {
    var disk = statvfs()
    return fstatvfs(descriptor, &disk) == 0 && Int64(disk.f_bavail) * Int64(disk.f_frsize) >= bytes
  }
}
