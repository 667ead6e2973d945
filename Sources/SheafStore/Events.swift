package import Foundation
internal import GRDB
package import SheafModel

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
  package let owner: Int64
  package let item: Int64
  /// The CloudEvents `data`, JSON.
  package var data: String
  /// Process group leader (tgid) that did it, for pending events; 0 where none did.
  package var process: Int64

  package init(
    number: Int64, uuid: UUID, type: String, time: Timestamp, actor: Int64, owner: Int64, item: Int64, data: String,
    process: Int64
  ) {
    self.number = number
    self.uuid = uuid
    self.type = type
    self.time = time
    self.actor = actor
    self.owner = owner
    self.item = item
    self.data = data
    self.process = process
  }
}

extension StoreTransaction {
  private static let columns = "uuid, type, time, actor, owner, item, data"

  private func values(_ event: EventRow) -> [(any DatabaseValueConvertible)?] {
    [Data(event.uuid.bytes), event.type, event.time.nanoseconds, event.actor, event.owner, event.item, event.data]
  }

  /// A row whose first column is its number.
  private static func event(_ row: Row, process: Int64) throws -> EventRow {
    EventRow(
      number: row[0], uuid: UUID(bytes: try row.bytes(1)), type: row[2], time: Timestamp(nanoseconds: row[3]),
      actor: row[4], owner: row[5], item: row[6], data: row[7], process: process)
  }

  /// Logs an event under its sequence number.
  package func insert(_ event: EventRow) throws {
    try run("INSERT INTO events (sequence, \(Self.columns)) VALUES (?,?,?,?,?,?,?,?)", [event.number] + values(event))
  }

  /// Records an event whose meaning is still open.
  package func insertPending(_ event: EventRow) throws {
    try run(
      "INSERT INTO pending_events (id, \(Self.columns), process) VALUES (?,?,?,?,?,?,?,?,?)",
      [event.number] + values(event) + [event.process])
  }

  /// All events whose meaning is still open, oldest first.
  package func pendingEvents() throws -> [EventRow] {
    try all("SELECT id, \(Self.columns), process FROM pending_events ORDER BY id", []) {
      try Self.event($0, process: $0[8])
    }
  }

  package func removePending(_ id: Int64) throws { try run("DELETE FROM pending_events WHERE id = ?", [id]) }

  /// Logged events after a sequence number, oldest first.
  package func events(after sequence: Int64, limit: Int) throws -> [EventRow] {
    try all(
      "SELECT sequence, \(Self.columns) FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?", [sequence, limit]
    ) { try Self.event($0, process: 0) }
  }

  /// Logged events before a sequence number, newest first.
  package func events(before sequence: Int64, limit: Int) throws -> [EventRow] {
    try all(
      "SELECT sequence, \(Self.columns) FROM events WHERE sequence < ? ORDER BY sequence DESC LIMIT ?",
      [sequence, limit]
    ) { try Self.event($0, process: 0) }
  }

  /// The sequence number up to which retention dropped events, and that of the newest event.
  package func eventBounds() throws -> (dropped: Int64, last: Int64) {
    let dropped = try numberSetting("eventsBefore") ?? 0
    return (dropped, max(dropped, try first("SELECT max(sequence) FROM events", []) { $0[0] as Int64? ?? 0 } ?? 0))
  }

  /// Drops the events at the log's beginning that retention has passed, keeping the count.
  package func dropEvents(before time: Timestamp) throws {
    // As far as the first one that stays: a clock that was wrong for a while must not take the rest along.
    let kept = try first("SELECT sequence FROM events WHERE time >= ? ORDER BY sequence LIMIT 1", [time.nanoseconds]) {
      $0[0] as Int64
    }
    let (dropped, last) = try eventBounds()
    let border = kept.map { $0 - 1 } ?? last
    guard border > dropped else { return }
    try run(
      "INSERT INTO settings (key, value) VALUES ('eventsBefore', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      [border])
    try run("DELETE FROM events WHERE sequence <= ?", [border])
  }

  // MARK: - Notices

  /// The sequence number up to which an account cleared its notices.
  package func noticed(_ account: Int64) throws -> Int64 {
    try first("SELECT noticed FROM accounts WHERE id = ?", [account]) { $0[0] } ?? 0
  }

  /// Clears an account's notices up to a sequence number; it never goes back.
  package func setNoticed(_ account: Int64, _ sequence: Int64) throws {
    try run("UPDATE accounts SET noticed = max(noticed, ?) WHERE id = ?", [sequence, account])
  }
}
