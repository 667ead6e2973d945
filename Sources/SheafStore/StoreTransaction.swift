internal import SheafModel

/// One transaction's view of the store: typed queries in extensions by table.
///
/// Valid only inside the closure that received it.
package struct StoreTransaction {
  let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  /// Runs a statement, prepared once per connection. Statements that change remembered rows go by
  /// ``change(_:_:noting:)``.
  func run<each Argument: Bindable>(_ sql: String, _ arguments: repeat each Argument) throws {
    let statement = try connection.statement(sql)
    assert(!statement.changesKnownRows, "\(sql) changes rows that are remembered, and notes nothing of it")
    try connection.run(statement, repeat each arguments)
  }

  /// Runs a statement that changes rows which are remembered, and notes what becomes of them.
  ///
  /// - Parameter note: notes, or forgets, every row that the statement changes.
  func change<each Argument: Bindable>(
    _ sql: String, _ arguments: repeat each Argument, noting note: (KnownRows) -> Void
  ) throws {
    try connection.run(connection.statement(sql), repeat each arguments)
    if let known = connection.known { note(known) }
  }

  /// The first row, decoded while SQLite still holds it.
  func first<Value, each Argument: Bindable>(
    _ sql: String, _ arguments: repeat each Argument, decode: (Row) throws -> Value
  ) throws -> Value? {
    var value: Value?
    try connection.run(connection.statement(sql), repeat each arguments) {
      value = try decode($0)
      return false
    }
    return value
  }

  /// The row of a key from `cache`, which every change keeps up to date; otherwise from SQLite, without waiting for
  /// statements that are still to run.
  func known<Key, Value, each Argument: Bindable>(
    _ cache: RowCache<Key, Value>?, _ key: Key, _ sql: String, _ arguments: repeat each Argument,
    decode: (Row) throws -> Value
  ) throws -> Value? {
    guard let cache else { return try first(sql, repeat each arguments, decode: decode) }
    if let known = cache[key] { return known }
    var value: Value?
    if cache.hasForgotten {
      value = try first(sql, repeat each arguments, decode: decode)
      cache.catchUp()
    } else {
      try connection.runAhead(connection.statement(sql), repeat each arguments) {
        value = try decode($0)
        return false
      }
    }
    cache.noteFound(key, value)
    return value
  }

  /// All rows.
  func all<Value, each Argument: Bindable>(
    _ sql: String, _ arguments: repeat each Argument, decode: (Row) throws -> Value
  ) throws -> [Value] {
    var values: [Value] = []
    try connection.run(connection.statement(sql), repeat each arguments) {
      values.append(try decode($0))
      return true
    }
    return values
  }

  /// Passes each row to `body`, which may use the store, without collecting them; stops early when it returns false.
  func each<each Argument: Bindable>(
    _ sql: String, _ arguments: repeat each Argument, body: (Row) throws -> Bool
  ) throws {
    let statement = try connection.prepare(sql)
    defer { statement.finalize() }
    try connection.run(statement, repeat each arguments, row: body)
  }

  /// Rows that the last statement changed.
  var changes: Int { get throws { try connection.changes } }
}

extension StoreTransaction {
  /// A setting's text, such as the library's id.
  package func setting(_ key: String) throws -> String? {
    try first("SELECT value FROM settings WHERE key = ?", key) { try $0[0] as String }
  }

  /// A setting that is a number.
  package func numberSetting(_ key: String) throws -> Int64? {
    try first("SELECT value FROM settings WHERE key = ?", key) { try $0[0] as Int64 }
  }

  /// Settings that are numbers and whose keys begin with `prefix`, by what follows that.
  package func numberSettings(after prefix: String) throws -> [(key: String, value: Int64)] {
    // No key has a character behind this one.
    try all("SELECT key, value FROM settings WHERE key >= ?1 AND key < ?1 || char(1114111) ORDER BY key", prefix) {
      (String(try ($0[0] as String).dropFirst(prefix.count)), try $0[1] as Int64)
    }
  }

  /// Sets a number.
  package func setSetting(_ key: String, _ value: Int64) throws {
    try run(
      "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)
  }

  /// Sets a text, or removes the setting where `value` is nil.
  package func setSetting(_ key: String, _ value: String?) throws {
    if let value {
      try run(
        "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        key, value)
    } else {
      try run("DELETE FROM settings WHERE key = ?", key)
    }
  }

  /// No library gets this far. A larger number is damage, and counting on from it might go past Int64.
  static let numberLimit: Int64 = 1 << 52

  /// The highest number of each numbered table, from which memory counts on.
  ///
  /// - Throws: `corrupt` for a number that no library reaches.
  package func highestNumbers() throws -> (ino: Int64, item: Int64, chunk: Int64, event: Int64, pending: Int64) {
    func highest(_ column: String, of table: String, or setting: String? = nil) throws -> Int64 {
      let row = try first("SELECT max(\(column)) FROM \(table)") { try ($0[0] as Int64?) ?? 0 } ?? 0
      let number = max(row, try setting.flatMap { try numberSetting($0) } ?? 0)
      guard number < Self.numberLimit else {
        throw SheafError(
          .corrupt, subject: "library", reason: "a number in \(table) is out of range: \(number)",
          advice: "go back to a backup")
      }
      return number
    }
    return (
      // A folder that is gone may be where something was.
      max(try highest("ino", of: "inodes"), try highest("parent", of: "past_names")),
      try highest("id", of: "items", or: "itemsBefore"),
      try highest("id", of: "chunks", or: "chunksPacked"),
      max(
        try highest("sequence", of: "events", or: "eventsBefore"),
        try highest("sequence", of: "replica_events", or: "eventsTo")),
      max(try highest("id", of: "pending_events"), try highest("id", of: "waiting_events"))
    )
  }
}
