internal import Foundation
internal import SheafModel

/// Naming, for people, the documents that a damaged library has lost something of.
extension StoreTransaction {
  /// Documents that are named at most.
  private static let damagedLimit = 100
  /// Versions of each.
  private static let versionLimit = 100

  /// Documents of whose versions some use chunks that cannot be read.
  ///
  /// - Parameter isReadable: Whether a chunk is there and has its hash.
  func damagedDocuments(_ isReadable: (Int64) -> Bool) throws -> [DamagedDocument] {
    var nodes: [Int64: Bool] = [:]
    func isWhole(_ node: Int64) -> Bool {
      if let known = nodes[node] { return known }
      let extents = isReadable(node) ? (try? chunkBytes(node)).flatMap { try? StoredContent.decodeNode($0) } : nil
      let isWhole = extents?.allSatisfy { !$0.isStored || isReadable($0.chunk) } ?? false
      nodes[node] = isWhole
      return isWhole
    }
    func isWhole(_ bytes: [UInt8]) -> Bool {
      switch try? StoredContent(encoded: bytes) {
      case .extents(let extents): extents.allSatisfy { !$0.isStored || isReadable($0.chunk) }
      case .nodes(let list): list.allSatisfy { isWhole($0.chunk) }
      case nil: false
      }
    }
    var versions: [(item: Int64, numbers: [Int64])] = []
    try each("SELECT item, number, content FROM versions ORDER BY item, number DESC") { row in
      guard try !isWhole(row.bytes(2)) else { return true }
      let item: Int64 = try row[0]
      if versions.last?.item != item {
        guard versions.count < Self.damagedLimit else { return false }
        versions.append((item, []))
      }
      if versions[versions.count - 1].numbers.count < Self.versionLimit {
        versions[versions.count - 1].numbers.append(try row[1])
      }
      return true
    }
    var documents: [DamagedDocument] = []
    for (item, numbers) in versions {
      let facts = try first(
        """
        SELECT t.uuid, t.version, a.handle, coalesce(i.ino, 0), i.nlink = 0 FROM items t
        JOIN accounts a ON a.id = t.owner LEFT JOIN inodes i ON i.item = t.id WHERE t.id = ?
        """, item,
        decode: {
          (
            id: UUID(bytes: try $0.bytes(0)), version: try $0[1] as Int64, account: try $0[2] as String,
            ino: try $0[3] as Int64,
            isDeleted: try ($0[4] as Int64?) == 1
          )
        })
      guard let facts else { continue }
      documents.append(
        DamagedDocument(
          id: facts.id.text, account: facts.account, path: try placeForPeople(facts.ino), isDeleted: facts.isDeleted,
          versions: numbers, isCurrent: numbers.contains(facts.version)))
    }
    return documents
  }

  /// A path for people, from `Documents` on.
  func placeForPeople(_ ino: Int64) throws -> String {
    var names: [String] = []
    var place = ino
    // Deeper paths tell their end.
    while names.count < 64,
      let (parent, name) = try first(
        "SELECT parent, name FROM inodes WHERE ino = ? AND parent > 0", place,
        decode: { (try $0[0] as Int64, String(decoding: try $0.bytes(1), as: UTF8.self).printable) })
    {
      names.append(name)
      place = parent
    }
    return (["Documents"] + names.reversed()).joined(separator: "/")
  }
}
