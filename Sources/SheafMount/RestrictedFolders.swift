import Fuse
import Glibc
import Logging
import SheafLibrary
import Synchronization

/// Folders that not everybody may search who gets into a mount: the kernel is to remember none of their names.
///
/// Where the kernel checks permissions (`default_permissions`) it asks for a folder's attributes after each change in it, a
/// request more for every file that is made, renamed or removed. Where only one user gets in, the library checks them
/// instead. But through a folder whose names the kernel remembers one passes without a request. So
/// 1. the names in a restricted folder are given for no time (``timeout(in:)``), and
/// 2. when a folder becomes restricted, the kernel forgets all names (``noteChange(of:)``), before anyone hears of it in this
///    mount, and a moment later where it was done by another door.
///
/// Nothing here concerns a mount that allows others. Into root's, servers get with the file system ids of those for whom they ask
/// (nfsd(8), setfsuid(2)), so that there a folder is free where everybody may search it.
final class RestrictedFolders: Sendable {
  private let library: Library
  /// The only user who gets in, with their account; nil where the kernel checks permissions.
  private let viewer: Caller?
  private let folders = Mutex<Set<Int64>>([])
  private let isEmpty = Atomic(true)
  private let kernel = Mutex<Notifier?>(nil)

  /// - Parameter user: the only user who gets in; nil where the kernel checks permissions.
  init(library: Library, account: Int64, user: Caller.User?) {
    self.library = library
    viewer = user.map { user in
      Caller(
        uid: user.uid, gid: user.gid, thread: 0, door: 0, account: account, user: user, groups: { [] })
    }
  }

  func connect(_ notifier: Notifier) { kernel.withLock { $0 = notifier } }

  func disconnect() { kernel.withLock { $0 = nil } }

  /// Notes what the kernel is about to be told of an inode. It may have changed since it was asked for, so that no folder becomes
  /// free by this.
  func note(_ attributes: Attributes) {
    guard let viewer, Self.isRestricted(attributes, for: viewer.uid) else { return }
    folders.withLock { folders in
      folders.insert(attributes.ino)
      isEmpty.store(false, ordering: .releasing)
    }
  }

  /// Notes that an inode may have another mode or owner; where names have to be forgotten for it, they are.
  func noteChange(of ino: Int64) {
    guard let viewer else { return }
    let isRestricted = folders.withLock { folders in
      // Asked for here, so that of two who note changes the later one knows of both.
      guard let attributes = try? library.attributes(ino, viewer) else { return false }
      let isRestricted = Self.isRestricted(attributes, for: viewer.uid)
      if isRestricted { folders.insert(ino) } else { folders.remove(ino) }
      isEmpty.store(folders.isEmpty, ordering: .releasing)
      return isRestricted
    }
    if isRestricted { forgetNames() }
  }

  /// Notes that names were moved from one folder to another: the kernel moves them along, for as long as it had them.
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

  /// A process of the user may have any groups, so that a folder of another owner is free where all groups may search it.
  private static func isRestricted(_ folder: Attributes, for user: UInt32) -> Bool {
    guard folder.mode & S_IFMT == S_IFDIR else { return false }
    let all = S_IXUSR | S_IXGRP | S_IXOTH
    let asked = user == 0 ? all : folder.uid == user ? S_IXUSR : S_IXGRP | S_IXOTH
    return folder.mode & asked != asked
  }
}
