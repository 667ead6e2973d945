package import Foundation
package import SheafModel

/// The share that an item is in, and the form of its path there.
package struct ShareMark: Hashable, Sendable {
  /// The shared item.
  package let share: Int64
  /// Components of the path below the owner's `Documents` that lie above the shared item; -1 where that is `Documents`
  /// itself. Without them, and with `Documents` before it in that case, the path is the participants'.
  package let depth: Int64

  package init(share: Int64, depth: Int64) {
    self.share = share
    self.depth = depth
  }

  fileprivate init?(_ row: Row, _ index: Int) throws {
    guard let share = try row[index] as Int64? else { return nil }
    self.init(share: share, depth: try row[index + 1])
  }
}

/// An event as it is stored, settled or still pending.
package struct EventRow: Hashable, Sendable {
  /// `sequence` of a settled event, row of a pending one.
  package var number: Int64
  package let uuid: UUID
  /// Such as `sheaf.change.edit`.
  package let type: String
  package let time: Timestamp
  package let actor: Int64
  /// Account in whose tree the item was.
  package var owner: Int64
  package let item: Int64
  /// The CloudEvents `data`, JSON.
  package var data: String
  /// The share that the item was in after the action; nil for none.
  package var share: ShareMark?
  /// The share that `previousPath` was in, of events that have one.
  package var previousShare: ShareMark?
  /// Process (tgid) that did it, for pending events; 0 if none did.
  package var process: Int64

  package init(
    number: Int64, uuid: UUID, type: String, time: Timestamp, actor: Int64, owner: Int64, item: Int64, data: String,
    share: ShareMark? = nil, previousShare: ShareMark? = nil, process: Int64
  ) {
    self.number = number
    self.uuid = uuid
    self.type = type
    self.time = time
    self.actor = actor
    self.owner = owner
    self.item = item
    self.data = data
    self.share = share
    self.previousShare = previousShare
    self.process = process
  }
}

extension EventRow {
  /// A row of `waiting_events`, whose first column is its number.
  init(waiting row: Row) throws { self = try StoreTransaction.event(row, process: 0) }
}

extension StoreTransaction {
  private static let columns =
    "uuid, type, time, actor, owner, item, data, share, depth, previous_share, previous_depth"
  // Built once: composing a text costs as much as running it.
  private static let eventInsertion =
    "INSERT INTO events (sequence, \(columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
  private static let pendingInsertion =
    "INSERT INTO pending_events (id, \(columns), process) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"

  /// A row whose first column is its number.
  fileprivate static func event(_ row: Row, process: Int64) throws -> EventRow {
    try EventRow(
      number: row[0], uuid: row.uuid(1), type: row[2], time: Timestamp(nanoseconds: row[3]),
      actor: row[4], owner: row[5], item: row[6], data: row[7], share: ShareMark(row, 8),
      previousShare: ShareMark(row, 10), process: process)
  }

  /// Logs an event under its sequence number.
  package func insert(_ event: EventRow) throws {
    try run(
      Self.eventInsertion, event.number, event.uuid, event.type, event.time.nanoseconds, event.actor, event.owner,
      event.item, event.data, event.share?.share, event.share?.depth ?? 0, event.previousShare?.share,
      event.previousShare?.depth ?? 0)
  }

  /// Stores an event whose meaning is still open.
  package func insertPending(_ event: EventRow) throws {
    try run(
      Self.pendingInsertion, event.number, event.uuid, event.type, event.time.nanoseconds, event.actor, event.owner,
      event.item, event.data, event.share?.share, event.share?.depth ?? 0, event.previousShare?.share,
      event.previousShare?.depth ?? 0, event.process)
  }

  /// All events whose meaning is still open, oldest first.
  package func pendingEvents() throws -> [EventRow] {
    try all("SELECT id, \(Self.columns), process FROM pending_events ORDER BY id") {
      try Self.event($0, process: $0[12])
    }
  }

  /// An event whose meaning is still open.
  package func pendingEvent(_ id: Int64) throws -> EventRow? {
    try first("SELECT id, \(Self.columns), process FROM pending_events WHERE id = ?", id) {
      try Self.event($0, process: $0[12])
    }
  }

  package func removePending(_ id: Int64) throws { try run("DELETE FROM pending_events WHERE id = ?", id) }

  package func removePending(_ runs: [ClosedRange<Int64>]) throws {
    for run in runs {
      try self.run("DELETE FROM pending_events WHERE id BETWEEN ? AND ?", run.lowerBound, run.upperBound)
    }
  }

  /// A logged event.
  package func event(_ sequence: Int64) throws -> EventRow? {
    try first("SELECT sequence, \(Self.columns) FROM events WHERE sequence = ?", sequence) {
      try Self.event($0, process: 0)
    }
  }

  /// Logged events after a sequence number, oldest first.
  package func events(after sequence: Int64, limit: Int) throws -> [EventRow] {
    try all(
      "SELECT sequence, \(Self.columns) FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?", sequence, limit
    ) { try Self.event($0, process: 0) }
  }

  /// Logged events before a sequence number, newest first.
  package func events(before sequence: Int64, limit: Int) throws -> [EventRow] {
    try all(
      "SELECT sequence, \(Self.columns) FROM events WHERE sequence < ? ORDER BY sequence DESC LIMIT ?",
      sequence, limit
    ) { try Self.event($0, process: 0) }
  }

  /// The sequence number up to which retention dropped events, and that of the newest event.
  package func eventBounds() throws -> (dropped: Int64, last: Int64) {
    let dropped = try numberSetting("eventsBefore") ?? 0
    let own = try first("SELECT max(sequence) FROM events") { try $0[0] as Int64? ?? 0 } ?? 0
    let hubs = try first("SELECT max(sequence) FROM replica_events") { try $0[0] as Int64? ?? 0 } ?? 0
    return (dropped, max(dropped, own, hubs, try numberSetting("eventsTo") ?? 0))
  }

  /// The latest time up to `time` that an event or a version bears.
  package func latestTime(upTo time: Timestamp) throws -> Timestamp? {
    try first(
      """
      SELECT max(time) FROM (SELECT time FROM events UNION ALL SELECT time FROM pending_events UNION ALL SELECT time FROM versions)
      WHERE time <= ?
      """, time.nanoseconds
    ) { try ($0[0] as Int64?).map { Timestamp(nanoseconds: $0) } } ?? nil
  }

  /// Events that ``latestTime()`` looks at, the newest ones.
  private static let latestEvents = 1000

  /// The latest time of what was logged or deleted last. Where the clock was put back in between, older events may bear a
  /// later one.
  package func latestTime() throws -> Timestamp? {
    try first(
      """
      SELECT max(time) FROM (
        SELECT time FROM (SELECT time FROM events ORDER BY sequence DESC LIMIT ?)
        UNION ALL SELECT time FROM pending_events UNION ALL SELECT max(time) FROM deleted)
      """, Self.latestEvents
    ) { try ($0[0] as Int64?).map { Timestamp(nanoseconds: $0) } } ?? nil
  }

  /// When each account last changed something in a share.
  package func lastEdits(inShare share: Int64) throws -> [Int64: Timestamp] {
    let rows = try all(
      """
      SELECT actor, max(time) FROM events WHERE share = ? AND type <> 'sheaf.change.comment'
        AND (type LIKE 'sheaf.change.%' OR type LIKE 'sheaf.persistence.%') GROUP BY actor
      """, share
    ) { try ($0[0] as Int64, Timestamp(nanoseconds: $0[1])) }
    return Dictionary(rows, uniquingKeysWith: max)
  }

  /// Logged events of an item, and of everything that is or was in the share that it is, newest first.
  package func events(
    of item: Int64, isShared: Bool, before sequence: Int64, from start: Int64, limit: Int
  ) throws -> [EventRow] {
    try all(
      """
      SELECT sequence, \(Self.columns) FROM events WHERE sequence < ?1 AND sequence >= ?2
        AND (item = ?3 \(isShared ? "OR share = ?3 OR previous_share = ?3" : "")) ORDER BY sequence DESC LIMIT ?4
      """, sequence, start, item, limit
    ) { try Self.event($0, process: 0) }
  }

  /// Drops events at the log's beginning that are older than `time`, `limit` at most, and keeps the count; returns
  /// whether there may be more.
  package func dropEvents(before time: Timestamp, limit: Int64) throws -> Bool {
    let (dropped, last) = try eventBounds()
    let tables = ["events", "replica_events"]
    // By the events that are there: between their numbers there may be many that are not.
    let end =
      try tables.compactMap { table in
        try first(
          "SELECT sequence FROM \(table) WHERE sequence > ? ORDER BY sequence LIMIT 1 OFFSET ?", dropped, limit - 1
        ) { try $0[0] as Int64 }
      }.min() ?? last
    // Up to the first one that stays: a clock that was wrong for a while must not take the others along.
    let kept = try tables.compactMap { table in
      try first(
        "SELECT sequence FROM \(table) WHERE sequence > ? AND sequence <= ? AND time >= ? ORDER BY sequence LIMIT 1",
        dropped, end, time.nanoseconds
      ) { try $0[0] as Int64 }
    }.min()
    let border = kept.map { $0 - 1 } ?? end
    guard border > dropped else { return false }
    try run(
      "INSERT INTO settings (key, value) VALUES ('eventsBefore', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      border)
    try run("DELETE FROM events WHERE sequence <= ?", border)
    try run("DELETE FROM replica_events WHERE sequence <= ?", border)
    return kept == nil && border < last
  }

  /// Forgets events of an account's items, `limit` at most of each kind, and what its hub told of them; returns whether
  /// there may be more. Their numbers are not given again.
  package func forgetEvents(of account: Int64, limit: Int) throws -> Bool {
    try setSetting("eventsTo", eventBounds().last)
    var hasMore = false
    for (table, number, owner) in [
      ("events", "sequence", "owner"), ("pending_events", "id", "owner"), ("waiting_events", "id", "owner"),
      ("replica_events", "sequence", "account"),
    ] {
      try run(
        "DELETE FROM \(table) WHERE \(number) IN (SELECT \(number) FROM \(table) WHERE \(owner) = ? LIMIT ?)",
        account, limit)
      if try first("SELECT 1 FROM \(table) WHERE \(owner) = ? LIMIT 1", account, decode: { _ in true }) ?? false {
        hasMore = true
      }
    }
    try run("DELETE FROM replica_logs WHERE account = ?", account)
    try run("DELETE FROM replica_comments WHERE account = ?", account)
    return hasMore
  }

  /// Drops the logged saves of some versions of an item.
  ///
  /// - Parameters:
  ///   - first: They have higher numbers.
  ///   - end: They have lower ones.
  package func dropEdits(of item: Int64, versions: Set<Int64>, after first: Int64, before end: Int64) throws {
    try run(
      """
      DELETE FROM events WHERE sequence > ?1 AND sequence < ?2 AND item = ?3 AND type = 'sheaf.change.edit'
        AND json_extract(data, '$.version.number') IN (SELECT value FROM json_each(?4))
      """, first, end, item, "[" + versions.map(String.init).joined(separator: ",") + "]")
  }

  /// The item and version of which the newest event tells; nil where that is no edit.
  package func newestEdit() throws -> (item: Int64, version: Int64)? {
    try first(
      """
      SELECT item, json_extract(data, '$.version.number') FROM events
      WHERE sequence = (SELECT max(sequence) FROM events) AND type = 'sheaf.change.edit'
      """
    ) { (try $0[0] as Int64, try $0[1] as Int64? ?? 0) }
  }

  // MARK: - Notices

  /// The sequence number up to which an account cleared its notices.
  package func noticed(_ account: Int64) throws -> Int64 {
    try first("SELECT noticed FROM accounts WHERE id = ?", account) { try $0[0] } ?? 0
  }

  /// Clears an account's notices up to a sequence number, which never goes back.
  package func setNoticed(_ account: Int64, _ sequence: Int64) throws {
    try run("UPDATE accounts SET noticed = max(noticed, ?) WHERE id = ?", sequence, account)
  }
}
