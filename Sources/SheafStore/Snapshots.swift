internal import GRDB
package import SheafModel

/// Reads the state of one moment beside the writer.
extension Store {
  /// Runs `body` on the state of one moment while writing goes on. `body` must only read.
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

  /// As ``snapshot(_:)``, of the moment in which `start` calls its argument: for callers that look at something else in
  /// the same moment, with changes held off.
  package func snapshot<Value>(
    beginningIn start: (_ begin: () throws -> Void) throws -> Void, _ body: (StoreTransaction) throws -> Value
  ) throws(SheafError) -> Value {
    try Self.storeErrors(path) {
      // Commits most changes before anybody has to wait.
      try writer.commit()
      // `read` would begin before `start` is called.
      return try pool.unsafeRead { database in
        let connection = Connection(borrowing: database.sqliteConnection!)
        defer { connection.close() }
        defer { if connection.isInTransaction { try? database.rollback() } }
        try start {
          try writer.commit()
          try database.beginTransaction(.deferred)
          // A transaction's moment is that of its first read.
          _ = try database.schemaVersion()
        }
        return try body(StoreTransaction(connection))
      }
    }
  }

  /// The problems that SQLite's `integrity_check` finds; empty for a sound file. ``ColumnRules`` finds those of CHECK.
  package func integrityProblems() throws(SheafError) -> [String] {
    let lines = try Self.storeErrors(path) {
      try writer.commit()
      return try pool.read { try String.fetchAll($0, sql: "PRAGMA integrity_check(20)") }
    }
    // It says the same of each row with the same fault.
    var known: Set = ["ok"]
    return lines.filter { known.insert($0).inserted }.map { "SQLite: \($0)" }
  }
}
