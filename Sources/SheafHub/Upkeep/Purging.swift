package import SheafHubStore
import SheafModel
package import SheafWire

/// Destroys contents for good: of a version, or of an item that was deleted.
///
/// What is left says that there was something: the row of a version without contents, the row of an item without name
/// and versions. Nothing of that id is made again.
package struct Purging: Sendable {
  /// Versions whose contents one transaction destroys.
  static let step: Int64 = 128

  let database: any Database

  package init(database: any Database) { self.database = database }

  /// Destroys the contents of a version; of one that was purged before, nothing.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, or `conflict` for the current version.
  package func purge(_ version: WireID, of item: WireID, in zone: String, by device: String) async throws {
    try await database.write { connection in
      var purge = try Purge(zone: zone, device: device, connection: connection)
      try purge.purge(version, of: item)
    }
    await database.emptyLog()
  }

  /// Destroys what the hub has of an item that was deleted; of one that was purged before, what may be left.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, or `conflict` for an item that is there.
  package func purge(_ item: WireID, in zone: String, by device: String) async throws {
    while true {
      let isDone = try await database.write { connection in
        var purge = try Purge(zone: zone, device: device, connection: connection)
        return try purge.purge(item)
      }
      if isDone { break }
    }
    await database.emptyLog()
  }

  /// Destroys what is left of items whose purge was interrupted.
  func finish(in zone: String) async throws {
    var last: Int64 = 0
    while true {
      let after = last
      let page = try await database.read { connection in
        try connection.query(
          "SELECT item, number FROM items WHERE zone = $1 AND number > $2 AND places = $3 ORDER BY number LIMIT $4",
          [.text(zone), .integer(after), .text(StoredZone.noPlaces), .integer(Self.step)]
        ).map { (item: try StoredZone.id($0.blob(0)), number: try $0.integer(1)) }
      }
      for row in page { try await purge(row.item, in: zone, by: "") }
      guard page.count == Self.step, let end = page.last else { return }
      last = end.number
    }
  }
}

/// A purge in a transaction that has the zone.
struct Purge {
  private let zone: String
  private let device: String
  private var head: ZoneHead
  private var stored: StoredZone
  private var finder: ShareFinder

  init(zone: String, device: String, connection: any SQLConnection) throws {
    var connection = connection
    self.zone = zone
    self.device = device
    head = try ZoneHead.take(zone, in: &connection)
    stored = StoredZone(zone: zone, connection: connection)
    finder = try ShareFinder(zone: zone, connection: connection)
  }

  private mutating func require(_ id: WireID) throws -> ItemRow {
    guard let row = try stored.item(try stored.alias(id) ?? id) else {
      throw HubError(.notFound, "nothing has this id")
    }
    return row
  }

  mutating func purge(_ id: WireID, of item: WireID) throws {
    let row = try require(item)
    guard let version = try stored.version(id), version.item == row.item else {
      throw HubError(.notFound, "the item has no such version")
    }
    if version.isPurged { return }
    guard version.id != row.version else {
      throw HubError(
        .conflict, "it is the current version; save another one first, or delete the item and purge that")
    }
    var budget = StoredZone.chunkStep
    try stored.purge(version, &head, &budget)
    try stored.notePurges(1, of: row.item)
    try SharedRows.settleEntry(of: row, &finder, &stored)
    try stored.renumber(row, by: device, &head)
    // Members are told of what they could see.
    if let standing = try finder.standing(of: row, in: &stored),
      version.number >= (try SharedRows.firstVersion(of: row, standing, in: zone, &stored.connection))
    {
      _ = try SharedRows.tell(row.item, in: standing.share, of: zone, by: device, &stored.connection)
    }
    try head.write(zone, in: &stored.connection)
  }

  /// An item of the zone by its own id.
  mutating func row(of item: WireID) throws -> ItemRow? { try stored.item(item) }

  /// Leaves nothing of an item but its id and its versions, which are to be purged next.
  mutating func empty(_ row: ItemRow) throws {
    head.used -= row.bytes
    try stored.connection.execute(
      """
      UPDATE items SET places = $1, mode = 0, mtime = 0, target = NULL, attributes = $2, version = NULL, copy_of = NULL
      WHERE zone = $3 AND item = $4
      """, [.text(StoredZone.noPlaces), .text("{}"), .text(zone), .blob(row.item.bytes)])
    try StoredZone.forgetPlacement(of: row.item, of: zone, &stored.connection)
    try FolderRetentions.forget(row.item, of: zone, &stored.connection)
    head.used += try require(row.item).bytes
    try stored.renumber(row, by: device, &head)
    // To others than those from whose share it was deleted it was gone before.
    if let entry = try finder.entry(of: row.item) {
      _ = try SharedRows.tell(row.item, in: entry.share, of: zone, by: device, &stored.connection)
    }
  }

  /// The same of an item that may be there.
  mutating func empty(_ row: ItemRow, at now: Timestamp) throws {
    if !row.isDeleted { try stored.delete(row, at: now.nanoseconds) }
    try empty(row)
  }

  /// Tells the zone's log of an event.
  mutating func tell(_ event: PendingEvent) throws { try head.append(event, to: zone, in: &stored.connection) }

  /// Writes what changed of the zone.
  mutating func end() throws { try head.write(zone, in: &stored.connection) }

  /// - Returns: whether nothing is left.
  mutating func purge(_ item: WireID) throws -> Bool {
    let row = try require(item)
    guard row.isDeleted else { throw HubError(.conflict, "the item is there; delete it first") }
    if !row.isPurged { try empty(row) }
    let versions = try stored.contents(of: row.item, limit: Purging.step)
    var (count, budget) = (0, StoredZone.chunkStep)
    for version in versions where budget > 0 {
      try stored.purge(version, &head, &budget)
      count += 1
    }
    if count > 0 { try stored.notePurges(Int64(count), of: row.item) }
    try head.write(zone, in: &stored.connection)
    return count < Purging.step && count == versions.count
  }
}
