package import SheafModel

/// A row of `accounts`: an account of this library, a person whom a hub knows, or what such a person shares.
package struct AccountRow: Hashable, Sendable {
  package let id: Int64
  /// By which this library knows it; no other account has the same.
  package let key: AccountHandle
  package var name: String
  /// Inode of its `Documents`.
  package let documents: Int64
  /// When it was removed, if history still names it; nil for an account in use.
  package var removed: Timestamp?
  /// Of an account elsewhere; nil for one of this library.
  package let elsewhere: Elsewhere?

  /// An account that a hub knows.
  package struct Elsewhere: Hashable, Sendable {
    /// The hub's address.
    package let hub: String
    /// The handle there.
    package let handle: AccountHandle
    /// If its `Documents` is one share of a person: the account of that person.
    package let person: Int64?

    package init(hub: String, handle: AccountHandle, person: Int64?) {
      self.hub = hub
      self.handle = handle
      self.person = person
    }
  }

  /// By which people know it.
  package var handle: AccountHandle { elsewhere?.handle ?? key }

  package init(
    id: Int64, handle: AccountHandle, name: String, documents: Int64, removed: Timestamp? = nil,
    elsewhere: Elsewhere? = nil
  ) {
    self.id = id
    key = handle
    self.name = name
    self.documents = documents
    self.removed = removed
    self.elsewhere = elsewhere
  }
}

extension StoreTransaction {
  /// - Throws: `corrupt` where a row has something else.
  private func handle(_ text: String) throws(SheafError) -> AccountHandle {
    guard let handle = try? AccountHandle(text) else {
      throw SheafError(
        .corrupt, subject: "an account", reason: "has the handle \(text.printable), which is none",
        advice: "run sheaf check")
    }
    return handle
  }

  /// All accounts, first made first.
  package func accounts() throws -> [AccountRow] {
    try all("SELECT id, handle, name, documents, removed, hub, shown, person FROM accounts ORDER BY id") { row in
      let person: Int64? = try row[7]
      let elsewhere = try (row[5] as String?).map { hub in
        AccountRow.Elsewhere(hub: hub, handle: try handle(row[6]), person: person)
      }
      return AccountRow(
        id: try row[0], handle: try handle(row[1]), name: try row[2], documents: try row[3],
        removed: try (row[4] as Int64?).map { Timestamp(nanoseconds: $0) }, elsewhere: elsewhere)
    }
  }

  package func insert(_ account: AccountRow, created: Timestamp) throws {
    try run(
      """
      INSERT INTO accounts (id, handle, name, created, documents, hub, shown, person) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      account.id, account.key.description, account.name, created.nanoseconds, account.documents,
      account.elsewhere?.hub, account.elsewhere?.handle.description, account.elsewhere?.person)
  }

  package func update(_ account: AccountRow) throws {
    try run(
      "UPDATE accounts SET name = ?, removed = ? WHERE id = ?",
      account.name, account.removed?.nanoseconds, account.id)
  }

  /// Removes an account that nothing names any more, and how far it was with logs at hubs.
  package func deleteAccount(_ id: Int64) throws {
    for table in ["replica_logs", "replica_comments"] { try run("DELETE FROM \(table) WHERE account = ?", id) }
    try run("DELETE FROM accounts WHERE id = ?", id)
  }

  /// Accounts that are gone, and of whose logs at hubs something is left: earlier programs removed an account without
  /// that.
  ///
  /// An account that owns anything, its `Documents` at least, was not removed, but its row was lost.
  package func goneAccounts() throws -> [Int64] {
    try all(
      """
      SELECT DISTINCT account FROM replica_logs WHERE account NOT IN (SELECT id FROM accounts)
        AND NOT EXISTS (SELECT 1 FROM inodes WHERE owner = account)
      """
    ) { try $0[0] as Int64 }
  }
}

extension StoreTransaction {
  /// Whether the account has anything but its empty `Documents`.
  package func ownsDocuments(_ account: AccountRow) throws -> Bool {
    try first("SELECT EXISTS (SELECT 1 FROM inodes WHERE owner = ? AND ino <> ?)", account.id, account.documents) {
      try $0[0] as Bool
    } ?? false
  }

  /// Whether other accounts' items, the log, or a share that is read from a hub name the account.
  package func isNamed(_ account: AccountRow) throws -> Bool {
    try first(
      """
      SELECT EXISTS (SELECT 1 FROM versions WHERE author = ?1) OR EXISTS (SELECT 1 FROM events WHERE ?1 IN (actor, owner))
        OR EXISTS (SELECT 1 FROM pending_events WHERE ?1 IN (actor, owner))
        OR EXISTS (SELECT 1 FROM items WHERE creator = ?1 AND owner <> ?1)
        OR EXISTS (SELECT 1 FROM deleted WHERE actor = ?1)
        OR EXISTS (SELECT 1 FROM participants WHERE account = ?1 AND role <> 1)
        OR EXISTS (SELECT 1 FROM access_requests WHERE account = ?1)
        OR EXISTS (SELECT 1 FROM past_names WHERE actor = ?1) OR EXISTS (SELECT 1 FROM replica_events WHERE account = ?1)
        OR EXISTS (SELECT 1 FROM waiting_events WHERE actor = ?1)
        OR EXISTS (SELECT 1 FROM replicas WHERE reader = ?1)
      """, account.id
    ) { try $0[0] as Bool } ?? false
  }
}
