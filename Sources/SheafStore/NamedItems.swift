package import SheafModel

/// A name in a folder, with what a search asks about what has it.
package struct NamedItemRow: Sendable {
  /// Position in the folder's order, with the name.
  package let hash: Int64
  package let name: [UInt8]
  package let ino: Int64
  package let isFolder: Bool
  /// Nil for fifos, sockets and device nodes.
  package let item: Int64?
  /// The account that made the current version, and the time; nil for what has none.
  package let author: Int64?
  package let time: Timestamp?
  /// Whether the current version's contents are at a hub, and not all on this machine.
  package let isAbsent: Bool
}

extension StoreTransaction {
  /// Whether the current version of a document, which the query calls `t`, has contents that are not all here.
  private static let isAbsent = """
    EXISTS (SELECT 1 FROM absent_contents a JOIN replica_versions r ON r.item = a.item AND r.uuid = a.version
      WHERE a.item = t.id AND r.number = t.version)
    """

  /// The names of a folder that come after one in its order, `limit` of them at most.
  package func namedItems(in parent: Int64, after last: NamedItemRow?, limit: Int) throws -> [NamedItemRow] {
    try all(
      """
      SELECT e.hash, e.name, e.ino, i.mode & 61440 = 16384, i.item, v.author, v.time, \(Self.isAbsent)
      FROM entries e JOIN inodes i ON i.ino = e.ino LEFT JOIN items t ON t.id = i.item
        LEFT JOIN versions v ON v.item = t.id AND v.number = t.version
      WHERE e.parent = ? AND (e.hash, e.name) > (?, ?) ORDER BY e.hash, e.name LIMIT ?
      """, parent, last?.hash ?? 0, last?.name ?? [], limit
    ) {
      NamedItemRow(
        hash: try $0[0], name: try $0.name(1), ino: try $0[2], isFolder: try $0[3] as Int64 != 0, item: try $0[4],
        author: try $0[5], time: (try $0[6] as Int64?).map { Timestamp(nanoseconds: $0) },
        isAbsent: try $0[7])
    }
  }

  /// Documents that have a version, after one, in the order of their numbers, with their current versions' numbers,
  /// and whether the contents of these are not all here. Temporary, lock and backup files are not among them.
  package func currentVersions(
    after item: Int64, limit: Int
  ) throws -> [(item: Int64, number: Int64, isAbsent: Bool)] {
    try all(
      """
      SELECT t.id, t.version, \(Self.isAbsent) FROM items t
      WHERE t.id > ? AND t.kind = ? AND t.version > 0 AND t.quiet = 0 ORDER BY t.id LIMIT ?
      """, item, ItemKind.document.rawValue, limit
    ) { (try $0[0], try $0[1], try $0[2]) }
  }

  /// The first bytes of some contents, `limit` at most; nil where a hole is among them, as no text has one, or they are
  /// not all on this machine.
  package func firstBytes(of content: StoredContent, limit: Int) throws -> [UInt8]? {
    var bytes: [UInt8] = []
    /// Appends what extents have, up to the limit; returns false at a hole, or where there is nothing.
    func add(_ extents: [Extent]) throws -> Bool {
      for extent in extents where bytes.count < limit {
        if !extent.isStored { return false }
        let chunk = try chunkBytes(extent.chunk)
        guard extent.offset <= chunk.count else {
          throw SheafError(.corrupt, subject: "chunk \(extent.chunk)", advice: "run sheaf check")
        }
        bytes += chunk[Int(extent.offset)...].prefix(min(limit - bytes.count, Int(clamping: extent.length)))
      }
      return true
    }
    switch content {
    case .extents(let extents): return try add(extents) ? bytes : nil
    case .nodes(let nodes):
      for node in nodes where bytes.count < limit {
        guard try add(StoredContent.decodeNode(chunkBytes(node.chunk))) else { return nil }
      }
      return bytes
    }
  }
}
