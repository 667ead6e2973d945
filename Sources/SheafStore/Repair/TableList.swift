internal import GRDBSQLite
internal import Glibc
internal import SheafModel

/// The list of a file's tables (SQLite file format, 2.6), read from its pages one row at a time. SQLite takes none of it
/// if one row is damaged, and then reads no table.
struct TableList {
  /// A row of `sqlite_schema`.
  struct Entry {
    let type: String
    let name: String
    let table: String
    let root: Int64
    /// Nil for an index that a table has by itself.
    let sql: String?
  }

  /// Bytes of a row, more than any of a library has.
  private static let longestRow = 1 << 16
  /// Pages that are looked at: a damaged one may lead to those of a table.
  private static let mostPages = 1024

  private let pages: SQLitePages
  private(set) var entries: [Entry] = []

  /// Gives a copy of a damaged library a list of those tables whose rows can be read, if SQLite takes the list that it has
  /// not. Triggers, views and indexes that no table has by itself are left out: nothing that is read needs them.
  static func mend(_ path: String) throws {
    guard !isTaken(path) else { return }
    let source = try Connection(path: path)
    // What is in the log comes to the pages.
    try? source.execute("PRAGMA user_version")
    sqlite3_wal_checkpoint_v2(source.handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    source.close()
    let file = LibraryFolder.open(path, O_RDWR)
    guard file >= 0 else { return }
    let list = TableList(file)
    let entries = try list.map { try sound($0.entries) } ?? []
    let isEmptied = !entries.isEmpty && list?.empty() ?? false
    Glibc.close(file)
    guard isEmptied else { return }
    let target = try Connection(path: path)
    defer { target.close() }
    try target.execute("PRAGMA writable_schema = ON; BEGIN IMMEDIATE")
    let insertion = try target.statement(
      "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?)")
    for entry in entries {
      try target.run(insertion, entry.type, entry.name, entry.table, entry.root, entry.sql)
    }
    try target.execute("COMMIT")
  }

  /// Whether SQLite takes the list of a file.
  private static func isTaken(_ path: String) -> Bool {
    guard let connection = try? Connection(path: path) else { return false }
    defer { connection.close() }
    return (try? connection.execute("SELECT count(*) FROM sqlite_schema")) != nil
  }

  /// Those of the newest format that SQLite takes, the tables first. What is damaged of a table's statement is as the
  /// format has it.
  private static func sound(_ entries: [Entry]) throws -> [Entry] {
    let newest = try Connection(path: ":memory:")
    defer { newest.close() }
    for migration in Schema.migrations { try newest.execute(migration) }
    var statements: [String: String] = [:]
    try newest.run(newest.statement("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")) { row in
      statements[try row[0]] = try row[1]
      return true
    }
    let trial = try Connection(path: ":memory:")
    defer { trial.close() }
    var (found, roots): ([Entry], Set<Int64>) = ([], [])
    for entry in entries where entry.type == "table" && entry.name == entry.table {
      guard let statement = statements[entry.name], !found.contains(where: { $0.name == entry.name }),
        roots.insert(entry.root).inserted
      else { continue }
      let isTaken =
        try entry.sql.map { sql in
          guard sql.hasPrefix("CREATE TABLE"), (try? trial.execute(sql)) != nil else { return false }
          var isThere = false
          try trial.run(trial.statement("SELECT 1 FROM sqlite_schema WHERE name = ?"), entry.name) { _ in
            isThere = true
            return true
          }
          return isThere
        } ?? false
      if !isTaken { try trial.execute(statement) }
      found.append(
        Entry(
          type: "table", name: entry.name, table: entry.name, root: entry.root, sql: isTaken ? entry.sql : statement))
    }
    var indexes: Set<String> = []
    try trial.run(trial.statement("SELECT name FROM sqlite_schema WHERE type = 'index'")) { row in
      indexes.insert(try row[0])
      return true
    }
    for entry in entries where entry.type == "index" && entry.sql == nil && indexes.contains(entry.name) {
      guard entry.name.hasPrefix("sqlite_autoindex_\(entry.table)_"), roots.insert(entry.root).inserted else {
        continue
      }
      indexes.remove(entry.name)
      found.append(entry)
    }
    return found
  }

  // MARK: - Pages

  /// - Returns: nil where the first page does not lead to a list of the newest format.
  private init?(_ file: CInt) {
    // Tables of an older format have other names, and are not brought up without their indexes and triggers.
    guard let pages = SQLitePages(file), pages.header.userVersion == Int64(Schema.version), let first = pages.page(1)
    else { return nil }
    self.pages = pages
    switch first[100] {
    case 0x0D: read(leaf: first, header: 100)
    case 0x05:
      var (next, known): ([Int64], Set<Int64>) = (children(of: first, header: 100), [1])
      while let number = next.popLast(), known.count < Self.mostPages {
        guard known.insert(number).inserted, let page = pages.page(number) else { continue }
        // Whatever its type says, it is one of the two.
        if page[0] == 0x05 { next += children(of: page, header: 0) } else { read(leaf: page, header: 0) }
      }
    default: return nil
    }
  }

  private func children(of page: [UInt8], header: Int) -> [Int64] {
    pages.cells(of: page, header: header, headerLength: 12).map { SQLiteHeader.number(page, $0, 4) } + [
      SQLiteHeader.number(page, header + 8, 4)
    ]
  }

  private mutating func read(leaf page: [UInt8], header: Int) {
    for place in pages.cells(of: page, header: header, headerLength: 8) {
      if let record = pages.record(at: place, of: page, atMost: Self.longestRow)?.record, let entry = entry(record) {
        entries.append(entry)
      }
    }
  }

  /// The row of a record.
  private func entry(_ record: [UInt8]) -> Entry? {
    guard let values = SQLitePages.values(of: record), values.count == 5 else { return nil }
    guard case .text(let type) = values[0], case .text(let name) = values[1], case .text(let table) = values[2],
      case .number(let root) = values[3], root > 1, root <= pages.count,
      let type = String(validating: type, as: UTF8.self), let name = String(validating: name, as: UTF8.self),
      let table = String(validating: table, as: UTF8.self)
    else { return nil }
    switch values[4] {
    case .null: return Entry(type: type, name: name, table: table, root: root, sql: nil)
    // A table is known by its name; the rest is as the format has it.
    case .text(let text):
      let sql = String(validating: text, as: UTF8.self) ?? ""
      return Entry(type: type, name: name, table: table, root: root, sql: sql)
    case .number, .bytes: return nil
    }
  }

  /// Makes the list one without rows, and forgets which pages are free: those of the list are lost for the copy.
  private func empty() -> Bool {
    // An empty leaf (1.6), whose contents begin at the end.
    let end = pages.usable == 65_536 ? 0 : pages.usable
    let leaf: [UInt8] = [0x0D, 0, 0, 0, 0, UInt8(end >> 8), UInt8(end & 0xFF), 0]
    let free = [UInt8](repeating: 0, count: 8)
    return pages.write(leaf, at: 100) && pages.write(free, at: 32)
  }
}
