package import SheafModel

/// A row of `accounts`.
package struct AccountRow: Hashable, Sendable {
  package let id: Int64
  package let handle: AccountHandle
  package var name: String
  /// Inode of its `Documents`.
  package let documents: Int64
  /// When it was removed, if history still names it; nil for an account in use.
  package var removed: Timestamp?

  package init(id: Int64, handle: AccountHandle, name: String, documents: Int64, removed: Timestamp? = nil) {
    self.id = id
    self.handle = handle
    self.name = name
    self.documents = documents
    self.removed = removed
  }
}

extension StoreTransaction {
  /// All accounts, first made first.
  package func accounts() throws -> [AccountRow] {
    try all("SELECT id, handle, name, documents, removed FROM accounts ORDER BY id") {
      AccountRow(
        id: try $0[0], handle: try AccountHandle($0[1] as String), name: try $0[2], documents: try $0[3],
        removed: try ($0[4] as Int64?).map { Timestamp(nanoseconds: $0) })
    }
  }

  package func insert(_ account: AccountRow, created: Timestamp) throws {
    try run(
      "INSERT INTO accounts (id, handle, name, created, documents) VALUES (?, ?, ?, ?, ?)",
      account.id, account.handle.description, account.name, created.nanoseconds, account.documents)
  }

  package func update(_ account: AccountRow) throws {
    try run(
      "UPDATE accounts SET name = ?, removed = ? WHERE id = ?",
      account.name, account.removed?.nanoseconds, account.id)
  }

  package func deleteAccount(_ id: Int64) throws { try run("DELETE FROM accounts WHERE id = ?", id) }
}

extension StoreTransaction {
  /// Whether the account has anything but its empty `Documents`.
  package func ownsDocuments(_ account: AccountRow) throws -> Bool {
    try first("SELECT EXISTS (SELECT 1 FROM inodes WHERE owner = ? AND ino <> ?)", account.id, account.documents) {
      try $0[0] as Bool
    } ?? false
  }

  /// Whether other accounts' items or the log name the account.
  package func isNamed(_ account: AccountRow) throws -> Bool {
    try first(
      """
      SELECT EXISTS (SELECT 1 FROM versions WHERE author = ?1) OR EXISTS (SELECT 1 FROM events WHERE ?1 IN (actor, owner))
        OR EXISTS (SELECT 1 FROM pending_events WHERE ?1 IN (actor, owner))
        OR EXISTS (SELECT 1 FROM items WHERE creator = ?1 AND owner <> ?1)
        OR EXISTS (SELECT 1 FROM deleted WHERE actor = ?1)
        OR EXISTS (SELECT 1 FROM participants WHERE account = ?1 AND role <> 1)
        OR EXISTS (SELECT 1 FROM access_requests WHERE account = ?1)
      """, account.id
    ) { try $0[0] as Bool } ?? false
  }
}
