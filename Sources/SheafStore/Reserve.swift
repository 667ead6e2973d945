internal import Glibc
internal import Synchronization
package import SheafModel

/// Disk space held back, so that deleting, `purge` and `compact` work on a full disk (rule 6 of
/// docs/ARCHITECTURE.md).
///
/// A file of allocated blocks beside the library. ``release()`` gives the blocks to SQLite's log for one operation that
/// frees space; ``establish()`` takes them back as soon as there is room.
package final class Reserve: Sendable {
  private let path: String
  private let library: String
  private let held = Mutex(false)

  /// - Parameter library: path of the library's file.
  init(path: String, of library: String) {
    self.path = path
    self.library = library
  }

  /// Bytes to hold: a thirty-second of the disk, between 1 and 16 MiB.
  var size: Int64 {
    guard let disk else { return 16 << 20 }
    let total = Int64(disk.f_blocks) * Int64(disk.f_frsize)
    return min(max(total / 32, 1 << 20), 16 << 20)
  }

  /// What the system says of the disk, before the file is there too.
  private var disk: statvfs? {
    var status = statvfs()
    let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    return statvfs(path, &status) == 0 || statvfs(folder, &status) == 0 ? status : nil
  }

  /// Allocates the blocks if they are not held; says whether they are now.
  @discardableResult
  package func establish() -> Bool {
    held.withLock { held in
      if held { return true }
      guard let descriptor = try? LibraryFolder.openFile(at: path, beside: library) else { return false }
      defer { close(descriptor) }
      if posix_fallocate(descriptor, 0, off_t(size)) == 0 {
        held = true
      } else {
        ftruncate(descriptor, 0)
      }
      return held
    }
  }

  /// Gives the blocks back to the disk.
  package func release() throws(SheafError) {
    try Faults.pass(.reserveRelease)
    held.withLock { held in
      // Opened first: truncate(2) by the path would follow a link in its place to another file.
      if let descriptor = try? LibraryFolder.openFile(at: path, beside: library) {
        ftruncate(descriptor, 0)
        close(descriptor)
      }
      held = false
    }
  }

  /// Whether so many bytes more can be stored by this user. It is tried: of the free blocks some may be for root alone,
  /// and some for nobody.
  ///
  /// - Parameter bytes: Not many: where the file system cannot allocate blocks, zeros are written.
  func hasRoom(for bytes: Int64) -> Bool {
    held.withLock { _ in
      guard let descriptor = try? LibraryFolder.openFile(at: path, beside: library) else { return false }
      defer { close(descriptor) }
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { return false }
      let isThere = posix_fallocate(descriptor, status.st_size, off_t(bytes)) == 0
      ftruncate(descriptor, status.st_size)
      return isThere
    }
  }

  /// Bytes of the library's disk: those that an ordinary user can still write, all free ones, and all.
  package func space() -> (available: Int64, free: Int64, total: Int64) {
    guard let disk else { return (0, 0, 0) }
    let unit = Int64(disk.f_frsize)
    return (Int64(disk.f_bavail) * unit, Int64(disk.f_bfree) * unit, Int64(disk.f_blocks) * unit)
  }
}
