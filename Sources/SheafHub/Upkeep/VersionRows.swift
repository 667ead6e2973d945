import SheafHubStore
import SheafWire

/// What becomes of versions that are not kept.
extension StoredZone {
  /// What the column of places has for an item that was purged.
  static let noPlaces = "[]"
  /// Chunks that versions give up in one transaction, but for those of its last version.
  static let chunkStep = 512

  /// Versions of an item that have contents, the oldest first.
  mutating func contents(of item: WireID, after number: Int64 = 0, limit: Int64) throws -> [VersionRow] {
    try connection.query(
      """
      SELECT versions.version, item, number, base, cause, time, arrived, size, digest, handle FROM versions
      LEFT JOIN authors ON authors.zone = versions.zone AND authors.version = versions.version
      WHERE versions.zone = $1 AND item = $2 AND digest <> $3 AND number > $4 ORDER BY number LIMIT $5
      """, [.text(zone), .blob(item.bytes), .blob([]), .integer(number), .integer(limit)]
    ).map { try Self.version($0, from: 0, author: 9) }
  }

  /// Purged versions of an item, the oldest first, of those after a number.
  mutating func purged(of item: WireID, after number: Int64, limit: Int) throws -> [WireID] {
    try connection.query(
      """
      SELECT version FROM versions
      WHERE zone = $1 AND item = $2 AND digest = $3 AND number > $4 ORDER BY number LIMIT $5
      """, [.text(zone), .blob(item.bytes), .blob([]), .integer(number), .integer(Int64(limit))]
    ).map { try Self.id($0.blob(0)) }
  }

  /// How many versions of an item were purged, of those from a number on.
  mutating func purges(of item: WireID, from number: Int64) throws -> Int64 {
    try connection.query(
      "SELECT COUNT(*) FROM versions WHERE zone = $1 AND item = $2 AND digest = $3 AND number >= $4",
      [.text(zone), .blob(item.bytes), .blob([]), .integer(number)]
    ).first?.integer(0) ?? 0
  }

  mutating func notePurges(_ count: Int64, of item: WireID) throws {
    try connection.execute(
      """
      INSERT INTO purges (zone, item, versions) VALUES ($1, $2, $3)
      ON CONFLICT (zone, item) DO UPDATE SET versions = purges.versions + excluded.versions
      """, [.text(zone), .blob(item.bytes), .integer(count)])
  }

  /// Destroys the contents of a version at once, and leaves its row.
  ///
  /// - Parameter budget: The chunks that the transaction may still give up; fewer afterwards.
  mutating func purge(_ version: VersionRow, _ head: inout ZoneHead, _ budget: inout Int) throws {
    for hash in try release(version, &head, &budget) {
      let key: [SQLValue] = [.text(zone), .blob(hash.bytes)]
      let freed = try connection.query(
        "DELETE FROM chunks WHERE zone = $1 AND hash = $2 AND uses = 0 RETURNING length", key)
      for row in freed {
        try connection.execute("DELETE FROM chunk_bytes WHERE zone = $1 AND hash = $2", key)
        head.used -= try row.integer(0)
      }
    }
    try removeLabel(of: version)
    // The row stays, without a manifest.
    head.used += VersionRow.bytes(manifest: 0)
    try connection.execute(
      "UPDATE versions SET base = NULL, size = 0, digest = $1, manifest = $1 WHERE zone = $2 AND version = $3",
      [.blob([]), .text(zone), .blob(version.id.bytes)])
  }

  /// Forgets a version. Chunks that nothing uses any more are collected.
  ///
  /// - Parameter budget: The chunks that the transaction may still give up; fewer afterwards.
  mutating func thin(_ version: VersionRow, _ head: inout ZoneHead, _ budget: inout Int) throws {
    _ = try release(version, &head, &budget)
    try connection.execute(
      "DELETE FROM labels WHERE zone = $1 AND item = $2 AND version = $3",
      [.text(zone), .blob(version.item.bytes), .blob(version.id.bytes)])
    try connection.execute(
      "DELETE FROM versions WHERE zone = $1 AND version = $2", [.text(zone), .blob(version.id.bytes)])
    try connection.execute(
      "DELETE FROM aliases WHERE zone = $1 AND item = $2", [.text(zone), .blob(version.id.bytes)])
  }

  /// Gives up the chunks of a version. What was based on it is based on what it was based on.
  private mutating func release(
    _ version: VersionRow, _ head: inout ZoneHead, _ budget: inout Int
  ) throws -> Set<ChunkHash> {
    let manifest = try manifest(of: version.id)
    let hashes = manifest?.hashes ?? []
    try connection.execute(
      "DELETE FROM authors WHERE zone = $1 AND version = $2", [.text(zone), .blob(version.id.bytes)])
    head.used -= VersionRow.bytes(manifest: manifest?.bytes.count ?? 0)
    // A version without any costs something, too.
    budget -= hashes.count + 1
    for hash in hashes {
      try connection.execute(
        "UPDATE chunks SET uses = uses - 1 WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)])
    }
    try connection.execute(
      "UPDATE versions SET base = $1 WHERE zone = $2 AND item = $3 AND base = $4",
      [.optional(version.base?.bytes), .text(zone), .blob(version.item.bytes), .blob(version.id.bytes)])
    return hashes
  }
}
