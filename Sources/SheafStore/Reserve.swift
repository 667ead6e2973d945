internal import Glibc
internal import Synchronization
package import SheafModel

/// Disk space held back, so that deleting, `purge` and `compact` work on a full disk (rule 6 of
/// docs/ARCHITECTURE.md).
///
/// A file of allocated blocks beside the library. ``release()`` gives the blocks to the disk for an operation that frees
/// space; ``establish()`` takes them back as soon as there is room, but not while such an operation runs in ``lend(_:)``.
package final class Reserve: Sendable {
  private struct State {
    var isHeld = false
    /// Operations that run in ``Reserve/lend(_:)``.
    var borrowers = 0
  }

  private let path: String
  private let library: String
  private let state = Mutex(State())

  /// - Parameters:
  ///   - path: where the blocks are held.
  ///   - library: path of the library's file.
  package init(path: String, of library: String) {
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

  /// Allocates the blocks if they are not held and not lent; says whether they are held now.
  @discardableResult
  package func establish() -> Bool {
    state.withLock { state in
      if state.isHeld { return true }
      guard state.borrowers == 0, let descriptor = try? LibraryFolder.openFile(at: path, beside: library) else {
        return false
      }
      defer { close(descriptor) }
      if posix_fallocate(descriptor, 0, off_t(size)) == 0 {
        state.isHeld = true
      } else {
        ftruncate(descriptor, 0)
      }
      return state.isHeld
    }
  }

  /// Runs an operation that frees space with the blocks given back to the disk. Nobody else takes them before it ends.
  ///
  /// - Throws: what `body` throws.
  package func lend<Value>(_ body: () throws -> Value) throws -> Value {
    state.withLock { $0.borrowers += 1 }
    let result = Result {
      try release()
      return try body()
    }
    state.withLock { $0.borrowers -= 1 }
    return try result.get()
  }

  /// Gives the blocks back to the disk.
  package func release() throws(SheafError) {
    try Faults.pass(.reserveRelease)
    state.withLock { state in
      // Opened first: truncate(2) by the path would follow a link in its place to another file.
      if let descriptor = try? LibraryFolder.openFile(at: path, beside: library) {
        ftruncate(descriptor, 0)
        close(descriptor)
      }
      state.isHeld = false
    }
  }

  /// Whether so many bytes more can be stored by this user. It is tried: of the free blocks some may be for root alone,
  /// and some for nobody.
  ///
  /// - Parameter bytes: Not many: where the file system cannot allocate blocks, zeros are written.
  func hasRoom(for bytes: Int64) -> Bool {
    state.withLock { _ in
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
