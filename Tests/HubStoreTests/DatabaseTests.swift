import Foundation
import HubKit
import SheafHubStore
import Testing

/// What every engine does alike.
@Suite struct DatabaseTests {
  /// An error that is no engine's.
  struct Refusal: Error {}

  static func makeTable(_ database: any Database) async throws {
    _ = try await database.write { connection in
      try connection.execute(
        "CREATE TABLE things (zone BIGINT NOT NULL, number BIGINT, text TEXT, bytes BYTEA, PRIMARY KEY (zone))")
    }
  }

  static func add(_ number: Int64, to database: any Database) async throws -> Int64? {
    try await database.write { connection in
      try connection.query(
        """
        INSERT INTO things (zone, number) VALUES (1, $1)
        ON CONFLICT (zone) DO UPDATE SET number = things.number + excluded.number RETURNING number
        """, [.integer(number)]
      ).first?.integer(0)
    }
  }

  static func number(in database: any Database) async throws -> Int64? {
    try await database.read { connection in
      try connection.query("SELECT number FROM things WHERE zone = 1").first?.integer(0)
    }
  }

  @Test(arguments: StoreEngine.available)
  func valuesComeBackAsTheyWere(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      let numbers: [SQLValue] = [.integer(.min), .integer(-256), .integer(-1), .integer(0), .integer(.max), .null]
      let texts: [SQLValue] = [
        .text(""), .text("'); DROP TABLE things; --"), .text("e\u{301}\u{1F600}\u{FFFF}\n$1"),
        .text(String(repeating: "é", count: 500_000)), .null, .text(" "),
      ]
      let blobs: [SQLValue] = [
        .blob([]), .blob([0]), .blob(Array(0...255)), .blob([UInt8](repeating: 0xFF, count: 1_000_000)), .null,
        .blob([0x5C, 0x78]),
      ]
      for row in numbers.indices {
        let values = [.integer(Int64(row)), numbers[row], texts[row], blobs[row]]
        let changed = try await database.write { connection in
          try connection.execute("INSERT INTO things (zone, number, text, bytes) VALUES ($1, $2, $3, $4)", values)
        }
        #expect(changed == 1)
        let found = try await database.read { connection in
          try connection.query("SELECT zone, number, text, bytes FROM things WHERE zone = $1", [.integer(Int64(row))])
        }
        #expect(found == [SQLRow(values)], "row \(row)")
      }
      let sums = try await database.read { connection in
        try connection.query("SELECT COUNT(*), CAST(SUM(zone) AS BIGINT) FROM things WHERE zone > $1", [.integer(1)])
      }
      #expect(sums == [SQLRow([.integer(4), .integer(14)])])
    }
  }

  @Test func aValueOfAnotherTypeIsCorrupt() throws {
    let row = SQLRow([.null, .integer(1), .text("a"), .blob([1])])
    #expect(throws: HubStoreError.self) { try row.integer(0) }
    #expect(throws: HubStoreError.self) { try row.text(1) }
    #expect(throws: HubStoreError.self) { try row.blob(2) }
    #expect(throws: HubStoreError.self) { try row.optionalInteger(3) }
    #expect(throws: HubStoreError.self) { try row.integer(4) }
    #expect(throws: HubStoreError.self) { try row.integer(-1) }
    #expect(try row.optionalText(0) == nil)
  }

  @Test(arguments: StoreEngine.available)
  func aNulIsRefusedAlike(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      await #expect(throws: HubStoreError.nulInText) {
        try await database.write { connection in
          try connection.execute("INSERT INTO things (zone, text) VALUES (1, 'a')")
          try connection.execute("UPDATE things SET text = $1", [.text("a\0b")])
        }
      }
      #expect(try await Self.number(in: database) == nil)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatThrowsLeavesNothing(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      await #expect(throws: Refusal.self) {
        try await database.write { connection in
          try connection.execute("INSERT INTO things (zone, number) VALUES (1, 5)")
          throw Refusal()
        }
      }
      await #expect(throws: HubStoreError.self) {
        try await database.write { connection in
          try connection.execute("INSERT INTO things (zone, number) VALUES (1, 6)")
          try connection.execute("INSERT INTO things (zone, number) VALUES (1, 7)")
        }
      }
      #expect(try await Self.number(in: database) == nil)
      #expect(try await Self.add(1, to: database) == 1)
    }
  }

  @Test(arguments: StoreEngine.available)
  func writesOfManyAreOneAfterAnother(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      _ = try await Self.add(0, to: database)
      let numbers = try await withThrowingTaskGroup(of: Int64?.self) { group in
        for index in 0..<300 {
          group.addTask {
            // Each third fails after its change, beside others in the same transaction of SQLite.
            if index % 3 > 0 { return try await Self.add(1, to: database) }
            await #expect(throws: Refusal.self) {
              try await database.write { connection in
                try connection.execute("UPDATE things SET number = number + 1000 WHERE zone = 1")
                throw Refusal()
              }
            }
            return nil
          }
        }
        return try await group.reduce(into: Set<Int64>()) { if let number = $1 { $0.insert(number) } }
      }
      #expect(numbers == Set(1...200))
      #expect(try await Self.number(in: database) == 200)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aReaderSeesOneMoment(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      _ = try await Self.add(1, to: database)
      let hasBegun = Gate(), isChanged = Gate()
      async let seen = database.read { connection in
        let before = try connection.query("SELECT number FROM things")
        hasBegun.open()
        isChanged.pass()
        return (before, try connection.query("SELECT number FROM things"))
      }
      try await Self.waiting(for: hasBegun)
      _ = try await Self.add(1, to: database)
      isChanged.open()
      let (before, after) = try await seen
      #expect(before == after)
      #expect(try await Self.number(in: database) == 2)
    }
  }

  /// Waits for a gate on a thread that nothing else needs.
  static func waiting(for gate: Gate) async throws {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        #expect(gate.pass(), "nobody came")
        continuation.resume()
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func closingLetsWhatRunsEnd(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      try await Self.makeTable(database)
      let hasBegun = Gate(), mayEnd = Gate()
      let running = Task {
        try await database.write { connection in
          try connection.execute("INSERT INTO things (zone, number) VALUES (1, 5)")
          hasBegun.open()
          mayEnd.pass()
        }
      }
      try await Self.waiting(for: hasBegun)
      let closing = Task { await database.close() }
      // Refused once it is closed, and those that wait then.
      while (try? await database.write({ _ in })) != nil { await Task.yield() }
      await #expect(throws: HubStoreError.self) { try await database.write { _ in } }
      await #expect(throws: HubStoreError.self) { try await database.read { _ in } }
      mayEnd.open()
      try await running.value
      await closing.value
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatWasWrittenIsThereAgain(_ engine: StoreEngine) async throws {
    try await engine.withPlace { place in
      let first = try place.open()
      try await Self.makeTable(first)
      #expect(try await Self.add(3, to: first) == 3)
      await first.close()
      let second = try place.open()
      #expect(try await Self.number(in: second) == 3)
      await second.close()
    }
  }
}
