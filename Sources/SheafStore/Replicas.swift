internal import Foundation
package import SheafModel

/// A row of `replicas`: a connected account, or a share of somebody elsewhere, and how far it is with its hub.
package struct ReplicaRow: Hashable, Sendable {
  package let account: Int64
  /// The account's zone at its hub, 16 bytes; of a share, its id.
  package let zone: [UInt8]
  /// What makes the ids of this library's versions its own, 16 bytes.
  package let seed: [UInt8]
  /// After which the feed goes on; nil before it was read.
  package var token: String?
  /// The newest number of the feed that was read.
  package var read: Int64 = 0
  /// The highest serial that was given to a send.
  package var serial: Int64 = 0
  /// Every verdict up to this serial has arrived.
  package var confirmed: Int64 = 0
  /// Whether everything that the hub has is to be read before anything is planned.
  package var rereads = true
  /// The connected account by whose device a share is read; nil for an account's own zone.
  package var reader: Int64?
  /// The hub's address; nil until it was reached once.
  package var hub: String?

  package init(account: Int64, zone: [UInt8], seed: [UInt8], reader: Int64? = nil, hub: String? = nil) {
    self.account = account
    self.zone = zone
    self.seed = seed
    self.reader = reader
    self.hub = hub
  }

  /// The id of the share; nil for an account's own zone.
  package var share: [UInt8]? { reader == nil ? nil : zone }

  fileprivate init(_ row: Row) throws {
    account = try row[0]
    zone = try row.uuid(1).bytes
    seed = try row.uuid(2).bytes
    token = try row[3]
    read = try row[4]
    serial = try row[5]
    confirmed = try row[6]
    rereads = try row[7] as Int64 != 0
    reader = try row[8]
    hub = try row[9]
    guard read >= 0, confirmed >= 0, confirmed <= serial,
      serial < StoreTransaction.numberLimit
    else { throw SheafError(.corrupt, subject: "replica of account \(account)", advice: "run sheaf check") }
  }
}

/// A row of `replica_items`: what a replica remembers of an item. States and marks are JSON.
package struct ReplicaItemRow: Hashable, Sendable {
  /// The hub's state when this machine and the hub last agreed.
  package var base: String?
  /// A newer state that the hub told, and its number.
  package var news: String?
  package var newsNumber: Int64?
  package var mark: String?
  /// The id of the item that it became, 16 bytes.
  package var alias: [UInt8]?

  package init() {}

  package var isEmpty: Bool { self == ReplicaItemRow() }
}

/// A row of `replica_sends`: what the hub is asked for and has not answered.
package struct ReplicaSendRow: Hashable, Sendable {
  package let serial: Int64
  /// The serial of the first one of its group.
  package let first: Int64
  /// JSON.
  package let send: String

  package init(serial: Int64, first: Int64, send: String) {
    self.serial = serial
    self.first = first
    self.send = send
  }
}

/// A row of `replica_versions`: the id of a version, 16 bytes, and whether the hub has it.
package struct ReplicaVersionRow: Hashable, Sendable {
  package let number: Int64
  package let uuid: [UInt8]
  package let isSent: Bool
  /// When the hub acknowledged what was saved here; nil for what was saved elsewhere, and where it is not known.
  package let acknowledged: Timestamp?

  package init(number: Int64, uuid: [UInt8], isSent: Bool, acknowledged: Timestamp? = nil) {
    self.number = number
    self.uuid = uuid
    self.isSent = isSent
    self.acknowledged = acknowledged
  }
}

/// A row of `replica_shares`: a share in the inbox of a connected account. Entry and state are JSON.
package struct ReplicaShareRow: Hashable, Sendable {
  /// Its id, 16 bytes.
  package let share: [UInt8]
  package var entry: String
  /// As the hub told it last; nil while the account is only invited.
  package var state: String?
  /// Whether the account left it here, and the hub does not know yet.
  package var isLeaving: Bool
  /// When this library heard of it first.
  package let time: Timestamp

  package init(share: [UInt8], entry: String, state: String?, isLeaving: Bool, time: Timestamp) {
    self.share = share
    self.time = time
    self.entry = entry
    self.state = state
    self.isLeaving = isLeaving
  }

  fileprivate init(_ row: Row) throws {
    share = try row.uuid(0).bytes
    entry = try row[1]
    state = try row[2]
    isLeaving = try row[3] as Int64 != 0
    time = Timestamp(nanoseconds: try row[4])
  }
}

/// The replicas of connected accounts (docs/FORMAT.md, Replicas).
extension StoreTransaction {
  private static let columns = "account, zone, seed, token, read, serial, confirmed, rereads, reader, hub"

  /// Before the address of the hub of an account that is connected no more.
  private static let formerPrefix = "former "

  package func replicas() throws -> [ReplicaRow] {
    try all(
      "SELECT \(Self.columns) FROM replicas WHERE \(Self.isConnected) ORDER BY account", decode: ReplicaRow.init)
  }

  package func replica(_ account: Int64) throws -> ReplicaRow? {
    try first(
      "SELECT \(Self.columns) FROM replicas WHERE account = ? AND \(Self.isConnected)", account,
      decode: ReplicaRow.init)
  }

  private static let isConnected = "coalesce(hub, '') NOT LIKE '\(formerPrefix)%'"

  /// What is kept of the replica of an account that is connected no more.
  package func formerReplica(_ account: Int64) throws -> ReplicaRow? {
    try first(
      "SELECT \(Self.columns) FROM replicas WHERE account = ? AND NOT \(Self.isConnected)", account,
      decode: ReplicaRow.init)
  }

  /// Whether an account was connected to a hub last, and is no more.
  package func wasConnected(_ account: Int64, to hub: String) throws -> Bool {
    try first(
      "SELECT 1 FROM replicas WHERE account = ? AND reader IS NULL AND hub = ?", account, Self.formerPrefix + hub
    ) { _ in true } ?? false
  }

  /// Ends an account's replica, and keeps what it and the hub agreed on, and what the hub told since.
  package func keepFormerReplica(_ account: Int64) throws {
    for table in [
      "replica_changes", "replica_steps", "replica_sends", "replica_shares", "replica_histories", "replica_requests",
    ] { try run("DELETE FROM \(table) WHERE account = ?", account) }
    try run(
      "UPDATE replicas SET confirmed = serial, hub = '\(Self.formerPrefix)' || coalesce(hub, '') WHERE account = ?",
      account)
  }

  /// Goes on with what was kept of an account's replica at a hub. Of what is missing here the hub's state is news, as
  /// connecting deletes nothing.
  ///
  /// - Parameter undone: the mark of what is to be shown as the hub has it.
  package func resumeReplica(_ account: Int64, hub: String, undone: String) throws {
    try run("UPDATE replicas SET hub = ? WHERE account = ?", hub, account)
    try run(
      """
      UPDATE replica_items SET news = coalesce(news, base),
          news_number = coalesce(news_number, json_extract(base, '$.number')), mark = ?
        WHERE account = ? AND base IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM items i JOIN inodes n ON n.item = i.id WHERE i.uuid = replica_items.item AND n.nlink > 0)
      """, undone, account)
  }

  package func insert(_ replica: ReplicaRow) throws {
    try run(
      "INSERT INTO replicas (\(Self.columns)) VALUES (?,?,?,?,?,?,?,?,?,?)", replica.account, replica.zone,
      replica.seed, replica.token, replica.read, replica.serial, replica.confirmed, replica.rereads ? 1 : 0,
      replica.reader, replica.hub)
  }

  package func update(_ replica: ReplicaRow) throws {
    try run(
      "UPDATE replicas SET token = ?, read = ?, serial = ?, confirmed = ?, rereads = ?, reader = ?, hub = ? WHERE account = ?",
      replica.token, replica.read, replica.serial, replica.confirmed, replica.rereads ? 1 : 0, replica.reader,
      replica.hub, replica.account)
  }

  /// Removes all that is remembered of an account's replica, but for the ids of its versions.
  package func deleteReplica(_ account: Int64) throws {
    for table in [
      "replica_items", "replica_names", "replica_changes", "replica_steps", "replica_sends", "replica_shares",
      "replica_histories", "replica_requests", "replicas",
    ] { try run("DELETE FROM \(table) WHERE account = ?", account) }
  }

  // MARK: - Shares

  /// The shares in the inbox of a connected account, in the order of their ids.
  package func replicaShares(of account: Int64) throws -> [ReplicaShareRow] {
    try all(
      "SELECT share, entry, state, leaving, time FROM replica_shares WHERE account = ? ORDER BY share", account,
      decode: ReplicaShareRow.init)
  }

  /// A share in the inbox of a connected account.
  package func replicaShare(of account: Int64, _ share: [UInt8]) throws -> ReplicaShareRow? {
    try first(
      "SELECT share, entry, state, leaving, time FROM replica_shares WHERE account = ? AND share = ?", account, share,
      decode: ReplicaShareRow.init)
  }

  /// Whether a connected account left a share here of which its hub does not know yet.
  package func leavesReplicaShare(_ account: Int64) throws -> Bool {
    try first("SELECT 1 FROM replica_shares WHERE account = ? AND leaving = 1", account) { _ in true } ?? false
  }

  package func set(_ share: ReplicaShareRow, of account: Int64) throws {
    try run(
      """
      INSERT INTO replica_shares (account, share, entry, state, leaving, time) VALUES (?,?,?,?,?,?)
        ON CONFLICT DO UPDATE SET entry = excluded.entry, state = excluded.state, leaving = excluded.leaving
      """, account, share.share, share.entry, share.state, share.isLeaving ? 1 : 0, share.time.nanoseconds)
  }

  package func removeReplicaShare(of account: Int64, _ share: [UInt8]) throws {
    try run("DELETE FROM replica_shares WHERE account = ? AND share = ?", account, share)
  }

  // MARK: - Changes

  /// What notes in `replica_changes` that an item of a connected account changed, by the name of its trigger.
  private static let triggers: [(name: String, when: String, item: String)] = [
    ("item_made", "INSERT ON items", "WHERE id = NEW.id"),
    ("item_changed", "UPDATE OF owner, version, quiet ON items", "WHERE id = NEW.id"),
    ("inode_made", "INSERT ON inodes", "WHERE id = NEW.item"),
    (
      "inode_changed", "UPDATE OF item, parent, name, mode, nlink, mtime, target ON inodes",
      "WHERE id IN (OLD.item, NEW.item) AND (NEW.mode & 61440 <> 16384 OR OLD.mode <> NEW.mode "
        + "OR OLD.parent <> NEW.parent OR OLD.name <> NEW.name OR NEW.nlink = 0 OR OLD.nlink = 0)"
    ),
    ("inode_gone", "DELETE ON inodes", "WHERE id = OLD.item"),
    ("entry_made", "INSERT ON entries", "WHERE id = (SELECT item FROM inodes WHERE ino = NEW.ino)"),
    (
      "entry_changed", "UPDATE ON entries",
      "WHERE id IN (SELECT item FROM inodes WHERE ino IN (OLD.ino, NEW.ino))"
    ),
    ("entry_gone", "DELETE ON entries", "WHERE id = (SELECT item FROM inodes WHERE ino = OLD.ino)"),
    ("xattr_made", "INSERT ON xattrs", "WHERE id = (SELECT item FROM inodes WHERE ino = NEW.ino)"),
    ("xattr_changed", "UPDATE ON xattrs", "WHERE id = (SELECT item FROM inodes WHERE ino = NEW.ino)"),
    ("xattr_gone", "DELETE ON xattrs", "WHERE id = (SELECT item FROM inodes WHERE ino = OLD.ino)"),
    ("version_made", "INSERT ON versions", "WHERE id = NEW.item"),
    ("version_changed", "UPDATE OF open ON versions", "WHERE id = NEW.item"),
    ("version_gone", "DELETE ON versions", "WHERE id = OLD.item"),
  ]

  // Of a statement with a conflict clause of its own, SQLite uses that clause for its triggers, too. So they look first.

  /// Has SQLite note from now on which items of connected accounts change, in the transaction of the change itself, or
  /// no more.
  package func setNotesChanges(_ notes: Bool) throws {
    for trigger in Self.triggers {
      let name = "replica_\(trigger.name)"
      guard notes else {
        try run("DROP TRIGGER IF EXISTS \(name)")
        continue
      }
      try run(
        """
        CREATE TRIGGER IF NOT EXISTS \(name) AFTER \(trigger.when) BEGIN
          INSERT INTO replica_changes (account, item)
            SELECT owner, uuid FROM items \(trigger.item) AND owner IN (SELECT account FROM replicas)
              AND NOT EXISTS (SELECT 1 FROM replica_changes WHERE account = items.owner AND item = items.uuid);
        END
        """)
    }
    guard notes else {
      for name in ["given", "gone"] { try run("DROP TRIGGER IF EXISTS replica_item_\(name)") }
      return
    }
    try run(
      """
      CREATE TRIGGER IF NOT EXISTS replica_item_given AFTER UPDATE OF owner ON items
        WHEN OLD.owner <> NEW.owner AND OLD.owner IN (SELECT account FROM replicas)
      BEGIN
        INSERT INTO replica_changes (account, item) SELECT OLD.owner, OLD.uuid
          WHERE NOT EXISTS (SELECT 1 FROM replica_changes WHERE account = OLD.owner AND item = OLD.uuid);
      END
      """)
    try run(
      """
      CREATE TRIGGER IF NOT EXISTS replica_item_gone BEFORE DELETE ON items
        WHEN OLD.owner IN (SELECT account FROM replicas)
      BEGIN
        INSERT INTO replica_changes (account, item) SELECT OLD.owner, OLD.uuid
          WHERE NOT EXISTS (SELECT 1 FROM replica_changes WHERE account = OLD.owner AND item = OLD.uuid);
        DELETE FROM replica_versions WHERE item = OLD.id;
        DELETE FROM absent_contents WHERE item = OLD.id;
        DELETE FROM kept_contents WHERE item = OLD.id;
      END
      """)
  }

  /// Items that changed, after one of them, in the order of their ids.
  package func replicaChanges(of account: Int64, after item: [UInt8], limit: Int) throws -> [[UInt8]] {
    try all(
      "SELECT item FROM replica_changes WHERE account = ? AND item > ? ORDER BY item LIMIT ?", account, item, limit
    ) { try $0.uuid(0).bytes }
  }

  /// Items that changed and have no name any more, in the order of their ids.
  package func deletedReplicaChanges(of account: Int64, limit: Int) throws -> [[UInt8]] {
    try all(
      """
      SELECT item FROM replica_changes c WHERE account = ? AND NOT EXISTS (
        SELECT 1 FROM items i JOIN inodes n ON n.item = i.id WHERE i.uuid = c.item AND n.nlink > 0)
        ORDER BY item LIMIT ?
      """, account, limit
    ) { try $0.uuid(0).bytes }
  }

  /// Items that changed and are still there, in the order of their ids.
  package func lastingReplicaChanges(of account: Int64, limit: Int) throws -> [[UInt8]] {
    try all(
      """
      SELECT item FROM replica_changes c WHERE account = ? AND EXISTS (
        SELECT 1 FROM items i JOIN inodes n ON n.item = i.id WHERE i.uuid = c.item AND n.nlink > 0)
        ORDER BY item LIMIT ?
      """, account, limit
    ) { try $0.uuid(0).bytes }
  }

  package func hasReplicaChange(of account: Int64, _ item: [UInt8]) throws -> Bool {
    try first("SELECT 1 FROM replica_changes WHERE account = ? AND item = ?", account, item) { _ in true } ?? false
  }

  package func noteReplicaChange(of account: Int64, _ item: [UInt8]) throws {
    try run("INSERT OR IGNORE INTO replica_changes (account, item) VALUES (?, ?)", account, item)
  }

  /// Notes that everything of an account may have changed.
  package func noteAllReplicaChanges(of account: Int64) throws {
    try run(
      "INSERT OR IGNORE INTO replica_changes (account, item) SELECT owner, uuid FROM items WHERE owner = ?", account)
    try run(
      """
      INSERT OR IGNORE INTO replica_changes (account, item)
        SELECT account, item FROM replica_items WHERE account = ? AND base IS NOT NULL
      """, account)
  }

  package func removeReplicaChange(of account: Int64, _ item: [UInt8]) throws {
    try run("DELETE FROM replica_changes WHERE account = ? AND item = ?", account, item)
  }

  package func countReplicaChanges(of account: Int64) throws -> Int64 {
    try first("SELECT count(*) FROM replica_changes WHERE account = ?", account) { try $0[0] as Int64 } ?? 0
  }

  // MARK: - Items

  package func replicaItem(of account: Int64, _ item: [UInt8]) throws -> ReplicaItemRow {
    try first(
      "SELECT base, news, news_number, mark, alias FROM replica_items WHERE account = ? AND item = ?", account, item
    ) { row in
      var read = ReplicaItemRow()
      read.base = try row[0]
      read.news = try row[1]
      read.newsNumber = try row[2]
      read.mark = try row[3]
      read.alias = try row.bytes(4).isEmpty ? nil : row.uuid(4).bytes
      return read
    } ?? ReplicaItemRow()
  }

  /// Writes what is remembered of an item; what is empty needs no row.
  package func setReplicaItem(of account: Int64, _ item: [UInt8], _ row: ReplicaItemRow) throws {
    if row.isEmpty { return try run("DELETE FROM replica_items WHERE account = ? AND item = ?", account, item) }
    try run(
      """
      INSERT INTO replica_items (account, item, base, news, news_number, mark, alias) VALUES (?,?,?,?,?,?,?)
        ON CONFLICT DO UPDATE SET base = excluded.base, news = excluded.news, news_number = excluded.news_number,
          mark = excluded.mark, alias = excluded.alias
      """, account, item, row.base, row.news, row.newsNumber, row.mark, row.alias)
  }

  /// Items of which the hub told something that is not shown yet, the oldest change first.
  package func replicaNews(of account: Int64, limit: Int) throws -> [(item: [UInt8], number: Int64)] {
    try all(
      """
      SELECT item, news_number FROM replica_items WHERE account = ? AND news_number IS NOT NULL
        ORDER BY news_number LIMIT ?
      """, account, limit
    ) { (try $0.uuid(0).bytes, try $0[1] as Int64) }
  }

  package func countReplicaNews(of account: Int64) throws -> Int64 {
    try first(
      "SELECT count(*) FROM replica_items WHERE account = ? AND news_number IS NOT NULL", account
    ) { try $0[0] as Int64 } ?? 0
  }

  /// Every item that the hub had when this machine and the hub last agreed.
  package func replicaBases(of account: Int64) throws -> [[UInt8]] {
    try all("SELECT item FROM replica_items WHERE account = ? AND base IS NOT NULL", account) { try $0.uuid(0).bytes }
  }

  /// Documents of an account with something that its hub does not have, after one of them, in the order of their ids.
  package func unsentDocuments(of account: Int64, after item: [UInt8], limit: Int) throws -> [[UInt8]] {
    try all(
      """
      SELECT uuid FROM items i WHERE owner = ? AND kind = 1 AND uuid > ? AND (version = 0 OR EXISTS (
        SELECT 1 FROM versions v WHERE v.item = i.id AND NOT EXISTS (
          SELECT 1 FROM replica_versions r WHERE r.item = v.item AND r.number = v.number AND r.sent = 1)))
        ORDER BY uuid LIMIT ?
      """, account, item, limit
    ) { try $0.uuid(0).bytes }
  }

  /// The ids of an account's documents.
  package func documents(of account: Int64) throws -> [[UInt8]] {
    try all("SELECT uuid FROM items WHERE owner = ? AND kind = 1", account) { try $0.uuid(0).bytes }
  }

  // MARK: - Names of the base

  package func replicaOccupant(of account: Int64, _ parent: [UInt8], _ name: [UInt8]) throws -> [UInt8]? {
    try first(
      "SELECT item FROM replica_names WHERE account = ? AND parent = ? AND name = ?", account, parent, name
    ) { try $0.uuid(0).bytes }
  }

  package func replicaChildren(of account: Int64, _ parent: [UInt8]) throws -> [[UInt8]] {
    try all(
      "SELECT DISTINCT item FROM replica_names WHERE account = ? AND parent = ? ORDER BY item", account, parent
    ) { try $0.uuid(0).bytes }
  }

  package func setReplicaName(of account: Int64, _ parent: [UInt8], _ name: [UInt8], _ item: [UInt8]) throws {
    try run(
      """
      INSERT INTO replica_names (account, parent, name, item) VALUES (?,?,?,?)
        ON CONFLICT DO UPDATE SET item = excluded.item
      """, account, parent, name, item)
  }

  /// Removes a name, if it is still that item's.
  package func removeReplicaName(of account: Int64, _ parent: [UInt8], _ name: [UInt8], _ item: [UInt8]) throws {
    try run(
      "DELETE FROM replica_names WHERE account = ? AND parent = ? AND name = ? AND item = ?", account, parent, name,
      item)
  }

  // MARK: - What is to be done

  package func replicaStep(of account: Int64) throws -> (number: Int64, step: String)? {
    try first("SELECT number, step FROM replica_steps WHERE account = ? ORDER BY number LIMIT 1", account) {
      (try $0[0] as Int64, try $0[1] as String)
    }
  }

  /// The steps that are left, in their order.
  package func replicaSteps(of account: Int64, limit: Int = .max) throws -> [(number: Int64, step: String)] {
    try all("SELECT number, step FROM replica_steps WHERE account = ? ORDER BY number LIMIT ?", account, limit) {
      (try $0[0] as Int64, try $0[1] as String)
    }
  }

  package func lastReplicaStep(of account: Int64) throws -> Int64 {
    try first("SELECT max(number) FROM replica_steps WHERE account = ?", account) { try $0[0] as Int64? ?? 0 } ?? 0
  }

  package func insertReplicaStep(of account: Int64, _ number: Int64, _ step: String) throws {
    try run("INSERT INTO replica_steps (account, number, step) VALUES (?,?,?)", account, number, step)
  }

  package func removeReplicaStep(of account: Int64, _ number: Int64) throws {
    try run("DELETE FROM replica_steps WHERE account = ? AND number = ?", account, number)
  }

  /// What the hub is asked for and has not answered, in the order of the serials.
  package func replicaSends(of account: Int64, limit: Int) throws -> [ReplicaSendRow] {
    try all("SELECT serial, first, send FROM replica_sends WHERE account = ? ORDER BY serial LIMIT ?", account, limit) {
      ReplicaSendRow(serial: try $0[0], first: try $0[1], send: try $0[2])
    }
  }

  package func countReplicaSends(of account: Int64) throws -> Int64 {
    try first("SELECT count(*) FROM replica_sends WHERE account = ?", account) { try $0[0] as Int64 } ?? 0
  }

  package func insert(_ send: ReplicaSendRow, of account: Int64) throws {
    try run(
      "INSERT INTO replica_sends (account, serial, first, send) VALUES (?,?,?,?)", account, send.serial, send.first,
      send.send)
  }

  package func removeReplicaSend(of account: Int64, _ serial: Int64) throws {
    try run("DELETE FROM replica_sends WHERE account = ? AND serial = ?", account, serial)
  }

  // MARK: - Versions

  package func replicaVersions(of item: Int64) throws -> [ReplicaVersionRow] {
    try all("SELECT number, uuid, sent FROM replica_versions WHERE item = ? ORDER BY number", item) {
      ReplicaVersionRow(number: try $0[0], uuid: try $0.uuid(1).bytes, isSent: try $0[2] as Int64 != 0)
    }
  }

  /// Forgets the id of a version.
  package func removeReplicaVersion(of item: Int64, _ number: Int64) throws {
    try run("DELETE FROM replica_versions WHERE item = ? AND number = ?", item, number)
  }

  /// Notes that a hub has none of the versions of an account's items.
  package func forgetSentVersions(of account: Int64) throws {
    try run(
      "UPDATE replica_versions SET sent = 0 WHERE item IN (SELECT id FROM items WHERE owner = ?)", account)
  }

  /// Notes what is known of a version; when it was acknowledged stays known.
  package func set(_ version: ReplicaVersionRow, of item: Int64) throws {
    try run(
      """
      INSERT INTO replica_versions (item, number, uuid, sent, acknowledged) VALUES (?,?,?,?,?)
        ON CONFLICT DO UPDATE SET uuid = excluded.uuid, sent = excluded.sent,
          acknowledged = coalesce(excluded.acknowledged, acknowledged)
      """, item, version.number, version.uuid, version.isSent ? 1 : 0, version.acknowledged?.nanoseconds)
  }
}
