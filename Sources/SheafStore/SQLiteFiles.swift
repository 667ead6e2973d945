internal import GRDBSQLite
internal import Glibc

/// Makes SQLite open and remove its files in this process as ``LibraryFolder`` does: it follows no link to another
/// file, waits for no fifo, and has the rights of the library's owner (``OwnerRights``).
///
/// SQLite looks for a journal, a log and its index beside the library's file, in a folder that may be another user's.
/// It resolves the path of the file itself before opening it; ``GRDB/Configuration/refuseLink(at:)`` deals with that.
///
/// Source: SQLite, `sqlite3_vfs.xSetSystemCall`.
enum SQLiteFiles {
  /// Takes effect for every connection of the process once it is first read.
  static let areGuarded: Bool = {
    guard let system = sqlite3_vfs_find("unix"), let set = system.pointee.xSetSystemCall else { return false }
    return set(system, "open", unsafeBitCast(guardedOpen, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
      && set(system, "unlink", unsafeBitCast(guardedUnlink, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
      && set(system, "readlink", unsafeBitCast(guardedReadlink, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
      && set(system, "lstat", unsafeBitCast(guardedLstat, to: sqlite3_syscall_ptr.self)) == SQLITE_OK
  }()

  private static let ownFolder = "/proc/self"
  private static let descriptorFolder = ownFolder + "/fd/"

  /// A path by which SQLite opens what a descriptor of this process is of, whatever its names lead to.
  static func path(ofDescriptor descriptor: CInt) -> String { descriptorFolder + "\(descriptor)" }

  private static func isDescriptor(_ path: String) -> Bool {
    path.hasPrefix(descriptorFolder) && CInt(path.dropFirst(descriptorFolder.count)) != nil
  }

  /// `SQLITE_DEFAULT_FILE_PERMISSIONS`.
  private static let defaultMode: mode_t = 0o644

  private static let guardedOpen: @convention(c) (UnsafePointer<CChar>, CInt, mode_t) -> CInt = { path, flags, mode in
    // SQLite gives what it makes the mode of the library's file. This is its mode for a library that it makes itself: here
    // files are made before SQLite opens them, and one that is gone again was taken away by another user.
    let mode = mode == defaultMode ? 0o600 : mode
    let name = String(cString: path)
    // There, the link is the kernel's own.
    let flags = isDescriptor(name) ? flags & ~(O_NOFOLLOW | O_CREAT) : flags | O_NOFOLLOW
    let descriptor = OwnerRights.acting(on: name) { open(path, flags | O_NONBLOCK | O_NOCTTY, mode) }
    guard descriptor >= 0 else { return descriptor }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFIFO else {
      close(descriptor)
      errno = EACCES
      return -1
    }
    return descriptor
  }

  /// SQLite resolves a path before it opens it: a link that was put on the way would lead it past ``OwnerRights``.
  private static let guardedReadlink: @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<CChar>, Int) -> Int = {
    path, buffer, size in
    guard !OwnerRights.areRegistered(below: String(cString: path)) else {
      errno = EACCES
      return -1
    }
    return readlink(path, buffer, size)
  }

  /// SQLite resolves the path of a descriptor, too, and would open what has the name by then.
  private static let guardedLstat: @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<stat>) -> CInt = {
    path, status in
    let name = String(cString: path)
    return name == ownFolder || name.hasPrefix(descriptorFolder) ? stat(path, status) : lstat(path, status)
  }

  private static let guardedUnlink: @convention(c) (UnsafePointer<CChar>) -> CInt = { path in
    OwnerRights.acting(on: String(cString: path)) { unlink(path) }
  }
}
