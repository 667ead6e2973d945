import Foundation
package import SheafModel
import SheafStore

/// The collaboration view of an item, and copying it out of a share.
extension Library {
  /// Latest changes that ``itemStatus(_:)`` tells.
  private static let changeCount = 10

  /// The facts for `sheaf status PATH`: the item, the people, their latest changes, and the rights of the acting
  /// account.
  package func itemStatus(_ path: ItemPath) throws -> ItemStatus {
    completeSaves()
    let (status, log, accounts) = try locked {
      try settleSessions()
      let account = try account(path.account)
      let inode = try resolve(path)
      try allow(.read, inode, on: path)
      guard let item = try item(of: inode) else {
        throw SheafError(.invalid, subject: "\(path)", reason: "is a fifo, socket or device, which Sheaf only stores")
      }
      let share = try share(of: inode)
      let facts = try share.map { try self.facts($0, for: account.id) }
      let people = (facts?.participants ?? []).map { Collaborator($0, lastEdited: nil) }
      let status = ItemStatus(
        id: item.uuid.text, path: "\(path)", kind: item.kind.word, version: inode.isRegular ? item.version : nil,
        owner: try handle(item.owner), mode: inode.row.mode & 0o777, mtime: inode.row.mtime,
        state: inode.isEdited(by: account.id) ? "edited" : "saved", ignored: try isIgnored(inode, item),
        conflict: try conflict(of: item, inode, .api(account.id)),
        beside: try hubCopy(item, named: inode.row.name, .api(account.id)), share: facts, people: people, changes: [],
        can: try operations(of: account.id, on: inode, share, isIgnored: isIgnored(inode, item)).map(\.rawValue))
      let log = (
        item: item.id, isShared: share?.row.item == item.id, start: share?.member(account.id)?.joined ?? 0,
        share: share?.row.item, uuid: item.uuid.bytes, shareUUID: share?.row.uuid.bytes
      )
      let numbers = try Dictionary(
        (share?.participants.keys ?? [:].keys).map { (try handle($0), $0) }, uniquingKeysWith: { first, _ in first })
      return (status, log, people.map { numbers[$0.handle] ?? 0 })
    }
    var told = status
    if let share = log.share {
      // The log of a share may be long: it is read beside the lock.
      let edited = try store.snapshot { try $0.lastEdits(inShare: share) }
      for (place, account) in accounts.enumerated() { told.people[place].lastEdited = edited[account] }
    }
    if let share = log.shareUUID {
      let edited = try store.snapshot { try $0.lastReplicaEdits(inShare: share) }
      for (place, person) in status.people.enumerated() {
        if let time = edited[person.handle.description] { told.people[place].lastEdited = time }
      }
    }
    told.changes = try latestChanges(
      of: log.item, log.uuid, inShare: log.isShared ? log.shareUUID : nil, from: log.start, for: path.account)
    return told
  }

  /// The latest changes of an item that an account sees, newest first; of everything in the share where it is a shared
  /// one.
  private func latestChanges(
    of item: Int64, _ id: [UInt8], inShare share: [UInt8]?, from start: Int64, for account: AccountHandle
  ) throws -> [LatestChange] {
    let visibility = try eventVisibility(account)
    // Read beside the lock, as the log always is.
    return try store.snapshot { transaction in
      var changes: [LatestChange] = []
      var border = visibility.last + 1
      while changes.count < Self.changeCount {
        let own = try transaction.events(of: item, isShared: share != nil, before: border, from: start, limit: 100)
        let hubs = try transaction.replicaEvents(of: id, inShare: share, before: border, limit: 100)
        let entries = StoreTransaction.merged(own, hubs, 100) { $0 > $1 }
        guard let oldest = entries.last else { break }
        for entry in entries where changes.count < Self.changeCount {
          guard let event = try visibility.event(entry, transaction) else { continue }
          changes.append(
            LatestChange(
              time: event.time, actor: event.data.actor.handle, type: event.type.rawValue, name: event.data.item.name,
              recovered: event.isRecovery, participant: event.data.participant?.handle,
              wasInvited: event.data.participant?.acceptance == Acceptance.pending.rawValue))
        }
        border = oldest.number
      }
      return changes
    }
  }

  private func operations(_ participant: ParticipantRow) -> [ShareOperation] {
    ShareOperation.allCases.filter { Self.allows($0, participant) }
  }

  private func operations(
    of account: Int64, on inode: Inode, _ share: ShareBook.Entry?, isIgnored: Bool
  ) -> [ShareOperation] {
    // What is ignored has no versions, and nothing is told of it.
    let absent: Set<ShareOperation> = isIgnored ? [.comment, .label, .restore, .resolve] : []
    if let participant = share?.member(account) { return operations(participant).filter { !absent.contains($0) } }
    // An owner's own: everything but what needs a share.
    let own = ParticipantRow(
      share: 0, account: account, role: .owner, permission: .readWrite, acceptance: .accepted, since: clock())
    return operations(own).filter {
      !absent.contains($0)
        && ![.listPeople, .listEveryone, .managePeople, .answerRequests, .changeShare, .manageAdministrators, .unshare]
          .contains($0)
    }
  }

  /// Dismisses a document's conflict; nothing happens where there is none.
  ///
  /// - Throws: `invalid` for a document that a hub put beside another one: which of both stays is for a person to say.
  package func resolveConflict(_ path: ItemPath) throws {
    try locked {
      var (inode, item) = try document(path, for: .resolve)
      guard item.conflict != nil else {
        if let copy = try hubCopy(item, named: inode.row.name, .api(account(path.account).id)) {
          throw SheafError(
            .invalid, subject: "\(path)",
            reason: "is beside \(copy.path ?? "a document that is gone"): both were saved at once",
            advice: "look at both, take over what is missing, then delete this one or rename it")
        }
        return
      }
      item.conflict = nil
      try makeChange(.setAttributes) { try $0.rows.update(item) }
      inode.item = item
    }
  }

  /// Entries that are looked at with the lock held: each can be a link that takes long to check.
  private static let childrenStep = 32

  /// The contents of a folder, for copying it.
  package func children(_ path: ItemPath) throws -> [FolderItem] {
    let ino = try locked { try resolve(path).ino }
    var found: [FolderItem] = []
    var cookie: Int64? = 0
    while let last = cookie {
      cookie = try locked { try addChildren(of: ino, path, after: last, to: &found) }
    }
    return found
  }

  /// Adds some of what is in a folder; returns where to go on, nil at the end.
  private func addChildren(
    of ino: Int64, _ path: ItemPath, after cookie: Int64, to found: inout [FolderItem]
  ) throws -> Int64? {
    let folder = try inode(ino)
    try allow(.read, folder, on: path)
    guard folder.isFolder else { throw SheafError(.notDirectory, subject: "\(path)") }
    let caller = Caller.api(try account(path.account).id)
    let entries = try read { try $0.entries(ino, after: cookie, limit: Self.childrenStep) }
    for entry in entries {
      let inode = try inode(entry.ino)
      try checkPlace(of: inode, in: ino, entry.name)
      let leadsOut = inode.row.target != nil && (try? checkTarget(of: inode, caller)) == nil
      found.append(
        FolderItem(
          name: PercentCoding.encode(entry.name), kind: try item(of: inode)?.kind.word ?? "other",
          mode: inode.row.mode & 0o777, mtime: inode.row.mtime,
          target: leadsOut ? nil : inode.row.target.map(PercentCoding.encode)))
    }
    return entries.last?.hash
  }
}
