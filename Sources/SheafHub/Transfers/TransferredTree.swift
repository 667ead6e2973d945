import SheafHubStore
import SheafWire

/// An item that is offered to another account, with all that is in it and all that was deleted from it, as one reading
/// of the zone found it.
struct TransferredTree: Sendable {
  /// Items that go along at most, with those that were deleted.
  static let mostItems = 9_999
  /// Changes of a zone since the reading that are looked at; after more of them it is read anew.
  private static let mostChanges: Int64 = 1_000
  private static let page: Int64 = 500

  let top: WireID
  /// Each after the folder that it is in, or was in.
  private(set) var items: [WireID]
  private let known: Set<WireID>
  /// The zone's number at the reading.
  private let number: Int64

  /// Reads a tree.
  ///
  /// - Throws: ``HubError`` of kind `tooLarge`, and those of ``SharedTree`` for what cannot go along.
  init(_ item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    let head = try ZoneHead.read(zone, in: &connection)
    top = try Self.check(item, of: zone, connection).item
    number = head.number
    var (items, known) = ([top], Set([top]))
    func add(_ item: WireID) throws {
      guard known.insert(item).inserted else { return }
      items.append(item)
      guard items.count <= Self.mostItems else {
        throw HubError(.tooLarge, "item: it has more than \(Self.mostItems) items in it, with deleted ones")
      }
    }
    var next = 0
    while next < items.count {
      for child in try Self.children(of: items[next], in: zone, &connection) { try add(child) }
      next += 1
    }
    let deleted = try Self.deletedItems(of: zone, &connection)
    // What was deleted from a folder that was deleted is found after that.
    next = 0
    while next < items.count {
      for child in deleted[items[next]] ?? [] { try add(child) }
      next += 1
    }
    self.items = items
    self.known = known
  }

  /// The item of an id, if it can be given away: nothing in it is shared, and it has no name elsewhere.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, `invalid` or `conflict`.
  static func check(_ item: WireID, of zone: String, _ connection: any SQLConnection) throws -> ItemRow {
    var tree = SharedTree(StoredZone(zone: zone, connection: connection))
    let row = try tree.shareable(item)
    guard row.item != .root else { throw HubError(.invalid, "item: it is what every account has of its own") }
    var shares = ShareRows(zone: zone, connection: connection)
    try tree.checkBorders(of: row, shared: shares.activeItems())
    return row
  }

  private static func children(
    of folder: WireID, in zone: String, _ connection: inout any SQLConnection
  ) throws -> [WireID] {
    var children: [WireID] = []
    var last: [UInt8] = []
    while true {
      let rows = try connection.query(
        "SELECT name, item FROM names WHERE zone = $1 AND parent = $2 AND name > $3 ORDER BY name LIMIT $4",
        [.text(zone), .blob(folder.bytes), .blob(last), .integer(page)])
      children += try rows.map { try StoredZone.id($0.blob(1)) }
      guard rows.count == page, children.count <= mostItems, let end = rows.last else { return children }
      last = try end.blob(0)
    }
  }

  /// The deleted items of a zone, but for purged ones, by the folder that they were in.
  private static func deletedItems(
    of zone: String, _ connection: inout any SQLConnection
  ) throws -> [WireID: [WireID]] {
    var items: [WireID: [WireID]] = [:]
    var last: Int64 = 0
    while true {
      let rows = try connection.query(
        """
        SELECT item, number, places FROM items
        WHERE zone = $1 AND number > $2 AND deleted IS NOT NULL AND places <> $3 ORDER BY number LIMIT $4
        """, [.text(zone), .integer(last), .text(StoredZone.noPlaces), .integer(page)])
      for row in rows {
        let places: [Place] = try StoredZone.decoded(row.text(2))
        if let folder = places.first?.parent { items[folder, default: []].append(try StoredZone.id(row.blob(0))) }
      }
      guard rows.count == page, let end = rows.last else { return items }
      last = try end.integer(1)
    }
  }

  /// Whether the zone still has it as it was read.
  func isCurrent(in zone: String, _ connection: inout any SQLConnection) throws -> Bool {
    let rows = try connection.query(
      "SELECT item, places FROM items WHERE zone = $1 AND number > $2 ORDER BY number LIMIT $3",
      [.text(zone), .integer(number), .integer(Self.mostChanges)])
    if rows.count == Self.mostChanges { return false }
    return try rows.allSatisfy { row in
      if known.contains(try StoredZone.id(row.blob(0))) { return false }
      let places: [Place] = try StoredZone.decoded(row.text(1))
      return !places.contains { known.contains($0.parent) }
    }
  }
}
