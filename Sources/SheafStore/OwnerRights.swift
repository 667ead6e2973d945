internal import CLinux
internal import Glibc
internal import Synchronization

/// The rights of a library's owner (setfsuid(2)), with which a root process opens, makes and removes that library's
/// files.
///
/// Rules:
/// 1. They apply if the file's owner owns the folder, too: a user who can rename the folder, or put links in it, leads
///    root only to files that they can reach themselves.
/// 2. The owner is looked up once, before anything else happens to the files, and holds while a ``Store`` is open. A
///    later look-up would find the owner of whatever the path leads to by then.
/// 3. An open descriptor keeps its rights: root reads, writes and allocates by it.
final class OwnerRights: Sendable {
  private struct User: Equatable {
    let user: uid_t
    let group: gid_t
  }

  private struct Registration {
    let owner: User
    var users = 1
  }

  /// By the path of a library's file. SQLite opens files by functions that belong to the whole process, and tells them
  /// only a path.
  private static let registrations = Mutex<[String: Registration]>([:])

  private let path: String

  /// Opens the files of a library with their owner's rights for as long as this object exists.
  ///
  /// - Parameter path: the path of the library's file, which may not exist yet; a file that root makes is root's.
  init(of path: String) {
    self.path = path
    guard geteuid() == 0, let owner = Self.owner(of: path) else { return }
    Self.registrations.withLock { registrations in
      if registrations[path] == nil {
        registrations[path] = Registration(owner: owner)
      } else {
        registrations[path]?.users += 1
      }
    }
  }

  deinit {
    Self.registrations.withLock { registrations in
      guard let users = registrations[path]?.users else { return }
      if users > 1 { registrations[path]?.users = users - 1 } else { registrations[path] = nil }
    }
  }

  /// Runs `body` with the rights of the owner of the library to which the file at `path` belongs: its own file, or one
  /// beside it whose name begins with that file's.
  static func acting<Value, Failure: Error>(
    on path: String, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let owner = registered(path) else { return try body() }
    let (group, user) = (setfsgid(owner.group), setfsuid(owner.user))
    let result = Result { () throws(Failure) in try body() }
    let code = errno
    setfsuid(uid_t(bitPattern: user))
    setfsgid(gid_t(bitPattern: group))
    errno = code
    return try result.get()
  }

  private static func registered(_ path: String) -> User? {
    registrations.withLock { registrations in
      if registrations.isEmpty { return nil }
      if let found = registrations[path] { return found.owner }
      return registrations.first { path.hasPrefix($0.key + "-") }?.value.owner
    }
  }

  private static func owner(of path: String) -> User? {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    let folder = end == path.startIndex ? (path.first == "/" ? "/" : ".") : String(path[..<end])
    var (file, around) = (stat(), stat())
    guard lstat(path, &file) == 0, file.st_mode & S_IFMT == S_IFREG, stat(folder, &around) == 0,
      file.st_uid == around.st_uid, file.st_uid != 0
    else { return nil }
    return User(user: file.st_uid, group: file.st_gid)
  }
}
