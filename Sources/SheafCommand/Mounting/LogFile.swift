import Glibc
import SheafLibrary
import SheafModel

/// The log of the process in the background, beside the library.
enum LogFile {
  /// Bytes past which the log begins anew when the process starts.
  private static let maximumSize: off_t = 1024 * 1024

  static func path(of location: LibraryLocation) -> String { location.path + "-log" }

  /// Opens the log for writing at its end, and makes its folder if need be.
  static func open(for location: LibraryLocation) throws(SheafError) -> CInt {
    let path = path(of: location)
    try makeFolder(SystemPath.split(Array(path.utf8)).parent)
    // The folder's owner can neither lead a root process elsewhere by a symbolic link, nor hold it up by a fifo.
    let flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let made = Glibc.open(path, flags | O_CREAT | O_EXCL, 0o600)
    let descriptor = made >= 0 ? made : Glibc.open(path, flags)
    guard descriptor >= 0 else {
      if errno == ELOOP {
        throw SheafError(.inputOutput, subject: path, reason: "is a symbolic link", advice: "take it away")
      }
      throw unfit(path, code: errno)
    }
    var (log, library) = (stat(), stat())
    guard fstat(descriptor, &log) == 0, log.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw unfit(path, code: EEXIST)
    }
    // It may be a file of somebody else's, by another name.
    guard log.st_nlink == 1 else {
      close(descriptor)
      throw SheafError(
        .notPermitted, subject: path, reason: "has another name, a hard link, so that it may be any file",
        advice: "take it away")
    }
    // The library's owner may be the next to write it.
    if made >= 0, geteuid() == 0, lstat(location.path, &library) == 0, library.st_mode & S_IFMT == S_IFREG {
      fchown(descriptor, library.st_uid, library.st_gid)
    }
    if log.st_size > maximumSize { ftruncate(descriptor, 0) }
    return descriptor
  }

  private static func unfit(_ path: String, code: CInt) -> SheafError {
    SheafError(systemError: code, subject: path, advice: "name a library in a folder of your own: --library")
  }

  /// The last line that is not empty, fit for an error; nil if there is none.
  static func lastLine(of location: LibraryLocation) -> String? {
    let bytes = (try? SmallFile.read(path(of: location), limit: 16 * 1024, followingLinks: false)) ?? []
    return bytes.split(separator: UInt8(ascii: "\n")).last.map { $0.readable.printable }
  }

  private static func makeFolder(_ folder: [UInt8]) throws(SheafError) {
    let path = folder.readable
    guard access(path, F_OK) != 0 else { return }
    try makeFolder(SystemPath.split(folder).parent)
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SheafError(systemError: errno, subject: path) }
  }
}
