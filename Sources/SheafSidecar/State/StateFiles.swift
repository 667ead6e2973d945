import Foundation
import Glibc
package import SheafModel

/// The files in which the sidecar keeps its state, and the folder that holds them.
///
/// They are the user's alone (0600): events tell what documents are called. None is reached by a link, so that nobody
/// has another user's sidecar write elsewhere; and root keeps them where nobody else can put anything in their place.
package enum StateFiles {
  /// O_PATH of open(2), which the Glibc module does not declare.
  private static let pathOnly: CInt = 0o10_000_000

  /// Makes the folder of a file, with those above it, where it is missing.
  ///
  /// - Throws: ``SheafError``: `notPermitted` for root, where others can change the folder or one above it.
  package static func makeFolder(of path: String) throws(SheafError) {
    let folder = (path as NSString).deletingLastPathComponent
    guard !folder.isEmpty else { return }
    var missing: [String] = []
    var next = folder
    while !next.isEmpty, access(next, F_OK) != 0, errno == ENOENT {
      missing.append(next)
      next = (next as NSString).deletingLastPathComponent
    }
    try refuseForeignFolder(next.isEmpty ? "." : next, of: path)
    for each in missing.reversed() where mkdir(each, 0o700) != 0 && errno != EEXIST {
      throw SheafError(systemError: errno, subject: each.printable)
    }
  }

  /// Opens a file of the state, making it where it is missing.
  ///
  /// - Parameter flags: those of open(2) besides `O_CREAT`.
  /// - Throws: ``SheafError``: `invalid` for a link, a file of several names and what is no file.
  package static func open(_ path: String, _ flags: CInt) throws(SheafError) -> CInt {
    let descriptor = Glibc.open(
      path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600)
    guard descriptor >= 0 else { throw errno == ELOOP ? isLink(path) : SheafError(systemError: errno, subject: path) }
    do throws(SheafError) {
      try check(descriptor, path)
    } catch {
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Refuses a file, opened by ``open(_:_:)`` to be a lock, that holds more than a process's id: it would be written
  /// over.
  package static func refuseForeignLock(_ descriptor: CInt, _ path: String) throws(SheafError) {
    var bytes = [UInt8](repeating: 0, count: 33)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 32 || !bytes.allSatisfy({ $0 == 0 || $0 == 10 || (48...57).contains($0) }) else { return }
    throw SheafError(
      .exists, subject: path.printable, reason: "is there, and is no lock", advice: "name another file: --state")
  }

  /// Takes others' rights from a file of the state, if it is there.
  ///
  /// It is not opened, only looked at (O_PATH): closing it would drop the locks of SQLite's connections of this process
  /// (fcntl_locking(2)).
  ///
  /// - Throws: ``SheafError``: `invalid` for a link, a file of several names and what is no file.
  static func makePrivate(_ path: String) throws(SheafError) {
    let descriptor = Glibc.open(path, pathOnly | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return }
      throw SheafError(systemError: errno, subject: path)
    }
    defer { close(descriptor) }
    try check(descriptor, path)
    // The mode of a file that has it already stays untouched: the file may belong to another user.
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & 0o777 != 0o600 else { return }
    guard chmod("/proc/self/fd/\(descriptor)", 0o600) == 0 else { throw SheafError(systemError: errno, subject: path) }
  }

  private static func check(_ descriptor: CInt, _ path: String) throws(SheafError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SheafError(systemError: errno, subject: path) }
    if status.st_mode & S_IFMT == S_IFLNK { throw isLink(path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw SheafError(.invalid, subject: path.printable, reason: "is no file", advice: "name another file: --state")
    }
    guard status.st_nlink < 2 else {
      throw SheafError(
        .invalid, subject: path.printable, reason: "has another name, a hard link, so that it may be any file",
        advice: "name another file: --state")
    }
  }

  private static func isLink(_ path: String) -> SheafError {
    SheafError(
      .invalid, subject: path.printable, reason: "is a symbolic link", advice: "name the file to which it leads")
  }

  /// Refuses, for root, a folder in which others can put a link in the place of a file, or of a folder above.
  private static func refuseForeignFolder(_ folder: String, of path: String) throws(SheafError) {
    guard geteuid() == 0 else { return }
    guard let resolved = realpath(folder, nil) else { throw SheafError(systemError: errno, subject: folder) }
    defer { free(resolved) }
    var next = String(cString: resolved)
    var isTop = false
    while !isTop {
      isTop = next == "/"
      var status = stat()
      guard lstat(next, &status) == 0 else { throw SheafError(systemError: errno, subject: next) }
      // In a sticky folder others cannot take away what is root's.
      let isShared = status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0
      guard status.st_uid == 0, !isShared else {
        throw SheafError(
          .notPermitted, subject: path.printable, reason: "is in a folder that others than root can change: \(next)",
          advice: "name a file in a folder of root's own: --state")
      }
      next = (next as NSString).deletingLastPathComponent
    }
  }
}
