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

  private let file: CInt
  private let pageSize: Int
  /// Bytes of a page that SQLite uses.
  private let usable: Int
  private let pageCount: Int64
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

  /// - Parameter file: A descriptor of the file.
  /// - Returns: nil where its first page does not lead to a list of the newest format.
  private init?(_ file: CInt) {
    var status = stat()
    // Tables of an older format have other names, and are not brought up without their indexes and triggers.
    guard let header = SQLiteHeader(file), header.usable >= 480, header.userVersion == Int64(Schema.version),
      fstat(file, &status) == 0
    else { return nil }
    self.file = file
    (pageSize, usable) = (header.pageSize, header.usable)
    pageCount = Int64(status.st_size) / Int64(pageSize)
    guard let first = page(1) else { return nil }
    switch first[100] {
    case 0x0D: read(leaf: first, header: 100)
    case 0x05:
      var (next, known): ([Int64], Set<Int64>) = (children(of: first, header: 100), [1])
      while let number = next.popLast(), known.count < Self.mostPages {
        guard known.insert(number).inserted, let page = page(number) else { continue }
        // Whatever its type says, it is one of the two.
        if page[0] == 0x05 { next += children(of: page, header: 0) } else { read(leaf: page, header: 0) }
      }
    default: return nil
    }
  }

  private func page(_ number: Int64) -> [UInt8]? {
    guard number >= 1, number <= pageCount else { return nil }
    var bytes = [UInt8](repeating: 0, count: pageSize)
    return pread(file, &bytes, pageSize, off_t(number - 1) * off_t(pageSize)) == pageSize ? bytes : nil
  }

  /// Where the cells of a page are (1.6): as many as its header says, or as fit where that cannot be.
  private func cells(of page: [UInt8], header: Int, headerLength: Int) -> [Int] {
    let first = header + headerLength
    let fitting = (usable - first) / 2
    let told = Int(SQLiteHeader.number(page, header + 3, 2))
    let places = (0..<(told > 0 && told <= fitting ? told : fitting)).map {
      Int(SQLiteHeader.number(page, first + 2 * $0, 2))
    }
    return places.filter { $0 > first && $0 < usable - 4 }
  }

  private func children(of page: [UInt8], header: Int) -> [Int64] {
    cells(of: page, header: header, headerLength: 12).map { SQLiteHeader.number(page, $0, 4) } + [
      SQLiteHeader.number(page, header + 8, 4)
    ]
  }

  private mutating func read(leaf page: [UInt8], header: Int) {
    for place in cells(of: page, header: header, headerLength: 8) {
      if let record = record(at: place, of: page), let entry = entry(record) { entries.append(entry) }
    }
  }

  /// A number of variable length, and where it ends (1.6).
  private static func varint(_ bytes: [UInt8], _ place: Int) -> (value: Int64, end: Int)? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard place + index < bytes.count else { return nil }
      let byte = bytes[place + index]
      if index == 8 { return (Int64(bitPattern: value << 8 | UInt64(byte)), place + 9) }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return (Int64(bitPattern: value), place + index + 1) }
    }
    return nil
  }

  /// The record of a cell of a table's leaf, with what is on other pages (1.5, 1.6).
  private func record(at place: Int, of page: [UInt8]) -> [UInt8]? {
    guard let (length, afterLength) = Self.varint(page, place), length > 4, length <= Self.longestRow,
      let (_, start) = Self.varint(page, afterLength)
    else { return nil }
    let total = Int(length)
    let least = (usable - 12) * 32 / 255 - 23
    let most = least + (total - least) % (usable - 4)
    let local = total <= usable - 35 ? total : most <= usable - 35 ? most : least
    guard local >= 0, start + local <= usable else { return nil }
    var record = Array(page[start..<(start + local)])
    guard local < total else { return record }
    guard start + local + 4 <= usable else { return nil }
    var next = SQLiteHeader.number(page, start + local, 4)
    // Each page adds some, so this ends.
    while record.count < total {
      guard let more = self.page(next) else { return nil }
      next = SQLiteHeader.number(more, 0, 4)
      record += more[4..<min(usable, 4 + total - record.count)]
    }
    return record
  }

  /// The row of a record (2.1).
  private func entry(_ record: [UInt8]) -> Entry? {
    guard let (headerLength, afterLength) = Self.varint(record, 0), headerLength <= record.count else { return nil }
    var (place, types) = (afterLength, [Int64]())
    while place < headerLength, types.count < 5 {
      guard let (type, end) = Self.varint(record, place) else { return nil }
      types.append(type)
      place = end
    }
    guard types.count == 5, place == headerLength else { return nil }
    var texts: [String?] = []
    var root: Int64 = 0
    for (column, type) in types.enumerated() {
      let length: Int64 =
        switch type {
        case 0, 8, 9: 0
        case 1...4: type
        case 13...: type % 2 == 1 ? (type - 13) / 2 : -1
        default: -1
        }
      guard length >= 0, length <= record.count - place else { return nil }
      let bytes = record[place..<(place + Int(length))]
      place += Int(length)
      switch (column, type) {
      case (3, 1...4): root = bytes.reduce(0) { $0 << 8 | Int64($1) }
      case (3, 8), (3, 9): root = type - 8
      case (4, 0): texts.append(nil)
      case (0...2, 13...), (4, 13...):
        guard let text = String(validating: bytes, as: UTF8.self) else {
          // A table is known by its name; the rest is as the format has it.
          guard column == 4 else { return nil }
          texts.append("")
          continue
        }
        texts.append(text)
      default: return nil
      }
    }
    guard root > 1, root <= pageCount, texts.count == 4, let type = texts[0], let name = texts[1], let table = texts[2]
    else { return nil }
    return Entry(type: type, name: name, table: table, root: root, sql: texts[3])
  }

  /// Makes the list one without rows, and forgets which pages are free: those of the list are lost for the copy.
  private func empty() -> Bool {
    // An empty leaf (1.6), whose contents begin at the end.
    let end = usable == 65_536 ? 0 : usable
    let leaf: [UInt8] = [0x0D, 0, 0, 0, 0, UInt8(end >> 8), UInt8(end & 0xFF), 0]
    let free = [UInt8](repeating: 0, count: 8)
    return pwrite(file, leaf, leaf.count, 100) == leaf.count && pwrite(file, free, free.count, 32) == free.count
  }
}
