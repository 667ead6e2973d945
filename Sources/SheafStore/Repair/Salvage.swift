internal import GRDBSQLite
internal import SheafModel

/// Copies the rows of a damaged SQLite file that can be read to a sound one.
///
/// SQLite ends a query at the first damaged page. So the keys of a table are read from its beginning, from its end, and
/// from ever more places in the gap between; then each row is read by its key. A row that is read twice is the same row.
struct Salvage {
  /// A table, with the columns of its key.
  struct Table {
    let name: String
    let key: [String]
    /// Whether the key begins with a number, so that there are places between two keys.
    var hasNumbers = true
  }

  /// The tables of a library but for those that tell of work that a process had not finished.
  static let tables = [
    Table(name: "settings", key: ["key"], hasNumbers: false), Table(name: "accounts", key: ["id"]),
    Table(name: "items", key: ["id"]), Table(name: "inodes", key: ["ino"]),
    Table(name: "entries", key: ["parent", "hash", "name"]), Table(name: "xattrs", key: ["ino", "name"]),
    Table(name: "versions", key: ["item", "number"]), Table(name: "chunks", key: ["id"]),
    Table(name: "packs", key: ["id"]), Table(name: "deleted", key: ["ino"]), Table(name: "shares", key: ["item"]),
    Table(name: "participants", key: ["share", "account"]),
    Table(name: "one_time_links", key: ["token"], hasNumbers: false),
    Table(name: "access_requests", key: ["share", "account"]), Table(name: "events", key: ["sequence"]),
    Table(name: "webhooks", key: ["id"]), Table(name: "past_names", key: ["parent", "name", "until", "item"]),
  ]

  /// Places in the gap of a table that are tried.
  private static let probeLimit = 4096
  /// The highest number that is looked for where a table's end cannot be read.
  private static let numberLimit: Int64 = 1 << 24

  private let target: OpaquePointer
  private let table: Table
  private let keys: Query
  private let row: Query
  private let insertion: Query
  /// Rows of which only the key could be read, or that the new file does not take.
  private(set) var lost = 0
  /// Whether a part of the table cannot be read, with who knows how many rows.
  private(set) var hasGap = false

  /// - Throws: ``SQLiteError`` where the damaged file does not have the table any more.
  init(_ table: Table, from source: OpaquePointer, to target: OpaquePointer) throws {
    self.target = target
    self.table = table
    let columns = table.key.joined(separator: ", ")
    keys = try Query(source, "SELECT \(columns) FROM \(table.name) NOT INDEXED ORDER BY \(columns)")
    let matches = table.key.map { "\($0) = ?" }.joined(separator: " AND ")
    row = try Query(source, "SELECT * FROM \(table.name) NOT INDEXED WHERE \(matches)")
    let places = repeatElement("?", count: row.columnCount).joined(separator: ",")
    insertion = try Query(target, "INSERT OR REPLACE INTO \(table.name) VALUES (\(places))")
  }

  /// Copies all that can be read.
  mutating func run(from source: OpaquePointer) throws {
    let (first, isWhole) = try copy(keys)
    if isWhole { return }
    hasGap = true
    let columns = table.key.map { "\($0) DESC" }.joined(separator: ", ")
    let backwards = try Query(
      source, "SELECT \(table.key.joined(separator: ", ")) FROM \(table.name) NOT INDEXED ORDER BY \(columns)")
    // The first pass has read what comes before its last row.
    let (last, _) = try copy(backwards, descends: true) { number in first.map { number <= $0 } ?? false }
    let lower = min(first ?? 0, Int64.max - Self.numberLimit)
    if table.hasNumbers { try fillGap(source, lower, last ?? lower + Self.numberLimit) }
  }

  /// Reads from ever more places between two numbers.
  private mutating func fillGap(_ source: OpaquePointer, _ lower: Int64, _ upper: Int64) throws {
    let (key, name) = (table.key.joined(separator: ", "), table.name)
    let up = try Query(
      source, "SELECT \(key) FROM \(name) NOT INDEXED WHERE \(table.key[0]) >= ? ORDER BY \(key)")
    let down = try Query(
      source,
      """
      SELECT \(key) FROM \(name) NOT INDEXED WHERE \(table.key[0]) < ?
      ORDER BY \(table.key.map { "\($0) DESC" }.joined(separator: ", "))
      """)
    var gaps = [(lower, upper)]
    var index = 0
    while index < gaps.count, index < Self.probeLimit {
      let (lower, upper) = gaps[index]
      index += 1
      guard upper.subtractingReportingOverflow(lower).partialValue > 1 else { continue }
      let middle = lower / 2 + upper / 2 + (lower & upper & 1)
      guard middle > lower, middle < upper else { continue }
      up.bind(middle)
      let above = try copy(up) { $0 >= upper }
      if !above.isWhole { gaps.append((max(middle, above.last ?? middle), upper)) }
      down.bind(middle)
      let below = try copy(down, descends: true) { $0 <= lower }
      if !below.isWhole { gaps.append((lower, min(middle, below.last ?? middle))) }
    }
  }

  /// Copies the rows of the keys that a query finds.
  ///
  /// - Parameters:
  ///   - descends: whether the numbers get smaller. If they do not go one way, damaged pages lead back to others.
  ///   - isEnd: whether a number that a key begins with is one at which to stop.
  /// - Returns: The number that the last key begins with, and whether nothing is missing.
  private mutating func copy(
    _ keys: Query, descends: Bool = false, until isEnd: (Int64) -> Bool = { _ in false }
  ) throws -> (last: Int64?, isWhole: Bool) {
    defer { keys.reset() }
    var last: Int64?
    while true {
      switch keys.step() {
      case SQLITE_ROW: break
      case SQLITE_DONE: return (last, true)
      default: return (last, false)
      }
      if table.hasNumbers {
        let number = sqlite3_column_int64(keys.handle, 0)
        if isEnd(number) { return (last, true) }
        if let last, descends ? number > last : number < last { return (last, false) }
        if last == number, table.key.count == 1 { return (last, false) }
        last = number
      }
      try copyRow(keys)
    }
  }

  private mutating func copyRow(_ key: Query) throws {
    defer { row.reset() }
    for column in 0..<Int32(table.key.count) {
      sqlite3_bind_value(row.handle, column + 1, sqlite3_column_value(key.handle, column))
    }
    guard row.step() == SQLITE_ROW else {
      lost += 1
      return
    }
    defer { insertion.reset() }
    for column in 0..<Int32(row.columnCount) {
      sqlite3_bind_value(insertion.handle, column + 1, sqlite3_column_value(row.handle, column))
    }
    switch insertion.step() & 0xFF {
    case SQLITE_DONE: break
    // What is no such row.
    case SQLITE_CONSTRAINT, SQLITE_MISMATCH: lost += 1
    default: throw SQLiteError(SQLITE_ERROR, target)
    }
  }

  /// A statement of its own.
  private final class Query {
    let handle: OpaquePointer
    var columnCount: Int { Int(sqlite3_column_count(handle)) }

    init(_ database: OpaquePointer, _ sql: String) throws {
      var handle: OpaquePointer?
      let code = sqlite3_prepare_v2(database, sql, -1, &handle, nil)
      guard code == SQLITE_OK, let handle else { throw SQLiteError(code, database) }
      self.handle = handle
    }

    deinit { sqlite3_finalize(handle) }

    func step() -> Int32 { sqlite3_step(handle) }

    func bind(_ number: Int64) { sqlite3_bind_int64(handle, 1, number) }

    func reset() {
      sqlite3_reset(handle)
    }
  }
}
