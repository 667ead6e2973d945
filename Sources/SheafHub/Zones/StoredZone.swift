import Foundation
import SheafHubStore
import SheafWire

/// The rows of a zone in the store.
struct StoredZone: ZoneReader {
  let zone: String
  var connection: any SQLConnection
  /// The share whose numbers items have; nil for the zone's own alone.
  private let share: WireID?

  init(zone: String, connection: any SQLConnection, share: WireID? = nil) {
    self.zone = zone
    self.connection = connection
    self.share = share
  }

  mutating func item(_ id: WireID) throws -> ItemRow? {
    guard var row = try storedItem(id) else { return nil }
    if let share { row.shared = try SharedRows.numbers(of: id, in: share, of: zone, &connection) }
    return row
  }

  private mutating func storedItem(_ id: WireID) throws -> ItemRow? {
    try connection.query(
      """
      SELECT items.item, items.number, items.device, items.others, items.kind, items.deleted, items.places, items.mode,
        items.mtime, items.target, items.attributes, items.version, items.versions, items.copy_of, purges.versions,
        labelled.changes, placements.made_by, placements.made, placements.placed_by, placements.time, placements.placed
      FROM items LEFT JOIN purges ON purges.zone = items.zone AND purges.item = items.item
      LEFT JOIN labelled ON labelled.zone = items.zone AND labelled.item = items.item
      LEFT JOIN placements ON placements.zone = items.zone AND placements.item = items.item
      WHERE items.zone = $1 AND items.item = $2
      """, [.text(zone), .blob(id.bytes)]
    ).first.map { row in
      var item = try Self.item(row)
      item.purges = try row.optionalInteger(14) ?? 0
      item.labels = try row.optionalInteger(15)
      item.placement = try Placement.read(row, from: 16)
      return item
    }
  }

  mutating func alias(_ id: WireID) throws -> WireID? {
    try connection.query("SELECT item FROM aliases WHERE zone = $1 AND alias = $2", [.text(zone), .blob(id.bytes)])
      .first.map { try Self.id($0.blob(0)) }
  }

  mutating func occupant(of place: Place) throws -> WireID? {
    try connection.query(
      "SELECT item FROM names WHERE zone = $1 AND parent = $2 AND name = $3",
      [.text(zone), .blob(place.parent.bytes), .blob(place.name)]
    ).first.map { try Self.id($0.blob(0)) }
  }

  mutating func children(of folder: WireID, limit: Int) throws -> [WireID] {
    try connection.query(
      "SELECT item FROM names WHERE zone = $1 AND parent = $2 ORDER BY name LIMIT $3",
      [.text(zone), .blob(folder.bytes), .integer(Int64(limit))]
    ).map { try Self.id($0.blob(0)) }
  }

  mutating func version(_ id: WireID) throws -> VersionRow? {
    try connection.query(
      """
      SELECT versions.version, item, number, base, cause, time, arrived, size, digest, handle FROM versions
      LEFT JOIN authors ON authors.zone = versions.zone AND authors.version = versions.version
      WHERE versions.zone = $1 AND versions.version = $2
      """, [.text(zone), .blob(id.bytes)]
    ).first.map { try Self.version($0, from: 0, author: 9) }
  }

  mutating func version(of item: WireID, time: Int64, digest: [UInt8]) throws -> WireID? {
    try connection.query(
      "SELECT version FROM versions WHERE zone = $1 AND item = $2 AND time = $3 AND digest = $4 ORDER BY number LIMIT 1",
      [.text(zone), .blob(item.bytes), .integer(time), .blob(digest)]
    ).first.map { try Self.id($0.blob(0)) }
  }

  mutating func manifest(of version: WireID) throws -> Manifest? {
    try connection.query(
      "SELECT manifest FROM versions WHERE zone = $1 AND version = $2", [.text(zone), .blob(version.bytes)]
    ).first.flatMap { Manifest(bytes: try $0.blob(0)) }
  }

  /// Members of a share learn of what is in it.
  mutating func isSeen(_ row: ItemRow) throws -> Bool {
    guard let share else { return true }
    var finder = try ShareFinder(zone: zone, connection: connection)
    return try finder.standing(of: row, in: &self)?.share == share
  }

  mutating func isShared(_ row: ItemRow) throws -> Bool {
    var finder = try ShareFinder(zone: zone, connection: connection)
    return try finder.standing(of: row, in: &self) != nil
  }

  static func id(_ bytes: [UInt8]) throws -> WireID {
    guard let id = WireID(bytes: bytes) else { throw HubStoreError.corrupt("an id has not 16 bytes") }
    return id
  }

  static func item(_ row: SQLRow) throws -> ItemRow {
    guard let kind = ItemKind(rawValue: try row.text(4)), let mode = Int(exactly: try row.integer(7)) else {
      throw HubStoreError.corrupt("an item has no kind")
    }
    return ItemRow(
      item: try id(row.blob(0)), kind: kind, number: try row.integer(1), device: try row.text(2),
      others: try row.integer(3), deleted: try row.optionalInteger(5), places: try decoded(row.text(6)), mode: mode,
      mtime: try row.integer(8), target: try row.optionalBlob(9), attributes: try attributes(row.text(10)),
      version: try row.optionalBlob(11).map(id), versions: try row.integer(12),
      copyOf: try row.optionalBlob(13).map(id))
  }

  /// - Parameters:
  ///   - first: The column that its columns begin with, up to the digest.
  ///   - author: The column of its author's handle; nil where nobody asked.
  static func version(_ row: SQLRow, from first: Int, author: Int? = nil) throws -> VersionRow {
    guard let cause = VersionCause(rawValue: try row.text(first + 4)) else {
      throw HubStoreError.corrupt("a version has no cause")
    }
    return VersionRow(
      id: try id(row.blob(first)), item: try id(row.blob(first + 1)), number: try row.integer(first + 2),
      base: try row.optionalBlob(first + 3).map(id), cause: cause, time: try row.integer(first + 5),
      arrived: try row.integer(first + 6), size: try row.integer(first + 7), digest: try row.blob(first + 8),
      author: try author.flatMap { try row.optionalText($0) })
  }

  /// The JSON of no attributes, as most items have them.
  private static let noAttributes = "{}"

  private static func attributes(_ text: String) throws -> [String: Data] {
    text == noAttributes ? [:] : try decoded(text)
  }

  static func decoded<T: Decodable>(_ text: String) throws -> T {
    do {
      return try JSONDecoder().decode(T.self, from: Data(text.utf8))
    } catch {
      throw HubStoreError.corrupt("a column has no JSON of its kind")
    }
  }

  static func encoded(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  // MARK: - Writing

  /// Writes what a draft changed, with the zone's next numbers.
  ///
  /// - Returns: the new number of each item that changed.
  /// - Throws: ``HubError`` of kind `quota` where there is no room for it.
  mutating func write(
    _ draft: inout ZoneDraft, manifests: [WireID: Manifest], device: String, _ head: inout ZoneHead
  ) throws -> [WireID: Int64] {
    var numbers: [WireID: Int64] = [:]
    let changes = draft.changed
    // Names are given up before they are taken.
    for (item, before) in changes {
      guard let before, !before.isDeleted else { continue }
      for place in before.places {
        try connection.execute(
          "DELETE FROM names WHERE zone = $1 AND parent = $2 AND name = $3 AND item = $4",
          [.text(zone), .blob(place.parent.bytes), .blob(place.name), .blob(item.bytes)])
      }
    }
    for (item, before) in changes {
      guard let row = try draft.item(item) else { continue }
      head.number += 1
      numbers[item] = head.number
      let others = before.map { $0.device == device ? $0.others : $0.number } ?? 0
      try head.use(row.bytes - (before?.bytes ?? 0))
      try write(row, number: head.number, device: device, others: others)
      try noteLinks(row, before)
    }
    for alias in draft.newAliases {
      try connection.execute(
        "INSERT INTO aliases (zone, alias, item) VALUES ($1, $2, $3)",
        [.text(zone), .blob(alias.alias.bytes), .blob(alias.item.bytes)])
    }
    for version in draft.newVersions {
      guard let manifest = manifests[version.id] else { throw HubStoreError.corrupt("a version has no manifest") }
      try add(version, manifest, device: device, change: numbers[version.item] ?? head.number, &head)
    }
    return numbers
  }

  /// Deletes an item that is there. Its number stays.
  ///
  /// - Parameter now: Nanoseconds since 1970.
  mutating func delete(_ row: ItemRow, at now: Int64) throws {
    for place in row.places {
      try connection.execute(
        "DELETE FROM names WHERE zone = $1 AND parent = $2 AND name = $3 AND item = $4",
        [.text(zone), .blob(place.parent.bytes), .blob(place.name), .blob(row.item.bytes)])
    }
    var gone = row
    gone.deleted = now
    try noteLinks(gone, row)
    try connection.execute(
      "UPDATE items SET deleted = $1 WHERE zone = $2 AND item = $3",
      [.integer(now), .text(zone), .blob(row.item.bytes)])
  }

  /// Adds an item that was not there, as no device's change.
  mutating func insert(_ row: ItemRow, number: Int64) throws {
    try write(row, number: number, device: "", others: 0)
    try noteLinks(row, nil)
  }

  /// Adds a version whose chunks are there.
  ///
  /// - Parameter change: The zone's number of the change with which it comes.
  /// - Throws: ``HubError`` of kind `quota` where there is no room for it.
  mutating func add(
    _ version: VersionRow, _ manifest: Manifest, device: String, change: Int64, _ head: inout ZoneHead
  ) throws {
    try write(version, manifest, device: device, &head)
    try connection.execute(
      "INSERT INTO version_changes (zone, item, number, change) VALUES ($1, $2, $3, $4)",
      [.text(zone), .blob(version.item.bytes), .integer(version.number), .integer(change)])
  }

  private mutating func write(_ row: ItemRow, number: Int64, device: String, others: Int64) throws {
    try connection.execute(
      """
      INSERT INTO items (zone, item, number, device, others, kind, deleted, places, mode, mtime, target, attributes,
        version, versions, copy_of) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
      ON CONFLICT (zone, item) DO UPDATE SET number = excluded.number, device = excluded.device,
        others = excluded.others, deleted = excluded.deleted, places = excluded.places, mode = excluded.mode,
        mtime = excluded.mtime, target = excluded.target, attributes = excluded.attributes,
        version = excluded.version, versions = excluded.versions
      """,
      [
        .text(zone), .blob(row.item.bytes), .integer(number), .text(device), .integer(others),
        .text(row.kind.rawValue), .optional(row.deleted), .text(try Self.encoded(row.places)),
        .integer(Int64(row.mode)), .integer(row.mtime), .optional(row.target),
        .text(row.attributes.isEmpty ? Self.noAttributes : try Self.encoded(row.attributes)),
        .optional(row.version?.bytes), .integer(row.versions),
        .optional(row.copyOf?.bytes),
      ])
    if row.isDeleted { return }
    for place in row.places {
      try connection.execute(
        "INSERT INTO names (zone, parent, name, item) VALUES ($1, $2, $3, $4)",
        [.text(zone), .blob(place.parent.bytes), .blob(place.name), .blob(row.item.bytes)])
    }
  }

  /// Keeps the list of the items with several names.
  private mutating func noteLinks(_ row: ItemRow, _ before: ItemRow?) throws {
    guard row.isLinked != before?.isLinked ?? false else { return }
    let values: [SQLValue] = [.text(zone), .blob(row.item.bytes)]
    if row.isLinked {
      try connection.execute("INSERT INTO linked_items (zone, item) VALUES ($1, $2)", values)
    } else {
      try connection.execute("DELETE FROM linked_items WHERE zone = $1 AND item = $2", values)
    }
  }

  private mutating func write(
    _ version: VersionRow, _ manifest: Manifest, device: String, _ head: inout ZoneHead
  ) throws {
    let bytes = manifest.bytes
    try head.use(VersionRow.bytes(manifest: bytes.count))
    try connection.execute(
      """
      INSERT INTO versions (zone, version, item, number, base, cause, time, arrived, size, digest, manifest, device)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      """,
      [
        .text(zone), .blob(version.id.bytes), .blob(version.item.bytes), .integer(version.number),
        .optional(version.base?.bytes), .text(version.cause.rawValue), .integer(version.time),
        .integer(version.arrived), .integer(version.size), .blob(version.digest), .blob(bytes), .text(device),
      ])
    if let author = version.author {
      try connection.execute(
        "INSERT INTO authors (zone, version, handle) VALUES ($1, $2, $3)",
        [.text(zone), .blob(version.id.bytes), .text(author)])
    }
    for hash in manifest.hashes {
      try connection.execute(
        "UPDATE chunks SET uses = uses + 1 WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)])
    }
  }
}
