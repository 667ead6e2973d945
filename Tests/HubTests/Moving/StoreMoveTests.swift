import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// A hub moves to another store, with every row.
@Suite struct StoreMoveTests {
  /// A store that changes rows of a table as they are written, or fails there.
  private struct BadDatabase: Database {
    let base: any Database
    let table: String
    /// What becomes of a row; nil for a failure.
    let change: (@Sendable ([SQLValue]) -> [SQLValue])?

    private struct Connection: SQLConnection {
      var base: any SQLConnection
      let bad: BadDatabase

      mutating func query(_ sql: StaticString, _ values: [SQLValue]) throws -> [SQLRow] {
        try base.query(sql, values)
      }

      mutating func execute(_ sql: StaticString, _ values: [SQLValue]) throws -> Int { try base.execute(sql, values) }

      mutating func columns(of table: String) throws -> Set<String> { try base.columns(of: table) }

      mutating func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow] {
        guard "\(statement)".contains("INSERT INTO \(bad.table) ") else { return try base.query(statement, values) }
        guard let change = bad.change else { throw HubStoreError.unavailable("on purpose") }
        return try base.query(statement, change(values))
      }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
      let bad = self
      return try await base.write { connection in
        var wrapped: any SQLConnection = Connection(base: connection, bad: bad)
        return try body(&wrapped)
      }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
      try await base.read(body)
    }

    func close() async {}
  }

  /// Runs `body` with a hub in which there is something of everything, and an empty store with tables.
  private static func with(
    _ engine: StoreEngine, documents: Int = 20,
    _ body: (_ story: SharedStory, _ target: any Database) async throws -> Void
  ) async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "1", in: trip)
      try await story.save(plan, "2")
      for number in 0..<documents { try await story.document("d\(number)", "\(number)") }
      try await story.share(trip, with: [story.bob])
      _ = try await story.test.enroll(TestDevice(), in: story.alice.zone)
      let doomed = try await story.document("doomed", "")
      try await story.delete(doomed)
      try await engine.withDatabase { target in
        try await Hub.prepare(target)
        try await body(story, target)
      }
    }
  }

  /// Every table that a hub makes is copied, with all its columns.
  @Test func everyTableIsKnown() async throws {
    let made =
      AccountTables.statements + ZoneTables.statements + ShareTables.statements + TransferTables.statements
      + FederationTables.statements
    let tables = made.filter { $0.description.hasPrefix("CREATE TABLE") }
    #expect(HubTables.all.count == tables.count && tables.count > 30)
    #expect(HubTables.ofZones.count + HubTables.directories.count + 1 == HubTables.all.count)
    for (table, statement) in zip(HubTables.all, tables) {
      let lines = statement.description.split(separator: "\n").dropFirst().filter { !$0.contains("PRIMARY KEY (") }
      let names = lines.map { String($0.split(separator: " ")[0]) }
      #expect(table.columns == names, "\(table.name)")
    }
  }

  @Test(arguments: StoreEngine.available)
  func everyRowIsMoved(_ engine: StoreEngine) async throws {
    // More than a page of everything.
    try await Self.with(engine, documents: 520) { story, target in
      let before = try await story.hub.feeds.page(after: nil, limit: 1_000, of: story.alice.zone)
      let moved = try await StoreMove(from: story.hub.database, to: target).run()
      #expect(moved.accounts == 3 && moved.rows > 3_000 && moved.bytes > 0)
      #expect(try await !StoreMove.isUnfinished(target))
      let hub = try await TestHub(target).hub
      #expect(try await hub.check() == [])
      #expect(try await hub.accounts.list() == story.hub.accounts.list())
      // Readers go on where they were.
      let token = try FeedToken(before.token)
      #expect(try await hub.feeds.page(after: token, limit: 9, of: story.alice.zone).items == [])
      #expect(try await hub.feeds.page(after: nil, limit: 1_000, of: story.alice.zone) == before)
      // Once more is no harm. A whole copy may be served by now, so nothing of it is changed.
      #expect(try await StoreMove(from: story.hub.database, to: target).run() == moved)
      try await story.document("late", "late")
      #expect(try await problem { _ = try await StoreMove(from: story.hub.database, to: target).run() } == .conflict)
      #expect(try await hub.feeds.page(after: nil, limit: 1_000, of: story.alice.zone) == before)
      #expect(try await !StoreMove.isUnfinished(target))
    }
  }

  /// Interrupted in the middle of a table, it is not taken for a hub, and begins anew.
  @Test(arguments: StoreEngine.available)
  func anInterruptedMoveBeginsAnew(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, target in
      for table in ["chunks", "chunk_bytes", "shares", "accounts", "handles"] {
        let bad = BadDatabase(base: target, table: table, change: nil)
        await #expect(throws: HubStoreError.self) {
          try await StoreMove(from: story.hub.database, to: bad).run()
        }
        #expect(try await StoreMove.isUnfinished(target))
      }
      // An account that is gone meanwhile is gone from the copy.
      try await story.hub.removeAccount(zone: story.carol.zone)
      #expect(try await StoreMove(from: story.hub.database, to: target).run().accounts == 2)
      #expect(try await TestHub(target).hub.check() == [])
    }
  }

  /// What is not what it was copied from is noticed, whichever row it is in.
  @Test(arguments: StoreEngine.available)
  func aRowThatDiffersIsNoticed(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, target in
      for (table, column) in [("devices", 2), ("events", 2), ("participants", 4), ("verdicts", 3)] {
        let bad = BadDatabase(base: target, table: table) { row in
          var row = row
          if case .text(let text) = row[column] { row[column] = .text(text + " ") }
          return row
        }
        let problem = try await problem { _ = try await StoreMove(from: story.hub.database, to: bad).run() }
        #expect(problem == .conflict, "\(table)")
        #expect(try await StoreMove.isUnfinished(target))
      }
      _ = try await StoreMove(from: story.hub.database, to: target).run()
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatIsSomebodyElsesStays(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, target in
      func refusal() async throws -> Problem.Kind? {
        try await problem { _ = try await StoreMove(from: story.hub.database, to: target).run() }
      }
      let other = try await TestHub(target)
      let zone = try await other.account("dora@hub.example")
      #expect(try await refusal() == .conflict)
      #expect(try await other.accounts.list().map(\.handle) == ["dora@hub.example"])
      try await other.hub.removeAccount(zone: zone)
      // Somebody may serve a hub without accounts.
      #expect(try await refusal() == .conflict)
      _ = try await target.write { connection in try connection.execute("DELETE FROM secrets") }
      #expect(try await refusal() == nil)
      // A copy that was served since is newer than its source, even if all that it has got is an account.
      let eve = try await other.account("eve@hub.example")
      #expect(try await refusal() == .conflict)
      #expect(try await other.accounts.list().count == 4)
      try await other.hub.removeAccount(zone: eve)
      #expect(try await refusal() == nil)
      let author = SendAuthor(
        device: "d", deviceName: "laptop", handle: story.alice.handle, name: "alice", now: other.hub.clock.now)
      let late = SendRequest(groups: [[.document("late", "late", serial: 1)]])
      _ = try await other.hub.zones.send(late, to: story.alice.zone, by: author)
      #expect(try await refusal() == .conflict)
      #expect(try await !StoreMove.isUnfinished(target))
    }
  }

  /// A damaged hub is not moved in silence.
  @Test(arguments: StoreEngine.available)
  func aDamagedChunkIsNoticed(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { story, target in
      _ = try await story.hub.database.write { connection in
        try connection.execute("UPDATE chunk_bytes SET bytes = $1 WHERE length(bytes) = $2", [.blob([0]), .integer(1)])
      }
      let problem = try await problem { _ = try await StoreMove(from: story.hub.database, to: target).run() }
      #expect(problem == .conflict)
      #expect(try await StoreMove.isUnfinished(target))
    }
  }
}
