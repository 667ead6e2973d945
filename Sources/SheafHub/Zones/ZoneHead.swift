import SheafHubStore
import SheafModel
import SheafWire

/// The row of a zone, which a transaction has taken.
struct ZoneHead {
  /// The newest number.
  var number: Int64
  /// Bytes of contents, and of the rows of items and versions.
  var used: Int64
  let quota: Int64?
  /// Tombstones up to this number may be gone.
  var horizon: Int64
  /// The number of the newest event.
  private(set) var events: Int64
  let epoch: [UInt8]
  /// What the store takes.
  private let room: RoomLeft
  /// The number when the row was read.
  private let first: Int64

  private init(_ row: SQLRow, room: RoomLeft) throws {
    self.room = room
    number = try row.integer(0)
    first = number
    used = try row.integer(1)
    quota = try row.optionalInteger(2)
    horizon = try row.integer(3)
    events = try row.integer(4)
    epoch = try row.blob(5)
  }

  /// Takes a zone until the end of the transaction.
  ///
  /// - Parameter bytes: Of chunks that are about to come.
  static func take(
    _ zone: String, expecting bytes: Int64 = 0, in connection: inout any SQLConnection
  ) throws -> ZoneHead {
    let rows = try connection.query(
      """
      UPDATE zones SET number = number WHERE zone = $1 RETURNING number, used, quota, horizon, events, epoch
      """, [.text(zone)])
    guard let row = rows.first else { throw HubError(.notFound, "there is no such account") }
    return try ZoneHead(row, room: connection.room(for: bytes))
  }

  /// A zone as a reader sees it.
  static func read(_ zone: String, in connection: inout any SQLConnection) throws -> ZoneHead {
    let rows = try connection.query(
      "SELECT number, used, quota, horizon, events, epoch FROM zones WHERE zone = $1", [.text(zone)])
    guard let row = rows.first else { throw HubError(.notFound, "there is no such account") }
    return try ZoneHead(row, room: connection.room(for: 0))
  }

  func write(_ zone: String, in connection: inout any SQLConnection) throws {
    try connection.execute(
      "UPDATE zones SET number = $1, used = $2, horizon = $3, events = $4 WHERE zone = $5",
      [.integer(number), .integer(used), .integer(horizon), .integer(events), .text(zone)])
    if number > first { try ChangeID.random().note(number, of: zone, &connection) }
  }

  /// Gives an event the next number of the zone, and stores it.
  mutating func append(_ event: PendingEvent, to zone: String, in connection: inout any SQLConnection) throws {
    events += 1
    try connection.execute(
      "INSERT INTO events (zone, sequence, event) VALUES ($1, $2, $3)",
      [.text(zone), .integer(events), .text(try StoredZone.encoded(event.numbered(events, of: zone)))])
    for told in event.shared { try SharedEvents.append(told, event, of: zone, &connection) }
  }

  /// Counts bytes that come, or that go where they are below 0.
  ///
  /// - Throws: ``HubError`` of kind `quota` where the account would have too many, or `full` where the store would.
  mutating func use(_ bytes: Int64) throws { try use(bytes, hasRoom: room.versions > 0) }

  /// Counts bytes of chunks that come before their version.
  ///
  /// - Throws: As ``use(_:)``, and `full` while there is room for versions.
  mutating func upload(_ bytes: Int64) throws { try use(bytes, hasRoom: bytes <= room.uploads) }

  private mutating func use(_ bytes: Int64, hasRoom: Bool) throws {
    if bytes > 0, let quota, used + bytes > quota { throw HubError(.quota, "the account has no room for it") }
    if bytes > 0, !hasRoom { throw HubError(.full, "the hub's disk has no room for it") }
    used += bytes
  }
}
