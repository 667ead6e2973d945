import Foundation
import GRDB
import SheafModel
import SheafStore

/// A change of the template that no program of ours makes.
struct Crafted {
  let name: String
  /// Statements, the first of which has to change something.
  let statements: [(sql: String, arguments: StatementArguments)]

  /// Changes the library at `path`.
  ///
  /// - Returns: whether it is another one now.
  func apply(to path: String) throws -> Bool {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    defer { try? queue.close() }
    return try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
      do {
        for (sql, arguments) in statements { try database.execute(sql: sql, arguments: arguments) }
      } catch let error as DatabaseError
        where error.resultCode == .SQLITE_CONSTRAINT || error.resultCode == .SQLITE_MISMATCH
      {
        // What even a crafted file cannot hold: a second row of one key.
        return false
      }
      return database.totalChangesCount > 0
    }
  }

  static func tables(_ database: Database) throws -> [String] {
    try String.fetchAll(
      database, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
  }

  /// Each column of each table with each extreme, in one row and in as many as can have it, and what columns make
  /// together.
  static func all(of template: String) throws -> [Crafted] {
    let queue = try DatabaseQueue(path: template)
    defer { try? queue.close() }
    return try queue.read { database in
      var cases: [Crafted] = []
      for table in try tables(database) {
        let columns = try GRDB.Row.fetchAll(
          database, sql: "SELECT name, type, pk FROM pragma_table_info(?)", arguments: [table])
        let keys = columns.filter { $0["pk"] as Int > 0 }.map { $0["name"] as String }
        let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM \(table)") ?? 0
        for column in columns {
          let name: String = column["name"]
          for (index, value) in Extreme.values(of: column["type"], keys[0], in: table).enumerated() {
            // Another row for each value: the first ones are the accounts' own folders, others are documents.
            let row = "SELECT \(keys.joined(separator: ", ")) FROM \(table) LIMIT 1 OFFSET \(index * 7 % count)"
            let update = "UPDATE OR FAIL \(table) SET \(name) = \(value.sql)"
            cases.append(
              Crafted(
                name: "\(table).\(name) = \(value.name) in a row",
                statements: [(update + " WHERE (\(keys.joined(separator: ", "))) = (\(row))", value.arguments)]))
            if index.isMultiple(of: 3) {
              cases.append(
                Crafted(
                  name: "\(table).\(name) = \(value.name) in all rows",
                  statements: [("UPDATE OR IGNORE \(table) SET \(name) = \(value.sql)", value.arguments)]))
            }
          }
        }
      }
      return try cases + combined(database)
    }
  }

  /// What takes more than one column.
  private static func combined(_ database: Database) throws -> [Crafted] {
    func ino(_ name: String) throws -> Int64 {
      try Int64.fetchOne(database, sql: "SELECT ino FROM inodes WHERE name = CAST(? AS BLOB)", arguments: [name]) ?? 0
    }
    let (outer, inner, notes) = (try ino("outer"), try ino("inner"), try ino("notes.txt"))
    let (plain, team) = (try ino("plain"), try ino("team"))
    var cases: [Crafted] = []
    func add(_ name: String, _ statements: (String, StatementArguments)...) {
      cases.append(Crafted(name: name, statements: statements.map { (sql: $0.0, arguments: $0.1) }))
    }
    add("two folders in each other", ("UPDATE inodes SET parent = ? WHERE ino = ?", [inner, outer]))
    add(
      "two folders in each other by name", ("UPDATE inodes SET parent = ? WHERE ino = ?", [inner, outer]),
      ("UPDATE entries SET parent = ? WHERE ino = ?", [inner, outer]))
    add("a folder in itself by name", ("UPDATE entries SET parent = ino WHERE ino = ?", [outer]))
    add("a folder of two folders", ("UPDATE entries SET ino = ? WHERE ino = ?", [outer, notes]))
    add(
      "a folder that holds the one above it", ("UPDATE entries SET ino = ? WHERE parent = ?", [outer, inner]))
    add(
      "a shared folder that holds its owner's documents",
      ("UPDATE entries SET ino = (SELECT documents FROM accounts LIMIT 1) WHERE parent = ?", [team]))
    let sub = try ino("sub")
    add(
      "a shared folder in a folder in it",
      ("UPDATE inodes SET parent = ?1, name = CAST('sub' AS BLOB) WHERE ino = ?2", [sub, team]),
      ("UPDATE entries SET parent = ?1 WHERE ino = ?2", [sub, team]))
    let (one, two) = (try ino("one"), try ino("two"))
    let late = "UPDATE entries SET since = 4000000000000000000 WHERE ino IN (?, ?)"
    let was = """
      INSERT OR REPLACE INTO past_names
      SELECT ?1, name, 4000000000000000000, item, 0, owner FROM inodes WHERE ino = ?2
      """
    add("a folder that was in itself", (was, [one, one]), (late, [one, one]))
    add("two folders that were in each other", (was, [one, two]), (was, [two, one]), (late, [one, two]))
    add("all that was, in one folder", ("UPDATE OR REPLACE past_names SET parent = ?, since = 0", [one]))
    add(
      "all that was, in itself",
      ("UPDATE past_names SET parent = (SELECT ino FROM inodes WHERE item = past_names.item), since = 0", []),
      ("UPDATE past_names SET until = 4000000000000000000", []), ("UPDATE entries SET since = 4000000000000000000", []))
    add(
      "a deleted folder in itself", ("UPDATE deleted SET parent = ino", []),
      ("UPDATE inodes SET parent = ino WHERE nlink = 0", []))
    add("every folder a document", ("UPDATE inodes SET mode = 33188 WHERE mode & 61440 = 16384", []))
    add("every document a folder", ("UPDATE inodes SET mode = 16877 WHERE mode & 61440 = 32768", []))
    add("every document a symbolic link", ("UPDATE inodes SET mode = 41471 WHERE mode & 61440 = 32768", []))
    add("every item a folder", ("UPDATE items SET kind = 2", []))
    let key = try Int64.fetchOne(database, sql: "SELECT value FROM settings WHERE key = 'hashKey'") ?? 0
    let hash = NameHash(key: key)
    for name in ["", ".", "..", "/", "a/b", "../../x", "a\0b", ".versions", String(repeating: "n", count: 5000)] {
      let bytes = Array(name.utf8)
      for target in [plain, outer] {
        add(
          "an entry \(name.prefix(20).debugDescription) of \(target)",
          ("UPDATE entries SET name = ?1, hash = ?2 WHERE ino = ?3", [Data(bytes), hash(bytes), target]),
          ("UPDATE inodes SET name = ?1 WHERE ino = ?2", [Data(bytes), target]))
      }
      add("deleted as \(name.prefix(20).debugDescription)", ("UPDATE deleted SET name = ?", [Data(bytes)]))
    }
    let huge = StoredContent.maximumLength
    for (name, content) in [
      ("holes", StoredContent.extents([.hole(huge)])),
      ("a chunk without end", .extents([Extent(chunk: 1, offset: 0, length: huge)])),
      ("a chunk's far end", .extents([Extent(chunk: 1, offset: huge - 1, length: 1)])),
      ("a chunk that is not there", .extents([Extent(chunk: 1 << 40, offset: 0, length: 10)])),
      ("nodes that are none", .nodes([ExtentNode(chunk: 1, length: huge, data: huge)])),
      ("nodes that hold nothing", .nodes([ExtentNode(chunk: 1 << 40, length: huge, data: 0)])),
    ] {
      for size in [huge, 0, 10, -1] {
        add(
          "contents of \(name), size \(size)",
          ("UPDATE inodes SET content = ?1, size = ?2 WHERE content IS NOT NULL", [Data(content.encoded), size]),
          ("UPDATE versions SET content = ?1, size = ?2", [Data(content.encoded), size]))
      }
      add("packs made from \(name)", ("UPDATE packs SET base = ?", [Data(content.encoded)]))
    }
    for size in [Int64.max, -1, 1 << 40] {
      add("chunks of \(size) bytes that are compressed", ("UPDATE chunks SET encoding = 1, size = ?", [size]))
      add("chunks of \(size) bytes that are packed", ("UPDATE chunks SET encoding = 2, size = ?", [size]))
    }
    for steps in [
      [WriteLog.Step.write(offset: 1 << 62, length: 1 << 30, place: 1 << 62, checksum: 0)],
      [.write(offset: 0, length: 10, place: 0, checksum: 1)], [.truncate(.max)], [.hole(0..<Int64.max)],
      [.hole(5..<5), .truncate(0)],
    ] {
      var log = WriteLog()
      for step in steps { log.append(step) }
      add("a working copy of \(steps)", ("UPDATE working_copies SET writes = ?", [Data(log.encoded)]))
    }
    return cases
  }
}

/// What a column does not hold.
struct Extreme {
  let name: String
  let sql: String
  var arguments: StatementArguments = []

  static func values(of type: String, _ key: String, in table: String) -> [Extreme] {
    let numbers: [Int64] =
      [.min, .min + 1, -1, 0, 1, 2, 3, 1 << 31, 1 << 32, 1 << 40, 1 << 52, .max / 2, .max - 1, .max]
    let texts: [(String, String)] = [
      ("an empty text", ""), ("a text", "x"), ("a slash", "/"), ("dots", ".."), ("a way up", "../../x"),
      ("a NUL", "a\0b"),
      ("an escape", "\u{1B}[31m"), ("an array", "[]"), ("an object", "{}"), ("null", "null"),
      ("deep JSON", String(repeating: "[", count: 10_000)),
    ]
    let blobs: [(String, [UInt8])] = [
      ("an empty blob", []), ("a byte", [0]), ("a form without end", [1, 0xFF]),
      ("what is not UTF-8", [0xFF, 0xFE, 0x2F]),
      ("16 bytes", .init(repeating: 0xFF, count: 16)), ("32 bytes", .init(repeating: 0xFF, count: 32)),
      (
        "the largest numbers",
        [0] + [UInt8](repeating: 0xFF, count: 8) + [0x7F] + [UInt8](repeating: 0xFF, count: 8) + [0x7F]
      ),
    ]
    var values = [
      Extreme(name: "NULL", sql: "NULL"), Extreme(name: "infinity", sql: "9e999"), Extreme(name: "-1.5", sql: "-1.5"),
      Extreme(name: "a long text", sql: "replace(hex(zeroblob(100000)), '00', 'ab')"),
      Extreme(name: "a long blob", sql: "zeroblob(200000)"),
    ]
    if type != "TEXT" {
      values += numbers.map { Extreme(name: "\($0)", sql: "?", arguments: [$0]) }
      values += [
        Extreme(name: "its own key", sql: key),
        Extreme(name: "the highest key", sql: "(SELECT max(\(key)) FROM \(table))"),
        Extreme(name: "the lowest key", sql: "(SELECT min(\(key)) FROM \(table))"),
      ]
    }
    if type != "INTEGER" {
      values += texts.map { Extreme(name: $0.0, sql: "?", arguments: [$0.1]) }
      values += texts.map { Extreme(name: $0.0 + " as a blob", sql: "?", arguments: [Data($0.1.utf8)]) }
      values += blobs.map { Extreme(name: $0.0 + " as a text", sql: "CAST(? AS TEXT)", arguments: [Data($0.1)]) }
    }
    values += blobs.map { Extreme(name: $0.0, sql: "?", arguments: [Data($0.1)]) }
    return values
  }
}
