import Foundation
package import SheafModel
import SheafStore

/// Giving a document, or a folder with all below it, to another account of the library.
///
/// Rules:
/// 1. Its owner offers it. The offer is a setting, and changes nothing. The other account accepts or declines it, and
///    the owner may withdraw it. Each of these has an event, which the two alone see; only the owner learns from it
///    where the item lies.
/// 2. At acceptance the tree changes sides at one moment, by one change: whatever happens, it is whole on one side or on
///    the other. It goes with its ids, versions, deleted items, attributes and links. It has ``transferLimit`` items at
///    most (AcceptingTransfers.swift).
/// 3. What is in a larger share stays there, and so does what has a hard link outside, or something shared on its own
///    inside. Nothing goes to an account whose `Documents` is shared as a whole.
/// 4. If the item itself is shared, its share goes along with link, people and one-time links. The former owner
///    becomes a participant, who may edit. Nobody's entry time changes. Otherwise the former owner is a stranger, with
///    open files too.
/// 5. Files of the Linux user whose `Documents` the tree was in become those of the user of the other `Documents`, as
///    by chown(2).
/// 6. Shares inside that were stopped, or whose items are deleted, get the new owner.
/// 7. Offers of what is inside end with it: the new owner made none of them.
/// 8. People who take part learn of it by one event of the share; where nothing is shared, the former owner is told that
///    the item is gone, and the new one that it came. Earlier events stay with those who saw them.
///
/// Rooms: `AccountTable`, `Numbers`.
extension Library {
  /// Items of a tree that can be given, those that were deleted from it among them.
  static let transferLimit = 10_000
  /// Offers that an account can have made, and that can wait in a library.
  static let offerLimit = (account: 32, library: 1024)
  /// Offers of what is no more that are forgotten with a new one.
  private static let forgottenOffers = 32

  private static let offerPrefix = "transferOffer."

  /// An offer that waits.
  struct Offer {
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
  ///   `tooLarge` past ``transferLimit`` items, or with too many offers; `notFound`, `invalid`.
  package func offerTransfer(_ path: ItemPath, to handle: AccountHandle) throws -> TransferOffer {
    let (ino, last) = try locked { (try offerable(path).ino, numbers.ino) }
    do {
      _ = try givenTree(ino, called: "\(path)", after: last)
    } catch let outside as LinkedOutside {
      throw try locked {
        linkedOutside("\(path)", at: try mountPath(outside.folder, outside.name, for: inode(ino).row.owner))
      }
    }
    return try locked {
      let inode = try offerable(path)
      try checkUnconnected([inode.row.owner])
      let recipient = try account(handle)
      guard let item = try item(of: inode), recipient.id != item.owner else {
        throw Self.ownsAlready(handle, path)
      }
      try checkUnconnected([item.owner, recipient.id])
      let all = try offers()
      let former = all.filter { $0.item == item.id }
      if let same = former.first(where: { $0.recipient == recipient.id }) {
        return try fact(same, inode, item, for: item.owner)
      }
      let gone = try all.filter { offer in try read { try $0.item(offer.item) } == nil }
      if former.isEmpty { try checkRoom(for: item.owner, beside: all.count - gone.count, among: all) }
      let offer = Offer(item: item.id, recipient: recipient.id, time: clock())
      try makeChange(.share, at: offer.time) { change in
        for offer in gone.prefix(Self.forgottenOffers) { try change.rows.setSetting(offer.setting, nil) }
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

  /// Refuses what a hub would refuse as well, in words that say what to do.
  ///
  /// - Throws: as ``offerTransfer(_:to:)``.
  package func checkTransfer(_ path: ItemPath, to handle: AccountHandle) throws {
    try locked {
      _ = try offerable(path)
      guard handle != path.account else { throw Self.ownsAlready(handle, path) }
    }
  }

  private static func ownsAlready(_ handle: AccountHandle, _ path: ItemPath) -> SheafError {
    SheafError(.invalid, subject: "\(handle)", reason: "owns \(path) already", advice: "name another account")
  }

  /// - Throws: `notPermitted` where the documents of one of the accounts are at a hub, and those of the other are not.
  func checkUnconnected(_ accounts: [Int64]) throws {
    for account in accounts where try read({ try $0.replica(account) }) != nil {
      throw SheafError(
        .notPermitted, subject: "\(try handle(account))",
        reason: "is connected to a hub, and the other account is not",
        advice: "connect both to one hub, or make a copy: sheaf send-copy")
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

  /// - Throws: `tooLarge` where an account, or the library, can have no more offers.
  private func checkRoom(for owner: Int64, beside count: Int, among offers: [Offer]) throws {
    let own = try offers.count { offer in try read { try $0.item(offer.item) }?.owner == owner }
    guard own < Self.offerLimit.account, count < Self.offerLimit.library else {
      throw SheafError(
        .tooLarge, subject: "the offer", reason: "too many offers wait already",
        advice: "take one back with: sheaf transfer --withdraw, or wait until some are accepted")
    }
  }

  /// Ends the offers that were made to an account.
  func endOffers(to account: AccountRow) throws {
    let offers = try offers().filter { $0.recipient == account.id }
    guard !offers.isEmpty else { return }
    try makeChange(.share, freesSpace: true) { change in
      for offer in offers { try change.rows.setSetting(offer.setting, nil) }
    }
  }

  /// Ends the offers of what is in a tree that becomes another account's (rule 7).
  func endOffers(of items: Set<Int64>, actor: Int64, _ change: Change) throws {
    for offer in try offers() where items.contains(offer.item) {
      try change.rows.setSetting(offer.setting, nil)
      guard let (inode, item) = try target(of: offer) else { continue }
      try logOffer(offer, .removed, inode, item, actor: actor, change)
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

  private func offer(of item: Int64, to account: Int64) throws -> Offer? {
    let key = Offer(item: item, recipient: account, time: clock()).setting
    return try read { try $0.numberSetting(key) }.map { time in
      Offer(item: item, recipient: account, time: Timestamp(nanoseconds: time))
    }
  }

  /// Whether an account can accept an item.
  func isOffered(_ id: String, to account: Int64) throws -> Bool {
    do {
      _ = try offered(id, to: account)
      return true
    } catch let error as SheafError where error.kind == .notFound {
      return false
    }
  }

  func offered(_ id: String, to account: Int64) throws -> (offer: Offer, inode: Inode, item: ItemRow) {
    guard let uuid = UUID(uuidString: id), let found = try read({ try $0.item(uuid: uuid) }),
      let offer = try offer(of: found.id, to: account), let (inode, item) = try target(of: offer)
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
    try checkNesting(of: inode, path)
    return inode
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

  /// An account as what it is to be.
  func owner(_ account: Int64, _ acceptance: Acceptance) throws -> EventDetails.Participant {
    .init(
      handle: try handle(account).description, name: try name(account), role: Role.owner.rawValue,
      permission: SharePermission.readWrite.rawValue, acceptance: acceptance.rawValue)
  }

  @discardableResult
  func log(
    _ type: EventType, _ item: ItemRow, _ data: EventData, owner: Int64, actor: Int64, about account: Int64?,
    _ change: Change
  ) throws -> Int64 {
    try number(
      EventRow(
        number: 0, uuid: .timeOrdered(change.time), type: type.rawValue, time: change.time, actor: actor, owner: owner,
        item: item.id, data: data.json, share: data.share, process: 0), about: account, change)
  }
}
