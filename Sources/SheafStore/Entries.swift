internal import Foundation
package import SheafModel

/// A row of `entries`: a name in a folder.
package struct EntryRow: Hashable, Sendable {
  package let parent: Int64
  /// Position in the folder's order, derived from the name; the cookie of readdir(3).
  package let hash: Int64
  package let name: [UInt8]
  package var ino: Int64
  /// Whether the inode has an older name.
  package var isExtra: Bool
  /// Since when its item has had the name; 1970 where that was before anybody noted it.
  package var since: Timestamp

  package init(
    parent: Int64, hash: Int64, name: [UInt8], ino: Int64, isExtra: Bool = false, since: Timestamp
  ) {
    self.parent = parent
    self.hash = hash
    self.name = name
    self.ino = ino
    self.isExtra = isExtra
    self.since = since
  }

  var key: EntryKey { EntryKey(parent: parent, hash: hash, name: name) }

  fileprivate init(_ row: Row) throws {
    parent = try row[0]
    hash = try row[1]
    name = try row.name(2)
    ino = try row[3]
    isExtra = try row[4] as Int64 != 0
    since = try Timestamp(nanoseconds: row[5])
  }
}

/// The order of names in folders: a keyed hash, so that a folder's cookies stay valid while entries come and go.
package struct NameHash: Sendable {
  private let key: UInt64

  package init(key: Int64) { self.key = UInt64(bitPattern: key) }

  /// Positive and at least 3: 1 and 2 are the cookies of `.` and `..`.
  package func callAsFunction(_ name: [UInt8]) -> Int64 {
    var hash: UInt64 = key ^ 0xCBF2_9CE4_8422_2325
    for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    hash = (hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD ^ key
    hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
    return max(3, Int64(bitPattern: (hash ^ (hash >> 33)) >> 1))
  }
}

extension StoreTransaction {
  private static let columns = "parent, hash, name, ino, extra, since"
  // Built once: composing a text costs as much as running it.
  private static let entryByName = "SELECT \(columns) FROM entries WHERE parent = ? AND hash = ? AND name = ?"
  private static let entryInsertion = "INSERT INTO entries (\(columns)) VALUES (?,?,?,?,?,?)"

  package func entry(_ parent: Int64, hash: Int64, name: [UInt8]) throws -> EntryRow? {
    let key = EntryKey(parent: parent, hash: hash, name: name)
    if let known = connection.known {
      // As a rule the kernel has looked it up just before.
      if let row = known.entries[key] { return row }
      if known.isWhole(parent) { return nil }
    }
    return try known(
      connection.known?.entries, key, Self.entryByName, parent, hash, name, decode: EntryRow.init)
  }

  /// The entries after `hash` in the folder's order, about `limit` of them; names of one hash always come together.
  package func entries(_ parent: Int64, after hash: Int64, limit: Int) throws -> [EntryRow] {
    var rows = try all(
      "SELECT \(Self.columns) FROM entries WHERE parent = ? AND hash > ? ORDER BY hash, name LIMIT ?",
      parent, hash, limit, decode: EntryRow.init)
    if rows.count == limit, let last = rows.last {
      rows += try all(
        "SELECT \(Self.columns) FROM entries WHERE parent = ? AND hash = ? AND name > ? ORDER BY name",
        parent, last.hash, last.name, decode: EntryRow.init)
    }
    return rows
  }

  package func hasEntries(_ parent: Int64) throws -> Bool {
    try first("SELECT 1 FROM entries WHERE parent = ? LIMIT 1", parent) { _ in true } ?? false
  }

  /// The folders in a folder.
  package func folders(in parent: Int64) throws -> [Int64] {
    try all(
      "SELECT e.ino FROM entries e JOIN inodes i ON i.ino = e.ino WHERE e.parent = ? AND i.mode & 61440 = 16384", parent
    ) { try $0[0] }
  }

  /// Another name of `ino` than its oldest.
  package func extraEntry(_ ino: Int64) throws -> EntryRow? {
    try first(
      "SELECT \(Self.columns) FROM entries WHERE ino = ? AND extra = 1 ORDER BY parent, hash, name LIMIT 1", ino,
      decode: EntryRow.init)
  }

  /// The next folder after `folder`, in the order of their numbers, in which `ino` has another name than its oldest.
  package func extraFolder(_ ino: Int64, after folder: Int64) throws -> Int64? {
    try first(
      "SELECT parent FROM entries WHERE ino = ? AND extra = 1 AND parent > ? ORDER BY parent LIMIT 1", ino, folder
    ) { try $0[0] }
  }

  /// Names of files that have several, about `limit` of them: for each but the oldest its folder, with the oldest one's
  /// folder and name.
  package func extraNames(
    limit: Int
  ) throws -> [(folder: Int64, name: [UInt8], oldestFolder: Int64, oldestName: [UInt8])] {
    try all(
      """
      SELECT e.parent, e.name, i.parent, i.name FROM entries e JOIN inodes i ON i.ino = e.ino WHERE e.extra = 1 LIMIT ?
      """, limit
    ) { try ($0[0], try $0.bytes(1), $0[2], try $0.bytes(3)) }
  }

  /// All names of a file, the oldest one last.
  package func names(of ino: Int64) throws -> [(folder: Int64, name: [UInt8])] {
    try all(
      """
      SELECT parent, name FROM entries WHERE ino = ? AND extra = 1
      UNION ALL SELECT parent, name FROM inodes WHERE ino = ? AND nlink > 0
      """, ino, ino
    ) { try ($0[0], try $0.bytes(1)) }
  }

  /// The entries of a folder that come after one in its order, `limit` of them at most, each with whether it is a
  /// folder and the number of its links.
  package func linkCounts(
    in parent: Int64, after last: EntryRow?, limit: Int
  ) throws -> [(entry: EntryRow, isFolder: Bool, count: Int64)] {
    try all(
      """
      SELECT e.parent, e.hash, e.name, e.ino, e.extra, e.since, i.mode & 61440 = 16384, i.nlink
      FROM entries e JOIN inodes i ON i.ino = e.ino
      WHERE e.parent = ? AND (e.hash, e.name) > (?, ?) ORDER BY e.hash, e.name LIMIT ?
      """, parent, last?.hash ?? 0, last?.name ?? [], limit
    ) { try (EntryRow($0), $0[6] as Int64 != 0, $0[7]) }
  }

  package func insert(_ entry: EntryRow) throws {
    try change(
      Self.entryInsertion, entry.parent, entry.hash, entry.name, entry.ino, entry.isExtra ? 1 : 0,
      entry.since.nanoseconds
    ) { $0.entries.note(entry.key, entry) }
  }

  package func update(_ entry: EntryRow) throws {
    try change(
      "UPDATE entries SET ino = ?, extra = ?, since = ? WHERE parent = ? AND hash = ? AND name = ?",
      entry.ino, entry.isExtra ? 1 : 0, entry.since.nanoseconds, entry.parent, entry.hash, entry.name
    ) { known in known.entries.noteChange(entry.key) { $0 = entry } }
  }

  /// Gives the entry `old` another folder or name.
  package func move(_ old: EntryRow, to new: EntryRow) throws {
    try change(
      "UPDATE entries SET parent = ?, hash = ?, name = ?, since = ? WHERE parent = ? AND hash = ? AND name = ?",
      new.parent, new.hash, new.name, new.since.nanoseconds, old.parent, old.hash, old.name
    ) { known in
      if case .some(.some) = known.entries[old.key] {
        known.entries.note(new.key, new)
      } else {
        known.entries.forget(new.key)
      }
      known.entries.note(old.key, nil)
    }
  }

  package func delete(_ entry: EntryRow) throws {
    try change(
      "DELETE FROM entries WHERE parent = ? AND hash = ? AND name = ?", entry.parent, entry.hash, entry.name
    ) { $0.entries.note(entry.key, nil) }
  }
}
