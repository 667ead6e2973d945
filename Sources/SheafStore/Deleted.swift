internal import Foundation
package import SheafModel

/// A row of `deleted`: an inode without a name that can be recovered.
package struct DeletedRow: Hashable, Sendable {
  package let ino: Int64
  package let parent: Int64
  package let name: [UInt8]
  package let time: Timestamp
  package let actor: Int64

  package init(ino: Int64, parent: Int64, name: [UInt8], time: Timestamp, actor: Int64) {
    self.ino = ino
    self.parent = parent
    self.name = name
    self.time = time
    self.actor = actor
  }

  fileprivate init(_ row: Row) throws {
    ino = try row[0]
    parent = try row[1]
    guard parent != ino else {
      throw SheafError(.corrupt, subject: "inode \(ino)", reason: "was deleted from itself", advice: "run sheaf check")
    }
    name = try row.name(2)
    time = try Timestamp(nanoseconds: row[3])
    actor = try row[4]
  }
}

/// Which of the deleted items are asked for.
package enum DeletedKind: Sendable {
  case documents, items

  /// The queries of a kind, built once: composing a text costs as much as running it.
  fileprivate struct Queries {
    let fromFolder: String
    let ofName: String
    let hasName: String

    init(where condition: String) {
      let columns = "d.ino, d.parent, d.name, d.time, d.actor"
      // The sign has the rows found by the folder rather than by the time.
      let rows =
        "deleted d JOIN inodes i ON i.ino = d.ino WHERE d.parent = ? AND +d.time >= ? AND i.item IS NOT NULL\(condition)"
      fromFolder = "SELECT \(columns) FROM \(rows) ORDER BY d.time DESC, d.ino DESC"
      ofName = "SELECT \(columns) FROM \(rows) AND d.name = ? ORDER BY d.time DESC, d.ino DESC"
      hasName = "SELECT 1 FROM \(rows) AND d.name = ? LIMIT 1"
    }
  }

  private static let ofDocuments = Queries(where: " AND i.mode & 61440 = 32768")
  private static let ofItems = Queries(where: "")

  fileprivate var queries: Queries { self == .documents ? Self.ofDocuments : Self.ofItems }
}

extension StoreTransaction {
  private static let columns = "ino, parent, name, time, actor"
  // Built once: composing a text costs as much as running it.
  private static let deletedInsertion = "INSERT INTO deleted (\(columns)) VALUES (?,?,?,?,?)"

  package func deleted(_ ino: Int64) throws -> DeletedRow? {
    try first("SELECT \(Self.columns) FROM deleted WHERE ino = ?", ino, decode: DeletedRow.init)
  }

  /// The items that were deleted from a folder, latest first.
  package func deleted(from parent: Int64) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE parent = ? ORDER BY time DESC, ino DESC", parent,
      decode: DeletedRow.init)
  }

  /// The items that were deleted from a folder since `time`, latest first.
  package func deleted(_ kind: DeletedKind, from parent: Int64, since time: Timestamp) throws -> [DeletedRow] {
    try all(kind.queries.fromFolder, parent, time.nanoseconds, decode: DeletedRow.init)
  }

  /// The items that were deleted from a folder under a name since `time`, latest first.
  package func deleted(
    _ kind: DeletedKind, from parent: Int64, name: [UInt8], since time: Timestamp
  ) throws -> [DeletedRow] {
    try all(kind.queries.ofName, parent, time.nanoseconds, name, decode: DeletedRow.init)
  }

  /// Whether there is such.
  package func hasDeleted(_ kind: DeletedKind, from parent: Int64, name: [UInt8], since time: Timestamp) throws -> Bool
  {
    try first(kind.queries.hasName, parent, time.nanoseconds, name) { _ in true } ?? false
  }

  /// Some of the items that were deleted from a folder.
  package func deleted(from parent: Int64, limit: Int) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE parent = ? LIMIT ?", parent, limit, decode: DeletedRow.init)
  }

  /// The folders that were deleted from a folder.
  package func deletedFolders(from parent: Int64) throws -> Set<Int64> {
    Set(
      try all(
        "SELECT d.ino FROM deleted d JOIN inodes i ON i.ino = d.ino WHERE d.parent = ? AND i.mode & 61440 = 16384",
        parent
      ) { try $0[0] as Int64 })
  }

  /// The items that were deleted from a folder under a name, latest first.
  package func deleted(from parent: Int64, name: [UInt8]) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE parent = ? AND name = ? ORDER BY time DESC, ino DESC",
      parent, name, decode: DeletedRow.init)
  }

  /// The items that were deleted before `last`, latest first, with the accounts in whose trees they were.
  ///
  /// - Parameter last: the last row of the part before; nil for the first part.
  package func deleted(before last: DeletedRow?, limit: Int) throws -> [(row: DeletedRow, owner: Int64)] {
    try all(
      """
      SELECT d.ino, d.parent, d.name, d.time, d.actor, i.owner FROM deleted d JOIN inodes i ON i.ino = d.ino
      WHERE (d.time, d.ino) < (?, ?) ORDER BY d.time DESC, d.ino DESC LIMIT ?
      """, last?.time.nanoseconds ?? .max, last?.ino ?? .max, limit
    ) { row in
      let deleted = try DeletedRow(row)
      return (deleted, currentOwner(of: deleted.ino, named: try row[5]))
    }
  }

  /// Inodes that were deleted before `border`, oldest first, and of which no version was made from then until `time`.
  package func deleted(before border: Timestamp, at time: Timestamp) throws -> [Int64] {
    try all(
      """
      SELECT d.ino FROM deleted d JOIN inodes i ON i.ino = d.ino WHERE d.time < ?1
        AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.item = i.item AND v.time BETWEEN ?1 AND ?2)
      ORDER BY d.time
      """, border.nanoseconds, time.nanoseconds
    ) { try $0[0] as Int64 }
  }

  /// Inodes that were deleted before `border` by the clock, but after something that was logged from `border` until
  /// `time`.
  package func deletedByClockBehind(before border: Timestamp, at time: Timestamp) throws -> Set<Int64> {
    Set(
      try all(
        """
        SELECT i.ino FROM (SELECT item, type, time,
            max(time) FILTER (WHERE time <= ?2) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS latest FROM events) e
          JOIN inodes i ON i.item = e.item
        WHERE e.type = ?3 AND e.time < ?1 AND e.latest >= ?1
        """, border.nanoseconds, time.nanoseconds, EventType.deleted.rawValue
      ) { try $0[0] as Int64 })
  }

  /// How many items lie in a folder or were deleted from it, and so on below it; 0 if it is no folder.
  ///
  /// - Parameters:
  ///   - time: Only items deleted since then count.
  ///   - limit: The highest count.
  package func countBelow(
    _ ino: Int64, deletedSince time: Timestamp = Timestamp(nanoseconds: .min), limit: Int
  ) throws -> Int {
    try first(
      """
      WITH RECURSIVE below (ino) AS (
        VALUES (?1)
        UNION SELECT e.ino FROM below b JOIN entries e ON e.parent = b.ino
        UNION SELECT d.ino FROM below b JOIN deleted d ON d.parent = b.ino AND d.time >= ?3
        LIMIT ?2 + 1
      ) SELECT count(*) - 1 FROM below
      """, ino, limit, time.nanoseconds
    ) { try $0[0] } ?? 0
  }

  /// All inodes that were deleted, with the folders from which they were.
  package func deletedParents(_ body: (_ ino: Int64, _ parent: Int64) throws -> Void) throws {
    try each("SELECT ino, parent FROM deleted") {
      try body($0[0], $0[1])
      return true
    }
  }

  package func insert(_ deleted: DeletedRow) throws {
    try run(
      Self.deletedInsertion,
      deleted.ino, deleted.parent, deleted.name, deleted.time.nanoseconds, deleted.actor)
  }

  package func removeDeleted(_ ino: Int64) throws { try run("DELETE FROM deleted WHERE ino = ?", ino) }
}
