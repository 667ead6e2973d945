internal import GRDB
package import SheafModel

/// Sums for `sheaf status`.
package struct StoreCounts: Sendable {
  package var accounts = 0
  package var documents = 0
  package var folders = 0
  package var versions = 0
  package var deleted = 0
  package var events = 0
  package var contentBytes: Int64 = 0
  package var storedBytes: Int64 = 0
}

extension StoreTransaction {
  package func counts() throws -> StoreCounts {
    func number(_ sql: String) throws -> Int64 { try first(sql, []) { ($0[0] as Int64?) ?? 0 } ?? 0 }
    var counts = StoreCounts()
    counts.accounts = Int(try number("SELECT count(*) FROM accounts"))
    counts.documents = Int(try number("SELECT count(*) FROM inodes WHERE mode & 61440 = 32768 AND nlink > 0"))
    counts.folders = Int(
      try number("SELECT count(*) FROM inodes WHERE mode & 61440 = 16384 AND nlink > 0 AND parent > 0"))
    counts.versions = Int(try number("SELECT count(*) FROM versions"))
    counts.deleted = Int(try number("SELECT count(*) FROM deleted"))
    counts.events = Int(try number("SELECT count(*) FROM events"))
    counts.contentBytes = try number("SELECT sum(size) FROM inodes WHERE mode & 61440 = 32768 AND nlink > 0")
    counts.storedBytes = try number("SELECT sum(size) FROM chunks")
    return counts
  }

  /// The rules of docs/FORMAT.md as queries, each of which finds what breaks it.
  private static let rules: [(rule: String, sql: String)] = [
    (
      "an entry names an inode",
      "SELECT parent, ino FROM entries e WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = e.ino)"
    ),
    (
      "an entry lies in a folder that has a name",
      """
      SELECT e.parent, e.ino FROM entries e LEFT JOIN inodes p ON p.ino = e.parent
      WHERE p.ino IS NULL OR p.mode & 61440 <> 16384 OR p.nlink = 0
      """
    ),
    (
      "a file's link count is its number of names",
      """
      SELECT i.ino, i.nlink FROM inodes i LEFT JOIN (SELECT ino, count(*) AS n FROM entries GROUP BY ino) e ON e.ino = i.ino
      WHERE i.mode & 61440 <> 16384 AND i.nlink <> coalesce(e.n, 0)
      """
    ),
    (
      "a folder's link count is two and its folders",
      """
      SELECT i.ino, i.nlink FROM inodes i LEFT JOIN (
        SELECT e.parent AS ino, count(*) AS n FROM entries e JOIN inodes c ON c.ino = e.ino
        WHERE c.mode & 61440 = 16384 GROUP BY e.parent) f ON f.ino = i.ino
      WHERE i.mode & 61440 = 16384 AND i.nlink > 0 AND i.nlink <> 2 + coalesce(f.n, 0)
      """
    ),
    (
      "a named inode's oldest name is an entry",
      """
      SELECT i.ino, i.parent FROM inodes i WHERE i.nlink > 0 AND i.parent > 0 AND NOT EXISTS (
        SELECT 1 FROM entries e WHERE e.parent = i.parent AND e.name = i.name AND e.ino = i.ino AND e.extra = 0)
      """
    ),
    (
      "an inode without a name is among the deleted",
      "SELECT ino, nlink FROM inodes i WHERE (nlink = 0) <> EXISTS (SELECT 1 FROM deleted d WHERE d.ino = i.ino)"
    ),
    (
      "an inode's item exists",
      "SELECT ino, item FROM inodes i WHERE item IS NOT NULL AND NOT EXISTS (SELECT 1 FROM items WHERE id = i.item)"
    ),
    ("an item is an inode", "SELECT id, kind FROM items t WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE item = t.id)"),
    (
      "an inode's owner is an account",
      "SELECT ino, owner FROM inodes i WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = i.owner)"
    ),
    (
      "an attribute belongs to an inode",
      "SELECT ino, 0 FROM xattrs x WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = x.ino)"
    ),
    (
      "a version belongs to an item",
      "SELECT item, number FROM versions v WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = v.item)"
    ),
    (
      "an item's current version exists",
      """
      SELECT id, version FROM items t WHERE version > 0
        AND NOT EXISTS (SELECT 1 FROM versions WHERE item = t.id AND number = t.version)
      """
    ),
    (
      "a document's contents are those of its current version",
      """
      SELECT i.ino, t.version FROM inodes i JOIN items t ON t.id = i.item
        JOIN versions v ON v.item = t.id AND v.number = t.version WHERE v.content <> i.content
      """
    ),
    (
      "no version is above the item's last",
      "SELECT v.item, v.number FROM versions v JOIN items t ON t.id = v.item WHERE v.number > t.last_version"
    ),
    (
      "an account's Documents is a folder",
      "SELECT id, documents FROM accounts a WHERE NOT EXISTS (SELECT 1 FROM inodes WHERE ino = a.documents AND parent = 0 AND mode & 61440 = 16384)"
    ),
  ]

  /// Verifies every chunk's hash, every list of extents and every rule of docs/FORMAT.md.
  package func check(progress: (SheafModel.Progress) -> Void) throws -> CheckReport {
    var problems: [String] = []
    for (rule, sql) in Self.rules {
      for (first, second) in try all(sql + " LIMIT 20", [], { ($0[0] as Int64, ($0[1] as Int64?) ?? 0) }) {
        problems.append("\(rule): not so for (\(first), \(second))")
      }
    }
    let total = try first("SELECT count(*) FROM chunks", []) { $0[0] as Int64 } ?? 0
    var sizes: [Int64: Int64] = [:]
    var done: Int64 = 0
    try each("SELECT id, hash, size, encoding, data FROM chunks ORDER BY id", []) { row in
      let id: Int64 = row[0]
      let bytes = try row.bytes(4)
      let hash = bytes.withUnsafeBytes { ChunkHash(of: $0) }
      if row[3] as Int64 != 0 { problems.append("chunk \(id): unknown encoding") }
      if hash.bytes != (try row.bytes(1)) { problems.append("chunk \(id): its bytes do not have its hash") }
      if row[2] as Int64 != Int64(bytes.count) { problems.append("chunk \(id): its size is wrong") }
      sizes[id] = Int64(bytes.count)
      done += 1
      if done % 256 == 0 || done == total { progress(.init(done: done, total: total)) }
      return problems.count < 1000
    }
    try checkContents(sizes, &problems)
    return CheckReport(
      problems: problems, chunks: Int(total),
      versions: Int(try first("SELECT count(*) FROM versions", []) { $0[0] as Int64 } ?? 0),
      items: Int(try first("SELECT count(*) FROM items", []) { $0[0] as Int64 } ?? 0))
  }

  private func checkContents(_ sizes: [Int64: Int64], _ problems: inout [String]) throws {
    var found: [String] = []
    func check(_ extents: [Extent], _ subject: String) {
      for extent in extents where !extent.isHole {
        guard let size = sizes[extent.chunk] else {
          found.append("\(subject): chunk \(extent.chunk) is missing")
          continue
        }
        if extent.offset + extent.length > size { found.append("\(subject): chunk \(extent.chunk) is too short") }
      }
    }
    var nodes: Set<ExtentNode> = []
    for (what, sql) in [
      ("inode", "SELECT ino, 0, size, content FROM inodes WHERE mode & 61440 = 32768"),
      ("version", "SELECT item, number, size, content FROM versions"),
    ] {
      try each(sql, []) { row in
        let subject =
          what == "inode" ? "inode \(row[0] as Int64)" : "version \(row[1] as Int64) of item \(row[0] as Int64)"
        guard let content = try? StoredContent(encoded: row.bytes(3)) else {
          found.append("\(subject): its list of extents is damaged")
          return true
        }
        if content.length != row[2] as Int64 { found.append("\(subject): its size is not that of its contents") }
        switch content {
        case .extents(let extents): check(extents, subject)
        case .nodes(let list): nodes.formUnion(list)
        }
        return found.count < 1000
      }
    }
    for node in nodes {
      guard let bytes = try? chunkBytes(node.chunk), let extents = try? StoredContent.decodeNode(bytes) else {
        found.append("node \(node.chunk): is missing or damaged")
        continue
      }
      if extents.reduce(0, { $0 + $1.length }) != node.length {
        found.append("node \(node.chunk): its length is wrong")
      }
      check(extents, "node \(node.chunk)")
    }
    problems += found
  }
}
