import Foundation
import SheafModel
import SheafStore

/// Permissions, checked when they are used (rule 5 of docs/ARCHITECTURE.md), by the one table of ``ShareRules``.
///
/// Owners pass without a question; nobody else looks at an inode but through the share that it is in.
///
/// Rooms: `ShareBook`.
extension Library {
  /// The share that an inode is in; nil if it is in none, or if that is suspended because its item is deleted.
  ///
  /// An inode that lost its last name, and that nobody can find, stays in the share in which it was then.
  func share(of inode: Inode) throws -> ShareBook.Entry? {
    if shares.isEmpty { return nil }
    if inode.isOrphan { return inode.orphanShare.flatMap { shares.active($0) } }
    if shares.isLeaving(inode.ino) { return nil }
    if let item = inode.row.item, let share = shares.active(item) { return inode.row.nlink > 0 ? share : nil }
    return try share(ofFolder: inode.row.parent)
  }

  /// The share that what lies in a folder is in.
  func share(ofFolder folder: Int64) throws -> ShareBook.Entry? {
    if shares.isEmpty { return nil }
    var passed: [Int64] = []
    var found: Int64 = 0
    try ascend(from: folder) { inode in
      if let known = shares.share(ofFolder: inode.ino) {
        found = known
        return false
      }
      passed.append(inode.ino)
      if shares.isLeaving(inode.ino) { return false }
      guard let item = inode.row.item, shares.active(item) != nil else { return true }
      found = inode.row.nlink > 0 ? item : 0
      return false
    }
    shares.note(passed, in: found)
    return shares.active(found)
  }

  /// The part of `account`, which does not own it, in the share that `inode` is in; nil for a stranger.
  func participant(_ account: Int64, in inode: Inode) throws -> ParticipantRow? {
    if let only = inode.temporaryOf, only != account { return nil }
    return try share(of: inode)?.member(account)
  }

  /// Checks that the caller's account may do something with `inode`.
  ///
  /// - Throws: `accessDenied`.
  func allow(_ operation: ShareOperation, _ inode: Inode, _ caller: Caller) throws {
    guard let account = caller.account, account != inode.row.owner || inode.temporaryOf != nil else { return }
    guard let participant = try participant(account, in: inode),
      Self.allows(operation, participant)
    else { throw Self.denied }
  }

  /// Checks that who opened a file may still do something with it.
  func allow(_ operation: ShareOperation, _ file: OpenFile) throws {
    if file.inode.isWiped {
      throw SheafError(.accessDenied, reason: "this machine was removed from the account, and is wiped of it")
    }
    guard let account = file.account, account != file.inode.row.owner else { return }
    guard let participant = try participant(account, in: file.inode), Self.allows(operation, participant) else {
      throw Self.denied
    }
  }

  static func allows(_ operation: ShareOperation, _ participant: ParticipantRow) -> Bool {
    ShareRules.allows(
      operation, role: participant.role, permission: participant.permission, acceptance: participant.acceptance)
  }

  static let denied = SheafError(
    .accessDenied, reason: "the share does not allow it", advice: "ask its owner; `sheaf status` says who shares what")

  /// Whether an account sees an inode, its own or shared with it.
  package func sees(_ ino: Int64, _ account: Int64) -> Bool {
    locked {
      guard let inode = try? inode(ino) else { return false }
      if inode.row.owner == account, inode.temporaryOf == nil { return true }
      return (try? participant(account, in: inode)) ?? nil != nil
    }
  }

  // MARK: - What others' inodes look like

  /// Whether an inode leaves a share, so that the caller finds nothing under its name.
  func isOutOfSight(_ inode: Inode, _ caller: Caller) -> Bool {
    shares.isLeaving(inode.ino) && isForeign(inode, caller)
  }

  /// Whether the caller's account looks at what another one owns.
  func isForeign(_ inode: Inode, _ caller: Caller) -> Bool { caller.account.map { $0 != inode.row.owner } ?? false }

  /// The answer of stat(2) for the caller: files of others appear as the mounting user's, without set-id bits, and
  /// without `w` if the caller may only read them.
  ///
  /// - Throws: `accessDenied` if the account does not see the inode, or no longer.
  func attributes(_ inode: Inode, _ caller: Caller) throws -> Attributes {
    guard let account = caller.account, account != inode.row.owner || inode.temporaryOf != nil else {
      guard let user = caller.user, user.ownsAll else { return inode.attributes }
      return inode.attributes.shown(to: user, writable: true, isForeign: false)
    }
    guard let participant = try participant(account, in: inode) else { throw Self.denied }
    return inode.attributes(inode.contents(for: account)).shown(
      to: caller.user, writable: Self.allows(.write, participant), isForeign: true)
  }

  /// Checks permission bits as the caller's door shows them, and the share before.
  func permit(_ inode: Inode, _ caller: Caller, _ wanted: UInt32) throws {
    try allow(wanted & Permission.write != 0 ? .write : .read, inode, caller)
    let user = shownUser(of: inode, caller)
    try Permission.check(inode.row.mode, uid: user.uid, gid: user.gid, caller, wanted)
  }

  /// Answers access(2): whether `caller` has the permission bits `wanted` (`R_OK`, `W_OK`, `X_OK`), and may see the
  /// inode.
  ///
  /// - Throws: `accessDenied`, `notFound`.
  package func checkAccess(_ ino: Int64, _ wanted: Int32, _ caller: Caller) throws {
    try locked { try permit(inode(ino), caller, UInt32(wanted)) }
  }

  /// The Linux user as whose the caller's door shows an inode.
  func shownUser(of inode: Inode, _ caller: Caller) -> Caller.User {
    if let user = caller.user, user.ownsAll || isForeign(inode, caller) { return user }
    return Caller.User(uid: inode.row.uid, gid: inode.row.gid)
  }
}

extension Attributes {
  /// As a door shows it to `user`: items of another account appear as theirs, so they give nobody the user's rights by
  /// set-id bits, and no device.
  func shown(to user: Caller.User?, writable: Bool, isForeign: Bool) -> Attributes {
    var mode = writable ? mode : mode & ~0o222
    if isForeign { mode &= ~0o6000 }
    return Attributes(
      ino: ino, mode: mode, nlink: nlink, uid: user?.uid ?? uid, gid: user?.gid ?? gid,
      rdev: isForeign ? 0 : rdev, size: size, blocks: blocks, atime: atime, mtime: mtime, ctime: ctime,
      isForeign: isForeign)
  }
}
