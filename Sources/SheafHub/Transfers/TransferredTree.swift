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
  /// The numbers of their newest changes.
  private(set) var numbers: [WireID: Int64]
  /// The zone's number at the reading.
  private let number: Int64

  /// Reads a tree.
  ///
  /// - Throws: ``HubError`` of kind `tooLarge`, and those of ``SharedTree`` for what cannot go along.
  init(_ item: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    let head = try ZoneHead.read(zone, in: &connection)
    let row = try Self.check(item, of: zone, connection)
    (top, number) = (row.item, head.number)
    (items, numbers) = ([top], [top: row.number])
    var folders = row.kind == .folder ? [top] : []
    while let folder = folders.popLast() {
      for child in try Self.children(of: folder, in: zone, &connection) where try add(child.item, child.number) {
        if child.isFolder { folders.append(child.item) }
      }
    }
    // What was deleted from a folder that was deleted is found with the next look.
    while try addDeleted(of: zone, &connection) {}
  }

  /// - Returns: whether it is news.
  private mutating func add(_ item: WireID, _ number: Int64) throws -> Bool {
    guard numbers.updateValue(number, forKey: item) == nil else { return false }
    items.append(item)
    guard items.count <= Self.mostItems else {
      throw HubError(.tooLarge, "item: it has more than \(Self.mostItems) items in it, with deleted ones")
    }
    return true
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
  ) throws -> [(item: WireID, number: Int64, isFolder: Bool)] {
    var children: [(item: WireID, number: Int64, isFolder: Bool)] = []
    var last: [UInt8] = []
    while true {
      let rows = try connection.query(
        """
        SELECT names.name, names.item, items.number, items.kind
        FROM names JOIN items ON items.zone = names.zone AND items.item = names.item
        WHERE names.zone = $1 AND names.parent = $2 AND names.name > $3 ORDER BY names.name LIMIT $4
        """, [.text(zone), .blob(folder.bytes), .blob(last), .integer(page)])
      children += try rows.map { row in
        (try StoredZone.id(row.blob(1)), try row.integer(2), try row.text(3) == ItemKind.folder.rawValue)
      }
      guard rows.count == page, children.count <= mostItems, let end = rows.last else { return children }
      last = try end.blob(0)
    }
  }

  /// Adds what was deleted from folders of the tree, but for purged items.
  ///
  /// - Returns: whether there was something.
  private mutating func addDeleted(of zone: String, _ connection: inout any SQLConnection) throws -> Bool {
    var isNews = false
    var last: Int64 = 0
    while true {
      let rows = try connection.query(
        """
        SELECT item, number, places FROM items
        WHERE zone = $1 AND number > $2 AND deleted IS NOT NULL AND places <> $3 ORDER BY number LIMIT $4
        """, [.text(zone), .integer(last), .text(StoredZone.noPlaces), .integer(Self.page)])
      for row in rows {
        let places: [Place] = try StoredZone.decoded(row.text(2))
        guard let folder = places.first?.parent, numbers[folder] != nil else { continue }
        if try add(StoredZone.id(row.blob(0)), row.integer(1)) { isNews = true }
      }
      guard rows.count == Self.page, let end = rows.last else { return isNews }
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
      if numbers[try StoredZone.id(row.blob(0))] != nil { return false }
      let places: [Place] = try StoredZone.decoded(row.text(1))
      return !places.contains { numbers[$0.parent] != nil }
    }
  }
}
