internal import CLinux
internal import Glibc
internal import SheafModel
internal import Synchronization

/// The rights of a library's owner (setfsuid(2)), with which a root process opens, makes and removes that library's
/// files.
///
/// Rules:
/// 1. They apply if the file's owner owns the folder, too: a user who can rename the folder, or put links in it, leads
///    root only to files that they can reach themselves. They apply as well if the file, or its folder, is missing
///    where that user may make it: what root makes there is theirs.
/// 2. The owner is looked up once, before anything else happens to the files, and holds while a ``Store`` is open. A
///    later look-up would find the owner of whatever the path leads to by then. The look-up follows no symbolic link,
///    since the link's maker chooses where it leads at that moment.
/// 3. The groups are those that the user database gives the owner, since anybody can have a file of a group that is not
///    theirs (in a set-group-ID folder). None of root's own stays.
/// 4. Nothing is done without these rights: a process that may not take them opens no such library.
/// 5. An open descriptor keeps its rights: root reads, writes and allocates by it.
final class OwnerRights: Sendable {
  private struct Registration {
    let owner: Owner
    var users = 1
  }

  /// By the path of a library's file. SQLite opens files by functions that belong to the whole process, and tells them
  /// only a path.
  private static let registrations = Mutex<[String: Registration]>([:])

  private let path: String
  private let isRegistered: Bool

  /// Opens the files of a library with their owner's rights for as long as this object exists.
  ///
  /// - Parameter path: the path of the library's file, which may not exist yet.
  /// - Throws: ``SheafError``: `invalid` where a symbolic link leads to the library; `notPermitted` where this process
  ///   may not take the owner's rights; what keeps its folder from being opened.
  init(of path: String) throws(SheafError) {
    let owner = geteuid() == 0 ? try Self.owner(of: path) : nil
    if let owner, owner.acting({ 0 }) != 0 {
      throw SheafError(
        .notPermitted, subject: path,
        reason: "belongs to user \(owner.user), whose rights this process of root's cannot take",
        advice: "give it the capabilities CAP_SETUID and CAP_SETGID, or act as that user")
    }
    self.path = path
    isRegistered = owner != nil
    guard let owner else { return }
    Self.registrations.withLock { registrations in
      if registrations[path] == nil {
        registrations[path] = Registration(owner: owner)
      } else {
        registrations[path]?.users += 1
      }
    }
  }

  deinit {
    guard isRegistered else { return }
    Self.registrations.withLock { registrations in
      guard let users = registrations[path]?.users else { return }
      if users > 1 { registrations[path]?.users = users - 1 } else { registrations[path] = nil }
    }
  }

  /// Makes a system call with the rights of the owner of the library to which the file at `path` belongs: its own file,
  /// or one beside it whose name begins with that file's.
  ///
  /// - Returns: What `call` returns; -1 with EPERM in errno(3), and nothing done, where this thread cannot take the
  ///   rights.
  static func acting(on path: String, _ call: () -> Int32) -> Int32 {
    registered(path)?.acting(call) ?? call()
  }

  /// Whether a library that is opened with its owner's rights is the file at `path`, or lies below it.
  static func areRegistered(below path: String) -> Bool {
    registrations.withLock { $0.keys.contains { $0 == path || $0.hasPrefix(path + "/") } }
  }

  private static func registered(_ path: String) -> Owner? {
    registrations.withLock { registrations in
      if registrations.isEmpty { return nil }
      if let found = registrations[path] { return found.owner }
      return registrations.first { path.hasPrefix($0.key + "-") }?.value.owner
    }
  }

  /// Whether a folder is root's, and others may make names in it (`/tmp`): a folder that is missing there is made at
  /// once, before somebody puts a link in its place.
  private static func isOpenToAll(_ folder: Int32) -> Bool {
    var status = stat()
    return fstat(folder, &status) == 0 && status.st_uid == 0 && status.st_mode & 0o022 != 0
  }

  /// - Throws: `invalid` that names a symbolic link: where it leads is for whoever made it to say, and may change.
  private static func owner(of path: String) throws(SheafError) -> Owner? {
    var names = path.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
    guard let name = names.popLast() else { return nil }
    var place = path.hasPrefix("/") ? "/" : "."
    var folder = Glibc.open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { if folder >= 0 { close(folder) } }
    var isThere = true
    for component in names {
      place = place == "/" ? "/" + component : place + "/" + component
      let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
      var next = openat(folder, component, flags)
      var code = errno
      if next < 0, code == ENOENT, isOpenToAll(folder), mkdirat(folder, component, 0o700) == 0 || errno == EEXIST {
        next = openat(folder, component, flags)
        code = errno
      }
      if next < 0, code == ENOENT {
        isThere = false
        break
      }
      guard next >= 0 else {
        var status = stat()
        guard lstat(place, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else {
          throw SheafError(systemError: code, subject: place)
        }
        throw SheafError(
          .invalid, subject: place, reason: "is a symbolic link", advice: "name the place to which it leads")
      }
      close(folder)
      folder = next
    }
    var (file, around) = (stat(), stat())
    guard fstat(folder, &around) == 0 else { throw SheafError(systemError: errno, subject: place) }
    if around.st_uid == 0 { return nil }
    guard isThere, fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) == 0 else {
      return Owner(around.st_uid)
    }
    guard file.st_uid == around.st_uid else { return nil }
    return Owner(file.st_uid)
  }
}

/// A user of the machine with their groups, whose rights a thread of root's can take for a call.
private struct Owner {
  let user: uid_t
  private let group: gid_t
  private let groups: [gid_t]

  /// The group of nobody's files, for users whom the user database does not know.
  private static let noGroup: gid_t = 65_534

  init(_ user: uid_t) {
    self.user = user
    var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
    var text = [CChar](repeating: 0, count: 1024)
    while getpwuid_r(user, &entry, &text, text.count, &found) == ERANGE {
      text = [CChar](repeating: 0, count: 2 * text.count)
    }
    guard let found else {
      (group, groups) = (Self.noGroup, [])
      return
    }
    group = found.pointee.pw_gid
    var known = [gid_t](repeating: 0, count: 16)
    var count = Int32(known.count)
    while getgrouplist(found.pointee.pw_name, group, &known, &count) < 0 {
      known = [gid_t](repeating: 0, count: max(Int(count), 2 * known.count))
      count = Int32(known.count)
    }
    groups = Array(known.prefix(Int(count)))
  }

  /// Makes a system call with this user's rights; -1 with EPERM in errno(3) where this thread cannot take them.
  func acting(_ call: () -> Int32) -> Int32 {
    var own = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
    let count = getgroups(Int32(own.count), &own)
    guard count >= 0, clinux_set_own_groups(Int32(groups.count), groups) == 0 else {
      errno = EPERM
      return -1
    }
    let (ownGroup, ownUser) = (setfsgid(group), setfsuid(user))
    var (result, code) = (Int32(-1), EPERM)
    // No user has this number: asking for it changes nothing, and tells what is so.
    if setfsuid(.max) == Int32(bitPattern: user), setfsgid(.max) == Int32(bitPattern: group) {
      result = call()
      code = errno
    }
    setfsuid(uid_t(bitPattern: ownUser))
    setfsgid(gid_t(bitPattern: ownGroup))
    clinux_set_own_groups(count, own)
    errno = code
    return result
  }
}
