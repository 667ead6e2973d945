/// The Linux user and group whose an account's `Documents` is, and those of another account: what is the former ones'
/// in a tree that gets that owner becomes the latter ones'.
package struct FileOwnerChange: Sendable {
  package let former: (uid: UInt32, gid: UInt32)
  package let new: (uid: UInt32, gid: UInt32)

  package init(from former: InodeRow, to new: InodeRow) {
    self.former = (former.uid, former.gid)
    self.new = (new.uid, new.gid)
  }

  /// Changes a row as chown(2) does, which takes set-id bits from a file.
  package func apply(to row: inout InodeRow) {
    if row.mode & 0o170000 == 0o100000,
      row.uid == former.uid && former.uid != new.uid || row.gid == former.gid && former.gid != new.gid
    {
      row.mode &= ~0o6000
    }
    if row.uid == former.uid { row.uid = new.uid }
    if row.gid == former.gid { row.gid = new.gid }
  }
}

/// Giving a tree to another account.
extension StoreTransaction {
  /// The inodes of a tree: `?1`, what lies below it, and what was deleted from there.
  private static let tree = """
    WITH RECURSIVE tree (ino) AS (
      VALUES (?1)
      UNION SELECT e.ino FROM tree t JOIN entries e ON e.parent = t.ino
      UNION SELECT d.ino FROM tree t JOIN deleted d ON d.parent = t.ino
    )
    """
  private static let items = "SELECT i.item FROM tree t JOIN inodes i ON i.ino = t.ino WHERE i.item IS NOT NULL"

  /// The inodes of a tree, `limit` of them at most.
  package func tree(_ ino: Int64, limit: Int) throws -> [Int64] {
    try all("\(Self.tree) SELECT ino FROM tree LIMIT ?2", ino, limit) { try $0[0] }
  }

  /// Makes a tree another account's, with what was deleted from it.
  ///
  /// Names that its items had outside of it are forgotten, and those that other items had in it: each account sees in
  /// its folders, as they were, what is its own.
  package func setOwner(_ owner: Int64, ofTree ino: Int64, _ user: FileOwnerChange) throws {
    try change("\(Self.tree) UPDATE items SET owner = ?2 WHERE id IN (\(Self.items))", ino, owner) {
      $0.items.forgetAll()
    }
    let (former, new) = (user.former, user.new)
    // As ``FileOwnerChange/apply(to:)`` has it.
    try run(
      """
      \(Self.tree) UPDATE inodes SET owner = ?2,
        uid = CASE uid WHEN ?3 THEN ?4 ELSE uid END, gid = CASE gid WHEN ?5 THEN ?6 ELSE gid END,
        mode = CASE WHEN mode & 61440 = 32768 AND (uid = ?3 AND ?3 <> ?4 OR gid = ?5 AND ?5 <> ?6)
          THEN mode & ~3072 ELSE mode END
      WHERE ino IN (SELECT ino FROM tree)
      """, ino, owner, Int64(former.uid), Int64(new.uid), Int64(former.gid), Int64(new.gid))
    // The sign has the rows found by their items.
    try run(
      """
      \(Self.tree) DELETE FROM past_names
      WHERE item IN (\(Self.items)) AND +parent NOT IN (SELECT ino FROM tree)
      """, ino)
    try run(
      """
      \(Self.tree) DELETE FROM past_names
      WHERE parent IN (SELECT ino FROM tree) AND +item NOT IN (\(Self.items))
      """, ino)
  }

  /// Makes the one-time links that an account gave out for a share those of another one.
  package func moveOneTimeLinks(of share: Int64, from inviter: Int64, to other: Int64) throws {
    try run("UPDATE one_time_links SET inviter = ? WHERE share = ? AND inviter = ?", other, share, inviter)
  }
}
