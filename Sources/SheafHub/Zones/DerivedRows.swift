import SheafHubStore
import SheafWire

/// What rows of a zone follow from its other rows, and what they count: made anew for a zone whose rows an older program
/// wrote, or that came from a file.
enum DerivedRows {
  private static let setting = "derived-rows"
  private static let itemPage: Int64 = 100
  /// Each has a manifest of up to 2.6 MB.
  private static let versionPage: Int64 = 16

  /// Makes them for every zone of a store, unless that was done.
  static func prepare(_ connection: inout any SQLConnection) throws {
    let known = try connection.query("SELECT value FROM settings WHERE name = $1", [.text(setting)])
    guard known.isEmpty else { return }
    for row in try connection.query("SELECT zone FROM zones") {
      let zone = try row.text(0)
      let bytes = try make(zone, &connection)
      try connection.execute(
        "UPDATE zones SET used = used + $1 WHERE zone = $2", [.integer(bytes), .text(zone)])
    }
    try connection.execute("INSERT INTO settings (name, value) VALUES ($1, $2)", [.text(setting), .text("1")])
  }

  /// Lists the items with several names.
  ///
  /// - Returns: the bytes that the zone has beside its chunks.
  static func make(_ zone: String, _ connection: inout any SQLConnection) throws -> Int64 {
    try connection.execute("DELETE FROM linked_items WHERE zone = $1", [.text(zone)])
    return try items(zone, &connection) + versions(zone, &connection)
  }

  private static func items(_ zone: String, _ connection: inout any SQLConnection) throws -> Int64 {
    var bytes: Int64 = 0
    var last: Int64 = 0
    while true {
      let rows = try connection.query(
        """
        SELECT item, number, device, others, kind, deleted, places, mode, mtime, target, attributes, version, versions,
          copy_of FROM items WHERE zone = $1 AND number > $2 ORDER BY number LIMIT $3
        """, [.text(zone), .integer(last), .integer(itemPage)])
      for row in rows {
        let item = try StoredZone.item(row)
        bytes += item.bytes
        last = item.number
        guard item.isLinked else { continue }
        try connection.execute(
          "INSERT INTO linked_items (zone, item) VALUES ($1, $2)", [.text(zone), .blob(item.item.bytes)])
      }
      if rows.count < itemPage { return bytes }
    }
  }

  private static func versions(_ zone: String, _ connection: inout any SQLConnection) throws -> Int64 {
    var bytes: Int64 = 0
    var last: (item: [UInt8], number: Int64) = ([], 0)
    while true {
      let rows = try connection.query(
        """
        SELECT item, number, manifest FROM versions
        WHERE zone = $1 AND (item > $2 OR (item = $2 AND number > $3)) ORDER BY item, number LIMIT $4
        """, [.text(zone), .blob(last.item), .integer(last.number), .integer(versionPage)])
      for row in rows {
        last = (try row.blob(0), try row.integer(1))
        bytes += VersionRow.bytes(manifest: try row.blob(2).count)
      }
      if rows.count < versionPage { return bytes }
    }
  }
}

extension ItemRow {
  /// What the rest of a row counts as.
  private static let rest: Int64 = 256

  /// The bytes that an item counts as, beside its versions.
  var bytes: Int64 {
    let names = places.reduce(0) { $0 + $1.name.count + $1.parent.bytes.count }
    let values = attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.count }
    return Self.rest + Int64(names + values + (target?.count ?? 0))
  }

  /// Whether it has several names.
  var isLinked: Bool { !isDeleted && places.count > 1 }
}

extension VersionRow {
  /// What the rest of a row counts as.
  private static let rest: Int64 = 256

  /// The bytes that a version counts as, beside its chunks.
  ///
  /// - Parameter count: Bytes of its manifest.
  static func bytes(manifest count: Int) -> Int64 { rest + Int64(count) }
}
