package import SheafModel

/// A row of `accounts`.
package struct AccountRow: Hashable, Sendable {
  package let id: Int64
  package let handle: AccountHandle
  package let name: String
  /// Inode of its `Documents`.
  package let documents: Int64

  package init(id: Int64, handle: AccountHandle, name: String, documents: Int64) {
    self.id = id
    self.handle = handle
    self.name = name
    self.documents = documents
  }
}

extension StoreTransaction {
  /// All accounts, first made first.
  package func accounts() throws -> [AccountRow] {
    try all("SELECT id, handle, name, documents FROM accounts ORDER BY id", []) {
      AccountRow(id: $0[0], handle: try AccountHandle($0[1] as String), name: $0[2], documents: $0[3])
    }
  }

  package func insert(_ account: AccountRow, created: Timestamp) throws {
    try run(
      "INSERT INTO accounts (id, handle, name, created, documents) VALUES (?, ?, ?, ?, ?)",
      [account.id, account.handle.description, account.name, created.nanoseconds, account.documents])
  }

  package func deleteAccount(_ id: Int64) throws { try run("DELETE FROM accounts WHERE id = ?", [id]) }
}

extension StoreTransaction {
  /// Whether anything but the account's empty `Documents` refers to it.
  package func isInUse(_ account: AccountRow) throws -> Bool {
    try first(
      """
      SELECT EXISTS (SELECT 1 FROM inodes WHERE owner = ?1 AND ino <> ?2)
        OR EXISTS (SELECT 1 FROM versions WHERE author = ?1) OR EXISTS (SELECT 1 FROM events WHERE actor = ?1)
        OR EXISTS (SELECT 1 FROM participants WHERE account = ?1)
      """, [account.id, account.documents]
    ) { $0[0] as Bool } ?? false
  }
}
