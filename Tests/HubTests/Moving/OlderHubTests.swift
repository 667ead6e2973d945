import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// The store of a hub as an older program made it.
enum OlderHub {
  /// Puts the bytes of chunks back into the table that has their counts.
  static func make(_ database: any Database) async throws {
    try await database.write { connection in
      for statement: StaticString in [
        "ALTER TABLE chunks ADD COLUMN bytes BYTEA NOT NULL DEFAULT ''",
        """
        UPDATE chunks SET bytes = (
          SELECT chunk_bytes.bytes FROM chunk_bytes
          WHERE chunk_bytes.zone = chunks.zone AND chunk_bytes.hash = chunks.hash)
        """,
        "DROP TABLE chunk_bytes",
      ] {
        try connection.execute(statement)
      }
    }
  }
}

@Suite struct OlderHubTests {
  /// A store whose transactions fail from one on.
  private final class FailingDatabase: Database {
    private let base: any Database
    private let left: Mutex<Int>

    init(_ base: any Database, after count: Int) {
      self.base = base
      left = Mutex(count)
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
      let isOver = left.withLock { left in
        left -= 1
        return left < 0
      }
      guard isOver else { return try await base.write(body) }
      // All of it is done, and then nothing of it.
      return try await base.write { connection in
        _ = try body(&connection)
        throw HubStoreError.unavailable("on purpose")
      }
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
      try await base.read(body)
    }

    func close() async {}
  }

  /// Interrupted at every transaction, it goes on where it was.
  @Test(arguments: StoreEngine.available)
  func theBytesOfAnOlderHubAreMoved(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      for number in 0..<40 { try await story.document("d\(number)", "text \(number)") }
      _ = try await story.hub.accounts.list()
      let chunks = try await PurgeTests.chunks(database).sorted()
      try await OlderHub.make(database)
      #expect(try await Hub.isOlder(database))
      var interruptions = 0
      while try await Hub.isOlder(database) {
        // The tables are made by the first one, then each attempt does one more.
        let failing = FailingDatabase(database, after: interruptions)
        do {
          try await Hub.prepare(failing)
        } catch HubStoreError.unavailable {
          interruptions += 1
        }
        try #require(interruptions < 20)
      }
      #expect(interruptions > 4)
      #expect(try await PurgeTests.chunks(database).sorted() == chunks)
      #expect(try await story.hub.check() == [])
      try await story.document("late", "late")
      #expect(try await story.hub.check() == [])
      // Once more is no harm.
      try await Hub.prepare(database)
      #expect(try await PurgeTests.chunks(database).count == chunks.count + 1)
    }
  }
}
