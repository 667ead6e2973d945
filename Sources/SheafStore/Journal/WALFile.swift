internal import Glibc
internal import SheafModel
internal import Synchronization

/// SQLite's log (WAL), synced by Sheaf itself: with SQLite's own `synchronous` every commit would wait.
///
/// Linux reports pages that it could not write once, and takes them for written from then on. So after a failed sync no
/// sync is believed until all of the log has been written again (``rewrite()``).
struct WALFile: ~Copyable {
  private let path: String
  private let descriptor: Int32
  private let doubt = Mutex(false)

  /// The log of the library file at `library`. It exists as long as a connection that used it is open.
  ///
  /// - Throws: ``SheafError``.
  init(of library: String) throws(SheafError) {
    path = Self.path(of: library)
    descriptor = LibraryFolder.open(path, O_RDWR)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
  }

  deinit { close(descriptor) }

  static func path(of library: String) -> String { library + "-wal" }

  /// Makes everything committed survive power loss.
  func sync() throws(SheafError) {
    try doubt.withLock { (isUnreliable) throws(SheafError) in
      guard !isUnreliable else {
        throw SheafError(.inputOutput, subject: path, reason: "could not be written a moment ago")
      }
      guard fdatasync(descriptor) == 0 else {
        isUnreliable = true
        throw SheafError(systemError: errno, subject: path)
      }
    }
  }

  /// Whether a sync failed, so that the disk may miss pages that the kernel takes for written.
  var isUnreliable: Bool { doubt.withLock { $0 } }

  /// Marks the log as unreliable until ``rewrite()``.
  func markUnreliable() { doubt.withLock { $0 = true } }

  /// Bytes that are written at a time.
  private static let pieceBytes = 1 << 20

  /// Writes the kernel's copy of the log once more, and syncs it. The caller keeps SQLite from writing to it meanwhile.
  func rewrite() throws(SheafError) {
    try doubt.withLock { (isUnreliable) throws(SheafError) in
      var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
      var position: off_t = 0
      while true {
        let count = pread(descriptor, &piece, piece.count, position)
        if count == 0 { break }
        guard count > 0, pwrite(descriptor, piece, count, position) == count else {
          throw SheafError(systemError: errno, subject: path)
        }
        position += off_t(count)
      }
      guard fdatasync(descriptor) == 0 else { throw SheafError(systemError: errno, subject: path) }
      isUnreliable = false
    }
  }

  /// Makes all that an earlier process left survive power loss. That process may have heard of pages that the disk did
  /// not take, and Linux does not report them again.
  func secure() throws(SheafError) {
    do {
      try rewrite()
    } catch {
      // A disk without room to write the log again is believed.
      guard error.kind == .noSpace else { throw error }
      try sync()
    }
  }

  /// Bytes of the file.
  var bytes: Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }
}
