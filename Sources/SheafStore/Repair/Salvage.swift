internal import Foundation
internal import GRDBSQLite
internal import SheafModel

/// Copies the rows of a damaged SQLite file that can be read to a sound one.
///
/// SQLite ends a query at the first damaged page. So a table is read from its beginning, from its end, and from ever
/// more places in the gap between. A row of which only the key can be read is passed over. A row that is read twice is
/// the same row. What no sound page leads to is read page by page.
///
/// A row whose key is not between those of its neighbours is not copied, since its key may be another row's: what refers
/// to that one would get this one instead. Where a column is unique, its index knows the number, too.
///
/// If two rows have the same value in a unique column, one of them keeps it: the one that the index knows, or else the
/// one that was read first. The other row comes along with another value.
struct Salvage {
  /// A column that only describes its row: where it holds what it cannot, something else takes its place.
  struct Description {
    enum Value {
      case number(Int64, in: ClosedRange<Int64>)
      /// Of so many characters.
      case text(String, in: ClosedRange<Int>)
    }

    let column: String
    /// What takes its place, and what it can hold.
    let value: Value
    /// What it is, and what it is then, for people; nil where ``Mending`` tells that.
    let meaning: (name: String, instead: String)?

    /// By none of these values anybody may do more than before.
    static let ofTables: [String: [Description]] = [
      "items": [
        // The mode of the inode tells it.
        Description("kind", .number(1, in: 1...3), "the kind", "that of the file"),
        Description("quiet", .number(0, in: 0...1), "the mark of temporary files", "not there"),
      ],
      "versions": [
        Description("size", .number(0, in: 0 ... .max), "the size", "that of the contents"),
        Description("cause", .number(1, in: 1...6), "the cause", "save"),
        Description("open", .number(0, in: 0...1), "the state of the session", "ended"),
      ],
      "shares": [
        Description("title", .text("Repaired", in: 1...255), "the title", "Repaired"),
        Description("public_permission", .number(0, in: 0...2), "the public permission", "none"),
        Description("permission", .number(1, in: 1...2), "the permission of invitations", "read"),
        Description("allow_invites", .number(0, in: 0...1), "the right of participants to invite", "none"),
        Description("allow_requests", .number(0, in: 0...1), "the right of strangers to ask", "none"),
        Description("active", .number(0, in: 0...1), "the state", "ended"),
      ],
      "participants": [
        Description("role", .number(3, in: 1...4), "the role", "private user"),
        Description("permission", .number(1, in: 1...2), "the permission", "read"),
        Description("acceptance", .number(3, in: 1...3), "the acceptance", "removed"),
      ],
      // No chunk has that size; its bytes tell it.
      "chunks": [Description("size", .number(-1, in: 0 ... .max))],
      "one_time_links": [Description("permission", .number(1, in: 1...2), "the permission", "read")],
      "access_requests": [Description("blocked", .number(1, in: 0...1), "the state", "blocked")],
    ]

    private init(_ column: String, _ value: Value, _ name: String, _ instead: String) {
      (self.column, self.value, meaning) = (column, value, (name, instead))
    }

    private init(_ column: String, _ value: Value) { (self.column, self.value, meaning) = (column, value, nil) }

    fileprivate func accepts(_ found: Salvage.Value) -> Bool {
      switch value {
      case .number(_, let range): found.number.map(range.contains) ?? false
      case .text(_, let lengths): found.text.map { lengths.contains($0.prefix { $0 != "\0" }.count) } ?? false
      }
    }

    fileprivate func bind(to statement: OpaquePointer, at place: Int32) {
      switch value {
      case .number(let number, _): _ = number.bind(to: statement, at: place)
      case .text(let text, _): _ = text.bind(to: statement, at: place)
      }
    }
  }

  /// A table, with the columns of its key.
  struct Table {
    let name: String
    let key: [String]
    /// Whether the key begins with a number, so that there are places between two keys.
    var hasNumbers = true
    /// The columns that are unique beside the key, in the order of their indexes.
    var uniques: [Unique] = []
  }

  /// A column in which no two rows have the same value.
  struct Unique {
    /// What a row has instead, for which ``Mending`` finds what is right.
    enum Substitute {
      case null, newID, newToken, newHandle, noFolder, noHash

      /// - Parameter number: The row's.
      fileprivate func bind(to statement: OpaquePointer, at place: Int32, of number: Int64) {
        switch self {
        case .null: sqlite3_bind_null(statement, place)
        case .newID: _ = UUID().bind(to: statement, at: place)
        case .newToken: _ = ShareToken.random().text.bind(to: statement, at: place)
        case .newHandle: _ = Mending.handle(ofLost: number).bind(to: statement, at: place)
        // No folder has a number below zero.
        case .noFolder: _ = (-max(number, -Int64.max)).bind(to: statement, at: place)
        case .noHash:
          let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
          _ = bytes.bind(to: statement, at: place)
        }
      }
    }

    let column: String
    let substitute: Substitute
    /// The column of the key in whose rows alone the values differ; nil where those of all rows do, whose index has the
    /// numbers as well (CREATE TABLE, 3.5).
    let group: String?

    init(_ column: String, _ substitute: Substitute, in group: String? = nil) {
      (self.column, self.substitute, self.group) = (column, substitute, group)
    }
  }

  /// A value that a row came without, for another row has the same.
  struct Repetition {
    let table: String
    let column: String
    /// What the row's key begins with, and ends with; the same for a key of one number.
    let group: Int64
    let number: Int64
    let value: Value
  }

  /// The tables of a library but for those that tell of work that a process had not finished, and of what the library
  /// and a hub agreed on.
  static let tables = [
    Table(name: "settings", key: ["key"], hasNumbers: false),
    Table(name: "accounts", key: ["id"], uniques: [Unique("handle", .newHandle), Unique("documents", .noFolder)]),
    Table(name: "items", key: ["id"], uniques: [Unique("uuid", .newID)]),
    Table(name: "inodes", key: ["ino"], uniques: [Unique("item", .null)]),
    Table(name: "entries", key: ["parent", "hash", "name"]), Table(name: "xattrs", key: ["ino", "name"]),
    Table(name: "versions", key: ["item", "number"], uniques: [Unique("label", .null, in: "item")]),
    Table(name: "chunks", key: ["id"], uniques: [Unique("hash", .noHash)]), Table(name: "packs", key: ["id"]),
    Table(name: "deleted", key: ["ino"]),
    Table(name: "shares", key: ["item"], uniques: [Unique("uuid", .newID), Unique("token", .newToken)]),
    Table(name: "participants", key: ["share", "account"]),
    Table(name: "one_time_links", key: ["token"], hasNumbers: false),
    Table(name: "access_requests", key: ["share", "account"]), Table(name: "events", key: ["sequence"]),
    Table(name: "webhooks", key: ["id"], uniques: [Unique("uuid", .newID)]),
    Table(name: "past_names", key: ["parent", "name", "until", "item"]),
    Table(name: "waiting_events", key: ["id"]), Table(name: "replica_logs", key: ["account", "log"]),
    Table(name: "replica_events", key: ["sequence"]), Table(name: "replica_comments", key: ["account", "id"]),
  ]

  /// Places in the gap of a table that are tried.
  private static let probeLimit = 4096
  /// The highest number that is looked for where a table's end cannot be read.
  private static let numberLimit: Int64 = 1 << 24

  private let source: OpaquePointer
  /// The damaged file again. A statement that fails has all others of its connection look for their row by its number.
  private let lookups: OpaquePointer
  private let target: OpaquePointer
  private let table: Table
  private let insertion: Query
  /// Whether the new file has a row of a key.
  private let presence: Query
  private let uniques: [UniqueColumn]
  /// The columns that only describe, with their places.
  private let descriptions: [(description: Description, column: Int)]
  /// The keys of rows in which another value took the place of one that cannot be, by the place of the column.
  private var described: [Int: Set<[Key]>] = [:]
  /// Rows of which only the key could be read, whose key is wrong, or that the new file does not take.
  private(set) var lost = 0
  private(set) var repetitions: [Repetition] = []
  /// Whether a part of the table cannot be read, with who knows how many rows.
  private(set) var hasGap = false

  /// - Parameters:
  ///   - source: A connection to the damaged file.
  ///   - lookups: Another one.
  /// - Throws: ``SQLiteError`` where the damaged file does not have the table any more.
  init(_ table: Table, from source: OpaquePointer, _ lookups: OpaquePointer, to target: OpaquePointer) throws {
    (self.source, self.lookups, self.target, self.table) = (source, lookups, target, table)
    let all = try Query(source, "SELECT * FROM \(table.name)")
    let places = repeatElement("?", count: all.columnCount).joined(separator: ",")
    let names = all.columnNames
    uniques = try table.uniques.enumerated().compactMap { index, unique in
      try names.firstIndex(of: unique.column).map {
        try UniqueColumn(unique, of: table, $0, index: index + 1, lookups, target)
      }
    }
    // A row of another key must not take the place of one that has the same value.
    insertion = try Query(
      target, "INSERT \(uniques.isEmpty ? "OR REPLACE " : "")INTO \(table.name) VALUES (\(places))")
    let key = table.key.map { "\($0) = ?" }.joined(separator: " AND ")
    presence = try Query(target, "SELECT 1 FROM \(table.name) WHERE \(key)")
    descriptions = (Description.ofTables[table.name] ?? []).compactMap { description in
      names.firstIndex(of: description.column).map { (description, $0) }
    }
  }

  /// What was described otherwise, and in how many rows.
  var mended: [(meaning: (name: String, instead: String), rows: Int)] {
    descriptions.compactMap { description, column in
      guard let meaning = description.meaning, let rows = described[column] else { return nil }
      return (meaning, rows.count)
    }
  }

  /// Copies all that can be read.
  mutating func run() throws {
    let (first, isWhole) = try copy(.up)
    if isWhole { return }
    hasGap = true
    // The first pass has read what comes before its last row.
    let (last, _) = try copy(.down) { number in first.map { number <= $0 } ?? false }
    let lower = min(first ?? 0, Int64.max - Self.numberLimit)
    if table.hasNumbers { try fillGap(lower, last ?? lower + Self.numberLimit) }
  }

  /// Reads from ever more places between two numbers.
  private mutating func fillGap(_ lower: Int64, _ upper: Int64) throws {
    var gaps = [(lower, upper)]
    var index = 0
    while index < gaps.count, index < Self.probeLimit {
      let (lower, upper) = gaps[index]
      index += 1
      guard upper.subtractingReportingOverflow(lower).partialValue > 1 else { continue }
      let middle = lower / 2 + upper / 2 + (lower & upper & 1)
      guard middle > lower, middle < upper else { continue }
      let above = try copy(.up, from: middle) { $0 >= upper }
      if !above.isWhole { gaps.append((max(middle, above.last ?? middle), upper)) }
      let below = try copy(.down, from: middle) { $0 <= lower }
      if !below.isWhole { gaps.append((lower, min(middle, below.last ?? middle))) }
    }
  }

  // MARK: - Lost pages

  /// Bytes of a row, more than any of a library has.
  private static let longestRow = 1 << 26

  /// Copies the rows of pages to which no sound page leads.
  ///
  /// - Parameter map: Which pages are the table's.
  mutating func run(_ pages: SQLitePages, _ map: PointerMap) throws {
    let root = try Query(source, "SELECT rootpage FROM sqlite_schema WHERE name = '\(table.name)'")
    guard root.step() == SQLITE_ROW, let tree = map.trees[sqlite3_column_int64(root.handle, 0)] else { return }
    hasGap = !map.isWhole
    let places = try columnPlaces()
    let feed = try Query(
      target, "SELECT \(repeatElement("?", count: table.key.count + places.count).joined(separator: ","))")
    for number in tree.pages {
      guard let page = pages.page(number), let kind = SQLitePages.Kind(rawValue: page[0]) else {
        // Of a table with numbers, a page below which others are has no rows.
        if !isNumbered || !tree.inner.contains(number) { hasGap = true }
        continue
      }
      guard kind != .innerTable else { continue }
      if isNumbered != (kind == .leafTable) {
        hasGap = true
        continue
      }
      var order = Order(.up)
      for cell in pages.cells(of: page, header: 0, headerLength: kind == .innerIndex ? 12 : 8) {
        let found = pages.record(
          at: cell, of: page, kind, atMost: Self.longestRow, passingOver: { isNumbered && isSaved($0) })
        guard let (number, record) = found else { continue }
        guard let values = SQLitePages.values(of: record), values.count <= places.count else {
          hasGap = true
          continue
        }
        bind(values, number, places, to: feed)
        defer { feed.reset() }
        guard feed.step() == SQLITE_ROW else { throw SQLiteError(SQLITE_ERROR, target) }
        for (row, isSound) in order.add(row(of: feed)) { try copyLost(row, isSound) }
      }
      if let row = order.waiting { try copyLost(row, !order.isDoubtful) }
    }
  }

  private mutating func copyLost(_ row: Row, _ isSound: Bool) throws {
    if !isSaved(row, row.number) { try copy(row, isSound) }
  }

  /// Whether each row has a number, and is not its own key (CREATE TABLE, 5 and 6).
  private var isNumbered: Bool { table.hasNumbers && table.key.count == 1 }

  /// Where a column of the table is in a record.
  private struct ColumnPlace {
    let name: String
    /// Nil for the number of the row, which the record does not have.
    let place: Int?
    /// What it is in a row that is older than the column.
    let instead: Value
  }

  private func columnPlaces() throws -> [ColumnPlace] {
    var columns: [(name: String, instead: Value)] = []
    let list = try Query(source, "SELECT name, dflt_value FROM pragma_table_info('\(table.name)') ORDER BY cid")
    while list.step() == SQLITE_ROW {
      let name = sqlite3_column_text(list.handle, 0).map { String(cString: $0) } ?? ""
      let text = sqlite3_column_text(list.handle, 1).map { String(cString: $0) } ?? "NULL"
      let value = try Query(target, "SELECT \(text)")
      guard value.step() == SQLITE_ROW else { throw SQLiteError(SQLITE_ERROR, target) }
      columns.append((name, Value(value.handle, 0)))
    }
    // A row that is its own key begins with that.
    let names = columns.map(\.name)
    let order = isNumbered ? names : table.key + names.filter { !table.key.contains($0) }
    return columns.map { name, instead in
      let isNumber = isNumbered && name == table.key[0]
      return ColumnPlace(name: name, place: isNumber ? nil : order.firstIndex(of: name), instead: instead)
    }
  }

  /// Binds the key of a row, and then all its columns.
  private func bind(_ values: [SQLitePages.Value], _ number: Int64, _ places: [ColumnPlace], to feed: Query) {
    let key = table.key.compactMap { name in places.first { $0.name == name } }
    for (index, column) in (key + places).enumerated() {
      let parameter = Int32(index) + 1
      guard let place = column.place else {
        sqlite3_bind_int64(feed.handle, parameter, number)
        continue
      }
      guard place < values.count else {
        sqlite3_bind_value(feed.handle, parameter, column.instead.handle)
        continue
      }
      switch values[place] {
      case .null: sqlite3_bind_null(feed.handle, parameter)
      case .number(let value): sqlite3_bind_int64(feed.handle, parameter, value)
      case .text(let text): _ = String(decoding: text, as: UTF8.self).bind(to: feed.handle, at: parameter)
      case .bytes(let bytes): _ = bytes.bind(to: feed.handle, at: parameter)
      }
    }
  }

  private enum Direction {
    case up, down
  }

  /// Where a pass begins.
  private enum Start {
    case end
    /// A number that a key begins with; going up it is the first one, going down all are lower.
    case number(Int64)
    /// Behind a key.
    case key([Value])
  }

  /// A row of the damaged file. Its key comes first, then all its columns.
  private struct Row {
    let number: Int64
    let key: [Value]
    let columns: [Value]
  }

  /// Copies the rows from a number, or from an end of the table, in one direction.
  ///
  /// - Parameter isEnd: Whether a number that a key begins with is one at which to stop.
  /// - Returns: The number that the last key begins with, and whether nothing is missing.
  private mutating func copy(
    _ direction: Direction, from number: Int64? = nil, until isEnd: (Int64) -> Bool = { _ in false }
  ) throws -> (last: Int64?, isWhole: Bool) {
    var order = Order(direction)
    var start = number.map { Start.number($0) } ?? .end
    // Rows behind the start that were seen. They are counted, for their numbers may be wrong.
    var seen = 0
    while true {
      let rows = try query(direction, from: start, after: seen, keysAlone: false)
      while rows.step() == SQLITE_ROW {
        seen += 1
        for (row, isSound) in order.add(row(of: rows)) {
          if isSound, table.hasNumbers, isEnd(row.number) { return (row.number, true) }
          try copy(row, isSound)
          if isSound { (start, seen) = (.key(row.key), 1) }
        }
        if order.isLost { return (try finish(order), false) }
      }
      if rows.isDone { return (try finish(order), true) }
      // Of the next row, perhaps only the key can be read.
      let keys = try query(direction, from: start, after: seen, keysAlone: true)
      guard keys.step() == SQLITE_ROW else { return (try finish(order), keys.isDone) }
      lost += 1
      seen += 1
    }
  }

  /// Copies the row that waited for the next one.
  ///
  /// - Returns: The number of the last row.
  private mutating func finish(_ order: Order) throws -> Int64? {
    if let row = order.waiting { try copy(row, !order.isDoubtful) }
    return order.last
  }

  /// - Parameter count: Rows to pass over.
  private func query(_ direction: Direction, from start: Start, after count: Int, keysAlone: Bool) throws -> Query {
    let key = table.key.joined(separator: ", ")
    let condition =
      switch start {
      case .end: ""
      case .number: "WHERE \(table.key[0]) \(direction == .up ? ">=" : "<") ?"
      case .key:
        "WHERE (\(key)) \(direction == .up ? ">" : "<") (\(table.key.map { _ in "?" }.joined(separator: ", ")))"
      }
    let order = table.key.map { direction == .up ? $0 : "\($0) DESC" }.joined(separator: ", ")
    let query = try Query(
      source,
      """
      SELECT \(key)\(keysAlone ? "" : ", *") FROM \(table.name) NOT INDEXED \(condition) ORDER BY \(order)
      LIMIT -1 OFFSET \(count)
      """)
    switch start {
    case .end: break
    case .number(let number): sqlite3_bind_int64(query.handle, 1, number)
    case .key(let values):
      for (index, value) in values.enumerated() { sqlite3_bind_value(query.handle, Int32(index) + 1, value.handle) }
    }
    return query
  }

  private func row(of query: Query) -> Row {
    let keys = Int32(table.key.count)
    return Row(
      number: table.hasNumbers ? sqlite3_column_int64(query.handle, 0) : 0,
      key: (0..<keys).map { Value(query.handle, $0) },
      columns: (keys..<Int32(query.columnCount)).map { Value(query.handle, $0) })
  }

  /// - Parameter isSound: Whether its key is one that it can have.
  private mutating func copy(_ row: Row, _ isSound: Bool) throws {
    var number: Int64? = isSound ? row.number : nil
    let known = uniques.first?.indexedNumber(of: row.columns)
    if let known, known == row.number || !isThere(known) { number = known }
    guard let number else {
      lost += 1
      return
    }
    defer { insertion.reset() }
    for (index, value) in row.columns.enumerated() {
      sqlite3_bind_value(insertion.handle, Int32(index) + 1, value.handle)
    }
    // Numbers are the first column.
    if known != nil { sqlite3_bind_int64(insertion.handle, 1, number) }
    let unfit = descriptions.filter { !$0.description.accepts(row.columns[$0.column]) }
    for (description, column) in unfit { description.bind(to: insertion.handle, at: Int32(column) + 1) }
    var code = insertion.step()
    var repeated: [Repetition] = []
    if code & 0xFF == SQLITE_CONSTRAINT, !uniques.isEmpty {
      // A row may be read twice.
      if isSaved(row, number) { return }
      insertion.reset()
      let end = table.key.count == 1 ? number : row.key.last?.number ?? number
      for unique in uniques {
        guard let holder = unique.holder(ofValueOf: row.columns, in: number) else { continue }
        let isOwn = unique.indexedNumber(of: row.columns) == number
        let repetition = Repetition(
          table: table.name, column: unique.unique.column, group: isOwn ? holder : number, number: isOwn ? holder : end,
          value: row.columns[unique.place])
        if isOwn {
          unique.takeValue(from: holder)
          repetitions.append(repetition)
        } else {
          unique.unique.substitute.bind(to: insertion.handle, at: Int32(unique.place) + 1, of: number)
          repeated.append(repetition)
        }
      }
      code = insertion.step()
    }
    switch code & 0xFF {
    case SQLITE_DONE:
      repetitions += repeated
      for (_, column) in unfit { described[column, default: []].insert(row.key.map(Key.init)) }
    // What is no such row.
    case SQLITE_CONSTRAINT, SQLITE_MISMATCH: lost += 1
    default: throw SQLiteError(SQLITE_ERROR, target)
    }
  }

  /// Whether the new file has a row of the same key.
  private func isSaved(_ row: Row, _ number: Int64) -> Bool {
    for (index, value) in row.key.enumerated() { sqlite3_bind_value(presence.handle, Int32(index) + 1, value.handle) }
    return isSaved(number)
  }

  /// - Parameter number: The row's, in a table whose rows have one; the key of others is bound already.
  private func isSaved(_ number: Int64) -> Bool {
    defer { presence.reset() }
    if isNumbered { sqlite3_bind_int64(presence.handle, 1, number) }
    return presence.step() == SQLITE_ROW
  }

  /// Whether the damaged table has a row of a number.
  private func isThere(_ number: Int64) -> Bool {
    guard let query = try? Query(lookups, "SELECT 1 FROM \(table.name) NOT INDEXED WHERE \(table.key[0]) = ?") else {
      return true
    }
    sqlite3_bind_int64(query.handle, 1, number)
    return query.step() == SQLITE_ROW
  }

  /// A unique column, and who has which value in it.
  private struct UniqueColumn {
    let unique: Unique
    /// Its place in a row.
    let place: Int
    /// The number that the index of the damaged file has for a value.
    private let index: Query?
    /// The number of the row of the new file that has a value.
    private let holder: Query
    /// Has a row of the new file have another value.
    private let change: Query

    /// - Parameter index: The number of its index.
    init(
      _ unique: Unique, of table: Table, _ place: Int, index: Int, _ lookups: OpaquePointer, _ target: OpaquePointer
    ) throws {
      (self.unique, self.place) = (unique, place)
      let (name, number) = (table.name, table.key[table.key.count - 1])
      let indexed = try? Query(
        lookups,
        "SELECT \(number) FROM \(name) INDEXED BY sqlite_autoindex_\(name)_\(index) WHERE \(unique.column) = ?")
      self.index = unique.group == nil ? indexed : nil
      let group = unique.group.map { " AND \($0) = ?" } ?? ""
      holder = try Query(target, "SELECT \(number) FROM \(name) WHERE \(unique.column) = ?\(group)")
      change = try Query(target, "UPDATE \(name) SET \(unique.column) = ? WHERE \(number) = ?")
    }

    func indexedNumber(of row: [Value]) -> Int64? {
      guard let index else { return nil }
      defer { index.reset() }
      sqlite3_bind_value(index.handle, 1, row[place].handle)
      return index.step() == SQLITE_ROW ? sqlite3_column_int64(index.handle, 0) : nil
    }

    /// - Parameter group: What the row's key begins with.
    func holder(ofValueOf row: [Value], in group: Int64) -> Int64? {
      defer { holder.reset() }
      sqlite3_bind_value(holder.handle, 1, row[place].handle)
      if unique.group != nil { sqlite3_bind_int64(holder.handle, 2, group) }
      return holder.step() == SQLITE_ROW ? sqlite3_column_int64(holder.handle, 0) : nil
    }

    /// Gives the row of a number a substitute.
    func takeValue(from number: Int64) {
      defer { change.reset() }
      unique.substitute.bind(to: change.handle, at: 1, of: number)
      sqlite3_bind_int64(change.handle, 2, number)
      _ = change.step()
    }
  }

  /// Which rows of a pass have a key that fits in between those beside it.
  private struct Order {
    /// Rows with wrong keys in a row: after that many, a damaged page has led to others.
    private static let mostWrong = 1024

    private let direction: Direction
    /// The last row before the one that waits whose key can be its own.
    private var before: Row?
    /// The last row, which is sound if the next one fits.
    private(set) var waiting: Row?
    /// The key of the row before the one that waits, where one of the two is wrong.
    private var doubted: [Value]?
    private var wrong = 0

    init(_ direction: Direction) { self.direction = direction }

    /// The number of the last row.
    var last: Int64? { (waiting ?? before)?.number }
    var isDoubtful: Bool { doubted != nil }
    var isLost: Bool { wrong > Self.mostWrong }

    /// Whether a key comes after another one. No two rows have the same.
    private func follows(_ key: [Value], _ other: [Value]) -> Bool {
      for (value, former) in zip(key, other) {
        let order = value.compared(with: former)
        if order != 0 { return (order > 0) == (direction == .up) }
      }
      return false
    }

    /// - Returns: Rows of which it is known by now whether their key can be theirs.
    mutating func add(_ row: Row) -> [(row: Row, isSound: Bool)] {
      guard let waiting else {
        self.waiting = row
        return []
      }
      if follows(row.key, waiting.key) {
        // If it follows the doubted one as well, nobody knows which of the two was wrong.
        let isSound = doubted.map { !follows(row.key, $0) } ?? true
        if isSound { before = waiting }
        (self.waiting, doubted, wrong) = (row, nil, isSound ? 0 : wrong + 1)
        return [(waiting, isSound)]
      }
      wrong += 1
      guard before.map({ follows(row.key, $0.key) }) ?? true else { return [(row, false)] }
      (doubted, self.waiting) = (waiting.key, row)
      return [(waiting, false)]
    }
  }

  /// A part of a key by which rows are told apart.
  private enum Key: Hashable {
    case number(Int64)
    case bytes([UInt8])

    init(_ value: Value) { self = value.number.map { .number($0) } ?? .bytes(Array(value.bytes)) }
  }

  /// A value of a row, which stays when the statement goes on.
  final class Value {
    fileprivate let handle: OpaquePointer?

    fileprivate init(_ statement: OpaquePointer, _ column: Int32) {
      handle = sqlite3_value_dup(sqlite3_column_value(statement, column))
    }

    deinit { sqlite3_value_free(handle) }

    /// Less than 0 if it comes before another one in an index, 0 if it is the same (SQLite, "Datatypes", 4.1).
    func compared(with other: Value) -> Int {
      let (type, otherType) = (sqlite3_value_type(handle), sqlite3_value_type(other.handle))
      guard type == otherType else { return Int(type) - Int(otherType) }
      if type == SQLITE_INTEGER {
        let (number, otherNumber) = (sqlite3_value_int64(handle), sqlite3_value_int64(other.handle))
        return number < otherNumber ? -1 : number > otherNumber ? 1 : 0
      }
      let (bytes, otherBytes) = (bytes, other.bytes)
      if bytes.lexicographicallyPrecedes(otherBytes) { return -1 }
      return bytes.elementsEqual(otherBytes) ? 0 : 1
    }

    /// Nil for what is none.
    var number: Int64? { sqlite3_value_type(handle) == SQLITE_INTEGER ? sqlite3_value_int64(handle) : nil }
    var text: String.UnicodeScalarView? {
      sqlite3_value_type(handle) == SQLITE_TEXT ? String(decoding: bytes, as: UTF8.self).unicodeScalars : nil
    }

    var bytes: UnsafeRawBufferPointer {
      let start = sqlite3_value_blob(handle)
      return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(handle)))
    }
  }

  /// A statement of its own.
  private final class Query {
    let handle: OpaquePointer
    var columnCount: Int { Int(sqlite3_column_count(handle)) }
    var columnNames: [String] {
      (0..<Int32(columnCount)).map { sqlite3_column_name(handle, $0).map { String(cString: $0) } ?? "" }
    }

    init(_ database: OpaquePointer, _ sql: String) throws {
      var handle: OpaquePointer?
      let code = sqlite3_prepare_v2(database, sql, -1, &handle, nil)
      guard code == SQLITE_OK, let handle else { throw SQLiteError(code, database) }
      self.handle = handle
    }

    deinit { sqlite3_finalize(handle) }

    /// Whether the last step was behind the last row.
    private(set) var isDone = false

    func step() -> Int32 {
      let code = sqlite3_step(handle)
      isDone = code == SQLITE_DONE
      return code
    }

    func reset() { sqlite3_reset(handle) }
  }
}
