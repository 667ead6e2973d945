import Logging
package import SheafHubStore
import SheafModel
import SheafWire

/// A hub: its store, and everything that is done with it. It keeps nothing outside of the store, so several of them, in
/// processes of their own, may serve one store.
package struct Hub: Sendable {
  /// The program's version.
  package static let version = "0.1.0"

  package let database: any Database
  package let accounts: Accounts
  package let zones: Zones
  package let feeds: Feeds
  package let contents: Contents
  package let events: ZoneEvents
  package let comments: Comments
  package let readMarks: ReadMarks
  package let sharedFeeds: SharedFeeds
  package let sharedEvents: SharedEvents
  package let purging: Purging
  package let labels: Labels
  package let retention: Retention
  package let folderRetentions: FolderRetentions
  let logs: EventLogs
  let sharing: Sharing
  let transfers: Transfers
  let federation: Federation
  let collaborations: Collaborations
  let guests: Guests
  let courier: Courier
  package let addresses: HubAddresses
  let clock: HubClock

  /// The last word of a log's name in ``numbers(of:)``.
  static let logWord = "events"

  /// What wakes those who wait for an account's events.
  static func log(of zone: String) -> String { "\(zone) \(logWord)" }

  /// The newest numbers of some feeds: of zones, of shares by ``SharedPlace/feed``, and of inboxes by
  /// ``Inboxes/feed(of:)``; and of some logs, by ``log(of:)`` and ``SharedPlace/log``. A zone that is gone has none.
  func numbers(of names: [String]) async throws -> [String: Int64] {
    try await database.read { connection in
      var numbers: [String: Int64] = [:]
      for name in names {
        var words = name.split(separator: " ").map(String.init)
        let zone = words.removeFirst()
        if let share = words.first.flatMap({ WireID($0) }) {
          let head = try SharedHead.read(share, of: zone, &connection)
          numbers[name] = words.last == Self.logWord ? head.events : head.number
        } else if words.last == Self.logWord {
          let rows = try connection.query("SELECT events FROM zones WHERE zone = $1", [.text(zone)])
          numbers[name] = try rows.first?.integer(0)
        } else if numbers[name] == nil {
          // Who waits for a zone waits for its inbox, too.
          let rows = try connection.query(
            """
            SELECT zones.number, inboxes.number FROM zones LEFT JOIN inboxes ON inboxes.zone = zones.zone
            WHERE zones.zone = $1
            """, [.text(zone)])
          guard let row = rows.first else { continue }
          numbers[zone] = try row.integer(0)
          numbers[Inboxes.feed(of: zone)] = try row.optionalInteger(1) ?? 0
        }
      }
      return numbers
    }
  }

  /// Removes an account with everything in its zone, for good. First its shares end, and its part in the shares of
  /// others.
  package func removeAccount(zone: String) async throws {
    try await transfers.settle(zone)
    try await sharing.withdraw(zone)
    try await accounts.remove(zone: zone)
  }

  /// Makes the tables of a hub in an empty store, and what an older program did not note. Where all is there already,
  /// nothing changes.
  package static func prepare(_ database: any Database) async throws {
    try await database.write { connection in
      for statement in HubTables.statements {
        try connection.execute(statement)
      }
      try DerivedRows.prepare(&connection)
    }
    try await ChunkBytes.prepare(database)
  }

  /// Whether ``prepare(_:)`` will change what the program that made the store relies on, so that nobody else may use it
  /// meanwhile.
  package static func isOlder(_ database: any Database) async throws -> Bool {
    try await database.read { connection in try ChunkBytes.isJoined(&connection) }
  }

  /// Opens a hub on a store that was prepared.
  ///
  /// - Parameters:
  ///   - addresses: Where devices dial it; at least one.
  ///   - domains: Those for which it speaks to other hubs; none for a hub that is by itself.
  ///   - dialer: The way to other hubs.
  package init(
    database: any Database, addresses: HubAddresses, domains: [String] = [], dialer: any HubDialing = HubDialer(),
    clock: HubClock = .system
  ) async throws {
    self.database = database
    self.addresses = addresses
    self.clock = clock
    zones = Zones(database: database, clock: clock)
    feeds = Feeds(database: database, clock: clock)
    contents = Contents(database: database, clock: clock)
    events = ZoneEvents(database: database)
    comments = Comments(database: database)
    readMarks = ReadMarks(database: database)
    sharedFeeds = SharedFeeds(database: database, clock: clock)
    sharedEvents = SharedEvents(database: database)
    purging = Purging(database: database)
    labels = Labels(database: database)
    retention = Retention(database: database, clock: clock)
    folderRetentions = FolderRetentions(database: database)
    logs = EventLogs(database: database)
    accounts = Accounts(
      database: database, clock: clock, addresses: addresses, secret: try await Accounts.secret(in: database))
    federation = Federation(
      domains: domains, addresses: addresses, dialer: dialer, clock: clock, key: try await Federation.key(in: database))
    collaborations = Collaborations(
      database: database, clock: clock, addresses: addresses, federates: !domains.isEmpty)
    guests = Guests(database: database, clock: clock, addresses: addresses, nonces: accounts.nonces)
    courier = Courier(database: database, clock: clock, federation: federation, addresses: addresses)
    sharing = Sharing(database: database, clock: clock, courier: courier)
    transfers = Transfers(database: database, clock: clock, purging: purging)
  }
}
