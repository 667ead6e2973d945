import SheafHubStore
import SheafModel
import SheafWire

/// The head of a share's feed.
struct SharedHead: Hashable, Sendable {
  /// The newest number.
  var number: Int64 = 0
  /// The zone's number when the share began, which is when what it is of entered.
  var since: Int64 = 0
  /// The feed's number when the share began.
  var opened: Int64 = 0
  /// The feed may have forgotten items that left the share, or were deleted, up to this number.
  var horizon: Int64 = 0
  /// The number of the newest event.
  var events: Int64 = 0

  static func read(_ share: WireID, of zone: String, _ connection: inout any SQLConnection) throws -> SharedHead {
    let rows = try connection.query(
      "SELECT number, since, opened, horizon, events FROM shared_feeds WHERE zone = $1 AND share = $2",
      [.text(zone), .blob(share.bytes)])
    guard let row = rows.first else { return SharedHead() }
    return SharedHead(
      number: try row.integer(0), since: try row.integer(1), opened: try row.integer(2), horizon: try row.integer(3),
      events: try row.integer(4))
  }

  /// Takes the feed's next number. The head is not written yet.
  mutating func advance(_ share: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    number += 1
    try ChangeID.random().note(number, in: share, of: zone, &connection)
  }

  func write(_ share: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      """
      INSERT INTO shared_feeds (zone, share, number, since, opened, horizon, events)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (zone, share) DO UPDATE SET number = excluded.number, since = excluded.since,
        opened = excluded.opened, horizon = excluded.horizon, events = excluded.events
      """,
      [
        .text(zone), .blob(share.bytes), .integer(number), .integer(since), .integer(opened), .integer(horizon),
        .integer(events),
      ])
  }
}

/// The rows of shares' feeds: the newest number of each item that changed in a share, entered it or left it. Each read
/// decides anew how the feed reports the item.
enum SharedRows {
  static func numbers(
    of item: WireID, in share: WireID, of zone: String, _ connection: inout any SQLConnection
  ) throws -> SharedNumbers {
    let rows = try connection.query(
      "SELECT number, device, others FROM shared_rows WHERE zone = $1 AND share = $2 AND item = $3",
      [.text(zone), .blob(share.bytes), .blob(item.bytes)])
    guard let row = rows.first else { return SharedNumbers() }
    return SharedNumbers(number: try row.integer(0), device: try row.text(1), others: try row.integer(2))
  }

  /// Gives a change of an item the next number of a share's feed.
  static func tell(
    _ item: WireID, in share: WireID, of zone: String, by device: String, _ connection: inout any SQLConnection
  ) throws -> Int64 {
    var head = try SharedHead.read(share, of: zone, &connection)
    try head.advance(share, of: zone, &connection)
    try head.write(share, of: zone, &connection)
    let known = try numbers(of: item, in: share, of: zone, &connection)
    let others = known.device == device ? known.others : known.number
    try connection.execute(
      """
      INSERT INTO shared_rows (zone, share, item, number, device, others) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (zone, share, item) DO UPDATE SET number = excluded.number, device = excluded.device,
        others = excluded.others
      """,
      [
        .text(zone), .blob(share.bytes), .blob(item.bytes), .integer(head.number), .text(device), .integer(others),
      ])
    return head.number
  }

  /// The number of the first version of a document that members see: the one that was current when it entered.
  static func firstVersion(
    of row: ItemRow, _ standing: Standing, in zone: String, _ connection: inout any SQLConnection
  ) throws -> Int64 {
    let current = try connection.query(
      "SELECT MAX(number) FROM version_changes WHERE zone = $1 AND item = $2 AND change <= $3",
      [.text(zone), .blob(row.item.bytes), .integer(standing.entered)]
    ).first?.optionalInteger(0)
    if let current { return current }
    // Those of an older hub have no change, and were before all that have one.
    let first = try connection.query(
      "SELECT number FROM version_changes WHERE zone = $1 AND item = $2 ORDER BY number LIMIT 1",
      [.text(zone), .blob(row.item.bytes)]
    ).first?.integer(0)
    return first.map { max(1, $0 - 1) } ?? row.versions
  }

  /// Notes since when an item by itself is in a share.
  static func enter(
    _ item: WireID, _ standing: Standing, of zone: String, _ connection: inout any SQLConnection
  ) throws {
    try connection.execute(
      """
      INSERT INTO entries (zone, item, share, number, told) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (zone, item) DO UPDATE SET share = excluded.share, number = excluded.number, told = excluded.told
      """,
      [
        .text(zone), .blob(item.bytes), .blob(standing.share.bytes), .integer(standing.entered),
        .integer(standing.told),
      ])
  }

  static func forgetEntry(of item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute("DELETE FROM entries WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.bytes)])
  }

  /// Forgets that a deleted item was in a share, if the folder that it was in left that or entered it since: the number
  /// that the item gets next would hide that.
  static func settleEntry(of row: ItemRow, _ finder: inout ShareFinder, _ stored: inout StoredZone) throws {
    guard row.isDeleted, try finder.entry(of: row.item) != nil, try finder.deleted(row, in: &stored) == nil else {
      return
    }
    try forgetEntry(of: row.item, of: stored.zone, &stored.connection)
  }

  /// Forgets an item that was deleted long ago.
  static func forget(_ item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try forgetEntry(of: item, of: zone, &connection)
    let rows = try connection.query(
      "DELETE FROM shared_rows WHERE zone = $1 AND item = $2 RETURNING share, number",
      [.text(zone), .blob(item.bytes)])
    for row in rows {
      let share = try StoredZone.id(row.blob(0))
      var head = try SharedHead.read(share, of: zone, &connection)
      head.horizon = max(head.horizon, try row.integer(1))
      try head.write(share, of: zone, &connection)
    }
  }
}
