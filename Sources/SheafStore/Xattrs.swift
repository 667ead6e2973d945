/// The room that extended attributes take.
package struct XattrSpace: Hashable, Sendable {
  package private(set) var count = 0
  /// Bytes of the names, each with a NUL behind it, as listxattr(2) gives them.
  package private(set) var nameBytes = 0
  package private(set) var valueBytes = 0

  /// None.
  package init() {}

  fileprivate init(count: Int, nameBytes: Int, valueBytes: Int) {
    (self.count, self.nameBytes, self.valueBytes) = (count, nameBytes, valueBytes)
  }

  /// Bytes of names and values.
  package var bytes: Int { nameBytes + valueBytes }

  package mutating func add(_ name: [UInt8], valueBytes: Int) {
    count += 1
    nameBytes += name.count + 1
    self.valueBytes += valueBytes
  }

  package mutating func remove(_ name: [UInt8], valueBytes: Int) {
    count -= 1
    nameBytes -= name.count + 1
    self.valueBytes -= valueBytes
  }
}

/// Extended attributes: values can be large, and are read only one by one, or where somebody needs all of them.
extension StoreTransaction {
  package func xattr(_ ino: Int64, _ name: [UInt8]) throws -> [UInt8]? {
    if isLeft(name, of: ino) { return nil }
    return try known(
      connection.known?.xattrs, XattrKey(ino: ino, name: name), "SELECT value FROM xattrs WHERE ino = ? AND name = ?",
      ino, name
    ) { try $0.bytes(0) }
  }

  package func xattrNames(_ ino: Int64) throws -> [[UInt8]] {
    try all("SELECT name FROM xattrs WHERE ino = ? ORDER BY name", ino) { try $0.bytes(0) }.filter {
      !isLeft($0, of: ino)
    }
  }

  /// The names with the bytes of their values, in the order of names.
  package func xattrSizes(_ ino: Int64) throws -> [(name: [UInt8], valueBytes: Int)] {
    try all("SELECT name, length(value) FROM xattrs WHERE ino = ? ORDER BY name", ino) {
      (try $0.bytes(0), try $0[1])
    }
  }

  package func xattrSpace(_ ino: Int64) throws -> XattrSpace {
    try first(
      "SELECT count(*), coalesce(sum(length(name) + 1), 0), coalesce(sum(length(value)), 0) FROM xattrs WHERE ino = ?",
      ino
    ) { XattrSpace(count: try $0[0], nameBytes: try $0[1], valueBytes: try $0[2]) } ?? XattrSpace()
  }

  /// The attributes with their values, in the order of names, up to the name `last`.
  package func xattrs(_ ino: Int64, through last: [UInt8]) throws -> [(name: [UInt8], value: [UInt8])] {
    try all("SELECT name, value FROM xattrs WHERE ino = ? AND name <= ? ORDER BY name", ino, last) {
      (try $0.bytes(0), try $0.bytes(1))
    }
  }

  package func setXattr(_ ino: Int64, _ name: [UInt8], _ value: [UInt8]) throws {
    try change(
      "INSERT INTO xattrs (ino, name, value) VALUES (?,?,?) ON CONFLICT DO UPDATE SET value = excluded.value",
      ino, name, value
    ) { $0.xattrs.note(XattrKey(ino: ino, name: name), value) }
  }

  package func removeXattr(_ ino: Int64, _ name: [UInt8]) throws {
    try change("DELETE FROM xattrs WHERE ino = ? AND name = ?", ino, name) {
      $0.xattrs.note(XattrKey(ino: ino, name: name), nil)
    }
  }

  /// Gives one inode attributes of another one, without reading their values. Its own attributes of these names stay.
  ///
  /// - Parameter names: in their order, one or more; of those between them `target` has what `source` has.
  package func copyXattrs(_ names: [[UInt8]], from source: Int64, to target: Int64) throws {
    guard let first = names.first, let last = names.last else { return }
    try change(
      """
      INSERT INTO xattrs (ino, name, value) SELECT ?1, name, value FROM xattrs WHERE ino = ?2 AND name BETWEEN ?3 AND ?4
        ON CONFLICT DO NOTHING
      """, target, source, first, last
    ) { known in for name in names { known.xattrs.forget(XattrKey(ino: target, name: name)) } }
  }

  /// Removes all attributes of an inode.
  ///
  /// - Parameter names: their names.
  package func removeXattrs(_ names: [[UInt8]], of ino: Int64) throws {
    if names.isEmpty { return }
    try change("DELETE FROM xattrs WHERE ino = ?", ino) { known in
      for name in names { known.xattrs.note(XattrKey(ino: ino, name: name), nil) }
    }
  }
}
