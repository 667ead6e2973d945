/// The Linux users and groups whose the `Documents` of two accounts are: a tree that gets the second owner becomes that
/// one's user's.
package struct FileOwnerChange: Hashable, Sendable {
  fileprivate let former: (uid: UInt32, gid: UInt32)
  fileprivate let new: (uid: UInt32, gid: UInt32)

  package init(from former: InodeRow, to new: InodeRow) {
    self.former = (former.uid, former.gid)
    self.new = (new.uid, new.gid)
  }

  fileprivate init(_ numbers: ArraySlice<Int64>) {
    let numbers = numbers.map { UInt32(truncatingIfNeeded: $0) }
    (former, new) = ((numbers[0], numbers[1]), (numbers[2], numbers[3]))
  }

  fileprivate var numbers: [Int64] { [former.uid, former.gid, new.uid, new.gid].map(Int64.init) }

  package static func == (one: FileOwnerChange, other: FileOwnerChange) -> Bool { one.numbers == other.numbers }

  package func hash(into hasher: inout Hasher) { hasher.combine(numbers) }

  /// Changes a row as `chown -R` does: whoever the file's user was had it by the former account, so that they have it no
  /// more, and its set-id bits go, since somebody else chose what they run.
  package func apply(to row: inout InodeRow) {
    if row.mode & 0o170000 == 0o100000 { row.mode &= ~0o6000 }
    (row.uid, row.gid) = (new.uid, new.gid)
  }
}

/// That a tree became another account's, while rows of it may still name the former owner.
///
/// As the setting `transferring` it is there from the change on that gives the tree away until the last row follows.
package struct OwnerChange: Hashable, Sendable {
  package let former: Int64
  package let owner: Int64
  package let user: FileOwnerChange

  package init(from former: Int64, to owner: Int64, _ user: FileOwnerChange) {
    (self.former, self.owner, self.user) = (former, owner, user)
  }

  /// - Parameter text: the value of the setting.
  package init?(_ text: String) {
    let numbers = text.split(separator: " ").compactMap { Int64($0) }
    guard numbers.count == 6, numbers[0] != numbers[1] else { return nil }
    self.init(from: numbers[0], to: numbers[1], FileOwnerChange(numbers[2...]))
  }

  package var text: String { ([former, owner] + user.numbers).map(String.init).joined(separator: " ") }

  package static let setting = "transferring"
}

/// A tree that was given away: whatever its rows say so far, its owner is the new one.
package struct GivenTree: Sendable {
  package let change: OwnerChange
  package let inos: Set<Int64>
  package let items: Set<Int64>

  package init(_ change: OwnerChange, inos: Set<Int64>, items: Set<Int64>) {
    (self.change, self.inos, self.items) = (change, inos, items)
  }
}

/// An inode of a tree, or one that may have come to it.
package struct TreeMember: Sendable {
  package let ino: Int64
  package let item: Int64?
  package let parent: Int64
  /// Whether it may have names in several folders.
  package let hasLinks: Bool

  package init(ino: Int64, item: Int64?, parent: Int64, hasLinks: Bool = false) {
    (self.ino, self.item, self.parent, self.hasLinks) = (ino, item, parent, hasLinks)
  }

  fileprivate init(_ row: Row) throws {
    (ino, item, parent) = (try row[0], try row[1], try row[2])
    hasLinks = try row[3]
  }

  fileprivate static let columns = "i.ino, i.item, i.parent, i.nlink > 1 AND i.mode & 61440 <> 16384"
}

/// Giving a tree to another account.
extension StoreTransaction {
  /// The inodes of a tree: those that `seeds` selects, what lies below them, and what was deleted from there.
  private static func tree(_ seeds: String) -> String {
    """
    WITH RECURSIVE tree (ino) AS (
      \(seeds)
      UNION SELECT e.ino FROM tree t JOIN entries e ON e.parent = t.ino
      UNION SELECT d.ino FROM tree t JOIN deleted d ON d.parent = t.ino
    )
    """
  }

  /// The inodes of a tree, `limit` of them at most.
  package func tree(_ ino: Int64, limit: Int) throws -> [TreeMember] {
    try all(
      "\(Self.tree("VALUES (?1)")) SELECT \(TreeMember.columns) FROM tree t JOIN inodes i ON i.ino = t.ino LIMIT ?2",
      ino, limit, decode: TreeMember.init)
  }

  /// The further names of a tree's files.
  package func extraNames(inTree ino: Int64) throws -> [(ino: Int64, folder: Int64, name: [UInt8])] {
    try all(
      """
      \(Self.tree("VALUES (?1)")) SELECT e.ino, e.parent, e.name FROM entries e
      WHERE e.extra = 1 AND e.ino IN (SELECT ino FROM tree)
      """, ino
    ) { (try $0[0], try $0[1], try $0.bytes(2)) }
  }

  /// Inodes with numbers above `ino`, in their order, `limit` of them at most.
  package func members(after ino: Int64, limit: Int) throws -> [TreeMember] {
    try all(
      "SELECT \(TreeMember.columns) FROM inodes i WHERE i.ino > ? ORDER BY i.ino LIMIT ?", ino, limit,
      decode: TreeMember.init)
  }

  /// The inodes and items that a change of owners, which an earlier process began, has not reached.
  ///
  /// What lies in a folder is of the folder's owner. So those are the ones of the former owner in folders of the new
  /// one, and what is below them, wherever the tree is by now.
  package func left(of change: OwnerChange) throws -> (inos: [Int64], items: [Int64]) {
    let seeds = """
      SELECT i.ino FROM inodes i JOIN inodes p ON p.ino = i.parent WHERE i.owner = ?1 AND p.owner = ?2
      """
    let inos = try all(
      "\(Self.tree(seeds)) SELECT t.ino, i.item FROM tree t JOIN inodes i ON i.ino = t.ino",
      change.former, change.owner
    ) { (try $0[0] as Int64, try $0[1] as Int64?) }
    let items = try all(
      "SELECT t.id FROM items t JOIN inodes i ON i.item = t.id WHERE t.owner = ? AND i.owner = ?",
      change.former, change.owner
    ) { try $0[0] as Int64 }
    return (inos.map(\.0), items + inos.compactMap(\.1))
  }

  /// Has inodes and items follow a change of owners that still name the former one.
  package func follow(_ change: OwnerChange, inos: some Sequence<Int64>, items: some Sequence<Int64>) throws {
    let numbers = change.user.numbers
    for ino in inos {
      // As ``FileOwnerChange/apply(to:)`` has it.
      try run(
        """
        UPDATE inodes SET owner = ?3, uid = ?4, gid = ?5,
          mode = CASE WHEN mode & 61440 = 32768 THEN mode & ~3072 ELSE mode END
        WHERE ino = ?1 AND owner = ?2
        """, ino, change.former, change.owner, numbers[2], numbers[3])
      // As chown(2) has it: they would be the new owner's gift.
      try removeXattr(ino, Self.capability)
    }
    for item in items {
      try self.change(
        "UPDATE items SET owner = ?3 WHERE id = ?1 AND owner = ?2", item, change.former, change.owner
      ) { known in
        known.items.noteChange(item) { if $0.owner == change.former { $0.owner = change.owner } }
      }
    }
  }

  /// The attribute with the capabilities that a program gives whoever runs it (capabilities(7)).
  package static let capability = Array("security.capability".utf8)

  /// Whether an attribute went with the owner that an inode had, though its row may still be there.
  func isLeft(_ name: [UInt8], of ino: Int64) -> Bool {
    name == Self.capability && connection.given?.inos.contains(ino) ?? false
  }

  /// Notes whose rows are read as the new owner's, though they may still name the former one; nil for none.
  package func note(_ given: GivenTree?) { connection.given = given }

  /// The owner of an inode whose row names `owner`.
  func currentOwner(of ino: Int64, named owner: Int64) -> Int64 {
    guard let given = connection.given, owner == given.change.former, given.inos.contains(ino) else { return owner }
    return given.change.owner
  }

  /// A row as it is, with the owner that it has.
  func current(_ row: InodeRow) -> InodeRow {
    let owner = currentOwner(of: row.ino, named: row.owner)
    guard owner != row.owner else { return row }
    var row = row
    row.owner = owner
    connection.given?.change.user.apply(to: &row)
    return row
  }

  /// As ``current(_:)-(InodeRow)``.
  func current(_ item: ItemRow) -> ItemRow {
    guard let given = connection.given, item.owner == given.change.former, given.items.contains(item.id) else {
      return item
    }
    var item = item
    item.owner = given.change.owner
    return item
  }

  /// Makes the one-time links that an account gave out for a share those of another one.
  package func moveOneTimeLinks(of share: Int64, from inviter: Int64, to other: Int64) throws {
    try run("UPDATE one_time_links SET inviter = ? WHERE share = ? AND inviter = ?", other, share, inviter)
  }
}
