internal import Foundation
internal import GRDB
internal import SheafModel

/// One transaction's view of the store: typed queries in extensions by table.
///
/// Valid only inside the closure that received it.
package struct StoreTransaction {
  let database: Database

  init(_ database: Database) { self.database = database }

  /// Runs a statement, prepared once per connection.
  func run(_ sql: String, _ arguments: [(any DatabaseValueConvertible)?]) throws {
    let statement = try database.cachedStatement(sql: sql)
    statement.setUncheckedArguments(StatementArguments(arguments))
    try statement.execute()
  }

  /// The first row, decoded while SQLite still holds it.
  func first<Value>(
    _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Row) throws -> Value
  ) throws -> Value? {
    let statement = try database.cachedStatement(sql: sql)
    statement.setUncheckedArguments(StatementArguments(arguments))
    let cursor = try Row.fetchCursor(statement)
    return try cursor.next().map(decode)
  }

  /// All rows.
  func all<Value>(
    _ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ decode: (Row) throws -> Value
  ) throws -> [Value] {
    let statement = try database.cachedStatement(sql: sql)
    statement.setUncheckedArguments(StatementArguments(arguments))
    let cursor = try Row.fetchCursor(statement)
    var values: [Value] = []
    while let row = try cursor.next() { values.append(try decode(row)) }
    return values
  }

  /// Passes each row to `body` without collecting them; stops early when it returns false.
  func each(_ sql: String, _ arguments: [(any DatabaseValueConvertible)?], _ body: (Row) throws -> Bool) throws {
    let statement = try database.makeStatement(sql: sql)
    statement.setUncheckedArguments(StatementArguments(arguments))
    let cursor = try Row.fetchCursor(statement)
    while let row = try cursor.next() { guard try body(row) else { break } }
  }

  /// Rows that the last statement changed.
  var changes: Int { database.changesCount }
}

extension Row {
  /// The bytes of a blob column; empty for NULL.
  func bytes(_ index: Int) throws -> [UInt8] {
    try withUnsafeData(atIndex: index) { data in data.map { [UInt8]($0) } ?? [] }
  }
}

extension StoreTransaction {
  /// A setting's text, such as the library's id.
  package func setting(_ key: String) throws -> String? {
    try first("SELECT value FROM settings WHERE key = ?", [key]) { $0[0] as String }
  }

  /// A setting that is a number.
  package func numberSetting(_ key: String) throws -> Int64? {
    try first("SELECT value FROM settings WHERE key = ?", [key]) { $0[0] as Int64 }
  }

  /// Sets a text, or removes the setting where `value` is nil.
  package func setSetting(_ key: String, _ value: String?) throws {
    if let value {
      try run(
        "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        [key, value])
    } else {
      try run("DELETE FROM settings WHERE key = ?", [key])
    }
  }

  /// The highest row of each numbered table, from which new numbers are counted on in memory.
  package func highestNumbers() throws -> (ino: Int64, item: Int64, chunk: Int64, event: Int64, pending: Int64) {
    func highest(_ sql: String) throws -> Int64 { try first(sql, []) { ($0[0] as Int64?) ?? 0 } ?? 0 }
    return (
      try highest("SELECT max(ino) FROM inodes"),
      try max(highest("SELECT max(id) FROM items"), numberSetting("itemsBefore") ?? 0),
      try highest("SELECT max(id) FROM chunks"),
      try max(highest("SELECT max(sequence) FROM events"), numberSetting("eventsBefore") ?? 0),
      try highest("SELECT max(id) FROM pending_events")
    )
  }
}
