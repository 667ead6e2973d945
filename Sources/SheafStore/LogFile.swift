internal import Glibc
internal import SheafModel

/// SQLite's log (WAL), which is synced beside SQLite: its own `synchronous` would have every commit wait.
struct LogFile: ~Copyable {
  private let path: String
  private let descriptor: Int32

  /// The log of the library file at `library`, which exists as long as a connection that used it is open.
  ///
  /// - Throws: ``SheafError``.
  init(of library: String) throws(SheafError) {
    path = Self.path(of: library)
    descriptor = open(path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
  }

  deinit { close(descriptor) }

  static func path(of library: String) -> String { library + "-wal" }

  /// Makes everything that is committed survive power loss.
  func sync() throws(SheafError) {
    guard fdatasync(descriptor) == 0 else { throw SheafError(systemError: errno, subject: path) }
  }

  /// Bytes of the file.
  var bytes: Int64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
  }
}
