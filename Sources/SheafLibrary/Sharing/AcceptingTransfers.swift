import Foundation
package import SheafModel
import SheafStore

/// Accepting a tree that another account offers.
///
/// Rules:
/// 1. Nobody waits long, however much there is. The tree is found beside the lock. With the lock held it is brought up
///    to what it is by now (``TransferredTree``), and given away with the same hold. If something moved into it or out
///    of it meanwhile, it is found anew.
/// 2. One change gives it away: it moves the top, and notes who the owners are (``OwnerChange``). From then on the rows
///    of the tree count as the new owner's, whatever they say (``GivenTree``), and so do the inodes in memory. The rows
///    follow in steps.
/// 3. If the process ends, or the disk is full, before all rows follow, the rest follows when the library is next
///    opened, or when there is room. Only one tree is given away at a time, and no account is removed meanwhile.
///
/// Rooms: `AccountTable`, `EditingSessions`, `Identity`, `InodeTable`, `Numbers`, `OpenFiles`, `ShareBook`,
/// `TransferWatch`.
extension Library {
  /// How often a tree is found anew that others move things into, or out of.
  private static let attempts = 8
  /// New inodes that are looked at with the lock held.
  private static let newStep = 128
  /// Shares in a tree that go along, at most: they all change with one hold of the lock.
  private static let sharesAlong = 64

  /// That a file of a tree has a name outside.
  struct LinkedOutside: Error {
    let folder: Int64
    let name: [UInt8]
  }

  /// Makes what is offered the account's own, in its `Documents`.
  ///
  /// - Throws: `notFound` where it is not offered; `notPermitted`, `tooLarge` for what cannot go along; `busy` while
  ///   somebody's writes to it are not saved, or others keep moving things into it or out of it.
  package func acceptTransfer(_ id: String, as handle: AccountHandle) throws -> AcceptResult {
    try pendingTransfer.withLock { pending in
      try follow(&pending)
      func top() throws -> Inode { try offered(id, to: account(handle).id).inode }
      let ino = try locked { try top().ino }
      drainWorkingFile()
      collectMapped(below: ino)
      // Reasons against it are found below.
      try endVersionsInSteps { try? top() }
      let settled = try settleEventsInSteps { try waitingItems(below: top(), in: &$0) }
      for _ in 0..<Self.attempts {
        guard let (result, rest) = try accept(id, as: handle, settledBefore: settled) else { continue }
        pending = rest
        do {
          try follow(&pending)
        } catch {
          log.error(
            "rows of a tree do not follow it to its new owner yet; they do when there is room",
            metadata: ["error": "\(error)"])
        }
        return result
      }
      throw SheafError(
        .busy, subject: "id:\(id)".printable, reason: "others are moving things into it or out of it",
        advice: "try again in a moment")
    }
  }

  private enum Step {
    case isDone(AcceptResult, OwnerChange)
    case goesOn
    /// Something moved into the tree or out of it.
    case isStale
  }

  /// Accepts what is offered; nil where something moved into it or out of it meanwhile.
  ///
  /// - Parameter settled: the last of the events that were looked at just before.
  private func accept(
    _ id: String, as handle: AccountHandle, settledBefore settled: Int64
  ) throws -> (AcceptResult, PendingTransfer)? {
    let (ino, name, former, last) = try locked {
      let (_, inode, item) = try offered(id, to: account(handle).id)
      transferWatch.begin()
      return (inode.ino, String(decoding: inode.row.name, as: UTF8.self).printable, item.owner, numbers.ino)
    }
    defer { locked { transferWatch.end() } }
    var tree: TransferredTree
    do {
      tree = try givenTree(ino, called: name, after: last)
    } catch is LinkedOutside {
      throw try locked { try keptBack(name, by: former) }
    }
    while true {
      let step: Step = try locked {
        let recipient = try account(handle)
        let (offer, inode, _) = try offered(id, to: recipient.id)
        try endVersions(below: inode)
        try settleSession(of: inode)
        try settleEvents(below: inode, after: settled)
        guard inode.ino == tree.top, let item = try item(of: inode), let isPresent = try bringUp(&tree) else {
          return .isStale
        }
        guard isPresent else { return .goesOn }
        try checkSize(tree.inos.count, name)
        try checkUnconnected([former, recipient.id])
        try checkAcceptance(inode, item, tree, by: recipient)
        let owners = try give(offer, inode, item, tree, to: recipient)
        let result = AcceptResult(
          path: try mountPath(inode, for: recipient.id), title: shares.active(item.id)?.row.title,
          owner: recipient.handle, permission: .readWrite, requested: false)
        return .isDone(result, owners)
      }
      switch step {
      case .isDone(let result, let owners):
        return (result, PendingTransfer(owners, inos: Array(tree.inos), items: Array(tree.items)))
      case .goesOn: break
      case .isStale: return nil
      }
    }
  }

  // MARK: - Finding the tree

  /// Finds what is in a tree, beside the lock.
  ///
  /// - Parameter last: The highest number that an inode had before.
  /// - Throws: `tooLarge`; ``LinkedOutside``.
  func givenTree(_ ino: Int64, called subject: String, after last: Int64) throws -> TransferredTree {
    let (members, extras) = try store.snapshot { rows in
      let members = try rows.tree(ino, limit: Self.transferLimit + 1)
      try checkSize(members.count, subject)
      return (members, try rows.extraNames(inTree: ino))
    }
    let tree = TransferredTree(top: ino, members, after: last)
    if let outside = extras.first(where: { !tree.inos.contains($0.folder) }) {
      throw LinkedOutside(folder: outside.folder, name: outside.name)
    }
    // A file that has its oldest name outside.
    let outside = members.first { $0.hasLinks && $0.ino != ino && !tree.inos.contains($0.parent) }
    if let outside { throw try locked { LinkedOutside(folder: outside.parent, name: try inode(outside.ino).row.name) } }
    return tree
  }

  private func checkSize(_ count: Int, _ subject: String) throws {
    // Itself, and what it holds.
    guard count <= Self.transferLimit else {
      throw SheafError(
        .tooLarge, subject: subject,
        reason: "holds \(Self.transferLimit) items or more, with what was deleted from it, which is too much at once",
        advice: "transfer the folders in it one by one, or empty its trash first with: sheaf purge --deleted")
    }
  }

  /// Brings a tree up to what it is by now; returns whether all was looked at that is new, and nil where it has to be
  /// found anew.
  private func bringUp(_ tree: inout TransferredTree) throws -> Bool? {
    guard let moves = transferWatch.take(), moves.allSatisfy(tree.holds) else { return nil }
    let new = try read { try $0.members(after: tree.last, limit: Self.newStep) }
    guard tree.add(new) else { return nil }
    return new.count < Self.newStep
  }

  // MARK: - Giving it away

  /// - Parameter owner: Where they have what keeps it back is their business.
  private func keptBack(_ subject: String, by owner: Int64) throws -> SheafError {
    SheafError(
      .notPermitted, subject: subject,
      reason: "lies in a larger share by now, or holds a share or a hard link that cannot go along",
      advice: "ask \(try handle(owner)) to offer it again")
  }

  /// Checks that what is offered can go to an account now.
  private func checkAcceptance(
    _ inode: Inode, _ item: ItemRow, _ tree: TransferredTree, by recipient: AccountRow
  ) throws {
    let subject = String(decoding: inode.row.name, as: UTF8.self).printable
    let keptBack = try keptBack(subject, by: item.owner)
    guard try share(ofFolder: inode.row.parent) == nil else { throw keptBack }
    let isSharedInside = try shares.owned(by: item.owner).contains { share in
      guard share.row.item != item.id, tree.items.contains(share.row.item) else { return false }
      return try sharedInode(share.row.item).map { $0.row.nlink > 0 } ?? false
    }
    if isSharedInside { throw keptBack }
    guard sharesAlong(with: tree).count <= Self.sharesAlong else {
      throw SheafError(
        .tooLarge, subject: subject, reason: "holds more than \(Self.sharesAlong) items that were shared once",
        advice: "ask \(try handle(item.owner)) to offer the folders in it one by one")
    }
    guard try share(ofFolder: recipient.documents) == nil else {
      throw SheafError(
        .notPermitted, subject: subject,
        reason: "would be seen by everyone with whom you share your Documents",
        advice: "stop that first with: sheaf unshare Documents")
    }
    guard let share = shares.active(item.id) else { return }
    guard shares.countOwned(by: recipient.id) < Self.shareLimit else {
      throw SheafError(
        .tooLarge, subject: subject, reason: "you share \(Self.shareLimit) items, which is the most",
        advice: "stop sharing one first with: sheaf unshare")
    }
    let others = share.participants.values.count { $0.acceptance != .removed && $0.account != recipient.id }
    guard others < Self.participantLimit else {
      throw SheafError(
        .tooLarge, subject: subject, reason: "has \(Self.participantLimit) participants, which is the most",
        advice: "ask \(try handle(item.owner)) to remove one")
    }
  }

  /// The shares of what is in a tree, ended ones too.
  private func sharesAlong(with tree: TransferredTree) -> [ShareBook.Entry] {
    let all = shares.byItem
    // Whichever are fewer.
    if all.count < tree.items.count { return all.values.filter { tree.items.contains($0.row.item) } }
    return tree.items.compactMap { all[$0] }
  }

  /// Gives a tree away (rule 2).
  private func give(
    _ offer: Offer, _ inode: Inode, _ item: ItemRow, _ tree: TransferredTree, to recipient: AccountRow
  ) throws -> OwnerChange {
    let (former, folder) = (item.owner, try folder(inode.row.parent))
    let documents = try self.folder(recipient.documents)
    guard let source = try entry(folder.ino, inode.row.name), source.ino == inode.ino else {
      throw SheafError(.notFound)
    }
    // Those without a row are in no tree, and in somebody's hands.
    let used = (files.all.map(\.inode) + sessions.inodes + sessions.keptInodes)
      .filter { tree.inos.contains($0.ino) || $0.isOrphan && tree.inos.contains($0.row.parent) }
    if let written = used.first(where: { $0.drafts.contains(where: \.isChanged) }) {
      throw SheafError(
        .busy, subject: String(decoding: written.row.name, as: UTF8.self).printable,
        reason: "is being written and not saved yet", advice: "try again in a moment")
    }
    let name = try freeName(inode.row.name, in: documents.ino, isFolder: inode.isFolder)
    let user = FileOwnerChange(from: try self.inode(accountTable[former]?.documents ?? 0).row, to: documents.row)
    let owners = OwnerChange(from: former, to: recipient.id, user)
    try makeChange(.transfer, by: .api(recipient.id)) { change in
      let time = change.time
      try settleEvents(before: item.id, change)
      try change.rows.setSetting(offer.setting, nil)
      try endOffers(of: tree.items, actor: recipient.id, change)
      let target = EntryRow(
        parent: documents.ino, hash: nameHash(name), name: name, ino: inode.ino, isExtra: false, since: time)
      try change.rows.move(source, to: target)
      let links: Int64 = inode.isFolder ? 1 : 0
      try touch(folder, time, links: -links, change)
      try touch(documents, time, links: links, change)
      try change.rows.setPlace(documents.ino, name, time: time, ino: inode.ino)
      try change.rows.follow(owners, inos: [inode.ino], items: [item.id])
      try change.rows.setSetting(OwnerChange.setting, owners.text)
      let number = try logTransfer(offer, inode, item, to: documents.ino, name, change)
      for share in sharesAlong(with: tree) { try give(share, to: recipient.id, number, change) }
      let given = GivenTree(owners, inos: tree.inos, items: tree.items)
      change.rows.note(given)
      change.whenFailed { [self] in noteGiven(nil) }
      change.whenRecorded { [self] in
        transferWatch.note(isPending: true)
        inodes.give(given)
        for inode in used where inode.row.owner == former { inode.setOwner(owners) }
        for account in [former, recipient.id] { tell(.givenAway(tree.inos), to: account) }
        inode.follow(given)
        let place = NamedInode(inode, source.parent, source.name)
        (inode.row.parent, inode.row.name, inode.row.ctime) = (documents.ino, name, time)
        identity.settle(source.parent, source.name)
        identity.becomesKnown(inode.ino)
        if inode.isFolder { shares.noteMove(ofFolder: inode.ino) }
        tell(
          .renamed(place, to: .init(folder: .inode(documents.ino), name: name), replaced: nil, exchanged: false),
          from: 0)
        for account in [former, recipient.id] { tellAccess(of: account) }
      }
    }
    return owners
  }

  /// Makes a share another account's, with its one-time links. The former owner goes on as a participant.
  private func give(_ share: ShareBook.Entry, to recipient: Int64, _ event: Int64, _ change: Change) throws {
    var share = share
    let (item, time, former) = (share.row.item, change.time, share.owner)
    if share.row.isActive, var old = share.participants[former] {
      (old.role, old.permission, old.since, old.joined, old.ended) = (.privateUser, .readWrite, time, event, nil)
      share.participants[former] = old
    } else {
      share.participants[former] = nil
    }
    var owner =
      share.participants[recipient]
      ?? ParticipantRow(
        share: item, account: recipient, role: .owner, permission: .readWrite, acceptance: .accepted, since: time)
    (owner.role, owner.permission, owner.acceptance) = (.owner, .readWrite, .accepted)
    (owner.since, owner.name, owner.ended) = (time, nil, nil)
    share.participants[recipient] = owner
    try change.rows.moveOneTimeLinks(of: item, from: former, to: recipient)
    try update(share, change)
    let final = share
    change.whenRecorded { [self] in
      forgetLeft(recipient, final)
      for member in final.members { tellAccess(of: member.account) }
    }
  }

  // MARK: - The rows

  /// Notes which rows count as another account's than they say.
  private func noteGiven(_ tree: GivenTree?) {
    // Nothing is read, so that nothing fails but the opening of a transaction, which the next reader hears of.
    try? read { $0.note(tree) }
  }

  /// Has the rows of a tree that was given away name their new owner (rule 3).
  private func follow(_ pending: inout PendingTransfer?) throws {
    guard pending != nil else { return }
    try inSteps {
      guard let tree = pending else { return false }
      try makeChange(.transfer, freesSpace: true) { change in
        try change.rows.follow(tree.change, inos: tree.next.inos, items: tree.next.items)
        if tree.isLast { try change.rows.setSetting(OwnerChange.setting, nil) }
        change.whenRecorded { [self] in
          // To be looked up is to follow.
          for ino in tree.next.inos { _ = inodes[ino] }
          guard tree.isLast else { return }
          inodes.give(nil)
          noteGiven(nil)
          transferWatch.note(isPending: false)
        }
      }
      pending?.removeNext()
      if tree.isLast { pending = nil }
      return !tree.isLast
    }
  }

  /// Runs `body` while no tree is given away.
  func withoutTransfer<Value>(_ body: () throws -> Value) throws -> Value {
    try pendingTransfer.withLock { pending in
      try follow(&pending)
      return try body()
    }
  }

  /// Goes on where the disk was full.
  func continueTransfer() throws {
    _ = try pendingTransfer.withLockIfAvailable { try follow(&$0) }
  }

  /// Goes on with what an earlier process gave away, before anybody reads whose it is.
  func resumeTransfer() throws {
    guard let text = try store.read({ try $0.setting(OwnerChange.setting) }) else { return }
    guard let change = OwnerChange(text) else {
      throw SheafError(
        .corrupt, subject: "setting \(OwnerChange.setting)", reason: "names no accounts", advice: "run sheaf repair")
    }
    let (inos, items) = try store.snapshot { try $0.left(of: change) }
    try pendingTransfer.withLock { pending in
      pending = PendingTransfer(change, inos: inos, items: items)
      try follow(&pending)
    }
  }

  // MARK: - Events

  /// Logs that an item became another account's; returns the number of the last event.
  private func logTransfer(
    _ offer: Offer, _ inode: Inode, _ item: ItemRow, to folder: Int64, _ name: [UInt8], _ change: Change
  ) throws -> Int64 {
    let person = try owner(offer.recipient, .accepted)
    var there = try eventData(item, parent: folder, name: name)
    there.participant = person
    guard shares.active(item.id) == nil else {
      return try log(
        .shareUpdated, item, there, owner: offer.recipient, actor: offer.recipient, about: item.owner, change)
    }
    var here = try eventData(item, parent: inode.row.parent, name: inode.row.name)
    here.participant = person
    try log(.deleted, item, here, owner: item.owner, actor: offer.recipient, about: nil, change)
    return try log(.created, item, there, owner: offer.recipient, actor: offer.recipient, about: nil, change)
  }
}
