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
    ino = row[0]
    parent = row[1]
    name = try row.bytes(2)
    time = Timestamp(nanoseconds: row[3])
    actor = row[4]
  }
}

extension StoreTransaction {
  private static let columns = "ino, parent, name, time, actor"
  // Built once: putting a text together costs as much as running it.
  private static let deletedInsertion = "INSERT INTO deleted (\(columns)) VALUES (?,?,?,?,?)"

  package func deleted(_ ino: Int64) throws -> DeletedRow? {
    try first("SELECT \(Self.columns) FROM deleted WHERE ino = ?", ino, decode: DeletedRow.init)
  }

  /// What was deleted from a folder, latest first.
  package func deleted(from parent: Int64) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE parent = ? ORDER BY time DESC, ino DESC", parent,
      decode: DeletedRow.init)
  }

  /// What was deleted from a folder under a name, latest first.
  package func deleted(from parent: Int64, name: [UInt8]) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE parent = ? AND name = ? ORDER BY time DESC, ino DESC",
      parent, name, decode: DeletedRow.init)
  }

  /// All that was deleted from an account's tree, latest first.
  package func deleted(owner: Int64) throws -> [DeletedRow] {
    try all(
      """
      SELECT d.ino, d.parent, d.name, d.time, d.actor FROM deleted d JOIN inodes i ON i.ino = d.ino
      WHERE i.owner = ? ORDER BY d.time DESC, d.ino DESC
      """, owner, decode: DeletedRow.init)
  }

  /// What was deleted before `time`, oldest first.
  package func deleted(before time: Timestamp, limit: Int) throws -> [DeletedRow] {
    try all(
      "SELECT \(Self.columns) FROM deleted WHERE time < ? ORDER BY time LIMIT ?", time.nanoseconds, limit,
      decode: DeletedRow.init)
  }

  package func insert(_ deleted: DeletedRow) throws {
    try run(
      Self.deletedInsertion,
      deleted.ino, deleted.parent, deleted.name, deleted.time.nanoseconds, deleted.actor)
  }

  package func removeDeleted(_ ino: Int64) throws { try run("DELETE FROM deleted WHERE ino = ?", ino) }
}
