internal import CLinux
internal import Foundation
internal import Glibc
internal import SheafModel

/// The file of a backup, under another name until it is whole.
struct BackupFile {
  private let destination: String
  /// Holds the lock that tells other processes that the file is being written.
  private let descriptor: CInt

  /// Its path until it is whole.
  let path: String

  /// Makes the file, in place of one that an interrupted backup left.
  ///
  /// - Throws: ``SheafError``: `exists` where the destination is there; `busy` if another process writes it.
  init(becoming destination: String) throws(SheafError) {
    self.destination = destination
    path = destination + ".sheaf-part"
    var status = stat()
    guard lstat(destination, &status) != 0 else { throw SheafError(systemError: EEXIST, subject: destination) }
    let left = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if left >= 0 {
      defer { close(left) }
      guard flock(left, LOCK_EX | LOCK_NB) == 0 else { throw Self.isBeingWritten(destination) }
      Self.remove(path)
    }
    try LibraryFolder.refuseStrangers(beside: path)
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: path) }
    flock(descriptor, LOCK_EX | LOCK_NB)
  }

  /// Checks that SQLite has this very file open: a user who can change the folder may put another one at the path
  /// before SQLite opens that.
  ///
  /// - Throws: `busy`.
  func verifyIsOpen() throws(SheafError) {
    var own = stat()
    var count = 0
    if fstat(descriptor, &own) == 0, let folder = opendir("/proc/self/fd") {
      defer { closedir(folder) }
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
        }
        var status = stat()
        guard let number = CInt(name), fstat(number, &status) == 0 else { continue }
        if status.st_dev == own.st_dev, status.st_ino == own.st_ino { count += 1 }
      }
    }
    guard count < 2 else { return }
    throw SheafError(
      .busy, subject: destination, reason: "somebody replaced the file while it was being written",
      advice: "name a file in a folder that only you can change")
  }

  /// Gives the file its name, durably. SQLite must have closed it: this drops SQLite's locks.
  func finish() throws(SheafError) {
    defer { close(descriptor) }
    var (own, named) = (stat(), stat())
    guard fstat(descriptor, &own) == 0, lstat(path, &named) == 0, own.st_ino == named.st_ino else {
      throw Self.isBeingWritten(destination)
    }
    if renameat2(AT_FDCWD, path, AT_FDCWD, destination, UInt32(RENAME_NOREPLACE)) != 0 {
      // Not every file system can do that; link(2) does not replace, either.
      let isMade = errno == EINVAL && link(path, destination) == 0
      let code = errno
      Self.remove(path)
      guard isMade else { throw SheafError(systemError: code, subject: destination) }
    }
    try LibraryFolder.sync(containing: destination)
  }

  /// Takes it away.
  func discard() {
    Self.remove(path)
    close(descriptor)
  }

  private static func remove(_ path: String) {
    unlink(path)
    unlink(path + "-journal")
  }

  private static func isBeingWritten(_ destination: String) -> SheafError {
    SheafError(
      .busy, subject: destination, reason: "is being written by another backup", advice: "name another file")
  }
}
