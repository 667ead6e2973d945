import Foundation
import SheafHubStore
import SheafModel
import SheafWire

/// An offer of an item to another account.
struct Transfer: Hashable, Sendable {
  enum State: String, Sendable {
    /// It waits for an answer.
    case offered
    /// The item has left the zone, and is to be in the other one.
    case given
  }

  let id: WireID
  let item: WireID
  let giver: Person
  let recipient: Person
  var state: State
  let time: Timestamp
  /// Which acceptance goes on with it: the latest one alone does.
  var attempt: Int64 = 0

  /// Who somebody is to the recipient of whom the giver's zone says this.
  ///
  /// - Parameter handle: Nil for the owner of the zone, on either side.
  func author(_ handle: String?) -> String? {
    let handle = handle ?? giver.handle
    return handle == recipient.handle ? nil : handle
  }

  /// The recipient as an event tells of them.
  func participant(_ acceptance: Acceptance) -> EventDetails.Participant {
    EventDetails.Participant(
      handle: recipient.handle, name: recipient.name ?? recipient.handle, role: Role.owner.rawValue,
      permission: SharePermission.readWrite.rawValue, acceptance: acceptance.rawValue)
  }
}

extension Person {
  /// As events have it.
  var account: Account {
    get throws { Account(handle: try AccountHandle(handle), name: name ?? handle) }
  }
}

/// The offers in a zone, in a transaction that has taken the zone, or in a reader's.
struct TransferRows {
  let zone: String
  var connection: any SQLConnection

  // MARK: - By the zone's account

  /// The offers that the account made, the latest first.
  mutating func made() throws -> [Transfer] {
    let rows = try connection.query(
      "SELECT item, transfer, account, handle, state, time, attempt FROM transfers WHERE zone = $1 ORDER BY item",
      [.text(zone)])
    return try rows.map { try transfer($0) }.sorted { $0.time > $1.time }
  }

  /// The offer of an item.
  mutating func made(_ item: WireID) throws -> Transfer? {
    try connection.query(
      """
      SELECT item, transfer, account, handle, state, time, attempt FROM transfers WHERE zone = $1 AND item = $2
      """,
      [.text(zone), .blob(item.bytes)]
    ).first.map { try transfer($0) }
  }

  private mutating func transfer(_ row: SQLRow) throws -> Transfer {
    guard let state = Transfer.State(rawValue: try row.text(4)) else {
      throw HubStoreError.corrupt("an offer has no state")
    }
    var shares = ShareRows(zone: zone, connection: connection)
    guard let giver = try shares.owner() else { throw HubError(.notFound, "there is no such account") }
    let account = try row.text(2)
    let name = try connection.query("SELECT name FROM accounts WHERE zone = $1", [.text(account)])
    return Transfer(
      id: try StoredZone.id(row.blob(1)), item: try StoredZone.id(row.blob(0)), giver: giver,
      recipient: Person(zone: account, handle: try row.text(3), name: try name.first?.optionalText(0)), state: state,
      time: Timestamp(nanoseconds: try row.integer(5)), attempt: try row.integer(6))
  }

  mutating func write(_ transfer: Transfer) throws {
    try connection.execute(
      """
      INSERT INTO transfers (zone, item, transfer, account, handle, state, time, attempt)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (zone, item) DO UPDATE SET transfer = excluded.transfer, account = excluded.account,
        handle = excluded.handle, state = excluded.state, time = excluded.time, attempt = excluded.attempt
      """,
      [
        .text(zone), .blob(transfer.item.bytes), .blob(transfer.id.bytes), .text(transfer.recipient.zone),
        .text(transfer.recipient.handle), .text(transfer.state.rawValue), .integer(transfer.time.nanoseconds),
        .integer(transfer.attempt),
      ])
  }

  /// Removes an offer, if it is in the state in which it was read.
  ///
  /// - Returns: whether it was.
  @discardableResult
  mutating func remove(_ transfer: Transfer) throws -> Bool {
    try connection.execute(
      "DELETE FROM transfers WHERE zone = $1 AND item = $2 AND transfer = $3 AND state = $4",
      [.text(zone), .blob(transfer.item.bytes), .blob(transfer.id.bytes), .text(transfer.state.rawValue)]) > 0
  }

  // MARK: - To the zone's account

  /// Where something is that is offered to the account.
  struct Hint: Sendable {
    let transfer: WireID
    let giver: String
    let item: WireID
    /// Whether it waits for an answer, as far as this zone knows.
    let isOpen: Bool
    let time: Timestamp
    /// Which acceptance copies it.
    let attempt: Int64
  }

  private static let (open, ended) = ("offered", "ended")

  mutating func hints() throws -> [Hint] {
    try connection.query(
      "SELECT transfer, giver, item, state, time, attempt FROM transfer_offers WHERE zone = $1 ORDER BY transfer",
      [.text(zone)]
    ).map { try Self.hint($0) }
  }

  mutating func hint(_ transfer: WireID) throws -> Hint? {
    try connection.query(
      """
      SELECT transfer, giver, item, state, time, attempt FROM transfer_offers WHERE zone = $1 AND transfer = $2
      """,
      [.text(zone), .blob(transfer.bytes)]
    ).first.map { try Self.hint($0) }
  }

  private static func hint(_ row: SQLRow) throws -> Hint {
    Hint(
      transfer: try StoredZone.id(row.blob(0)), giver: try row.text(1), item: try StoredZone.id(row.blob(2)),
      isOpen: try row.text(3) == open, time: Timestamp(nanoseconds: try row.integer(4)), attempt: try row.integer(5))
  }

  /// - Returns: whether it is news.
  mutating func note(_ transfer: Transfer) throws -> Bool {
    try connection.execute(
      """
      INSERT INTO transfer_offers (zone, transfer, giver, item, state, time, attempt)
      VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT DO NOTHING
      """,
      [
        .text(zone), .blob(transfer.id.bytes), .text(transfer.giver.zone), .blob(transfer.item.bytes),
        .text(Self.open), .integer(transfer.time.nanoseconds),
      ]) > 0
  }

  /// Has an acceptance go on with copying, and those before it end.
  ///
  /// - Returns: whether it is the latest one of an offer that is open.
  mutating func begin(_ transfer: WireID, attempt: Int64) throws -> Bool {
    try connection.execute(
      """
      UPDATE transfer_offers SET attempt = $1 WHERE zone = $2 AND transfer = $3 AND state = $4 AND attempt < $1
      """, [.integer(attempt), .text(zone), .blob(transfer.bytes), .text(Self.open)]) > 0
  }

  /// Notes that an offer waits for no answer any more.
  ///
  /// - Returns: whether it did.
  mutating func end(_ transfer: WireID, at now: Timestamp) throws -> Bool {
    try connection.execute(
      "UPDATE transfer_offers SET state = $1, time = $2 WHERE zone = $3 AND transfer = $4 AND state = $5",
      [.text(Self.ended), .integer(now.nanoseconds), .text(zone), .blob(transfer.bytes), .text(Self.open)]) > 0
  }

  mutating func forget(_ transfer: WireID) throws {
    try connection.execute(
      "DELETE FROM transfer_offers WHERE zone = $1 AND transfer = $2", [.text(zone), .blob(transfer.bytes)])
  }
}
