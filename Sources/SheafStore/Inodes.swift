internal import Foundation
package import SheafModel

/// A row of `inodes`: a file's attributes, as stat(2) tells them, its current contents, and its item.
package struct InodeRow: Hashable, Sendable {
  package var ino: Int64
  /// The item; nil for fifos, sockets and device nodes.
  package var item: Int64?
  /// Account in whose tree it lies.
  package var owner: Int64
  /// Folder and name of the oldest of its names, kept when the last is removed; 0 for an account's `Documents`.
  package var parent: Int64
  package var name: [UInt8]
  /// Type and permission bits, as in `st_mode`.
  package var mode: UInt32
  package var nlink: Int64
  package var uid: UInt32
  package var gid: UInt32
  package var rdev: UInt64
  package var size: Int64
  package var atime: Timestamp
  package var mtime: Timestamp
  package var ctime: Timestamp
  /// Contents of a regular file.
  package var content: StoredContent?
  /// Target of a symbolic link.
  package var target: [UInt8]?

  package init(
    ino: Int64, item: Int64?, owner: Int64, parent: Int64, name: [UInt8], mode: UInt32, nlink: Int64, uid: UInt32,
    gid: UInt32, rdev: UInt64 = 0, size: Int64 = 0, time: Timestamp, content: StoredContent? = nil,
    target: [UInt8]? = nil
  ) {
    self.ino = ino
    self.item = item
    self.owner = owner
    self.parent = parent
    self.name = name
    self.mode = mode
    self.nlink = nlink
    self.uid = uid
    self.gid = gid
    self.rdev = rdev
    self.size = size
    atime = time
    mtime = time
    ctime = time
    self.content = content
    self.target = target
  }

  /// Decodes the columns of ``StoreTransaction/inode(_:)``.
  fileprivate init(_ row: Row) throws {
    ino = try row[0]
    item = try row[1]
    owner = try row[2]
    parent = try row[3]
    guard parent >= 0, parent != ino else {
      throw SheafError(.corrupt, subject: "inode \(ino)", reason: "lies in \(parent)", advice: "run sheaf check")
    }
    // An account's own folder has no name.
    name = parent == 0 ? try row.bytes(4) : try row.name(4)
    mode = try UInt32(truncatingIfNeeded: row[5] as Int64)
    nlink = try row[6]
    guard (0...Int64(UInt32.max)).contains(nlink) else {
      throw SheafError(.corrupt, subject: "inode \(ino)", reason: "has \(nlink) names", advice: "run sheaf check")
    }
    uid = try UInt32(truncatingIfNeeded: row[7] as Int64)
    gid = try UInt32(truncatingIfNeeded: row[8] as Int64)
    rdev = try UInt64(bitPattern: row[9] as Int64)
    size = try row[10]
    guard (0...StoredContent.maximumLength).contains(size) else {
      throw SheafError(.corrupt, subject: "inode \(ino)", reason: "has \(size) bytes", advice: "run sheaf check")
    }
    atime = try Timestamp(nanoseconds: row[11])
    mtime = try Timestamp(nanoseconds: row[12])
    ctime = try Timestamp(nanoseconds: row[13])
    let content = try row.bytes(14)
    self.content = content.isEmpty ? nil : try StoredContent(encoded: content)
    let target = try row.bytes(15)
    self.target = target.isEmpty ? nil : target
  }
}

extension StoreTransaction {
  private static let columns =
    "ino, item, owner, parent, name, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime, content, target"
  // Built once: composing a text costs as much as running it.
  private static let inodeByNumber = "SELECT \(columns) FROM inodes WHERE ino = ?"
  private static let listed =
    "SELECT \(columns.split(separator: ", ").map { "i.\($0)" }.joined(separator: ", ")), e.hash, e.name"
    + " FROM entries e JOIN inodes i ON i.ino = e.ino WHERE e.parent = ?"
  private static let inodeUpdate = "UPDATE inodes SET \(updated)"
  private static let inodeAndItemUpdate = "UPDATE inodes SET item = ?, \(updated)"
  private static let updated = """
    owner = ?, parent = ?, name = ?, mode = ?, nlink = ?, uid = ?, gid = ?, size = ?, atime = ?, mtime = ?, ctime = ?,
      content = ? WHERE ino = ?
    """
  private static let inodeInsertion = "INSERT INTO inodes (\(columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"

  package func inode(_ ino: Int64) throws -> InodeRow? {
    try first(Self.inodeByNumber, ino) { current(try InodeRow($0)) }
  }

  /// The entries of a folder after `hash` in its order, about `limit` of them, with their inodes; names of one hash
  /// always come together.
  package func listing(
    _ parent: Int64, after hash: Int64, limit: Int
  ) throws -> [(hash: Int64, name: [UInt8], inode: InodeRow)] {
    try readableListing(parent, after: hash, limit: limit).map { row in
      guard let inode = row.inode else {
        throw SheafError(
          .corrupt, subject: "inode \(row.ino)", reason: "has a row that cannot be", advice: "run sheaf check")
      }
      return (row.hash, row.name, inode)
    }
  }

  /// As ``listing(_:after:limit:)``, with nil for an inode whose row is damaged.
  package func readableListing(
    _ parent: Int64, after hash: Int64, limit: Int
  ) throws -> [(hash: Int64, name: [UInt8], ino: Int64, inode: InodeRow?)] {
    func decode(_ row: Row) throws -> (hash: Int64, name: [UInt8], ino: Int64, inode: InodeRow?) {
      let inode: InodeRow?
      do {
        inode = current(try InodeRow(row))
      } catch let error as SheafError where error.kind == .corrupt {
        inode = nil
      }
      return (try row[16], try row.name(17), try row[0], inode)
    }
    var rows = try all(
      Self.listed + " AND e.hash > ? ORDER BY e.hash, e.name LIMIT ?", parent, hash, limit, decode: decode)
    if rows.count == limit, let last = rows.last {
      rows += try all(
        Self.listed + " AND e.hash = ? AND e.name > ? ORDER BY e.name", parent, last.hash, last.name, decode: decode)
    }
    return rows
  }

  package func inode(item: Int64) throws -> InodeRow? {
    try first("SELECT \(Self.columns) FROM inodes WHERE item = ?", item) { current(try InodeRow($0)) }
  }

  /// Adds an inode, under a number that none had before.
  package func insert(_ inode: InodeRow) throws {
    try change(
      Self.inodeInsertion,
      inode.ino, inode.item, inode.owner, inode.parent, inode.name, Int64(inode.mode), inode.nlink,
      Int64(inode.uid), Int64(inode.gid), Int64(bitPattern: inode.rdev), inode.size, inode.atime.nanoseconds,
      inode.mtime.nanoseconds, inode.ctime.nanoseconds, inode.content.map(\.encoded),
      inode.target
    ) { if inode.mode & S_IFMT == S_IFDIR { $0.noteEmpty(inode.ino) } }
  }

  /// Writes every column but `rdev` and `target`, which never change.
  ///
  /// - Parameter keepsItem: whether the item stays the same, which spares its index a change.
  package func update(_ inode: InodeRow, keepsItem: Bool = false) throws {
    func write<each First: Bindable>(_ sql: String, _ first: repeat each First) throws {
      try run(
        sql, repeat each first, inode.owner, inode.parent, inode.name, Int64(inode.mode), inode.nlink,
        Int64(inode.uid), Int64(inode.gid), inode.size, inode.atime.nanoseconds, inode.mtime.nanoseconds,
        inode.ctime.nanoseconds, inode.content.map(\.encoded), inode.ino)
    }
    if keepsItem { try write(Self.inodeUpdate) } else { try write(Self.inodeAndItemUpdate, inode.item) }
  }

  /// Writes the times and link count of a folder whose entries changed.
  package func touch(folder ino: Int64, time: Timestamp, nlink: Int64) throws {
    try connection.run(
      connection.statement("UPDATE inodes SET mtime = ?, ctime = ?, nlink = ? WHERE ino = ?"), setting: ino,
      time.nanoseconds, time.nanoseconds, nlink, ino)
  }

  /// Writes the change time and link count of a file whose names or attributes changed.
  package func setChangeTime(_ time: Timestamp, nlink: Int64, ino: Int64) throws {
    try run("UPDATE inodes SET ctime = ?, nlink = ? WHERE ino = ?", time.nanoseconds, nlink, ino)
  }

  /// Writes an inode's place, and the time of the change.
  package func setPlace(_ parent: Int64, _ name: [UInt8], time: Timestamp, ino: Int64) throws {
    try run("UPDATE inodes SET parent = ?, name = ?, ctime = ? WHERE ino = ?", parent, name, time.nanoseconds, ino)
  }

  package func setAccessTime(_ time: Timestamp, ino: Int64) throws {
    try run("UPDATE inodes SET atime = ? WHERE ino = ?", time.nanoseconds, ino)
  }

  /// Removes the inode; a working copy and extended attributes must be removed before.
  package func deleteInode(_ ino: Int64) throws { try run("DELETE FROM inodes WHERE ino = ?", ino) }
}
