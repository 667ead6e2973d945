internal import Foundation
internal import GRDB
internal import Glibc
package import SheafModel

/// The words of documents' current versions, in a file of its own beside the library (SQLite's FTS5).
///
/// Rules:
/// 1. Everything in it follows from the library: it may be lost at any time, and is made anew if it is damaged or
///    belongs to another library.
/// 2. It names the version, with its time, whose words it holds. A search compares that with the current version, so it
///    never finds words of an older one.
/// 3. A file of its name that is not marked as an index is somebody's, and stays as it is.
/// 4. It holds as much of texts as ``textLimit`` and ``totalLimit`` allow. Other documents are in it without words.
package final class SearchIndex: Sendable {
  /// Bytes of a document whose words are searched.
  package static let textLimit = 1 << 20
  /// Bytes of all of them.
  package static let totalLimit: Int64 = 256 << 20
  /// Documents that one search finds.
  package static let matchLimit = 100_000

  private static let suffix = "-search"
  /// `application_id` of the file, "SHFS".
  private static let applicationID: Int32 = 0x5348_4653
  /// The form of the file; another one is made anew.
  private static let format = 2

  /// A document's version in the index.
  package struct Document: Hashable, Sendable {
    package let item: Int64
    package let number: Int64
    package let time: Timestamp
    /// Whether it may have other words by now: its session went on, or its contents were not on this machine.
    package let isOpen: Bool

    package init(item: Int64, number: Int64, time: Timestamp, isOpen: Bool) {
      (self.item, self.number, self.time, self.isOpen) = (item, number, time, isOpen)
    }
  }

  private let path: String
  private let database: DatabaseQueue

  /// Opens the index of a library, making it where there is none.
  ///
  /// - Parameter library: The library's file, and its id.
  package init(of library: (path: String, id: String)) throws(SheafError) {
    let path = library.path + Self.suffix
    self.path = path
    guard Self.isIndex(path) ?? true else {
      throw SheafError(
        .exists, subject: path, reason: "is there, and is no index of contents",
        advice: "move it away, or have contents not searched: sheaf library set --search-contents off")
    }
    do throws(SheafError) {
      database = try Self.open(path, library)
    } catch  where error.kind == .corrupt {
      LibraryFolder.remove(path)
      database = try Self.open(path, library)
    }
  }

  /// Removes the index of a library; nobody has it open.
  package static func remove(of library: String) {
    guard isIndex(library + suffix) == true else { return }
    for end in ["", "-journal"] { LibraryFolder.remove(library + suffix + end) }
  }

  /// Whether a file is an index, or one that was just made; nil where there is none, or where it cannot be read.
  private static func isIndex(_ path: String) -> Bool? {
    let file = LibraryFolder.open(path, O_RDONLY)
    // A link is no file of Sheaf's.
    guard file >= 0 else { return errno == ELOOP ? false : nil }
    defer { Glibc.close(file) }
    var header = [UInt8](repeating: 0, count: 100)
    guard read(file, &header, 100) >= 0 else { return false }
    if header.allSatisfy({ $0 == 0 }) { return true }
    guard header.starts(with: LibraryFolder.databaseMark) else { return false }
    switch header[68..<72].reduce(0, { $0 << 8 | UInt32($1) }) {
    case UInt32(applicationID): return true
    case 0: return hasTablesOfAnIndex(path)
    default: return false
    }
  }

  /// Whether a database that no program marked is an index: older programs marked none.
  private static func hasTablesOfAnIndex(_ path: String) -> Bool {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.refuseLink(at: path)
    guard let database = try? DatabaseQueue(path: path, configuration: configuration) else { return false }
    defer { try? database.close() }
    return (try? database.read { try $0.tableExists("mark") && $0.tableExists("documents") && $0.tableExists("texts") })
      ?? false
  }

  private static let tables = """
    CREATE TABLE mark (library TEXT NOT NULL) STRICT;
    CREATE TABLE documents (
      item INTEGER PRIMARY KEY, number INTEGER NOT NULL, time INTEGER NOT NULL, open INTEGER NOT NULL,
      bytes INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX documents_bytes ON documents (bytes) WHERE bytes > 0;
    CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2', columnsize = 0);
    """

  /// Looks whether an index has its own tables, and nothing that SQLite would run with their statements.
  ///
  /// - Throws: `corrupt`.
  private static func requireSchema(of database: Database) throws {
    func entries(_ database: Database) throws -> [SchemaCheck.Entry] {
      try GRDB.Row.fetchAll(database, sql: "SELECT type, name, tbl_name, sql FROM sqlite_schema").map { row in
        SchemaCheck.Entry(type: row[0], name: row[1], table: row[2], sql: row[3])
      }
    }
    let expected = try DatabaseQueue().write { database in
      try database.execute(sql: tables)
      return Set(try entries(database))
    }
    guard SchemaCheck.foreign(try entries(database), expected) == nil else { throw SheafError(.corrupt) }
  }

  private static func open(
    _ path: String, _ library: (path: String, id: String)
  ) throws(SheafError) -> DatabaseQueue {
    let made = try LibraryFolder.openFile(at: path, beside: library.path)
    Glibc.close(made)
    return try Store.storeErrors(path) {
      var configuration = Configuration()
      configuration.refuseLink(at: path)
      configuration.prepareDatabase {
        try $0.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY")
      }
      let database = try DatabaseQueue(path: path, configuration: configuration)
      try database.read(requireSchema)
      try database.write { database in
        if try Int32.fetchOne(database, sql: "PRAGMA application_id") != applicationID {
          try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        }
        let mark = "\(format) \(library.id)"
        guard
          try database.tableExists("mark") == false
            || String.fetchOne(database, sql: "SELECT library FROM mark") != mark
        else { return }
        try database.execute(
          sql: """
            DROP TABLE IF EXISTS mark; DROP TABLE IF EXISTS documents; DROP TABLE IF EXISTS texts;
            \(tables)
            """)
        try database.execute(sql: "INSERT INTO mark (library) VALUES (?)", arguments: [mark])
      }
      return database
    }
  }

  /// Whether an error tells of damage to the index, and not to the library.
  package func isDamaged(by error: SheafError) -> Bool { error.kind == .corrupt && error.subject == path }

  package func close() throws(SheafError) { try Store.storeErrors(path) { try database.close() } }

  // MARK: - Keeping it

  /// The versions that it has of the documents after one, up to and with another.
  package func documents(after item: Int64, through last: Int64) throws(SheafError) -> [Int64: Document] {
    try Store.storeErrors(path) {
      try database.read { database in
        let rows = try GRDB.Row.fetchAll(
          database, sql: "SELECT item, number, time, open FROM documents WHERE item > ? AND item <= ?",
          arguments: [item, last])
        return Self.byItem(rows)
      }
    }
  }

  /// Takes in documents with their words, in the place of what it had of them, and forgets others.
  package func update(_ documents: [(document: Document, text: String)], removing gone: [Int64]) throws(SheafError) {
    guard !documents.isEmpty || !gone.isEmpty else { return }
    try Store.storeErrors(path) {
      try database.write { database in
        for item in gone + documents.map(\.document.item) {
          try database.execute(sql: "DELETE FROM texts WHERE rowid = ?", arguments: [item])
          try database.execute(sql: "DELETE FROM documents WHERE item = ?", arguments: [item])
        }
        var total = try Int64.fetchOne(database, sql: "SELECT sum(bytes) FROM documents WHERE bytes > 0") ?? 0
        for (document, text) in documents {
          let bytes = Int64(text.utf8.count)
          let fits = bytes > 0 && total + bytes <= Self.totalLimit
          try database.execute(
            sql: "INSERT INTO documents (item, number, time, open, bytes) VALUES (?, ?, ?, ?, ?)",
            arguments: [
              document.item, document.number, document.time.nanoseconds, document.isOpen ? 1 : 0, fits ? bytes : 0,
            ])
          guard fits else { continue }
          total += bytes
          try database.execute(
            sql: "INSERT INTO texts (rowid, text) VALUES (?, ?)", arguments: [document.item, text])
        }
      }
    }
  }

  /// Writes the words anew without those that were removed, which are in the file until then.
  package func tighten() throws(SheafError) {
    try Store.storeErrors(path) {
      try database.write { try $0.execute(sql: "INSERT INTO texts (texts) VALUES ('optimize')") }
      try database.vacuum()
    }
  }

  /// Documents by their items. A damaged index may have an item twice.
  private static func byItem(_ rows: [GRDB.Row]) -> [Int64: Document] {
    let documents = rows.map { row in
      Document(item: row[0], number: row[1], time: Timestamp(nanoseconds: row[2]), isOpen: row[3] as Int64 != 0)
    }
    return Dictionary(documents.map { ($0.item, $0) }) { first, _ in first }
  }

  // MARK: - Searching

  /// The documents that have, for each word of a text, a word that begins with it, whatever case and accents.
  package func documents(with text: String) throws(SheafError) -> [Int64: Document] {
    let words = text.split(whereSeparator: { $0.isWhitespace || $0 == "\0" }).map {
      "\"\($0.replacing("\"", with: "\"\""))\" *"
    }
    if words.isEmpty { return [:] }
    return try Store.storeErrors(path) {
      try database.read { database in
        let rows = try GRDB.Row.fetchAll(
          database,
          sql: """
            SELECT d.item, d.number, d.time, d.open FROM texts JOIN documents d ON d.item = texts.rowid
            WHERE texts MATCH ? LIMIT ?
            """, arguments: [words.joined(separator: " "), Self.matchLimit])
        return Self.byItem(rows)
      }
    }
  }
}
