import SheafModel
import Synchronization

@testable import SheafStore

extension Decoder {
  /// Rows of every table: each input is some rows, in a library in memory whose columns take any value.
  static let rows = Decoder(name: "rows") { bytes in
    try RowTrial.shared.withLock { trial in
      if trial == nil { trial = try RowTrial() }
      try trial?.run(bytes)
    }
  }
}

/// A library in memory, in which all is undone after each input.
private final class RowTrial {
  static let shared = Mutex<RowTrial?>(nil)

  private let connection: Connection
  private let tables: [(name: String, columns: Int)]

  init() throws {
    connection = try Connection(path: ":memory:")
    for script in Schema.migrations {
      var text = script
      // Whoever crafts a file need not have SQLite hold to what the tables say.
      text.replace(" IS NOT NULL", with: " IS NOT  NULL")
      text.replace(" NOT NULL", with: "")
      text.replace(") STRICT, WITHOUT ROWID", with: ") WITHOUT ROWID")
      text.replace(") STRICT", with: ")")
      try connection.execute(text)
    }
    try connection.execute("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
    let transaction = StoreTransaction(connection)
    tables = try transaction.all(
      """
      SELECT name, (SELECT count(*) FROM pragma_table_info(s.name)) FROM sqlite_schema s
      WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name
      """
    ) { (try $0[0], try $0[1]) }
  }

  func run(_ bytes: [UInt8]) throws {
    var input = Input(bytes)
    let checks = input.byte() & 1 == 1
    try connection.execute("BEGIN")
    var keys: Set<Int64> = [1]
    for _ in 0..<8 where !input.isAtEnd {
      let table = tables[Int(input.byte()) % tables.count]
      let places = repeatElement("?", count: table.columns).joined(separator: ",")
      let values = (0..<table.columns).map { _ in value(&input, &keys) }
      do {
        try connection.run(
          ChangeRecorder.Recorded(sql: "INSERT OR IGNORE INTO \(table.name) VALUES (\(places))", arguments: values))
      } catch is SQLiteError {
        // A key of another type than it can have.
      }
    }
    let transaction = StoreTransaction(connection)
    for key in keys.sorted().prefix(16) {
      for read in reads(of: key) { try expectSheafError { try read(transaction) } }
    }
    for read in reads { try expectSheafError { try read(transaction) } }
    if checks { try expectSheafError { _ = try transaction.check { _ in } } }
    try connection.execute("ROLLBACK")
  }

  /// Numbers are small, so that rows find each other, or any.
  private func value(_ input: inout Input, _ keys: inout Set<Int64>) -> any Bindable {
    switch input.byte() % 8 {
    case 0: return Int64?.none
    case 1:
      let number = input.number()
      keys.insert(number)
      return number
    case 2: return String(decoding: input.piece(), as: UTF8.self)
    case 3: return input.piece()
    case 4:
      return StoredContent.extents([Extent(chunk: Int64(input.byte()), length: max(1, input.number() & .max >> 2))])
        .encoded
    case let kind:
      let number = Int64(input.byte()) - (kind == 5 ? 0 : 2)
      keys.insert(number)
      return number
    }
  }

  private func expectSheafError(_ read: () throws -> Void) throws {
    do {
      try read()
    } catch is SQLiteError {
      // Such as a sum past Int64, which the doors of the store translate.
    } catch {
      _ = try attempt { throw error }
    }
  }

  private func reads(of key: Int64) -> [(StoreTransaction) throws -> Void] {
    [
      { _ = try $0.item(key) }, { _ = try $0.inode(key) }, { _ = try $0.inode(item: key) },
      { _ = try $0.listing(key, after: 0, limit: 2) }, { _ = try $0.entries(key, after: 0, limit: 2) },
      { _ = try $0.extraEntry(key) }, { _ = try $0.extraFolder(key, after: 0) }, { _ = try $0.xattrSizes(key) },
      { _ = try $0.xattrs(key, through: [255]) },
      { _ = try $0.deleted(.documents, from: key, since: .init(nanoseconds: 0)) },
      { _ = try $0.deleted(.items, from: key, since: .init(nanoseconds: 0)) },
      { _ = try $0.versions(key) }, { _ = try $0.versions(key, below: .max, limit: 5) },
      { _ = try $0.deleted(key) }, { _ = try $0.deleted(from: key) }, { _ = try $0.deleted(before: nil, limit: 2) },
      { _ = try $0.chunkBytes(key) }, { _ = try $0.chunkSize(key) }, { _ = try $0.pack(key) },
      { _ = try $0.packPlace(key) }, { _ = try $0.accessRequests(key) }, { _ = try $0.event(key) },
      { _ = try $0.isBlocked(key, key) }, { _ = try $0.declined(key, key) }, { _ = try $0.names(of: key) },
      { _ = try $0.linkCounts(in: key, after: nil, limit: 2) },
      { _ = try $0.pendingEvent(key) }, { _ = try $0.lastEdits(inShare: key) }, { _ = try $0.noticed(key) },
      { _ = try $0.plainChunks(from: key, through: .max, limit: 1 << 20) },
    ]
  }

  private let reads: [(StoreTransaction) throws -> Void] = [
    { _ = try $0.accounts() }, { _ = try $0.shares() }, { _ = try $0.participants() }, { _ = try $0.webhooks() },
    { _ = try $0.events(after: 0, limit: 10) }, { _ = try $0.events(before: .max, limit: 10) },
    { _ = try $0.pendingEvents() }, { _ = try $0.workingCopies() }, { _ = try $0.extraNames(limit: 1000) },
    { _ = try $0.highestNumbers() }, { _ = try $0.eventBounds() },
    { _ = try $0.latestTime(upTo: .init(nanoseconds: .max)) },
    { _ = try $0.counts() }, { try $0.packs { _, _, _ in } }, { try $0.contents { _ in } },
    { try $0.versionContents { _, _ in } }, { try $0.versionTimes { _, _, _, _ in } }, { try $0.chunkIDs { _ in } },
    { _ = try $0.setting("library") }, { _ = try $0.numberSetting("hashKey") }, { _ = try $0.nextPack },
  ]
}
