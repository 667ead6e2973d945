internal import GRDB
package import SheafModel

/// Reading one moment's state beside the writer.
extension Store {
  /// Runs `body` on one moment's state while writing goes on; it must only read.
  package func snapshot<Value>(_ body: (StoreTransaction) throws -> Value) throws(SheafError) -> Value {
    try Self.storeErrors(path) {
      try writer.commit()
      return try pool.read { database in
        let connection = Connection(borrowing: database.sqliteConnection!)
        defer { connection.close() }
        return try body(StoreTransaction(connection))
      }
    }
  }

  /// As ``snapshot(_:)``, of the moment in which `start` calls what it is given: for who looks at something else in that
  /// moment, too, with changes held off.
  package func snapshot<Value>(
    beginningIn start: (_ begin: () throws -> Void) throws -> Void, _ body: (StoreTransaction) throws -> Value
  ) throws(SheafError) -> Value {
    try Self.storeErrors(path) {
      // Most of it before anybody has to wait.
      try writer.commit()
      // `read` would begin before `start` is called.
      return try pool.unsafeRead { database in
        let connection = Connection(borrowing: database.sqliteConnection!)
        defer { connection.close() }
        defer { if connection.isInTransaction { try? database.rollback() } }
        try start {
          try writer.commit()
          try database.beginTransaction(.deferred)
          // A transaction's moment is that of its first reading.
          _ = try database.schemaVersion()
        }
        return try body(StoreTransaction(connection))
      }
    }
  }

  /// What SQLite's `integrity_check` finds; empty for a sound file.
  package func integrityProblems() throws(SheafError) -> [String] {
    try Self.storeErrors(path) {
      try writer.commit()
      return try pool.read { try String.fetchAll($0, sql: "PRAGMA integrity_check(20)") }
    }.filter { $0 != "ok" }.map { "SQLite: \($0)" }
  }
}
