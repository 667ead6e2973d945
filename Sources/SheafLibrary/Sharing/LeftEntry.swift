import SheafModel
import SheafStore

/// A document's entry of `Shared/OWNER` that a program removes, which leaves the share, and makes again at once, as
/// install(1), tar(1), unzip(1), git-checkout(1) and `cp --remove-destination` do to replace a file.
///
/// Rules:
/// 1. Removing the entry leaves the share at once, whatever follows. The event of leaving is committed with it, and
///    gets its number when the program has ended, or after 15 s (rule 14 of ``Identity``), or before any other event of
///    the share.
/// 2. If the same program (process) makes the name again in that time, by open(2), it undoes the departure in one
///    transaction: participation, own name and one-time links are as they were, and there is no event. (People who got
///    an early event get one that the person joined again.) A person who came by the link may do what the link lets
///    anyone do by now. Rights that were taken from participants meanwhile do not come back.
/// 3. An account that may write makes the shared document anew by that, as rule 5 of ``Identity`` does below a shared
///    folder: id, history and share stay, and the written contents are its next version. An account that may only read
///    gets EACCES, with the entry back.
/// 4. Another program that makes the name is refused, as everyone is in `Shared/OWNER` who makes no temporary file. The same program is refused if
///    the share was stopped, even if it began anew; if the share is full by now; if the account was blocked; if the
///    document was deleted or has another name; if the account was invited again, which it has to accept; if it was
///    removed meanwhile, or someone tried to change its rights and got the answer that it takes no part; and if it came
///    by the link and the link lets nobody in any more.
/// 5. If `Shared/OWNER` went with its last entry, the program that removed the entry still finds the folder.
/// 6. Entries of folders are not remembered: rmdir(2) and mkdir(2) replace nothing. At most 1024 entries are
///    remembered.
struct LeftEntry {
  /// An entry of an account's `Shared/OWNER`.
  struct Name: Hashable {
    let account: Int64
    let owner: Int64
    let name: [UInt8]
  }

  /// The share as it was.
  let share: ShareRow
  var participant: ParticipantRow
  /// The one-time links that the participant gave out.
  let links: [OneTimeLinkRow]
  let itemName: [UInt8]
  let process: Int32
  let time: Timestamp
  /// The number under which the event waits.
  let event: Int64

  func isOver(at time: Timestamp) -> Bool { time.nanoseconds - self.time.nanoseconds >= Identity.window }
}

/// Rooms: `AccountTable`, `EventLog`, `LeftEntries`, `ShareBook`, `ShownEntries`, `TemporaryFiles`.
extension Library {
  /// The departure that the program of `caller` may undo, taking away the name (rules 2 and 4).
  private func undoable(_ name: LeftEntry.Name, _ caller: Caller) throws -> (left: LeftEntry, inode: Inode)? {
    guard var left = leftEntries[name], left.process == caller.process, !left.isOver(at: clock()),
      let share = shares.active(left.share.item), share.row.since == left.share.since,
      isAway(name.account, share), try !isBlocked(name.account, in: share),
      share.participants.values.count(where: { $0.acceptance != .removed }) < Self.participantLimit,
      let inode = try sharedInode(left.share.item), inode.isRegular, inode.row.nlink == 1,
      inode.row.name == left.itemName
    else { return nil }
    if left.participant.role == .publicUser {
      guard let permission = share.row.anyone.permission else { return nil }
      left.participant.permission = permission
    }
    return (left, inode)
  }

  /// Whether an account has left a share, or was never in it.
  private func isAway(_ account: Int64, _ share: ShareBook.Entry) -> Bool {
    share.participants[account].map { $0.acceptance == .removed && $0.role == .publicUser } ?? true
  }

  /// The departure from a share that an account can still undo; nil if it is in the share, or if it is too late.
  func left(_ account: Int64, _ share: ShareBook.Entry) -> LeftEntry? {
    guard isAway(account, share) else { return nil }
    return leftEntries.first(of: account, share.row.item, at: clock())
  }

  /// Forgets that an account can come back to a share that it left by making the entry again.
  func forgetLeft(_ account: Int64, _ share: ShareBook.Entry) {
    leftEntries.remove(of: account, share.row.item)
  }

  /// The account of `Shared/OWNER` that `caller` finds though nobody else does any more (rule 5); nil where there is
  /// none.
  package func leftOwner(_ account: Int64, _ owner: [UInt8], _ caller: Caller) -> Int64? {
    locked {
      if leftEntries.isEmpty { return nil }
      return accountTable.called(owner).map(\.id).first { found in
        leftEntries.names(of: account, owner: found).contains { (try? undoable($0, caller)) ?? nil != nil }
      }
    }
  }

  /// Makes a document again whose entry of `Shared/OWNER` the same program took away, or a temporary file
  /// (BesideDocuments.swift), and opens it.
  ///
  /// - Throws: `accessDenied` for every other name, and for an account that may not write; `exists` where there is an
  ///   entry.
  package func createShared(
    _ account: Int64, owner: Int64, _ name: [UInt8], mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64) {
    try locked {
      let place = TemporaryFiles.Name(account: account, owner: owner, name: name)
      if let entry = try listing(of: account, owner: owner)[name],
        temporaryFiles.isAside(place, for: caller.process, at: clock())
      {
        return try createAside(entry, place, mode: mode, flags: flags, caller)
      }
      if try shared(account, owner: owner, name, caller) != nil { throw SheafError(.exists) }
      let key = LeftEntry.Name(account: account, owner: owner, name: name)
      guard let (left, old) = try undoable(key, caller) else {
        return try createTemporary(account, owner: owner, name, mode: mode, flags: flags, caller)
      }
      shownEntries.begin(.init(account: account, door: caller.door, names: [name]))
      guard Self.allows(.write, left.participant) else {
        try makeChange(.share) { try undo(left, key, old, $0) }
        throw Self.denied
      }
      let inode = try remake(
        old, nil, folder(old.row.parent), old.row.name, mode: mode, caller, clock(),
        also: { try undo(left, key, old, $0) })
      return (try attributes(inode, caller), register(OpenFile(inode: inode, flags: flags, caller)))
    }
  }

  /// Makes someone a participant again as if they had not left.
  private func undo(
    _ left: LeftEntry, _ name: LeftEntry.Name, _ inode: Inode, _ change: Change
  ) throws {
    guard var share = shares.active(left.share.item) else { throw Self.denied }
    share.participants[name.account] = left.participant
    try update(share, change)
    try noteLeaving(share, name.account, false, change)
    for link in left.links where Self.counts(link, in: share) { try change.rows.insert(link) }
    if let event = events.of(left.share.item).first(where: { $0.row.number == left.event }) {
      try change.rows.removePending(left.event)
      change.whenRecorded { [self] in events.remove([event.row.number]) }
    } else {
      try logShareEvent(
        .memberAdded, share, inode, participant: left.participant, actor: name.account, change)
    }
    change.whenRecorded { [self] in leftEntries.remove(name) }
  }
}
