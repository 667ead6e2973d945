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
    var status = statvfs()
    guard
      statvfs(path, &status) == 0
        || statvfs(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]), &status) == 0
    else { return 16 << 20 }
    let total = Int64(status.f_blocks) * Int64(status.f_frsize)
    return min(max(total / 32, 1 << 20), 16 << 20)
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

  /// Bytes of the library's disk: those that an ordinary user can still write, all free ones, and all.
  package func space() -> (available: Int64, free: Int64, total: Int64) {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return (0, 0, 0) }
    let unit = Int64(status.f_frsize)
    return (Int64(status.f_bavail) * unit, Int64(status.f_bfree) * unit, Int64(status.f_blocks) * unit)
  }
}
