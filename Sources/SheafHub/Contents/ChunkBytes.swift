import SheafHubStore

/// The bytes of chunks, in a table apart from what is counted of them: when a count grows, SQLite may write the row anew.
///
/// An older hub has both in one table. The bytes are moved a few chunks at a time, so that no transaction is large and
/// the store hardly grows; what is interrupted goes on where it was.
enum ChunkBytes {
  /// Chunks that one transaction moves; each has up to 4 MiB.
  private static let step: Int64 = 16

  /// Moves the bytes of an older hub. In any other store it changes nothing.
  static func prepare(_ database: any Database) async throws {
    while let zones = try await database.read({ connection in try oldZones(&connection) }) {
      for zone in zones {
        var last: [UInt8]? = []
        while let after = last {
          last = try await database.write { connection in try move(of: zone, after: after, &connection) }
        }
      }
      try await database.write { connection in try finish(&connection) }
    }
  }

  /// Whether the chunks of a store have their bytes with them.
  static func isJoined(_ connection: inout any SQLConnection) throws -> Bool {
    try connection.columns(of: "chunks").contains("bytes")
  }

  /// The zones of a store whose chunks still have their bytes with them; nil of any other.
  private static func oldZones(_ connection: inout any SQLConnection) throws -> [String]? {
    guard try isJoined(&connection) else { return nil }
    return try connection.query("SELECT zone FROM zones").map { try $0.text(0) }
  }

  /// - Returns: the last chunk that was looked at; nil at the end.
  private static func move(
    of zone: String, after last: [UInt8], _ connection: inout any SQLConnection
  ) throws -> [UInt8]? {
    let rows = try connection.query(
      "SELECT hash FROM chunks WHERE zone = $1 AND hash > $2 ORDER BY hash LIMIT $3",
      [.text(zone), .blob(last), .integer(step)])
    for row in rows {
      let hash = SQLValue.blob(try row.blob(0))
      // A chunk that was moved has none.
      let moved = try connection.execute(
        """
        INSERT INTO chunk_bytes (zone, hash, bytes)
        SELECT zone, hash, bytes FROM chunks WHERE zone = $1 AND hash = $2 AND bytes <> $3
        """, [.text(zone), hash, .blob([])])
      if moved > 0 {
        try connection.execute(
          "UPDATE chunks SET bytes = $1 WHERE zone = $2 AND hash = $3", [.blob([]), .text(zone), hash])
      }
    }
    return try rows.last?.blob(0)
  }

  /// Takes the column away, unless an older program stored a chunk meanwhile.
  private static func finish(_ connection: inout any SQLConnection) throws {
    guard let zones = try oldZones(&connection) else { return }
    for zone in zones {
      let left = try connection.query(
        "SELECT hash FROM chunks WHERE zone = $1 AND bytes <> $2 LIMIT 1", [.text(zone), .blob([])])
      if !left.isEmpty { return }
    }
    try connection.execute("ALTER TABLE chunks DROP COLUMN bytes")
  }
}
