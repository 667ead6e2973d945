import Foundation
package import SheafModel
import SheafStore

/// Giving a document, or a folder with all below it, to another account of the library.
///
/// Rules:
/// 1. Its owner offers it. The offer is a setting, and changes nothing. The other account accepts or declines it, and
///    the owner may withdraw it. Each of these has an event, which the two alone see; only the owner learns from it
///    where the item lies.
/// 2. Acceptance is one change: whatever happens, the tree is whole on one side or on the other. It goes with its ids,
///    versions, deleted items, attributes and links. Because one change takes the longer the more there is, a tree
///    has ``transferLimit`` items at most.
/// 3. What is in a larger share stays there, and so does what has a hard link outside, or something shared on its own
///    inside. Nothing goes to an account whose `Documents` is shared as a whole.
/// 4. If the item itself is shared, its share goes along with link, people and one-time links. The former owner
///    becomes a participant, who may edit. Nobody's entry time changes. Otherwise the former owner is a stranger, with
///    open files too.
/// 5. Files of the Linux user whose `Documents` the tree was in become those of the user of the other `Documents`, as
///    by chown(2).
/// 6. Shares inside that were stopped, or whose items are deleted, get the new owner.
/// 7. People who take part learn of it by one event of the share; where nothing is shared, the former owner is told that
///    the item is gone, and the new one that it came. Earlier events stay with those who saw them.
extension Library {
  /// Items of a tree that can be given, those that were deleted from it among them.
  static let transferLimit = 10_000

  private static let offerPrefix = "transferOffer."

  /// An offer that waits.
  private struct Offer {
    let item: Int64
    let recipient: Int64
    let time: Timestamp

    var setting: String { "\(Library.offerPrefix)\(item).\(recipient)" }

    init(item: Int64, recipient: Int64, time: Timestamp) {
      (self.item, self.recipient, self.time) = (item, recipient, time)
    }

    /// - Parameter key: the part after ``Library/offerPrefix``.
    init?(_ key: String, _ time: Int64) {
      let numbers = key.split(separator: ".").compactMap { Int64($0) }
      guard numbers.count == 2 else { return nil }
      self.init(item: numbers[0], recipient: numbers[1], time: Timestamp(nanoseconds: time))
    }
  }

  // MARK: - Offering

  /// Offers an item to another account; an earlier offer of it to anybody ends.
  ///
  /// - Throws: `accessDenied` for everyone but the owner; `notPermitted` for what cannot go along, naming it;
  ///   `tooLarge` past ``transferLimit`` items; `notFound`, `invalid`.
  package func offerTransfer(_ path: ItemPath, to handle: AccountHandle) throws -> TransferOffer {
    try checkSize(of: locked { try offerable(path).ino }, "\(path)")
    return try locked {
      let inode = try offerable(path)
      let recipient = try account(handle)
      guard let item = try item(of: inode), recipient.id != item.owner else {
        throw SheafError(.invalid, subject: "\(handle)", reason: "owns \(path) already", advice: "name another account")
      }
      let former = try offers().filter { $0.item == item.id }
      if let same = former.first(where: { $0.recipient == recipient.id }) {
        return try fact(same, inode, item, for: item.owner)
      }
      let offer = Offer(item: item.id, recipient: recipient.id, time: clock())
      try makeChange(.share, at: offer.time) { change in
        for old in former {
          try change.rows.setSetting(old.setting, nil)
          try logOffer(old, .removed, inode, item, actor: item.owner, change)
        }
        try change.rows.setSetting(offer.setting, offer.time.nanoseconds)
        try logOffer(offer, .pending, inode, item, actor: item.owner, change)
      }
      return try fact(offer, inode, item, for: item.owner)
    }
  }

  /// Takes the offer of an item back.
  ///
  /// - Throws: `notFound` where there is none.
  package func withdrawTransfer(_ path: ItemPath) throws {
    try locked {
      let inode = try resolve(path)
      try checkOwner(of: inode, path)
      guard let item = try item(of: inode), let offer = try offers().first(where: { $0.item == item.id }) else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "is offered to nobody", advice: "`sheaf transfer` shows what is")
      }
      try end(offer, inode, item, actor: item.owner)
    }
  }

  /// Declines an item that is offered to an account.
  ///
  /// - Throws: `notFound` where there is no such offer.
  package func declineTransfer(_ id: String, as handle: AccountHandle) throws {
    try locked {
      let account = try account(handle)
      let (offer, inode, item) = try offered(id, to: account.id)
      try end(offer, inode, item, actor: account.id)
    }
  }

  private func end(_ offer: Offer, _ inode: Inode, _ item: ItemRow, actor: Int64) throws {
    try makeChange(.share) { change in
      try change.rows.setSetting(offer.setting, nil)
      try logOffer(offer, .removed, inode, item, actor: actor, change)
    }
  }

  /// The offers that an account made, and those that were made to it.
  package func transfers(of handle: AccountHandle) throws -> TransferList {
    try locked {
      let account = try account(handle)
      var (byMe, toMe): ([TransferOffer], [TransferOffer]) = ([], [])
      for offer in try offers() {
        guard let (inode, item) = try target(of: offer) else { continue }
        if item.owner == account.id { byMe.append(try fact(offer, inode, item, for: account.id)) }
        if offer.recipient == account.id { toMe.append(try fact(offer, inode, item, for: account.id)) }
      }
      return TransferList(byMe: byMe.sorted { $0.time > $1.time }, toMe: toMe.sorted { $0.time > $1.time })
    }
  }

  private func offers() throws -> [Offer] {
    try read { try $0.numberSettings(after: Self.offerPrefix) }.compactMap { Offer($0.key, $0.value) }
  }

  /// What is offered; nil where it is gone.
  private func target(of offer: Offer) throws -> (inode: Inode, item: ItemRow)? {
    guard accountTable[offer.recipient] != nil, let inode = try sharedInode(offer.item), inode.row.nlink > 0,
      let item = try item(of: inode)
    else { return nil }
    return (inode, item)
  }

  private func offered(_ id: String, to account: Int64) throws -> (offer: Offer, inode: Inode, item: ItemRow) {
    guard let uuid = UUID(uuidString: id), let found = try read({ try $0.item(uuid: uuid) }),
      let offer = try offers().first(where: { $0.item == found.id && $0.recipient == account }),
      let (inode, item) = try target(of: offer)
    else {
      throw SheafError(
        .notFound, subject: "id:\(id)".printable, reason: "is not offered to you, or no longer",
        advice: "`sheaf transfer` shows what is")
    }
    return (offer, inode, item)
  }

  private func fact(_ offer: Offer, _ inode: Inode, _ item: ItemRow, for account: Int64) throws -> TransferOffer {
    TransferOffer(
      id: item.uuid.text, name: String(decoding: inode.row.name, as: UTF8.self),
      kind: inode.isFolder ? "folder" : "document",
      path: item.owner == account ? try mountPath(inode, for: account) : nil, owner: try handle(item.owner),
      ownerName: try name(item.owner), recipient: try handle(offer.recipient),
      recipientName: try name(offer.recipient), time: offer.time)
  }

  // MARK: - What can go along

  private func checkOwner(of inode: Inode, _ path: ItemPath) throws {
    guard try inode.row.owner == account(path.account).id else {
      throw SheafError(
        .accessDenied, subject: "\(path)", reason: "only its owner gives it away",
        advice: "ask \(try handle(inode.row.owner))")
    }
  }

  private func offerable(_ path: ItemPath) throws -> Inode {
    let inode = try resolve(path)
    try checkOwner(of: inode, path)
    guard inode.isRegular || inode.isFolder, let item = try item(of: inode) else {
      throw SheafError(
        .invalid, subject: "\(path)", reason: "is neither a document nor a folder",
        advice: "transfer the folder it is in")
    }
    guard inode.row.parent != 0 else {
      throw SheafError(
        .notPermitted, subject: "\(path)", reason: "is what every account has of its own",
        advice: "transfer what is in it")
    }
    guard !item.isQuiet || inode.isFolder else {
      throw SheafError(
        .notPermitted, subject: "\(path)", reason: "is a file of which no versions are kept",
        advice: "rename it, or transfer the folder it is in")
    }
    try checkBorders(of: inode, path)
    return inode
  }

  /// - Returns: The inodes of the tree.
  @discardableResult
  private func checkSize(of ino: Int64, _ subject: String) throws -> [Int64] {
    let inos = try store.snapshot { try $0.tree(ino, limit: Self.transferLimit + 1) }
    guard inos.count <= Self.transferLimit else {
      throw SheafError(
        .tooLarge, subject: subject,
        reason: "holds \(Self.transferLimit) items or more, with what was deleted from it, which is too much at once",
        advice: "transfer the folders in it one by one, or empty its trash first with: sheaf purge --deleted")
    }
    return inos
  }

  /// Checks that what is offered can go to an account now.
  private func checkAcceptance(_ inode: Inode, _ item: ItemRow, by recipient: AccountRow) throws {
    let subject = String(decoding: inode.row.name, as: UTF8.self).printable
    do {
      try checkBorders(of: inode, ItemPath(account: handle(item.owner), mountPath(inode, for: item.owner)))
    } catch let error as SheafError where error.kind == .notPermitted {
      // Where its owner has what keeps it back is the owner's business.
      throw SheafError(
        .notPermitted, subject: subject,
        reason: "lies in a larger share by now, or holds a share or a hard link that cannot go along",
        advice: "ask \(try handle(item.owner)) to offer it again")
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

  // MARK: - Accepting

  /// Makes what is offered the account's own, in its `Documents`.
  ///
  /// - Throws: `notFound` where it is not offered; `notPermitted`, `tooLarge` for what cannot go along (rules 2 and 3);
  ///   `busy` while somebody else's writes to it are not saved.
  package func acceptTransfer(_ id: String, as handle: AccountHandle) throws -> AcceptResult {
    func top() throws -> Inode { try offered(id, to: account(handle).id).inode }
    let (ino, name) = try locked { (try top().ino, try top().row.name) }
    let inos = try checkSize(of: ino, String(decoding: name, as: UTF8.self).printable)
    drainWorkingFile()
    collectMapped(below: ino)
    // Reasons against it are found below.
    try endVersionsInSteps { try? top() }
    let settled = try settleEventsInSteps { try waitingItems(below: top(), in: &$0) }
    return try locked {
      let recipient = try account(handle)
      let (offer, inode, item) = try offered(id, to: recipient.id)
      try checkAcceptance(inode, item, by: recipient)
      try endVersions(below: inode)
      try settleSession(of: inode)
      try settleEvents(below: inode, after: settled)
      try transfer(offer, inode, self.item(of: inode) ?? item, inos, to: recipient)
      return AcceptResult(
        path: try mountPath(inode, for: recipient.id), title: shares.active(item.id)?.row.title,
        owner: recipient.handle, permission: .readWrite, requested: false)
    }
  }

  /// - Parameter known: what was in the tree just before.
  private func transfer(
    _ offer: Offer, _ inode: Inode, _ item: ItemRow, _ known: [Int64], to recipient: AccountRow
  ) throws {
    let (former, folder) = (item.owner, try folder(inode.row.parent))
    let documents = try self.folder(recipient.documents)
    guard let source = try entry(folder.ino, inode.row.name), source.ino == inode.ino else {
      throw SheafError(.notFound)
    }
    var isInside = [inode.ino: true, folder.ino: false]
    let loaded = try Array(inodes.all).filter { try $0.row.owner == former && isBelow($0, &isInside) }
    if let written = loaded.first(where: { $0.drafts.contains { $0.isChanged } }) {
      throw SheafError(
        .busy, subject: String(decoding: written.row.name, as: UTF8.self).printable,
        reason: "is being written and not saved yet", advice: "try again in a moment")
    }
    let carried = try shares.all.filter { share in
      guard share.owner == former, let root = try sharedInode(share.row.item) else { return false }
      return try isBelow(root, &isInside)
    }
    let name = try freeName(inode.row.name, in: documents.ino)
    let user = FileOwnerChange(
      from: try self.inode(accountTable[former]?.documents ?? 0).row, to: documents.row)
    let caller = Caller.api(recipient.id)
    try makeChange(.rename, by: caller) { change in
      let time = change.time
      try settleEvents(before: item.id, change)
      try change.rows.setSetting(offer.setting, nil)
      let target = EntryRow(
        parent: documents.ino, hash: nameHash(name), name: name, ino: inode.ino, isExtra: false, since: time)
      try change.rows.move(source, to: target)
      let links: Int64 = inode.isFolder ? 1 : 0
      try touch(folder, time, links: -links, change)
      try touch(documents, time, links: links, change)
      try change.rows.setPlace(documents.ino, name, time: time, ino: inode.ino)
      try change.rows.setOwner(recipient.id, ofTree: inode.ino, user)
      let number = try logTransfer(offer, inode, item, to: documents.ino, name, change)
      for share in carried { try give(share, to: recipient.id, number, change) }
      change.whenRecorded { [self] in
        for inode in loaded {
          inode.setOwner(recipient.id, user)
          tell(.appearance(inode.ino), from: 0)
        }
        for ino in Set(known).union(loaded.map(\.ino)) { tell(.givenAway(ino), to: former) }
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
  }

  /// Whether an inode is in a tree.
  ///
  /// - Parameter known: of folders, and of the top of the tree, as far as known.
  private func isBelow(_ inode: Inode, _ known: inout [Int64: Bool]) throws -> Bool {
    if let found = known[inode.ino] { return found }
    var passed: [Int64] = []
    var isBelow = false
    do {
      try ascend(from: inode.row.parent) { folder in
        if let found = known[folder.ino] {
          isBelow = found
          return false
        }
        passed.append(folder.ino)
        return true
      }
    } catch let error as SheafError where error.kind == .notFound {
      // Its folder is gone for good, and somebody still has it open.
    }
    for ino in passed { known[ino] = isBelow }
    return isBelow
  }

  /// Makes a share another account's (rules 4 and 6).
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

  // MARK: - Events

  /// Logs what became of an offer (rule 1).
  private func logOffer(
    _ offer: Offer, _ acceptance: Acceptance, _ inode: Inode, _ item: ItemRow, actor: Int64, _ change: Change
  ) throws {
    try settleEvents(before: item.id, change)
    var data = try eventData(item, parent: inode.row.parent, name: inode.row.name)
    data.share = nil
    data.participant = try owner(offer.recipient, acceptance)
    try log(.shareUpdated, item, data, owner: item.owner, actor: actor, about: offer.recipient, change)
  }

  /// Logs that an item became another account's (rule 7); returns the number of the last event.
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

  /// An account as what it is to be.
  private func owner(_ account: Int64, _ acceptance: Acceptance) throws -> EventDetails.Participant {
    .init(
      handle: try handle(account).description, name: try name(account), role: Role.owner.rawValue,
      permission: SharePermission.readWrite.rawValue, acceptance: acceptance.rawValue)
  }

  @discardableResult
  private func log(
    _ type: EventType, _ item: ItemRow, _ data: EventData, owner: Int64, actor: Int64, about account: Int64?,
    _ change: Change
  ) throws -> Int64 {
    try number(
      EventRow(
        number: 0, uuid: .timeOrdered(change.time), type: type.rawValue, time: change.time, actor: actor, owner: owner,
        item: item.id, data: data.json, share: data.share, process: 0), about: account, change)
  }
}
