package import SheafHubStore

/// Moves a hub that nobody serves to another store, and compares every row.
///
/// The copy has the hub's secret from the beginning, and a mark until it is whole. A move that was interrupted begins
/// anew: what is there already is compared with what it is a copy of, and copied again where it differs. A store without
/// the mark that has a hub is left alone, also if that hub has no account yet, or is a whole copy of this one: it may be
/// served by now.
package struct StoreMove: Sendable {
  /// What was moved.
  package struct Outcome: Hashable, Sendable, Codable {
    package let accounts: Int
    package let rows: Int
    /// Bytes of contents.
    package let bytes: Int64
  }

  private static let secret = "nonces"
  private static let mark = "moving"

  private let source: any Database
  private let target: any Database

  /// - Parameters:
  ///   - source: A hub's store, which nothing changes meanwhile.
  ///   - target: A store in which ``Hub/prepare(_:)`` has made the tables.
  package init(from source: any Database, to target: any Database) {
    (self.source, self.target) = (source, target)
  }

  /// Whether a store is a copy that is not whole, so that no hub may be opened on it.
  package static func isUnfinished(_ database: any Database) async throws -> Bool {
    try await database.read { connection in try value(Self.mark, in: &connection) != nil }
  }

  /// Copies what is not there yet, and compares all of it.
  ///
  /// - Throws: ``HubError`` of kind `conflict` where the target has something else, or the source is damaged.
  package func run() async throws -> Outcome {
    let zones = try await Self.zones(of: source)
    guard try await begin() else { return try await compareWhole(zones) }
    for zone in try await Self.zones(of: target) where !zones.contains(zone) { try await destroy(zone) }
    for zone in zones { try await copy(zone) }
    for table in HubTables.directories { try await copy(table, zone: nil) }
    let outcome = try await compare(zones)
    _ = try await target.write { connection in
      try connection.execute("DELETE FROM secrets WHERE name = $1", [.text(Self.mark)])
    }
    return outcome
  }

  private static func zones(of database: any Database) async throws -> [String] {
    try await database.read { connection in
      try connection.query("SELECT zone FROM zones ORDER BY zone").map { try $0.text(0) }
    }
  }

  private static func value(_ name: String, in connection: inout any SQLConnection) throws -> [UInt8]? {
    try connection.query("SELECT value FROM secrets WHERE name = $1", [.text(name)]).first?.blob(0)
  }

  // MARK: - Steps

  /// Makes the target this hub's, if it is nobody else's.
  ///
  /// - Returns: false where it is a whole copy already. Nothing is changed then.
  private func begin() async throws -> Bool {
    let secret = try await source.read { connection in try Self.value(Self.secret, in: &connection) }
    guard let secret else { throw HubStoreError.corrupt("the hub has no secret") }
    return try await target.write { connection in
      let known = try Self.value(Self.secret, in: &connection)
      if known == secret, try Self.value(Self.mark, in: &connection) == nil { return false }
      let zones = try connection.query("SELECT COUNT(*) FROM zones").first?.integer(0) ?? 0
      let handles = try connection.query("SELECT COUNT(*) FROM handles").first?.integer(0) ?? 0
      guard known == secret || (known == nil && zones == 0 && handles == 0) else {
        throw HubError(.conflict, "the store has another hub in it; name one that is empty")
      }
      try connection.execute("DELETE FROM secrets")
      for name in [Self.secret, Self.mark] {
        try connection.execute("INSERT INTO secrets (name, value) VALUES ($1, $2)", [.text(name), .blob(secret)])
      }
      return true
    }
  }

  /// Compares a store that was a whole copy once, and may have gone on since.
  private func compareWhole(_ zones: [String]) async throws -> Outcome {
    let gone = HubError(
      .conflict, "the store has this hub already, and one of the two has gone on since; name another store")
    guard try await Self.zones(of: target) == zones else { throw gone }
    do {
      return try await compare(zones)
    } catch let error as HubError where error.kind == .conflict {
      throw gone
    }
  }

  private func destroy(_ zone: String) async throws {
    try await target.write { connection in
      try Zone.destroy(zone, in: &connection)
      for statement: StaticString in [
        "DELETE FROM sessions WHERE zone = $1", "DELETE FROM nonces WHERE zone = $1",
        "DELETE FROM codes WHERE zone = $1", "DELETE FROM devices WHERE zone = $1",
        "DELETE FROM wipes WHERE zone = $1", "DELETE FROM accounts WHERE zone = $1",
      ] {
        try connection.execute(statement, [.text(zone)])
      }
    }
  }

  /// Copies a zone, unless its copy is there.
  private func copy(_ zone: String) async throws {
    let known = try await target.read { connection in try Self.numbers(of: zone, in: &connection) }
    if let known {
      let own = try await source.read { connection in try Self.numbers(of: zone, in: &connection) }
      guard let own, known.number <= own.number, known.events <= own.events else {
        throw HubError(.conflict, "the store has gone on since it was copied; it is newer than this hub")
      }
      if try await isEqual(zone) { return }
    }
    try await destroy(zone)
    for table in HubTables.ofZones { try await copy(table, zone: zone) }
  }

  private static func numbers(
    of zone: String, in connection: inout any SQLConnection
  ) throws -> (number: Int64, events: Int64)? {
    try connection.query("SELECT number, events FROM zones WHERE zone = $1", [.text(zone)]).first.map {
      (try $0.integer(0), try $0.integer(1))
    }
  }

  private func isEqual(_ zone: String) async throws -> Bool {
    for table in HubTables.ofZones {
      let copied = try await RowDigest.of(table, zone: zone, in: target)
      if try await RowDigest.of(table, zone: zone, in: source) != copied { return false }
    }
    return true
  }

  private func copy(_ table: StoredTable, zone: String?) async throws {
    if zone == nil {
      try await target.write { connection in
        if table.name == "handles" { try connection.execute("DELETE FROM handles") }
        if table.name == "links" { try connection.execute("DELETE FROM links") }
        if table.name == "settings" { try connection.execute("DELETE FROM settings") }
      }
    }
    var last: SQLRow?
    while true {
      let (after, limit) = (last, HubTables.pageLength(of: table))
      let rows = try await source.read { connection in
        try connection.page(of: table, zone: zone, after: after, limit: limit)
      }
      try await target.write { connection in
        for row in rows { try connection.insert(row.all, into: table) }
      }
      last = rows.last
      if rows.count < limit { return }
    }
  }

  // MARK: - Comparing

  /// Compares every row, and checks each zone of the copy, and with it the hash of every chunk.
  private func compare(_ zones: [String]) async throws -> Outcome {
    var rows = 0
    for table in HubTables.directories { rows += try await compare(table, nil) }
    var bytes: Int64 = 0
    for zone in zones {
      for table in HubTables.ofZones { rows += try await compare(table, zone) }
      if let finding = try await Zone.check(zone, target).first {
        throw HubError(.conflict, "the hub is damaged, so its copy is: \(finding); run sheaf-hub check")
      }
      bytes += try await target.read { connection in try Zone.space(of: zone, in: &connection).used }
    }
    return Outcome(accounts: zones.count, rows: rows, bytes: bytes)
  }

  private func compare(_ table: StoredTable, _ zone: String?) async throws -> Int {
    let digest = try await RowDigest.of(table, zone: zone, in: source)
    guard try await RowDigest.of(table, zone: zone, in: target) == digest else {
      throw HubError(.conflict, "the copy has other rows in \(table.name); the hub was changed meanwhile, so try again")
    }
    return digest.count
  }
}
