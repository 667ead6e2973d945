import Foundation
import HubKit
import SheafHubStore
import Testing

/// What SQLite alone promises or needs.
@Suite struct SQLiteTests {
  @Test func commitsAreSynced() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let settings = try await database.write { connection in
        [
          try connection.query("PRAGMA synchronous"), try connection.query("PRAGMA foreign_keys"),
          try connection.query("PRAGMA secure_delete"),
        ]
      }
      #expect(settings == [[SQLRow([.integer(2)])], [SQLRow([.integer(1)])], [SQLRow([.integer(1)])]])
    }
  }

  @Test func theFileIsItsOwnersAlone() async throws {
    try await StoreEngine.sqlite.withPlace { place in
      let database = try place.open()
      let attributes = try FileManager.default.attributesOfItem(atPath: place.location)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      await database.close()
    }
  }

  @Test func whatIsNoDatabaseIsRefused() async throws {
    try await StoreEngine.sqlite.withPlace { place in
      try Data(repeating: 7, count: 8_192).write(to: URL(fileURLWithPath: place.location))
      #expect(throws: HubStoreError.self) { try place.open() }
    }
  }

  @Test func aBackupIsADatabase() async throws {
    try await StoreEngine.sqlite.withPlace { place in
      let database = try SQLiteDatabase(path: place.location)
      try await DatabaseTests.makeTable(database)
      _ = try await DatabaseTests.add(4, to: database)
      try await database.backup(to: place.location + "-copy")
      await database.close()
      let copy = try SQLiteDatabase(path: place.location + "-copy")
      #expect(try await DatabaseTests.number(in: copy) == 4)
      await copy.close()
    }
  }
}
