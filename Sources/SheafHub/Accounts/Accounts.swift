import Foundation
package import SheafHubStore
package import SheafModel
package import SheafWire

/// The accounts of a hub with their devices, enrolment codes and sessions.
///
/// Each change of an account first locks the account's row, so that changes of one account come one after the other.
package struct Accounts: Sendable {
  /// Devices of an account.
  static let mostDevices = 64
  /// Enrolment codes of an account that are not spent.
  static let mostCodes = 16
  /// Sessions of a device; a new one ends the oldest.
  static let mostSessions = 16
  /// Seconds for which an enrolment code is good.
  static let codeLifetime: Int64 = 86_400
  /// Seconds for which a session is good.
  static let sessionLifetime: Int64 = 3_600

  let database: any Database
  let clock: HubClock
  let addresses: HubAddresses
  let nonces: Nonces

  package init(database: any Database, clock: HubClock, addresses: HubAddresses, secret: [UInt8]) {
    self.database = database
    self.clock = clock
    self.addresses = addresses
    nonces = Nonces(secret: secret)
  }

  /// The hub's secret, which is made the first time.
  package static func secret(in database: any Database) async throws -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    let made = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
    return try await database.write { connection in
      try connection.execute(
        "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", [.text("nonces"), .blob(made)])
      let rows = try connection.query("SELECT value FROM secrets WHERE name = $1", [.text("nonces")])
      guard let row = rows.first else { throw HubStoreError.corrupt("the hub has no secret") }
      return try row.blob(0)
    }
  }

  // MARK: - Accounts

  /// Makes an account with an empty zone.
  ///
  /// - Throws: ``HubError`` of kind `conflict` if the handle is taken.
  package func add(_ handle: AccountHandle, name: String?) async throws {
    let (zone, now) = (UUID().uuidString.lowercased(), clock.now)
    if let name { _ = try CheckedText.name(name, upTo: 255) }
    try await database.write { connection in
      try Self.insert(handle, name: name, zone: zone, now: now, in: &connection)
      try Zone.make(zone, now: now, in: &connection)
    }
  }

  /// Gives a zone its account.
  ///
  /// - Throws: ``HubError`` of kind `conflict` if the handle is taken.
  static func insert(
    _ handle: AccountHandle, name: String?, zone: String, now: Timestamp, in connection: inout any SQLConnection
  ) throws {
    let values: [SQLValue] = [.text(handle.description), .text(zone)]
    guard
      try connection.execute("INSERT INTO handles (handle, zone) VALUES ($1, $2) ON CONFLICT DO NOTHING", values) == 1
    else { throw HubError(.conflict, "the handle is taken") }
    try connection.execute(
      "INSERT INTO accounts (zone, handle, name, added, revision) VALUES ($1, $2, $3, $4, 0)",
      [.text(zone), .text(handle.description), .optional(name), .integer(now.nanoseconds)])
  }

  /// All accounts, by handle.
  package func list() async throws -> [AccountFacts] {
    let database = database
    return try await database.read { connection in
      var accounts: [AccountFacts] = []
      for row in try connection.query("SELECT zone FROM accounts") {
        if let facts = try Self.facts(row.text(0), in: &connection) { accounts.append(facts) }
      }
      return accounts.sorted { $0.handle < $1.handle }
    }
  }

  /// The zone of an account.
  ///
  /// - Throws: ``HubError`` of kind `notFound`.
  package func zone(of handle: AccountHandle) async throws -> String {
    try await database.read { connection in
      let rows = try connection.query("SELECT zone FROM handles WHERE handle = $1", [.text(handle.description)])
      guard let row = rows.first else { throw HubError(.notFound, "there is no such account") }
      return try row.text(0)
    }
  }

  package func facts(of zone: String) async throws -> AccountFacts {
    try await database.read { connection in
      guard let facts = try Self.facts(zone, in: &connection) else {
        throw HubError(.notFound, "there is no such account")
      }
      return facts
    }
  }

  /// Sets how many bytes of contents an account may have; nil for no limit.
  package func setQuota(_ quota: Int64?, of zone: String) async throws {
    try await database.write { connection in try Zone.setQuota(quota, of: zone, in: &connection) }
  }

  /// Removes an account with everything in its zone, for good.
  package func remove(zone: String) async throws {
    try await database.write { connection in
      let handle = try Self.take(zone, in: &connection)
      try Zone.destroy(zone, in: &connection)
      let values = [SQLValue.text(zone)]
      try Collaborations.destroy(zone, &connection)
      try Guests.destroy(zone, &connection)
      try connection.execute("DELETE FROM sessions WHERE zone = $1", values)
      try connection.execute("DELETE FROM nonces WHERE zone = $1", values)
      try connection.execute("DELETE FROM codes WHERE zone = $1", values)
      try connection.execute("DELETE FROM devices WHERE zone = $1", values)
      try Wipes.destroy(zone, in: &connection)
      try connection.execute("DELETE FROM accounts WHERE zone = $1", values)
      try connection.execute("DELETE FROM handles WHERE handle = $1", [.text(handle)])
    }
    await database.emptyLog()
  }

  private static func facts(_ zone: String, in connection: inout any SQLConnection) throws -> AccountFacts? {
    let rows = try connection.query("SELECT handle, name FROM accounts WHERE zone = $1", [.text(zone)])
    guard let row = rows.first else { return nil }
    let space = try Zone.space(of: zone, in: &connection)
    return AccountFacts(
      handle: try row.text(0), name: try row.optionalText(1), zone: zone, quota: space.quota, used: space.used)
  }

  /// Takes an account's row until the end of the transaction, and returns its handle.
  static func take(_ zone: String, in connection: inout any SQLConnection) throws -> String {
    let rows = try connection.query(
      "UPDATE accounts SET revision = revision + 1 WHERE zone = $1 RETURNING handle", [.text(zone)])
    guard let row = rows.first else { throw HubError(.notFound, "there is no such account") }
    return try row.text(0)
  }
}
