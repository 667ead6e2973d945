import Foundation
import GRDB
import Glibc
import SheafModel
import Testing

@testable import SheafStore

/// A library's file has nothing that SQLite runs with Sheaf's statements but what Sheaf put there.
struct SchemaCheckTests {
  private static let foreign: [(name: String, sql: String)] = [
    ("seen", "CREATE TRIGGER seen AFTER INSERT ON settings BEGIN SELECT RAISE(ABORT, 'ran'); END"),
    ("replica_other", "CREATE TRIGGER replica_other AFTER UPDATE ON settings BEGIN SELECT RAISE(ABORT, 'ran'); END"),
    ("settings", "DROP TABLE settings; CREATE VIEW settings AS SELECT 'library' AS key, 'x' AS value"),
    ("everything", "CREATE VIEW everything AS SELECT * FROM items"),
    ("heavy", "CREATE INDEX heavy ON items (length(hex(zeroblob(created))))"),
    ("items", "ALTER TABLE items ADD COLUMN twice INTEGER GENERATED ALWAYS AS (id * 2) VIRTUAL"),
    (
      "settings",
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = replace(sql, 'value ANY NOT NULL', 'value ANY NOT NULL CHECK (length(key) > 0)')
        WHERE name = 'settings'
      """
    ),
    ("notes", "CREATE TABLE notes (text); CREATE TRIGGER notes AFTER INSERT ON notes BEGIN DELETE FROM versions; END"),
  ]

  private func change(_ path: String, _ sql: String) throws {
    let database = try DatabaseQueue(path: path)
    try database.writeWithoutTransaction { try $0.execute(sql: sql) }
    try database.close()
  }

  private func make(_ folder: String) throws -> String {
    let path = folder + "/library.sqlite"
    let store = try Store(path: path, lockPath: path + "-lock")
    try store.write(.accounts) { try $0.setSetting("x", "1") }
    try store.close()
    return path
  }

  private func value(_ path: String) throws -> String? {
    let store = try Store(path: path, lockPath: path + "-lock")
    let value = try store.read { try $0.setting("x") }
    try store.write(.accounts) { try $0.setSetting("y", "2") }
    try store.close()
    return value
  }

  @Test(arguments: foreign.indices) func whatSheafDidNotMakeIsRefused(_ index: Int) throws {
    let (name, sql) = Self.foreign[index]
    try withFolder { folder in
      let path = try make(folder)
      try change(path, sql)
      let error = #expect(throws: SheafError.self) { _ = try value(path) }
      #expect(error?.kind == .corrupt && error?.description.contains(name) ?? false, "\(error as Any)")
      let saved = folder + "/saved.sqlite"
      _ = try Store.repair(path, lockPath: path + "-lock", to: saved, destinationLockPath: saved + "-lock")
      #expect(try value(saved) == (sql.contains("DROP TABLE") ? nil : "1"))
    }
  }

  /// Whoever reads what a repair cannot read has had its advice.
  @Test func aRepairDoesNotAdviseItself() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      // The steps to the newest format read the accounts.
      try change(
        path,
        "\(Schema.migrations[0]); PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = 1")
      let root = try DatabaseQueue(path: path).read {
        try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'accounts'")
      }
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
      try file.seek(toOffset: UInt64((try #require(root) - 1) * 4096))
      try file.write(contentsOf: Data(repeating: 0xFF, count: 4096))
      try file.close()
      let saved = folder + "/saved.sqlite"
      let error = #expect(throws: SheafError.self) {
        _ = try Store.repair(path, lockPath: path + "-lock", to: saved, destinationLockPath: saved + "-lock")
      }
      #expect(error?.kind == .corrupt && error?.subject == path, "\(error as Any)")
      #expect(error?.advice == "go back to the last backup")
    }
  }

  /// A file is refused before the changes in its record are done again, each of which would run it.
  @Test func nothingForeignRunsWithTheRecord() throws {
    try withFolder { folder in
      let path = try make(folder)
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.accounts) { try $0.setSetting("z", "3") }
      let copy = folder + "/copy.sqlite"
      for suffix in ["", "-wal", "-changes"] {
        try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
      }
      try store.close()
      try change(
        copy, "CREATE TRIGGER seen AFTER INSERT ON settings BEGIN DELETE FROM settings WHERE key = 'x'; END")
      let error = #expect(throws: SheafError.self) { _ = try value(copy) }
      #expect(error?.kind == .corrupt)
      let kept = try DatabaseQueue(path: copy).read {
        try String.fetchOne($0, sql: "SELECT value FROM settings WHERE key = 'x'")
      }
      #expect(kept == "1")
    }
  }

  @Test(arguments: [Int32.min, -1, 0]) func aFormatThatNeverWasIsRefused(_ format: Int32) throws {
    try withFolder { folder in
      let path = try make(folder)
      for name in ["header", "log"] {
        let copy = "\(folder)/\(name).sqlite"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        let database = try DatabaseQueue(path: copy)
        try database.writeWithoutTransaction { database in
          try database.execute(sql: "PRAGMA journal_mode = \(name == "log" ? "WAL" : "DELETE")")
          try database.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = \(format)")
        }
        // Closing the database would empty its log.
        let crashed = "\(folder)/crashed-\(name).sqlite"
        for suffix in ["", "-wal"] where access(copy + suffix, F_OK) == 0 {
          try FileManager.default.copyItem(atPath: copy + suffix, toPath: crashed + suffix)
        }
        try database.close()
        let error = #expect(throws: SheafError.self) { _ = try value(crashed) }
        #expect(error?.kind == .corrupt || error?.kind == .exists, "\(name): \(error as Any)")
      }
    }
  }

  @Test(arguments: ["packs", "xattrs", "replica_logs", "entries"])
  func aMissingTableIsNamed(_ table: String) throws {
    try withFolder { folder in
      let path = try make(folder)
      try change(path, "PRAGMA foreign_keys = OFF; DROP TABLE \(table)")
      let error = #expect(throws: SheafError.self) { _ = try value(path) }
      #expect(error?.kind == .corrupt && error?.reason.contains(table) ?? false, "\(error as Any)")
    }
  }

  /// The number of the format is damaged, and nothing else.
  @Test(arguments: [Int32.min, -1, 0, 1, 2, 7]) func aWrongNumberIsMended(_ format: Int32) throws {
    try withFolder { folder in
      let path = try make(folder)
      try change(path, "PRAGMA user_version = \(format)")
      let saved = folder + "/saved.sqlite"
      _ = try Store.repair(path, lockPath: path + "-lock", to: saved, destinationLockPath: saved + "-lock")
      #expect(try value(saved) == "1")
    }
  }

  /// A table of somebody's own takes no part in anything.
  @Test func anotherTableIsNoHarm() throws {
    try withFolder { folder in
      let path = try make(folder)
      try change(path, "CREATE TABLE notes (text); CREATE INDEX notes_text ON notes (text); ANALYZE")
      #expect(try value(path) == "1")
    }
  }

  /// Another version of the program may have made them otherwise.
  @Test func triggersAreMadeAnew() throws {
    try withFolder { folder in
      let path = try make(folder)
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.write(.accounts) { try $0.setNotesChanges(true) }
      let triggers = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
      func all(_ store: Store) throws -> [String] { try store.read { try $0.all(triggers) { try $0[0] as String } } }
      let own = try all(store)
      try store.close()
      try change(
        path,
        """
        DROP TRIGGER replica_item_made;
        CREATE TRIGGER replica_item_made AFTER INSERT ON settings BEGIN SELECT RAISE(ABORT, 'ran'); END
        """)
      #expect(try value(path) == "1")
      let again = try Store(path: path, lockPath: path + "-lock")
      #expect(try all(again) == own)
      try again.close()
    }
  }
}
