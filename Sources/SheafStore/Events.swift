package import Foundation
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
  package let item: Int64
  /// The CloudEvents `data`, JSON.
  package let data: String
  /// Process group leader (tgid) that did it, for pending events; 0 where none did.
  package let process: Int64

  package init(
    number: Int64, uuid: UUID, type: String, time: Timestamp, actor: Int64, item: Int64, data: String, process: Int64
  ) {
    self.number = number
    self.uuid = uuid
    self.type = type
    self.time = time
    self.actor = actor
    self.item = item
    self.data = data
    self.process = process
  }
}

extension StoreTransaction {
  private static let columns = "uuid, type, time, actor, item, data"
  // Built once: putting a text together costs as much as running it.
  private static let eventInsertion = "INSERT INTO events (sequence, \(columns)) VALUES (?,?,?,?,?,?,?)"

  private func values(_ event: EventRow) -> [(any Bindable)?] {
    [event.uuid.bytes, event.type, event.time.nanoseconds, event.actor, event.item, event.data]
  }

  /// Logs an event under its sequence number.
  package func insert(_ event: EventRow) throws {
    try run(Self.eventInsertion, [event.number] + values(event))
  }

  /// Records an event whose meaning is still open.
  package func insertPending(_ event: EventRow) throws {
    try run(
      "INSERT INTO pending_events (id, \(Self.columns), process) VALUES (?,?,?,?,?,?,?,?)",
      [event.number] + values(event) + [event.process])
  }

  /// All events whose meaning is still open, oldest first.
  package func pendingEvents() throws -> [EventRow] {
    try all("SELECT id, \(Self.columns), process FROM pending_events ORDER BY id", []) { row in
      EventRow(
        number: row[0], uuid: UUID(bytes: try row.bytes(1)), type: row[2], time: Timestamp(nanoseconds: row[3]),
        actor: row[4], item: row[5], data: row[6], process: row[7])
    }
  }

  package func removePending(_ id: Int64) throws { try run("DELETE FROM pending_events WHERE id = ?", [id]) }

  /// Logged events after a sequence number.
  package func events(after sequence: Int64, limit: Int) throws -> [EventRow] {
    try all(
      "SELECT sequence, \(Self.columns) FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?", [sequence, limit]
    ) { row in
      EventRow(
        number: row[0], uuid: UUID(bytes: try row.bytes(1)), type: row[2], time: Timestamp(nanoseconds: row[3]),
        actor: row[4], item: row[5], data: row[6], process: 0)
    }
  }

  /// Drops events that retention has passed, keeping the count.
  package func dropEvents(before time: Timestamp) throws {
    guard
      let last = try first("SELECT max(sequence) FROM events WHERE time < ?", [time.nanoseconds], { $0[0] as Int64? }),
      let last
    else { return }
    try run(
      "INSERT INTO settings (key, value) VALUES ('eventsBefore', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
      [last])
    try run("DELETE FROM events WHERE sequence <= ?", [last])
  }
}
