internal import GRDBSQLite
internal import SheafModel

/// Looks whether a database has the tables of its format, and nothing that SQLite would run with Sheaf's statements.
///
/// Whoever made the file may have put triggers, views, expressions and generated columns into it. SQLite runs them with
/// every statement that touches their table, for as long as they take.
enum SchemaCheck {
  /// An entry of SQLite's list of tables (SQLite file format, 2.6).
  struct Entry: Hashable {
    let type: String
    let name: String
    let table: String
    let sql: String?
  }

  /// Refuses a library with foreign parts, or without its own, and makes its own triggers anew if another version of the
  /// program made them. It comes before anything is written to the library.
  ///
  /// - Throws: ``SheafError``: `corrupt`.
  static func require(_ connection: Connection, _ path: String) throws {
    let version = try StoreTransaction(connection).first("PRAGMA user_version") { try $0[0] as Int64 } ?? 0
    let present = try entries(connection)
    // A new library has nothing yet.
    if version == 0, present.isEmpty { return }
    // Of the log, which may have another one than the file's header.
    guard version > 0 else { throw noFormat(Int32(clamping: version), path) }
    // Newer formats are refused by their number.
    if version > Schema.version { return }
    let expected = try entries(of: Int(version))
    let outdated = present.filter { entry in
      entry.type == "trigger" && expected.contains { $0.type == "trigger" && $0.name == entry.name && $0 != entry }
    }
    if let foreign = foreign(present.filter { !outdated.contains($0) }, expected) {
      throw SheafError(
        .corrupt, subject: path,
        reason: "has the \(foreign.type) \(foreign.name.printable), which is not as Sheaf makes it",
        advice: "save what can be read into a new library: sheaf repair \(path)")
    }
    let names = Set(present.filter { $0.type == "table" }.map(\.name))
    if let missing = expected.filter({ $0.type == "table" }).map(\.name).sorted().first(where: { !names.contains($0) })
    {
      throw SheafError(
        .corrupt, subject: path, reason: "lacks the table \(missing)",
        advice: "save what can be read into a new library: sheaf repair \(path)")
    }
    if outdated.isEmpty { return }
    try connection.execute("BEGIN IMMEDIATE")
    do {
      for entry in outdated { try connection.execute("DROP TRIGGER \(entry.name)") }
      try StoreTransaction(connection).setNotesChanges(true)
      try connection.execute("COMMIT")
    } catch {
      try? connection.execute("ROLLBACK")
      throw error
    }
  }

  /// Whether a file has all tables of the newest format, whatever its number says.
  static func hasNewestTables(_ connection: Connection) throws -> Bool {
    let present = Set(try entries(connection))
    return try entries(of: Int(Schema.version)).filter { $0.type == "table" }.isSubset(of: present)
  }

  static func noFormat(_ version: Int32, _ path: String) -> SheafError {
    SheafError(
      .corrupt, subject: path, reason: "has the format \(version), and there is none of that number",
      advice: "go back to the last backup")
  }

  /// Takes foreign triggers, views and indexes out of the list of a copy that is only read from then on.
  static func removeForeign(_ connection: Connection) throws {
    let version = try StoreTransaction(connection).first("PRAGMA user_version") { try $0[0] as Int64 } ?? 0
    guard (1...Int64(Schema.version)).contains(version) else { return }
    let expected = try entries(of: Int(version))
    let foreign = try entries(connection).filter { entry in
      entry.type != "table" && entry.sql != nil && !expected.contains(entry)
    }
    if foreign.isEmpty { return }
    try connection.execute("PRAGMA writable_schema = ON")
    let removal = try connection.statement("DELETE FROM sqlite_schema WHERE type = ? AND name = ?")
    for entry in foreign { try connection.run(removal, entry.type, entry.name) }
    try connection.execute("PRAGMA writable_schema = RESET")
  }

  /// The first of some entries that would have a part in what is done with the tables of others; nil if none would.
  ///
  /// Tables that are not expected take no part in anything.
  static func foreign(_ present: [Entry], _ expected: Set<Entry>) -> Entry? {
    let tables = Set(expected.map(\.table))
    return present.first { entry in
      switch entry.type {
      case "table" where !tables.contains(entry.name), "index" where !tables.contains(entry.table): false
      // Of a constraint; the table's statement says which.
      case "index" where entry.sql == nil: false
      default: !expected.contains(entry)
      }
    }
  }

  /// Everything that a library of a format can have.
  private static func entries(of version: Int) throws -> Set<Entry> {
    let connection = try Connection(path: ":memory:")
    defer { connection.close() }
    for migration in Schema.migrations.prefix(version) { try connection.execute(migration) }
    try StoreTransaction(connection).setNotesChanges(true)
    return Set(try entries(connection))
  }

  private static func entries(_ connection: Connection) throws -> [Entry] {
    try StoreTransaction(connection).all("SELECT type, name, tbl_name, sql FROM sqlite_schema") {
      Entry(type: try $0[0], name: try $0[1], table: try $0[2], sql: try $0[3])
    }
  }
}
