import Fuse
import Glibc
import Logging
import SheafLibrary
import Synchronization

/// Folders that not everybody in a mount may search: the kernel remembers none of their names.
///
/// With `default_permissions` the kernel checks permissions, and asks for a folder's attributes after each change in
/// it: one more request for every file that is made, renamed or removed. If only one user gets in, the library checks
/// permissions instead. But a path through a folder whose names the kernel remembers needs no request. So
/// 1. the names in a restricted folder are given for no time (``timeout(in:)``), and
/// 2. when a folder becomes restricted, the kernel forgets all names (``noteChange(of:)``): in this mount before the
///    change is answered, and a moment later if another door made it.
///
/// Nothing here concerns a mount that allows others. Servers get into root's mount with the file system ids of their
/// clients (nfsd(8), setfsuid(2)), so there only folders that everybody may search are unrestricted.
final class RestrictedFolders: Sendable {
  private let library: any InodeInterface
  /// The only user who gets in, with their account; nil where the kernel checks permissions.
  private let viewer: Caller?
  private let folders = Mutex<Set<Int64>>([])
  private let isEmpty = Atomic(true)
  private let kernel = Mutex<Notifier?>(nil)

  /// - Parameter user: the only user who gets in; nil where the kernel checks permissions.
  init(library: any InodeInterface, account: Int64, user: Caller.User?) {
    self.library = library
    viewer = user.map { user in
      Caller(
        uid: user.uid, gid: user.gid, thread: 0, door: 0, account: account, user: user, groups: { [] })
    }
  }

  func connect(_ notifier: Notifier) { kernel.withLock { $0 = notifier } }

  func disconnect() { kernel.withLock { $0 = nil } }

  /// Notes attributes that are about to be told to the kernel. They may be out of date by now, so this frees no folder.
  func note(_ attributes: Attributes) {
    guard let viewer, Self.isRestricted(attributes, for: viewer.uid) else { return }
    folders.withLock { folders in
      folders.insert(attributes.ino)
      isEmpty.store(false, ordering: .releasing)
    }
  }

  /// Notes that an inode may have another mode or owner, and makes the kernel forget names if need be.
  func noteChange(of ino: Int64) {
    guard let viewer else { return }
    let isRestricted = folders.withLock { folders in
      // Asked for under the lock, so that the later of two threads that note changes knows of both.
      guard let attributes = try? library.attributes(ino, viewer) else { return false }
      let isRestricted = Self.isRestricted(attributes, for: viewer.uid)
      if isRestricted { folders.insert(ino) } else { folders.remove(ino) }
      isEmpty.store(folders.isEmpty, ordering: .releasing)
      return isRestricted
    }
    if isRestricted { forgetNames() }
  }

  /// Notes that names were moved from one folder to another: the kernel moves its cached names along, with their time
  /// to live.
  func noteMove(_ folder: Int64, _ target: Int64) {
    if folder != target, timeout(in: folder) == 0 || timeout(in: target) == 0 { forgetNames() }
  }

  private func forgetNames() {
    do throws(Errno) {
      try kernel.withLock { $0 }?.expireNames()
    } catch {
      Logger(label: "sheaf.mount").error(
        "the kernel goes on passing through folders that not everybody may search", metadata: ["error": "\(error)"])
    }
  }

  /// Seconds for which the kernel may remember a name in a folder.
  func timeout(in folder: Int64) -> Double {
    if isEmpty.load(ordering: .acquiring) { return Entry.forever }
    return folders.withLock { $0.contains(folder) } ? 0 : Entry.forever
  }

  /// A process of the user may have any groups, so a folder of another owner is unrestricted only if all groups may
  /// search it.
  private static func isRestricted(_ folder: Attributes, for user: UInt32) -> Bool {
    guard folder.mode & S_IFMT == S_IFDIR else { return false }
    let all = S_IXUSR | S_IXGRP | S_IXOTH
    let asked = user == 0 ? all : folder.uid == user ? S_IXUSR : S_IXGRP | S_IXOTH
    return folder.mode & asked != asked
  }
}
