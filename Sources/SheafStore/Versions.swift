internal import Foundation
package import SheafModel

/// A row of `versions`.
package struct VersionRow: Hashable, Sendable {
  package let item: Int64
  package let number: Int64
  package var time: Timestamp
  package var author: Int64
  package var size: Int64
  package var cause: VersionCause
  package var base: Int64?
  package var label: String?
  package var content: StoredContent
  /// Whether its editing session still goes on.
  package var isOpen: Bool

  package init(
    item: Int64, number: Int64, time: Timestamp, author: Int64, size: Int64, cause: VersionCause, base: Int64?,
    content: StoredContent, isOpen: Bool
  ) {
    self.item = item
    self.number = number
    self.time = time
    self.author = author
    self.size = size
    self.cause = cause
    self.base = base
    self.content = content
    self.isOpen = isOpen
  }

  var key: VersionKey { VersionKey(item: item, number: number) }

  /// - Throws: `corrupt` for a number after which there is none.
  fileprivate static func number(_ number: Int64, of item: Int64) throws -> Int64 {
    guard (1..<Int64.max).contains(number) else {
      throw SheafError(
        .corrupt, subject: "item \(item)", reason: "has a version \(number)", advice: "run sheaf check")
    }
    return number
  }

  fileprivate init(_ row: Row) throws {
    item = try row[0]
    number = try Self.number(row[1], of: row[0])
    time = try Timestamp(nanoseconds: row[2])
    author = try row[3]
    size = try row[4]
    cause = try VersionCause(code: row[5])
    base = try row[6]
    label = try row[7]
    content = try StoredContent(encoded: row.bytes(8))
    isOpen = try row[9] as Int64 != 0
  }
}

extension VersionCause {
  /// The cause's number in the file: its place in `allCases`, from 1.
  var code: Int64 { Int64(Self.allCases.firstIndex(of: self)! + 1) }

  init(code: Int64) throws {
    guard (1...Int64(Self.allCases.count)).contains(code) else {
      throw SheafError(
        .corrupt, subject: "a version", reason: "has the cause \(code), which is none", advice: "run sheaf check")
    }
    self = Self.allCases[Int(code) - 1]
  }
}

extension StoreTransaction {
  private static let columns = "item, number, time, author, size, cause, base, label, content, open"
  // Built once: composing a text costs as much as running it.
  private static let versionByNumber = "SELECT \(columns) FROM versions WHERE item = ? AND number = ?"
  private static let versionInsertion = "INSERT INTO versions (\(columns)) VALUES (?,?,?,?,?,?,?,?,?,?)"

  package func version(_ item: Int64, _ number: Int64) throws -> VersionRow? {
    try known(
      connection.known?.versions, VersionKey(item: item, number: number), Self.versionByNumber, item, number,
      decode: VersionRow.init)
  }

  /// The item's versions, oldest first.
  package func versions(_ item: Int64) throws -> [VersionRow] {
    try all("SELECT \(Self.columns) FROM versions WHERE item = ? ORDER BY number", item, decode: VersionRow.init)
  }

  /// Whether an item has versions with contents that another account than `author` made, or that are later than `end`.
  package func hasVersions(of item: Int64, notBy author: Int64, orAfter end: Timestamp? = nil) throws -> Bool {
    try first(
      "SELECT 1 FROM versions WHERE item = ? AND (author <> ? OR time > ?) AND size > 0 LIMIT 1", item, author,
      end?.nanoseconds ?? .max
    ) { _ in true } ?? false
  }

  /// Whether an item has a version with other contents than these, and none of them empty.
  package func hasVersion(of item: Int64, besides content: StoredContent) throws -> Bool {
    try first(
      "SELECT 1 FROM versions WHERE item = ? AND size > 0 AND content <> ? LIMIT 1", item, content.encoded
    ) { _ in true } ?? false
  }

  /// The item's latest version before `number`.
  package func version(_ item: Int64, before number: Int64) throws -> VersionRow? {
    try first(
      "SELECT \(Self.columns) FROM versions WHERE item = ? AND number < ? ORDER BY number DESC LIMIT 1",
      item, number, decode: VersionRow.init)
  }

  /// The number of the latest version made by `time`; nil if all are later.
  package func lastVersion(_ item: Int64, notAfter time: Timestamp) throws -> Int64? {
    try first("SELECT max(number) FROM versions WHERE item = ? AND time <= ?", item, time.nanoseconds) {
      try ($0[0] as Int64?).map { try VersionRow.number($0, of: item) }
    } ?? nil
  }

  package func version(_ item: Int64, label: String) throws -> VersionRow? {
    try first("SELECT \(Self.columns) FROM versions WHERE item = ? AND label = ?", item, label, decode: VersionRow.init)
  }

  /// The versions whose sessions did not end, which a crash left behind.
  package func openVersions() throws -> [VersionRow] {
    try all("SELECT \(Self.columns) FROM versions WHERE open = 1", decode: VersionRow.init)
  }

  /// A version without its contents, and the id that a replica has noted for it.
  package struct VersionFacts: Sendable {
    package let number: Int64
    package let time: Timestamp
    package let cause: VersionCause
    package let base: Int64?
    package let isOpen: Bool
    /// 16 bytes.
    package let uuid: [UInt8]?
    /// Whether the hub has it.
    package let isSent: Bool
  }

  /// The versions of an item, the oldest first, with what a replica has noted of them.
  package func versionFacts(_ item: Int64) throws -> [VersionFacts] {
    try all(
      """
      SELECT v.number, v.time, v.cause, v.base, v.open, r.uuid, coalesce(r.sent, 0) FROM versions v
        LEFT JOIN replica_versions r ON r.item = v.item AND r.number = v.number WHERE v.item = ? ORDER BY v.number
      """, item
    ) { row in
      VersionFacts(
        number: try VersionRow.number(row[0], of: item), time: try Timestamp(nanoseconds: row[1]),
        cause: try VersionCause(code: row[2]), base: try row[3], isOpen: try row[4] as Int64 != 0,
        uuid: try row.bytes(5).isEmpty ? nil : row.uuid(5).bytes,
        isSent: try row[6] as Int64 != 0)
    }
  }

  /// Bytes of the contents of all versions of an item together, holes included; the largest number there is for more.
  package func versionBytes(of item: Int64) throws -> Int64 {
    try all("SELECT size FROM versions WHERE item = ?", item) { try $0[0] as Int64 }.reduce(0) { sum, size in
      let (total, overflow) = sum.addingReportingOverflow(max(0, size))
      return overflow ? .max : total
    }
  }

  package func insert(_ version: VersionRow) throws {
    try change(
      Self.versionInsertion,
      version.item, version.number, version.time.nanoseconds, version.author, version.size, version.cause.code,
      version.base, version.label, version.content.encoded, version.isOpen ? 1 : 0
    ) { $0.versions.note(version.key, version) }
  }

  /// Writes the columns that the renewal or end of an open version changes.
  package func update(_ version: VersionRow) throws {
    try change(
      """
      UPDATE versions SET time = ?, author = ?, size = ?, cause = ?, base = ?, content = ?, open = ?
      WHERE item = ? AND number = ?
      """,
      version.time.nanoseconds, version.author, version.size, version.cause.code, version.base,
      version.content.encoded, version.isOpen ? 1 : 0, version.item, version.number
    ) {
      $0.versions.noteChange(version.key) { known in
        // Another statement sets the label.
        let label = known.label
        known = version
        known.label = label
      }
    }
  }

  /// Ends an open version: from here on it is immutable.
  package func closeVersion(_ item: Int64, _ number: Int64, cause: VersionCause) throws {
    try change("UPDATE versions SET open = 0, cause = ? WHERE item = ? AND number = ?", cause.code, item, number) {
      $0.versions.noteChange(VersionKey(item: item, number: number)) { version in
        version.isOpen = false
        version.cause = cause
      }
    }
  }

  /// Gives `label` to the version, taking it from the one that has it.
  package func setLabel(_ item: Int64, _ number: Int64, _ label: String) throws {
    try change("UPDATE versions SET label = NULL WHERE item = ? AND label = ?", item, label) { $0.versions.forgetAll() }
    try change("UPDATE versions SET label = ? WHERE item = ? AND number = ?", label, item, number) {
      $0.versions.forget(VersionKey(item: item, number: number))
    }
  }

  package func deleteVersion(_ item: Int64, _ number: Int64) throws {
    try change("DELETE FROM versions WHERE item = ? AND number = ?", item, number) {
      $0.versions.note(VersionKey(item: item, number: number), nil)
    }
  }

  /// Deletes the oldest versions of an item that is about to go, `limit` at most, besides one and those that are open;
  /// returns how many.
  package func deleteVersions(_ item: Int64, besides number: Int64, limit: Int) throws -> Int {
    try change(
      """
      DELETE FROM versions WHERE item = ?1 AND number IN
        (SELECT number FROM versions WHERE item = ?1 AND number <> ?2 AND open = 0 ORDER BY number LIMIT ?3)
      """, item, number, limit
    ) { $0.versions.forgetAll() }
    return try changes
  }

  /// Removes a version that is neither current nor labelled nor open; returns whether it did.
  ///
  /// - Parameter time: Its time, where a replica may have given its number to another version since; nil if not.
  package func thinVersion(_ item: Int64, _ number: Int64, of time: Timestamp? = nil) throws -> Bool {
    try change(
      """
      DELETE FROM versions WHERE item = ?1 AND number = ?2 AND time = coalesce(?3, time) AND label IS NULL AND open = 0
        AND number <> (SELECT version FROM items WHERE id = ?1)
      """, item, number, time?.nanoseconds
    ) { $0.versions.forget(VersionKey(item: item, number: number)) }
    return try changes > 0
  }

  /// Writes a version's contents in another form of the same bytes.
  package func recode(_ item: Int64, _ number: Int64, to content: StoredContent) throws {
    try change("UPDATE versions SET content = ? WHERE item = ? AND number = ?", content.encoded, item, number) {
      $0.versions.forget(VersionKey(item: item, number: number))
    }
  }

  /// An item's versions below `number`, the latest first, `limit` of them.
  package func versions(_ item: Int64, below number: Int64, limit: Int) throws -> [VersionRow] {
    try all(
      "SELECT \(Self.columns) FROM versions WHERE item = ? AND number < ? ORDER BY number DESC LIMIT ?",
      item, number, limit, decode: VersionRow.init)
  }

  /// The number and time of an item's latest version up to `number`.
  package func versionTime(_ item: Int64, upTo number: Int64) throws -> (number: Int64, time: Timestamp)? {
    try first(
      "SELECT number, time FROM versions WHERE item = ? AND number <= ? ORDER BY number DESC LIMIT 1", item, number
    ) { (try VersionRow.number($0[0], of: item), Timestamp(nanoseconds: try $0[1])) }
  }

  /// The lowest number of an item's versions; nil where there are none.
  package func firstVersion(_ item: Int64) throws -> Int64? {
    try first("SELECT number FROM versions WHERE item = ? ORDER BY number LIMIT 1", item) {
      try VersionRow.number($0[0], of: item)
    }
  }

  /// Contents of every version, by item and number.
  package func versionContents(_ body: (_ item: Int64, _ content: StoredContent) throws -> Void) throws {
    try each("SELECT item, content FROM versions ORDER BY item, number") {
      try body($0[0], StoredContent(encoded: $0.bytes(1)))
      return true
    }
  }

  /// Times of every item's versions, by item and number, and whether each is unlabelled and neither current nor open.
  package func versionTimes(
    _ body: (_ item: Int64, _ number: Int64, _ time: Timestamp, _ canGo: Bool) throws -> Void
  ) throws {
    try each(
      """
      SELECT v.item, v.number, v.time, v.number <> i.version AND v.label IS NULL AND v.open = 0
      FROM versions v JOIN items i ON i.id = v.item ORDER BY v.item, v.number
      """
    ) { row in
      try body(row[0], row[1], Timestamp(nanoseconds: row[2]), row[3] as Int64 != 0)
      return true
    }
  }
}
