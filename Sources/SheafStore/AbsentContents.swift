internal import Foundation
package import SheafModel

/// A row of `absent_contents`: contents of a version that a hub has, and of which this machine has not everything.
package struct AbsentContentsRow: Hashable, Sendable {
  /// What extents name it by.
  package let id: Int64
  /// The document that has the version.
  package let item: Int64
  /// The version's id, 16 bytes.
  package let version: [UInt8]
  /// Bytes of the version.
  package let size: Int64

  package init(id: Int64, item: Int64, version: [UInt8], size: Int64) {
    self.id = id
    self.item = item
    self.version = version
    self.size = size
  }

  fileprivate init(_ row: Row) throws {
    id = try row[0]
    item = try row[1]
    version = try row.uuid(2).bytes
    size = try row[3]
  }
}

/// Contents on demand (docs/FORMAT.md, Replicas).
extension StoreTransaction {
  private static let columns = "id, item, version, size"

  package func absentContents(_ id: Int64) throws -> AbsentContentsRow? {
    try first(
      "SELECT \(Self.columns) FROM absent_contents WHERE id = ?", id, decode: AbsentContentsRow.init)
  }

  /// Those of an account's documents, after one of them, in the order of their ids.
  package func absentContents(of account: Int64, after id: Int64, limit: Int) throws -> [AbsentContentsRow] {
    try all(
      """
      SELECT a.id, a.item, a.version, a.size FROM absent_contents a JOIN items i ON i.id = a.item
        WHERE i.owner = ? AND a.id > ? ORDER BY a.id LIMIT ?
      """, account, id, limit, decode: AbsentContentsRow.init)
  }

  /// How much of all accounts' documents is not here.
  package func contentsAtHub() throws -> ContentsAtHub {
    try first(
      """
      SELECT count(DISTINCT a.item), CAST(total(a.size) AS INTEGER) FROM absent_contents a
        JOIN replica_versions r ON r.item = a.item AND r.uuid = a.version
        JOIN versions v ON v.item = r.item AND v.number = r.number
      """
    ) {
      ContentsAtHub(documents: try $0[0], bytes: try $0[1])
    } ?? .none
  }

  package func insert(_ absent: AbsentContentsRow) throws {
    try run(
      "INSERT INTO absent_contents (\(Self.columns)) VALUES (?,?,?,?)", absent.id, absent.item, absent.version,
      absent.size)
  }

  package func removeAbsentContents(_ id: Int64) throws { try run("DELETE FROM absent_contents WHERE id = ?", id) }

  package func removeAbsentContents(ofItem item: Int64) throws {
    try run("DELETE FROM absent_contents WHERE item = ?", item)
  }

  /// Notes that another document has a version by now.
  package func moveAbsentContents(of content: StoredContent, to item: Int64) throws {
    guard case .extents(let extents) = content else { return }
    for id in Set(extents.lazy.filter(\.isAbsent).map(\.chunk)) {
      try run("UPDATE absent_contents SET item = ? WHERE id = ?", item, id)
    }
  }

  // MARK: - What is kept here

  /// Whether a person wants the contents of an item on this machine; nil where nobody said.
  package func isKept(_ item: Int64) throws -> Bool? {
    try first("SELECT keep FROM kept_contents WHERE item = ?", item) { try $0[0] as Int64 != 0 }
  }

  package func hasKept() throws -> Bool { try first("SELECT 1 FROM kept_contents LIMIT 1") { _ in true } ?? false }

  package func setKept(_ item: Int64, _ isKept: Bool?) throws {
    if let isKept {
      try run("INSERT OR REPLACE INTO kept_contents (item, keep) VALUES (?,?)", item, isKept ? 1 : 0)
    } else {
      try run("DELETE FROM kept_contents WHERE item = ?", item)
    }
  }

  /// An account's documents that have a name, after one of them, in the order of their numbers.
  package func namedDocuments(of account: Int64, after item: Int64, limit: Int) throws -> [Int64] {
    try all(
      """
      SELECT i.id FROM items i JOIN inodes n ON n.item = i.id
        WHERE i.owner = ? AND i.id > ? AND i.kind = ? AND n.nlink > 0 ORDER BY i.id LIMIT ?
      """, account, item, ItemKind.document.rawValue, limit
    ) { try $0[0] }
  }

  /// When the hub acknowledged last what was saved here of a document.
  package func lastAcknowledged(_ item: Int64) throws -> Timestamp? {
    try first("SELECT max(acknowledged) FROM replica_versions WHERE item = ?", item) {
      try $0[0] as Int64?
    }.flatMap { $0.map { Timestamp(nanoseconds: $0) } }
  }
}
