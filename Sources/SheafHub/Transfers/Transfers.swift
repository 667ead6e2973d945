import SheafHubStore
import SheafModel
import SheafWire

/// Items that their owners give to other accounts of the hub.
///
/// Rules:
/// 1. An offer is a row in the giver's zone. The recipient's zone has a hint of it, which the other one confirms.
/// 2. What is accepted is copied first: versions, labels and contents into the recipient's zone, where nobody sees them
///    (``TransferCopy``). Each step is a transaction of one zone and can be repeated, by any process. Each acceptance has
///    a number in both zones. The latest alone copies, takes the copy away, and goes on to rule 3.
/// 3. It leaves the giver's zone with one transaction, if that still has what was copied, and is purged there: what a
///    machine of the giver saves in it afterwards is a new document of theirs. From then on the row says so, and nothing
///    takes the copy away any more.
/// 4. It is in the recipient's zone with the next transaction. If the process ends between the two, the upkeep does it,
///    or whoever accepts again.
struct Transfers: Sendable {
  /// Offers of an account.
  static let mostMade = 32
  /// Offers to an account by one other, those of the last day that ended among them.
  static let mostFromOne = 32
  /// Offers to an account.
  static let mostToOne = 1_024
  /// How often a tree is copied anew that changes meanwhile, in one request.
  private static let attempts = 8
  /// For how long an offer that ended counts, in nanoseconds.
  private static let endedLifetime: Int64 = 86_400 * 1_000_000_000

  let database: any Database
  let clock: HubClock
  private let copy: TransferCopy
  private let purging: Purging

  init(database: any Database, clock: HubClock, purging: Purging) {
    self.database = database
    self.clock = clock
    self.purging = purging
    copy = TransferCopy(database: database, clock: clock)
  }

  private static let nothing = HubError(.notFound, "nothing is offered by this id, or no longer")

  // MARK: - Offering

  /// Offers an item of the account to another one. Offered to somebody else before, it is offered to them no more.
  ///
  /// - Throws: ``HubError`` of kind `notFound` for an item or a handle that is none, `invalid`, `conflict` or `tooLarge`
  ///   for what cannot be given away.
  func offer(_ item: WireID, to handle: String, by caller: Person) async throws -> TransferFacts {
    let (zone, now) = (caller.zone, clock.now)
    guard let handle = try? AccountHandle(handle) else { throw HubError(.invalid, "handle: not a handle") }
    guard handle.description != caller.handle else { throw HubError(.invalid, "handle: it is the account's already") }
    let found = try await database.read { connection in try ShareRows.person(handle, in: &connection) }
    guard let person = found else { throw HubError(.notFound, "handle: no account has it") }
    let hasRoom = try await hasRoom(for: zone, at: person.zone)
    let (former, transfer) = try await database.write { connection -> (Transfer?, Transfer) in
      var head = try ZoneHead.take(zone, in: &connection)
      let row = try TransferredTree.check(item, of: zone, connection)
      var rows = TransferRows(zone: zone, connection: connection)
      let made = try rows.made()
      let former = made.first { $0.item == row.item }
      if let former {
        guard former.state == .offered else { throw HubError(.conflict, "item: it is being given away") }
        if former.recipient.zone == person.zone { return (nil, former) }
      } else {
        var stored = StoredZone(zone: zone, connection: connection)
        let standing = try made.count { try stored.item($0.item).map { !$0.isDeleted } ?? false }
        guard standing < Self.mostMade else {
          throw HubError(.conflict, "the account makes as many offers as it may; take one back")
        }
      }
      guard hasRoom else {
        throw HubError(.conflict, "handle: it was offered as much as it may be; try again tomorrow")
      }
      try rows.write(
        Transfer(id: WireID(), item: row.item, giver: caller, recipient: person, state: .offered, time: now))
      guard let transfer = try rows.made(row.item) else { throw Self.nothing }
      if let former {
        try head.append(
          try Self.event(former, .removed, row, of: zone, by: former.giver, at: now, connection), to: zone,
          in: &connection)
      }
      try head.append(
        try Self.event(transfer, .pending, row, of: zone, by: transfer.giver, at: now, connection), to: zone,
        in: &connection)
      try head.write(zone, in: &connection)
      return (former, transfer)
    }
    if let former { try await end(former, by: former.giver) }
    guard let facts = try await facts(of: transfer, for: zone) else { throw Self.nothing }
    try await deliver(transfer, facts)
    return facts
  }

  /// Whether an account may be offered more by another one.
  private func hasRoom(for giver: String, at recipient: String) async throws -> Bool {
    let hints = try await database.read { connection in
      var rows = TransferRows(zone: recipient, connection: connection)
      return try rows.hints()
    }
    return hints.count(where: { $0.giver == giver }) < Self.mostFromOne
      && hints.count(where: { $0.isOpen }) < Self.mostToOne
  }

  /// Tells the recipient of an offer.
  private func deliver(_ transfer: Transfer, _ facts: TransferFacts) async throws {
    let zone = transfer.recipient.zone
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var rows = TransferRows(zone: zone, connection: connection)
      guard try rows.note(transfer) else { return }
      try head.append(
        try Self.event(transfer, facts, .pending, by: transfer.giver, at: transfer.time), to: zone, in: &connection)
      try head.write(zone, in: &connection)
    }
  }

  /// Takes the offer of an item back.
  func withdraw(_ item: WireID, by caller: Person) async throws {
    let transfer = try await remove(by: caller) { rows, stored in
      try rows.made(try stored.alias(item) ?? item)
    }
    try await end(transfer, by: caller)
  }

  /// Declines what is offered to the account.
  func decline(_ id: WireID, by caller: Person) async throws {
    let transfer = try await transfer(id, to: caller)
    let removed = try await remove(in: transfer.giver.zone, by: caller) { rows, _ in
      try rows.made(transfer.item).flatMap { $0.id == id ? $0 : nil }
    }
    try await end(removed, by: caller)
  }

  /// Removes an offer that was not accepted from the giver's zone, whose log tells of it.
  private func remove(
    in zone: String? = nil, by caller: Person,
    _ find: @escaping @Sendable (inout TransferRows, inout StoredZone) throws -> Transfer?
  ) async throws -> Transfer {
    let (zone, now) = (zone ?? caller.zone, clock.now)
    return try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var rows = TransferRows(zone: zone, connection: connection)
      var stored = StoredZone(zone: zone, connection: connection)
      guard let transfer = try find(&rows, &stored), transfer.state == .offered else { throw Self.nothing }
      guard try rows.remove(transfer) else { throw Self.nothing }
      if let row = try stored.item(transfer.item), !row.isPurged {
        let event = try Self.event(transfer, .removed, row, of: zone, by: caller, at: now, connection)
        try head.append(event, to: zone, in: &connection)
        try head.write(zone, in: &connection)
      }
      return transfer
    }
  }

  /// Ends an offer that the giver's zone does not have any more in the recipient's, with what was copied for it.
  private func end(_ transfer: Transfer, by actor: Person) async throws {
    let (zone, now) = (transfer.recipient.zone, clock.now)
    do {
      let facts = try await facts(of: transfer, for: zone, isEnding: true)
      try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        var rows = TransferRows(zone: zone, connection: connection)
        guard try rows.end(transfer.id, at: now), let facts, actor.zone != zone else { return }
        let event = try Self.event(transfer, facts, .removed, by: actor, at: now)
        try head.append(event, to: zone, in: &connection)
        try head.write(zone, in: &connection)
      }
      try await copy.discard(transfer.id, in: zone)
    } catch let error as HubError where error.kind == .notFound {
      // The account was removed meanwhile.
      return
    }
  }

  // MARK: - Listing

  /// The offers that an account made, and those that were made to it.
  func lists(for caller: Person) async throws -> TransferLists {
    let (made, hints) = try await database.read { connection in
      var rows = TransferRows(zone: caller.zone, connection: connection)
      return (try rows.made(), try rows.hints())
    }
    var lists = TransferLists(byMe: [], toMe: [])
    for transfer in made where transfer.state == .offered {
      if let facts = try await facts(of: transfer, for: caller.zone) { lists.byMe.append(facts) }
    }
    for hint in hints where hint.isOpen {
      if let transfer = try await confirmed(hint, to: caller.zone), transfer.state == .offered,
        let facts = try await facts(of: transfer, for: caller.zone)
      {
        lists.toMe.append(facts)
      }
    }
    lists.toMe.sort { $0.time > $1.time }
    return lists
  }

  /// What is offered to an account by an id.
  private func transfer(_ id: WireID, to recipient: Person) async throws -> Transfer {
    let hint = try await database.read { connection in
      var rows = TransferRows(zone: recipient.zone, connection: connection)
      return try rows.hint(id)
    }
    guard let hint, hint.isOpen, let transfer = try await confirmed(hint, to: recipient.zone) else {
      throw Self.nothing
    }
    return transfer
  }

  /// The offer of which a zone has a hint; nil where the giver's zone does not have it.
  private func confirmed(_ hint: TransferRows.Hint, to zone: String) async throws -> Transfer? {
    do {
      return try await database.read { connection in
        var rows = TransferRows(zone: hint.giver, connection: connection)
        let transfer = try rows.made(hint.item)
        return transfer.flatMap { $0.id == hint.transfer && $0.recipient.zone == zone ? $0 : nil }
      }
    } catch let error as HubError where error.kind == .notFound {
      return nil
    }
  }

  /// An offer as one side sees it; nil where the item is gone.
  ///
  /// - Parameter isEnding: Whether that is told, of an item that may be deleted.
  private func facts(of transfer: Transfer, for zone: String, isEnding: Bool = false) async throws -> TransferFacts? {
    let row = try await database.read { connection in
      var stored = StoredZone(zone: transfer.giver.zone, connection: connection)
      return try stored.item(transfer.item)
    }
    guard let row, !row.isPurged, isEnding || !row.isDeleted, let place = row.places.first else { return nil }
    let (giver, recipient) = (transfer.giver, transfer.recipient)
    return TransferFacts(
      transfer: transfer.id, item: zone == giver.zone ? transfer.item : nil,
      name: String(decoding: place.name, as: UTF8.self), kind: row.kind, owner: giver.handle,
      ownerName: giver.name ?? giver.handle, recipient: recipient.handle,
      recipientName: recipient.name ?? recipient.handle, time: transfer.time.secondsText)
  }

  // MARK: - Accepting

  /// Makes what is offered the account's own, in its `Documents`.
  ///
  /// - Parameter deadline: When it answers that there is more to do, at the latest after a step.
  /// - Throws: ``HubError`` of kind `notFound` where it is not offered, `conflict` or `tooLarge` for what cannot go
  ///   along, `quota` or `full`.
  func accept(
    _ id: WireID, by recipient: Person, until deadline: ContinuousClock.Instant
  ) async throws -> TransferProgress {
    if let item = try await accepted(id, by: recipient.zone) { return TransferProgress(isDone: true, item: item) }
    var transfer = try await transfer(id, to: recipient)
    var given: TransferredTree?
    if transfer.state == .offered, let begun = try await begin(transfer) {
      transfer = begun
      guard let tree = try await give(transfer, until: deadline) else {
        // Another acceptance may have done it.
        let item = try await accepted(id, by: recipient.zone)
        return TransferProgress(isDone: item != nil, item: item)
      }
      given = tree
    }
    transfer.state = .given
    let item = try await finish(transfer)
    // What is left of the contents the upkeep destroys.
    for item in given?.items ?? [] where ContinuousClock.now < deadline {
      try? await purging.purge(item, in: transfer.giver.zone, by: "")
    }
    await database.emptyLog()
    return TransferProgress(isDone: true, item: item)
  }

  /// Begins an acceptance, which ends those before it.
  ///
  /// - Returns: the offer with the number of the acceptance; nil where it was given already.
  /// - Throws: `notFound` where it is not offered any more.
  private func begin(_ transfer: Transfer) async throws -> Transfer? {
    let (giver, recipient) = (transfer.giver.zone, transfer.recipient.zone)
    let begun = try await database.write { connection -> Transfer? in
      _ = try ZoneHead.take(giver, in: &connection)
      var rows = TransferRows(zone: giver, connection: connection)
      guard var known = try rows.made(transfer.item), known.id == transfer.id else { throw Self.nothing }
      if known.state == .given { return nil }
      known.attempt += 1
      try rows.write(known)
      return known
    }
    guard let begun else { return nil }
    try await database.write { connection in
      _ = try ZoneHead.take(recipient, in: &connection)
      var rows = TransferRows(zone: recipient, connection: connection)
      // A later one may have begun: then this one ends at its next step.
      _ = try rows.begin(begun.id, attempt: begun.attempt)
    }
    return begun
  }

  /// What came of an offer that was accepted before; nil for another one.
  private func accepted(_ id: WireID, by zone: String) async throws -> WireID? {
    try await database.read { connection in
      var rows = TransferRows(zone: zone, connection: connection)
      guard let hint = try rows.hint(id), !hint.isOpen else { return nil }
      var stored = StoredZone(zone: zone, connection: connection)
      return try stored.item(ArrivingItem.id(of: hint.item, by: id))?.item
    }
  }

  /// Copies a tree, and takes it out of the giver's zone.
  ///
  /// - Returns: the tree; nil where there is more to do, or a later acceptance does it.
  private func give(_ transfer: Transfer, until deadline: ContinuousClock.Instant) async throws -> TransferredTree? {
    do {
      for _ in 0..<Self.attempts {
        let tree = try await self.tree(of: transfer)
        if try await copy.copy(tree, transfer, until: deadline), try await leave(tree, transfer) { return tree }
        if ContinuousClock.now > deadline { return nil }
      }
      return nil
    } catch let error where Self.endsCopying(error) {
      // Whoever has no room for it now may have it later, and copying begins anew then. Where a later acceptance has
      // given it meanwhile, the copy is that one's.
      try await copy.discard(transfer.id, attempt: transfer.attempt, in: transfer.recipient.zone)
      throw error
    }
  }

  /// Whether copying cannot go on with the next request.
  private static func endsCopying(_ error: any Error) -> Bool {
    switch error {
    case let error as HubError: error.kind != .unavailable
    case HubStoreError.full: true
    default: false
    }
  }

  private func tree(of transfer: Transfer) async throws -> TransferredTree {
    do {
      return try await database.read { connection in
        try TransferredTree(transfer.item, of: transfer.giver.zone, &connection)
      }
    } catch let error as HubError where [.conflict, .invalid, .tooLarge].contains(error.kind) {
      // The reason may name what is the giver's.
      throw HubError(
        error.kind == .tooLarge ? .tooLarge : .conflict,
        "it cannot be given away as it is now; ask \(transfer.giver.handle) to offer it again, who is told why")
    }
  }

  /// Takes a tree that was copied out of the giver's zone.
  ///
  /// - Returns: false where something in it changed meanwhile.
  private func leave(_ tree: TransferredTree, _ transfer: Transfer) async throws -> Bool {
    let (zone, now) = (transfer.giver.zone, clock.now)
    return try await database.write { connection in
      var purge = try Purge(zone: zone, device: "", connection: connection)
      var rows = TransferRows(zone: zone, connection: connection)
      guard let known = try rows.made(transfer.item), known.id == transfer.id else { throw Self.nothing }
      guard known.state == .offered, known.attempt == transfer.attempt else { return false }
      guard try tree.isCurrent(in: zone, &connection) else { return false }
      _ = try TransferredTree.check(transfer.item, of: zone, connection)
      var event = try purge.row(of: transfer.item).map {
        try Self.event(transfer, .accepted, $0, of: zone, by: transfer.recipient, at: now, connection)
      }
      event?.data.contents = try tree.items.dropFirst().prefix(EventWriter.contentLimit).compactMap { item in
        try purge.row(of: item).flatMap { row in
          guard !row.isDeleted else { return nil }
          return try Self.item(row, id: row.item, of: zone, connection)
        }
      }
      var count: Int64 = 0
      for item in tree.items {
        guard let row = try purge.row(of: item), !row.isPurged else { continue }
        if !row.isDeleted { count += 1 }
        try purge.empty(row, at: now)
      }
      event?.data.contentCount = max(0, count - 1)
      if let event { try purge.tell(event) }
      var given = known
      given.state = .given
      try rows.write(given)
      try purge.end()
      return true
    }
  }

  /// Puts what was given into the recipient's zone, if it is not there, and forgets the offer.
  ///
  /// - Returns: the id that the item has there.
  private func finish(_ transfer: Transfer) async throws -> WireID {
    do {
      try await copy.publish(transfer)
    } catch let error as HubError where error.kind == .notFound {
      // The account was removed, and with it what was its own by then.
    }
    // The giver's account may be gone, and the row with it.
    _ = try await forget(transfer)
    return ArrivingItem.id(of: transfer.item, by: transfer.id)
  }

  // MARK: - Upkeep

  /// Goes on with what a process left undone that ended, in all zones.
  func finishAll() async throws {
    let zones = try await database.read { connection in
      let rows = try connection.query("SELECT zone, state FROM transfers")
      return Set(try rows.filter { try $0.text(1) == Transfer.State.given.rawValue }.map { try $0.text(0) })
    }
    for zone in zones.sorted() {
      try Task.checkCancellation()
      try await upkeep(of: zone)
    }
  }

  /// Goes on with what is left undone in a zone, and forgets offers that ended. What fails is tried again with the next
  /// upkeep, and keeps nothing else.
  func upkeep(of zone: String) async throws {
    let (made, hints) = try await database.read { connection in
      var rows = TransferRows(zone: zone, connection: connection)
      return (try rows.made(), try rows.hints())
    }
    for transfer in made { try await go { try await upkeep(of: transfer) } }
    for hint in hints { try await go { try await upkeep(of: hint, in: zone) } }
  }

  private func go(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch is CancellationError {
      throw CancellationError()
    } catch HubStoreError.unavailable(let reason) {
      throw HubStoreError.unavailable(reason)
    } catch {
      return
    }
  }

  private func upkeep(of transfer: Transfer) async throws {
    if transfer.state == .given {
      _ = try await finish(transfer)
    } else if let facts = try await facts(of: transfer, for: transfer.recipient.zone) {
      do {
        try await deliver(transfer, facts)
      } catch let error as HubError where error.kind == .notFound {
        _ = try await forget(transfer)
      }
    } else if try await forget(transfer) {
      try await end(transfer, by: transfer.giver)
    }
  }

  private func upkeep(of hint: TransferRows.Hint, in zone: String) async throws {
    let now = clock.now
    if hint.isOpen {
      guard try await confirmed(hint, to: zone) == nil else { return }
      _ = try await database.write { connection in
        var rows = TransferRows(zone: zone, connection: connection)
        return try rows.end(hint.transfer, at: now)
      }
    }
    try await copy.discard(hint.transfer, in: zone)
    guard !hint.isOpen, now.nanoseconds - hint.time.nanoseconds >= Self.endedLifetime else { return }
    _ = try await database.write { connection in
      var rows = TransferRows(zone: zone, connection: connection)
      return try rows.forget(hint.transfer)
    }
  }

  /// - Returns: whether it was there, in the state in which it was read.
  private func forget(_ transfer: Transfer) async throws -> Bool {
    let zone = transfer.giver.zone
    return try await database.write { connection in
      do {
        _ = try ZoneHead.take(zone, in: &connection)
      } catch let error as HubError where error.kind == .notFound {
        return false
      }
      var rows = TransferRows(zone: zone, connection: connection)
      return try rows.remove(transfer)
    }
  }

  /// Completes what was given by an account and to it, and takes away what was copied for it and not given, before the
  /// account goes or is written to a file.
  func settle(_ zone: String) async throws {
    let (made, hints) = try await database.read { connection in
      var rows = TransferRows(zone: zone, connection: connection)
      return (try rows.made(), try rows.hints())
    }
    for transfer in made where transfer.state == .given { _ = try await finish(transfer) }
    for hint in hints {
      if hint.isOpen, let transfer = try await confirmed(hint, to: zone), transfer.state == .given {
        _ = try await finish(transfer)
      } else {
        try await copy.discard(hint.transfer, in: zone)
      }
    }
  }

  // MARK: - Events

  /// The event of what became of an offer, in the giver's log.
  private static func event(
    _ transfer: Transfer, _ acceptance: Acceptance, _ row: ItemRow, of zone: String, by actor: Person,
    at now: Timestamp, _ connection: any SQLConnection
  ) throws -> PendingEvent {
    var data = EventDetails(item: try item(row, id: row.item, of: zone, connection), actor: try actor.account)
    data.participant = transfer.participant(acceptance)
    return PendingEvent(
      id: WireID().description, type: acceptance == .accepted ? .deleted : .shareUpdated, subject: row.item, time: now,
      data: data)
  }

  /// The same in the recipient's log, who knows the item by the id of the offer.
  private static func event(
    _ transfer: Transfer, _ facts: TransferFacts, _ acceptance: Acceptance, by actor: Person, at now: Timestamp
  ) throws -> PendingEvent {
    var data = EventDetails(
      item: .init(
        id: transfer.id.description, kind: facts.kind.rawValue, name: facts.name, path: facts.name),
      actor: try actor.account)
    data.participant = transfer.participant(acceptance)
    return PendingEvent(
      id: WireID().description, type: .shareUpdated, subject: transfer.id, time: now, data: data)
  }

  static func item(
    _ row: ItemRow, id: WireID, of zone: String, _ connection: any SQLConnection
  ) throws -> EventDetails.Item {
    var stored = StoredZone(zone: zone, connection: connection)
    let name = row.places.first.map { String(decoding: $0.name, as: UTF8.self) } ?? ""
    return EventDetails.Item(
      id: id.description, kind: row.kind.rawValue, name: name, path: try EventWriter.path(row.places.first, &stored))
  }
}
