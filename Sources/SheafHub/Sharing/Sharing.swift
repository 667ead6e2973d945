import SheafHubStore
import SheafModel
import SheafWire

/// The shares of a hub. ``HubShare`` has the rules. This finds the share, stores its changes in one transaction of its
/// owner's zone, and brings the news to the inboxes of others.
struct Sharing: Sendable {
  /// Shares of an owner, those that were stopped among them.
  static let mostShares: Int64 = 1_000
  /// Shares that an account takes part in.
  static let mostJoined: Int64 = 1_000

  let database: any Database
  let clock: HubClock
  let inboxes: Inboxes
  private let courier: Courier

  init(database: any Database, clock: HubClock, courier: Courier) {
    self.database = database
    self.clock = clock
    self.courier = courier
    inboxes = Inboxes(database: database, clock: clock)
  }

  // MARK: - The share itself

  /// Shares an item of the account, or changes its share. An item that was shared before is shared again under the same
  /// URL.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, `invalid`, or `conflict` for an item in a share or around one.
  func share(_ item: WireID, _ settings: ShareSettings, by caller: Person) async throws -> HubShare {
    let (zone, now) = (caller.zone, clock.now)
    try await check(settings.people ?? [])
    let share = try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var tree = SharedTree(StoredZone(zone: zone, connection: connection))
      let found = try tree.shareable(item)
      if found.item == .root, try ArrivalRows.isAny(in: zone, &connection) {
        throw HubError(.conflict, "item: something is just being taken over into it; try again in a moment")
      }
      var rows = ShareRows(zone: zone, connection: connection)
      let before = try rows.share(of: found.item)
      var share: HubShare
      if let before {
        share = before
      } else {
        guard try rows.ids(activeOnly: false).count < Self.mostShares else {
          throw HubError(.conflict, "the account shares as many items as it may")
        }
        share = HubShare(
          id: WireID(), item: found.item, kind: found.kind, token: .random(), title: Self.title(found), isActive: false,
          anyone: .none,
          permission: .readWrite, allowsInvites: false, allowsRequests: false, members: [:], asking: [:],
          invitations: [:])
      }
      if !share.isActive {
        try tree.checkBorders(of: found, shared: rows.activeItems())
        share.beginAgain(by: caller, at: now)
      }
      try share.change(settings, by: zone, at: now)
      let action = ShareAction(actor: caller, time: now)
      try rows.write(share, before: before, try rows.owner() ?? caller, action, &head)
      try head.write(zone, in: &connection)
      return share
    }
    try await deliver(from: zone)
    return share
  }

  /// Checks that people who are to be invited have accounts; of those of other hubs that is found out when they are.
  private func check(_ people: [String]) async throws {
    guard people.count <= HubShare.mostMembers else {
      throw HubError(.invalid, "people: \(HubShare.mostMembers) at most")
    }
    for handle in people where !courier.federation.isElsewhere(handle) {
      guard try await person(handle) != nil else {
        throw HubError(.notFound, "no account has the handle \(handle.printable)")
      }
    }
  }

  /// A title for an item: the name of a folder, or that of a document without the extension.
  private static func title(_ item: ItemRow) -> String {
    let name = item.places.first.map { String(decoding: $0.name, as: UTF8.self) } ?? "Documents"
    let dot = item.kind == .folder ? nil : name.lastIndex(of: ".")
    let stem = dot.flatMap { $0 > name.startIndex ? String(name[..<$0]) : nil } ?? name
    let shown = String(String.UnicodeScalarView(stem.unicodeScalars.filter { !$0.isControl }.prefix(255)))
    return shown.isEmpty ? "Untitled" : shown
  }

  /// A share as one of its members sees it.
  ///
  /// - Parameter zone: The one that has the share, where that is known.
  func share(_ id: WireID, for caller: Person, in zone: String? = nil) async throws -> HubShare {
    let zone = if let zone { zone } else { try await self.zone(of: id, for: caller) }
    let share = try await database.read { connection in
      var rows = ShareRows(zone: zone, connection: connection)
      return try rows.share(id)
    }
    guard let share else { throw HubShare.nothing }
    try share.require(.listPeople, by: caller.zone)
    return share
  }

  /// Changes a share by a rule of ``HubShare``.
  func change<Value: Sendable>(
    _ id: WireID, by caller: Person, _ body: @escaping @Sendable (inout HubShare) throws -> Value
  ) async throws -> Value {
    try await change(id, in: try await zone(of: id, for: caller), by: caller, body)
  }

  /// The same, of a share that is in this zone.
  ///
  /// - Parameter isLast: Whether the zone goes with it, and its logs.
  func change<Value: Sendable>(
    _ id: WireID, in zone: String, by actor: Person, isLast: Bool = false,
    _ body: @escaping @Sendable (inout HubShare) throws -> Value
  ) async throws -> Value {
    let action = ShareAction(actor: actor, time: clock.now, isLast: isLast)
    let value = try await database.write { connection in
      var head: ZoneHead
      do {
        head = try ZoneHead.take(zone, in: &connection)
      } catch let error as HubError where error.kind == .notFound {
        throw HubShare.nothing
      }
      var rows = ShareRows(zone: zone, connection: connection)
      guard let before = try rows.share(id), before.isActive, let owner = try rows.owner() else {
        throw HubShare.nothing
      }
      var share = before
      let value = try body(&share)
      try rows.write(share, before: before, owner, action, &head)
      try head.write(zone, in: &connection)
      return value
    }
    try await deliver(from: zone)
    return value
  }

  /// Brings the news of a zone to the inboxes of others: of this hub, and then of other ones.
  private func deliver(from zone: String) async throws {
    try await inboxes.deliver(from: zone)
    await courier.deliver(from: zone)
  }

  /// The zone of a share: that of a guest's session, or as ``zone(of:for:)`` finds it.
  func zone(of share: WireID, for caller: Caller) async throws -> String {
    if let guest = caller.guest { return guest.zone }
    return try await zone(of: share, for: caller.person)
  }

  /// The zone in which a share is: the account's own, or the one that its inbox names. It is a hint, which the zone
  /// confirms.
  private func zone(of share: WireID, for caller: Person) async throws -> String {
    try await database.read { connection in
      var own = ShareRows(zone: caller.zone, connection: connection)
      if try own.share(share) != nil { return caller.zone }
      let owner = try connection.query(
        "SELECT owner FROM inbox WHERE zone = $1 AND share = $2", [.text(caller.zone), .blob(share.bytes)]
      ).first?.text(0)
      guard let owner, let handle = try? AccountHandle(owner),
        let person = try ShareRows.person(handle, in: &connection)
      else { throw HubShare.nothing }
      return person.zone
    }
  }

  /// The account of a handle; nil where it is none.
  func person(_ handle: String) async throws -> Person? {
    guard let handle = try? AccountHandle(handle) else { return nil }
    return try await database.read { connection in try ShareRows.person(handle, in: &connection) }
  }

  /// Whom a handle names who is to be invited, or whose part is to change: an account of this hub, or of another one,
  /// which then gives keys.
  ///
  /// - Returns: nil for a handle that has no account.
  /// - Throws: ``HubError`` of the rules of ``HubShare``, before another hub hears of it; `unavailable` if that hub
  ///   cannot be asked.
  func invitee(
    _ handle: String, to id: WireID, _ settings: ParticipantSettings, by caller: Caller, _ guests: Guests
  ) async throws -> Person? {
    if let person = try await person(handle) { return person }
    guard courier.federation.isElsewhere(handle) else { return nil }
    let zone = try await zone(of: id, for: caller)
    let (found, owner) = try await database.read { connection in
      var rows = ShareRows(zone: zone, connection: connection)
      return (try rows.share(id), try rows.owner())
    }
    guard var share = found, let owner else { throw HubShare.nothing }
    let person = Person(zone: handle, handle: handle, name: nil)
    let isMember = share.member(handle) != nil
    _ = try share.invite(person, settings, by: caller.zone, at: clock.now)
    if isMember { return person }
    guard let root = try await courier.keys(of: handle, share: id, zone: zone, owner: owner.handle) else { return nil }
    try await guests.admit(root)
    return Person(zone: handle, handle: handle, name: root.name)
  }

  // MARK: - Links

  /// The share that a link leads to, with its owner.
  struct Offer: Sendable {
    let share: HubShare
    let owner: Person
  }

  /// The offer of a link to an account.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, the same for a link that is none and for one that is not theirs.
  func offer(
    _ link: ShareToken, to caller: Person, guest: Guests.Pass? = nil
  ) async throws -> (offer: Offer, way: HubShare.Way) {
    guard let offer = try await offer(link), guest.map({ $0.share == offer.share.id }) ?? true else {
      throw HubShare.nothing
    }
    return (offer, try offer.share.way(caller, by: link, at: clock.now))
  }

  /// The offer of a link to somebody without an account; nil for a link that tells them nothing.
  func offerToStrangers(_ link: ShareToken) async throws -> Offer? {
    guard let offer = try await offer(link), offer.share.tellsStrangers(link, at: clock.now) else { return nil }
    return offer
  }

  private func offer(_ link: ShareToken) async throws -> Offer? {
    try await database.read { connection in
      guard let zone = try ShareRows.zone(of: link, in: &connection) else { return nil }
      var rows = ShareRows(zone: zone, connection: connection)
      guard let share = try rows.share(by: link), share.isActive, try rows.isThere(share),
        let owner = try rows.owner()
      else { return nil }
      return Offer(share: share, owner: owner)
    }
  }

  /// Joins by a link, or asks for access. When it returns, the inbox of who joined has it.
  ///
  /// - Parameter guest: The session of a guest, which is good for one share.
  /// - Returns: nil for the member of one who asked.
  func accept(
    _ link: ShareToken, by caller: Person, guest: Guests.Pass? = nil
  ) async throws -> (share: WireID, member: Member?) {
    guard let offer = try await offer(link), guest.map({ $0.share == offer.share.id }) ?? true else {
      throw HubShare.nothing
    }
    let joined = try await database.read { connection in
      try connection.query(
        "SELECT COUNT(*) FROM inbox WHERE zone = $1 AND acceptance = $2",
        [.text(caller.zone), .text(Acceptance.accepted.rawValue)]
      ).first?.integer(0) ?? 0
    }
    let now = clock.now
    let member = try await change(offer.share.id, in: offer.owner.zone, by: caller) { share in
      let isMember = share.member(caller.zone)?.acceptance == .accepted
      let member = try share.accept(caller, by: link, at: now)
      guard isMember || member == nil || joined < Self.mostJoined else {
        throw HubError(.conflict, "the account takes part in as many shares as it may")
      }
      return member
    }
    return (offer.share.id, member)
  }

  /// Takes back that an account asked for access by a link.
  func withdraw(_ link: ShareToken, by caller: Person) async throws {
    guard let offer = try await offer(link) else { throw HubShare.nothing }
    try await change(offer.share.id, in: offer.owner.zone, by: caller) { try $0.withdraw(by: caller.zone) }
  }

  // MARK: - Accounts that go

  /// Ends what an account shares, and its part in what others share, and takes back what it asks for.
  func withdraw(_ zone: String) async throws {
    let (own, account) = try await database.read { connection in
      var rows = ShareRows(zone: zone, connection: connection)
      return (try rows.ids(activeOnly: true), try rows.owner())
    }
    guard let account else { return }
    for share in own { try await change(share, in: zone, by: account, isLast: true) { try $0.stop(by: zone) } }
    var last: WireID?
    while true {
      let page = try await inboxes.page(after: last, limit: 100, of: zone).entries
      for (share, note) in page where note.acceptance != .removed || note.asked != nil {
        guard let owner = try await person(note.owner), owner.zone != zone else { continue }
        do {
          try await change(share, in: owner.zone, by: account) {
            try $0.request(of: zone) == nil ? $0.leave(zone) : $0.withdraw(by: zone)
          }
        } catch let error as HubError where error.kind == .notFound {
          continue
        }
      }
      guard page.count == 100, let end = page.last else { return }
      last = end.share
    }
  }
}

extension ShareRows {
  /// The zone's account.
  mutating func owner() throws -> Person? {
    try connection.query("SELECT handle, name FROM accounts WHERE zone = $1", [.text(zone)]).first.map {
      Person(zone: zone, handle: try $0.text(0), name: try $0.optionalText(1))
    }
  }

  /// Whether what is shared was not deleted.
  mutating func isThere(_ share: HubShare) throws -> Bool {
    if share.item == .root { return true }
    var stored = StoredZone(zone: zone, connection: connection)
    return try stored.item(try stored.alias(share.item) ?? share.item).map { !$0.isDeleted } ?? false
  }

  /// The items that are shared now.
  mutating func activeItems() throws -> [WireID] {
    try connection.query("SELECT item, active FROM shares WHERE zone = $1", [.text(zone)])
      .filter { try $0.integer(1) == 1 }.map { try StoredZone.id($0.blob(0)) }
  }
}

/// Where shared items lie.
struct SharedTree {
  private var stored: StoredZone

  init(_ stored: StoredZone) { self.stored = stored }

  /// An item that can be shared, by its own id.
  mutating func shareable(_ id: WireID) throws -> ItemRow {
    let row: ItemRow?
    if id == .root {
      row = ItemRow(
        item: .root, kind: .folder, number: 0, device: "", others: 0, deleted: nil, places: [], mode: 0o755, mtime: 0,
        target: nil, attributes: [:], version: nil, versions: 0, copyOf: nil)
    } else {
      row = try stored.item(try stored.alias(id) ?? id)
    }
    guard let row, !row.isDeleted else { throw HubError(.notFound, "item: nothing has this id") }
    guard row.kind != .symlink else { throw HubError(.invalid, "item: a symbolic link is shared with its folder") }
    return row
  }

  /// Checks that an item lies in no share and around none, and that nothing of it has a name on the other side.
  mutating func checkBorders(of item: ItemRow, shared: [WireID]) throws {
    let conflict = HubError(.conflict, "item: it is in a share, or one is in it")
    let others = Set(shared)
    if try ways(up: item).contains(where: others.contains) { throw conflict }
    for other in shared {
      if other == .root { throw conflict }
      guard let row = try stored.item(try stored.alias(other) ?? other), !row.isDeleted else { continue }
      if try row.item == item.item || ways(up: row).contains(item.item) { throw conflict }
    }
    if let outside = try nameAcross(item) {
      let path = try EventWriter.path(outside, &stored)
      throw HubError(
        .conflict, "item: it has a hard link outside of it: \(path); remove that name first, or make a copy of it")
    }
  }

  /// A name outside of an item that is to be shared: of what has one in it; of a document, a further one.
  private mutating func nameAcross(_ item: ItemRow) throws -> Place? {
    guard item.kind == .folder else { return item.places.dropFirst().first }
    // Nothing is outside of all there is.
    if item.item == .root { return nil }
    var finder = try ShareFinder(zone: stored.zone, connection: stored.connection)
    finder.suppose(item.item)
    var search = LinkSearch(zone: stored.zone, connection: stored.connection)
    let found = try search.item(below: [item.item]) { id in
      try stored.item(id).map { try finder.isAcross($0, in: &stored) } ?? false
    }
    return try found.flatMap { try stored.item($0) }?.places.first { place in
      try finder.standing(ofFolder: place.parent, in: &stored)?.item != item.item
    }
  }

  /// Every folder above an item.
  private mutating func ways(up item: ItemRow) throws -> Set<WireID> {
    var above: Set<WireID> = []
    var next = item.places.map(\.parent)
    while let folder = next.popLast() {
      guard above.insert(folder).inserted, folder != .root, let row = try stored.item(folder) else { continue }
      next += row.places.map(\.parent)
    }
    return above
  }
}
