internal import CLinux
internal import Foundation
internal import Glibc
internal import SheafModel

/// The file of a backup, under another name until it is whole.
///
/// Rules:
/// 1. The folder is opened once, and everything else goes by its descriptor. A root process goes there by no symbolic
///    link: where it leads is for whoever made it to say, and may change.
/// 2. SQLite opens the file by ``path``, which is that of its descriptor: it writes to the file that was made here,
///    whatever has its name by then, and neither reads nor makes a file beside it.
struct BackupFile {
  /// The folder, as a place alone (O_PATH).
  private let folder: CInt
  private let name: String
  /// The folder's path, for messages.
  private let place: String
  /// The file. It holds the lock that tells other processes that it is being written.
  private let descriptor: CInt

  private static let suffix = ".sheaf-part"
  private static let linkAdvice = "name the place to which it leads"

  /// The file itself for as long as this process has it open. Connections to it keep their journal in memory: no file
  /// can be beside it.
  var path: String { SQLiteFiles.path(ofDescriptor: descriptor) }
  /// Statements with which each connection to it begins.
  static let pragmas = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL"

  /// Makes the file, in place of one that an interrupted backup left.
  ///
  /// - Throws: ``SheafError``: `exists` where the destination is there; `busy` if another process writes it; `invalid`
  ///   where root would go by a symbolic link.
  init(becoming destination: String) throws(SheafError) {
    let path = destination as NSString
    (name, place) = (path.lastPathComponent, path.deletingLastPathComponent)
    folder = try Self.openFolder(place)
    do throws(SheafError) {
      descriptor = try Self.make(name + Self.suffix, becoming: name, in: folder, place)
    } catch {
      close(folder)
      throw error
    }
    flock(descriptor, LOCK_EX | LOCK_NB)
  }

  private static func openFolder(_ place: String) throws(SheafError) -> CInt {
    let flags = clinux_path_only | O_DIRECTORY | O_CLOEXEC
    guard geteuid() == 0 else {
      let folder = open(place, flags)
      guard folder >= 0 else { throw SheafError(systemError: errno, subject: place) }
      return folder
    }
    var (folder, passed) = (open("/", flags), "")
    guard folder >= 0 else { throw SheafError(systemError: errno, subject: "/") }
    for component in place.split(separator: "/").map(String.init) {
      passed += "/" + component
      let next = openat(folder, component, flags | O_NOFOLLOW)
      let code = errno
      var status = stat()
      let isLink =
        next < 0 && fstatat(folder, component, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFLNK
      close(folder)
      if isLink {
        throw SheafError(.invalid, subject: passed, reason: "is a symbolic link", advice: linkAdvice)
      }
      guard next >= 0 else { throw SheafError(systemError: code, subject: passed) }
      folder = next
    }
    return folder
  }

  /// Makes a file in a folder and opens it.
  private static func make(
    _ part: String, becoming name: String, in folder: CInt, _ place: String
  ) throws(SheafError) -> CInt {
    func path(_ name: String) -> String { place == "/" ? place + name : place + "/" + name }
    var status = stat()
    guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 else {
      throw SheafError(
        .exists, subject: path(name), reason: "is there already", advice: "name a file that is not there yet")
    }
    try FormerLibrary.refuseChanges(at: path(name), in: folder)
    let left = openat(folder, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if left >= 0 {
      defer { close(left) }
      guard fstat(left, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        throw SheafError(.exists, subject: path(part), reason: "is no file", advice: "take it away")
      }
      guard flock(left, LOCK_EX | LOCK_NB) == 0 else { throw isBeingWritten(path(name)) }
      guard isPart(left) else {
        throw SheafError(
          .exists, subject: path(part), reason: "is there, and is no part of a backup", advice: "move it away")
      }
      unlinkat(folder, part, 0)
    } else if errno == ELOOP {
      throw SheafError(.exists, subject: path(part), reason: "is a symbolic link", advice: "take it away")
    }
    let made = openat(folder, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard made >= 0 else { throw SheafError(systemError: errno, subject: path(part)) }
    return made
  }

  /// Whether a file may be what an interrupted backup left: a database, or one of which the first page is missing.
  private static func isPart(_ file: CInt) -> Bool {
    var header = [UInt8](repeating: 0, count: 16)
    guard pread(file, &header, 16, 0) >= 0 else { return false }
    return header.allSatisfy { $0 == 0 } || header == LibraryFolder.databaseMark
  }

  /// Marks the file, to which SQLite has copied a database with a log, as one without: SQLite would look for the log
  /// beside it.
  ///
  /// Source: SQLite, "Database File Format", 1.3.3.
  func markAsWithoutLog() throws(SheafError) {
    guard LibraryFolder.note(hasLog: false, in: descriptor) else {
      throw SheafError(systemError: errno, subject: destination)
    }
  }

  /// Gives the file its name, durably. SQLite must have closed it: this drops SQLite's locks.
  ///
  /// - Throws: ``SheafError``: `busy` where somebody else took its place meanwhile.
  func finish() throws(SheafError) {
    defer {
      close(descriptor)
      close(folder)
    }
    let part = name + Self.suffix
    guard fsync(descriptor) == 0 else {
      let code = errno
      unlinkat(folder, part, 0)
      throw SheafError(systemError: code, subject: destination)
    }
    guard has(part) else { throw Self.isBeingWritten(destination) }
    if renameat2(folder, part, folder, name, UInt32(RENAME_NOREPLACE)) != 0 {
      // Not every file system can do that; link(2) does not replace, either.
      let isMade = errno == EINVAL && linkat(folder, part, folder, name, 0) == 0
      let code = errno
      unlinkat(folder, part, 0)
      guard isMade else { throw SheafError(systemError: code, subject: destination) }
    }
    guard has(name) else {
      throw SheafError(
        .busy, subject: destination, reason: "somebody replaced the file while it was being written",
        advice: "name a file in a folder that only you can change")
    }
    let listed = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard listed >= 0 else { throw SheafError(systemError: errno, subject: place) }
    defer { close(listed) }
    guard fsync(listed) == 0 else { throw SheafError(systemError: errno, subject: place) }
  }

  /// Takes it away.
  func discard() {
    if has(name + Self.suffix) { unlinkat(folder, name + Self.suffix, 0) }
    close(descriptor)
    close(folder)
  }

  private var destination: String { place == "/" ? place + name : place + "/" + name }

  /// Whether a name in the folder is this file's.
  private func has(_ name: String) -> Bool {
    var (own, named) = (stat(), stat())
    return fstat(descriptor, &own) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0
      && own.st_dev == named.st_dev && own.st_ino == named.st_ino
  }

  private static func isBeingWritten(_ destination: String) -> SheafError {
    SheafError(
      .busy, subject: destination, reason: "is being written by another backup", advice: "name another file")
  }
}
