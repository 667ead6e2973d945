internal import Foundation
package import SheafModel

/// A row of `replica_logs`: a log of events at a hub that an account reads.
package struct ReplicaLogRow: Hashable, Sendable {
  /// 16 bytes: the account's zone, or a share of somebody else's.
  package let log: [UInt8]
  package let isShare: Bool
  /// The number of the last event that was read, and the hub's word for that place.
  package var number: Int64 = 0
  package var token: String?
  /// Events up to this number were there when the account was connected first; nil before the hub said how many.
  package var past: Int64?
  /// When the account was connected last.
  package var since: Timestamp
  /// How far the account cleared its notices here, and how far the hub knows of.
  package var cleared: Int64 = 0
  package var read: Int64 = 0

  package init(log: [UInt8], isShare: Bool, past: Int64?, since: Timestamp) {
    self.log = log
    self.isShare = isShare
    self.past = past
    self.since = since
  }

  fileprivate init(_ row: Row) throws {
    log = try row.uuid(0).bytes
    isShare = try row[1] as Int64 != 0
    number = try row[2]
    token = try row[3]
    past = try row[4]
    since = Timestamp(nanoseconds: try row[5])
    cleared = try row[6]
    read = try row[7]
  }
}

/// A row of `replica_events`: an event of a hub's log, with its number in the library's.
package struct ReplicaEventRow: Hashable, Sendable {
  /// Where it is in the log of this library.
  package let sequence: Int64
  /// The connected account that sees it.
  package let account: Int64
  /// 16 bytes.
  package let log: [UInt8]
  /// Its number at the hub; below 0 for one that a hub that went back has no more.
  package var number: Int64
  package var uuid: [UInt8]
  package var type: String
  package var time: Timestamp
  /// The item, 16 bytes.
  package var subject: [UInt8]
  /// The share that the item was in, 16 bytes.
  package var share: [UInt8]?
  /// Whether it was there before the account was connected: nobody is told of it as news.
  package let isPast: Bool
  /// Whether the library's own view has it from another account's log.
  package let isRepeated: Bool
  /// The CloudEvent as the hub told it.
  package var event: String

  package init(
    sequence: Int64, account: Int64, log: [UInt8], number: Int64, uuid: [UInt8], type: String, time: Timestamp,
    subject: [UInt8], share: [UInt8]?, isPast: Bool, isRepeated: Bool, event: String
  ) {
    self.sequence = sequence
    self.account = account
    self.log = log
    self.number = number
    self.uuid = uuid
    self.type = type
    self.time = time
    self.subject = subject
    self.share = share
    self.isPast = isPast
    self.isRepeated = isRepeated
    self.event = event
  }

  fileprivate init(_ row: Row) throws {
    sequence = try row[0]
    account = try row[1]
    log = try row.uuid(2).bytes
    number = try row[3]
    uuid = try row.uuid(4).bytes
    type = try row[5]
    time = Timestamp(nanoseconds: try row[6])
    subject = try row.uuid(7).bytes
    share = try row.bytes(8).isEmpty ? nil : row.uuid(8).bytes
    isPast = try row[9] as Int64 != 0
    isRepeated = try row[10] as Int64 != 0
    event = try row[11]
  }
}

/// A row of `replica_comments`: a comment that the hub does not have yet.
package struct ReplicaCommentRow: Hashable, Sendable {
  /// 16 bytes each.
  package let item: [UInt8]
  package let id: [UInt8]
  package let time: Timestamp
  package let text: String

  package init(item: [UInt8], id: [UInt8], time: Timestamp, text: String) {
    self.item = item
    self.id = id
    self.time = time
    self.text = text
  }
}

/// The logs of connected accounts at their hubs, and what is on its way there (docs/FORMAT.md, Replicas).
extension StoreTransaction {
  private static let logColumns = "log, share, number, token, past, since, cleared, read"
  private static let eventColumns =
    "sequence, account, log, number, uuid, type, time, subject, share, past, repeated, event"

  // MARK: - Logs

  package func replicaLogs(of account: Int64) throws -> [ReplicaLogRow] {
    try all(
      "SELECT \(Self.logColumns) FROM replica_logs WHERE account = ? ORDER BY log", account, decode: ReplicaLogRow.init)
  }

  package func replicaLog(of account: Int64, _ log: [UInt8]) throws -> ReplicaLogRow? {
    try first(
      "SELECT \(Self.logColumns) FROM replica_logs WHERE account = ? AND log = ?", account, log,
      decode: ReplicaLogRow.init)
  }

  package func set(_ log: ReplicaLogRow, of account: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO replica_logs (account, \(Self.logColumns)) VALUES (?,?,?,?,?,?,?,?,?)", account, log.log,
      log.isShare ? 1 : 0, log.number, log.token, log.past, log.since.nanoseconds, log.cleared, log.read)
  }

  // MARK: - Events

  package func insert(_ event: ReplicaEventRow) throws {
    try run(
      "INSERT INTO replica_events (\(Self.eventColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", event.sequence,
      event.account, event.log, event.number, event.uuid, event.type, event.time.nanoseconds, event.subject,
      event.share, event.isPast ? 1 : 0, event.isRepeated ? 1 : 0, event.event)
  }

  /// Has a row say what the hub says of the same deed by now.
  package func update(_ event: ReplicaEventRow) throws {
    try run(
      """
      UPDATE replica_events SET number = ?, uuid = ?, type = ?, time = ?, subject = ?, share = ?, event = ?
      WHERE sequence = ?
      """, event.number, event.uuid, event.type, event.time.nanoseconds, event.subject, event.share, event.event,
      event.sequence)
  }

  /// Events after a place in the library's log, oldest first: of those that the hubs have.
  package func replicaEvents(after sequence: Int64, limit: Int) throws -> [ReplicaEventRow] {
    try all(
      """
      SELECT \(Self.eventColumns) FROM replica_events WHERE sequence > ? AND number > 0 ORDER BY sequence LIMIT ?
      """, sequence, limit, decode: ReplicaEventRow.init)
  }

  /// Events before a place in the library's log, newest first.
  package func replicaEvents(before sequence: Int64, limit: Int) throws -> [ReplicaEventRow] {
    try all(
      """
      SELECT \(Self.eventColumns) FROM replica_events WHERE sequence < ? AND number > 0 ORDER BY sequence DESC LIMIT ?
      """, sequence, limit, decode: ReplicaEventRow.init)
  }

  /// Events of an item, and of everything in a share where one is given, before a place in the log, newest first.
  package func replicaEvents(
    of item: [UInt8], inShare share: [UInt8]?, before sequence: Int64, limit: Int
  ) throws -> [ReplicaEventRow] {
    try all(
      """
      SELECT \(Self.eventColumns) FROM replica_events WHERE sequence < ?1 AND number > 0
        AND (subject = ?2 OR share = ?3) ORDER BY sequence DESC LIMIT ?4
      """, sequence, item, share, limit, decode: ReplicaEventRow.init)
  }

  /// When each person last changed something in a share, by their handles.
  package func lastReplicaEdits(inShare share: [UInt8]) throws -> [String: Timestamp] {
    let rows = try all(
      """
      SELECT json_extract(event, '$.data.actor.handle'), max(time) FROM replica_events
      WHERE share = ? AND number > 0 AND type <> 'sheaf.change.comment'
        AND (type LIKE 'sheaf.change.%' OR type LIKE 'sheaf.persistence.%') GROUP BY 1
      """, share
    ) { try ($0[0] as String, Timestamp(nanoseconds: $0[1])) }
    return Dictionary(rows, uniquingKeysWith: max)
  }

  /// Whether an event is in a log of an account, or of any account.
  package func hasReplicaEvent(_ uuid: [UInt8], in log: [UInt8]? = nil, of account: Int64? = nil) throws -> Bool {
    try first(
      """
      SELECT 1 FROM replica_events WHERE uuid = ?1 AND number > 0 AND (?2 IS NULL OR log = ?2)
        AND (?3 IS NULL OR account = ?3)
      """, uuid, log, account
    ) { _ in true } ?? false
  }

  /// The highest number in a log up to a place in the library's.
  package func lastReplicaNumber(of account: Int64, _ log: [UInt8], upTo sequence: Int64) throws -> Int64 {
    try first(
      "SELECT max(number) FROM replica_events WHERE account = ? AND log = ? AND sequence <= ?", account, log, sequence
    ) { try $0[0] as Int64? ?? 0 } ?? 0
  }

  /// Notes that the hub has no events of a log any more with numbers above one.
  package func loseReplicaEvents(of account: Int64, _ log: [UInt8], after number: Int64) throws {
    try run(
      "UPDATE replica_events SET number = -number WHERE account = ? AND log = ? AND number > ?", account, log, number)
  }

  /// Events of an item in a log that the hub has no more, the oldest first.
  package func lostReplicaEvents(of account: Int64, _ log: [UInt8], _ item: [UInt8]) throws -> [ReplicaEventRow] {
    try all(
      """
      SELECT \(Self.eventColumns) FROM replica_events
      WHERE account = ? AND log = ? AND subject = ? AND number < 0 ORDER BY sequence
      """, account, log, item, decode: ReplicaEventRow.init)
  }

  /// Comments in a log that the hub has no more, the oldest first.
  package func lostReplicaComments(of account: Int64, _ log: [UInt8], type: String) throws -> [ReplicaEventRow] {
    try all(
      """
      SELECT \(Self.eventColumns) FROM replica_events
      WHERE account = ? AND log = ? AND number < 0 AND type = ? ORDER BY sequence
      """, account, log, type, decode: ReplicaEventRow.init)
  }

  // MARK: - What waits

  private static let waitingColumns =
    "uuid, type, time, actor, owner, item, data, share, depth, previous_share, previous_depth"

  /// Keeps an event of something that the hub does not have yet.
  package func insertWaiting(_ event: EventRow) throws {
    try run(
      "INSERT INTO waiting_events (id, \(Self.waitingColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", event.number,
      event.uuid, event.type, event.time.nanoseconds, event.actor, event.owner, event.item, event.data,
      event.share?.share, event.share?.depth ?? 0, event.previousShare?.share, event.previousShare?.depth ?? 0)
  }

  /// The newest events that wait, oldest first.
  package func waitingEvents(limit: Int) throws -> [EventRow] {
    try all(
      "SELECT id, \(Self.waitingColumns) FROM waiting_events ORDER BY id DESC LIMIT ?", limit,
      decode: EventRow.init(waiting:)
    ).reversed()
  }

  /// Events that wait of an account's items, oldest first.
  package func waitingEvents(of owner: Int64) throws -> [EventRow] {
    try all(
      "SELECT id, \(Self.waitingColumns) FROM waiting_events WHERE owner = ? ORDER BY id", owner,
      decode: EventRow.init(waiting:))
  }

  /// The name of the document in which an item's contents could not be saved, as the event of its making has it.
  package func waitingPreviousName(of item: Int64) throws -> String? {
    try first(
      """
      SELECT json_extract(data, '$.previousName') FROM waiting_events
      WHERE item = ? AND type = 'sheaf.persistence.created' ORDER BY id LIMIT 1
      """, item
    ) { try $0[0] as String? } ?? nil
  }

  /// Forgets the events that wait of an account's items: of those that the hub has as they are here, or of all. Comments
  /// wait until they are sent.
  package func removeWaitingEvents(of owner: Int64, all: Bool = false) throws {
    if all { return try run("DELETE FROM waiting_events WHERE owner = ?", owner) }
    try run(
      """
      DELETE FROM waiting_events WHERE owner = ?1 AND NOT EXISTS (
        SELECT 1 FROM items JOIN replica_changes ON replica_changes.account = ?1 AND replica_changes.item = items.uuid
        WHERE items.id = waiting_events.item)
        AND NOT EXISTS (SELECT 1 FROM replica_comments WHERE account = ?1 AND id = waiting_events.uuid)
      """, owner)
  }

  /// Forgets an event that waits, since the hub tells of it.
  package func removeWaitingEvent(_ uuid: [UInt8], of item: Int64) throws {
    try run("DELETE FROM waiting_events WHERE item = ? AND uuid = ?", item, uuid)
  }

  /// Whether an event of an item has a number of this library, and not of a hub.
  package func hasOwnEvent(_ uuid: [UInt8], of item: Int64) throws -> Bool {
    try first("SELECT 1 FROM events WHERE item = ? AND uuid = ?", item, uuid) { _ in true } ?? false
  }

  package func hasWaitingEvents(of owner: Int64) throws -> Bool {
    try first("SELECT 1 FROM waiting_events WHERE owner = ? LIMIT 1", owner) { _ in true } ?? false
  }

  // MARK: - Comments

  package func insert(_ comment: ReplicaCommentRow, of account: Int64) throws {
    try run(
      "INSERT OR IGNORE INTO replica_comments (account, id, item, time, text) VALUES (?,?,?,?,?)", account, comment.id,
      comment.item, comment.time.nanoseconds, comment.text)
  }

  /// Comments on an account's items that the hub does not have yet, oldest first.
  package func replicaComments(of account: Int64, limit: Int) throws -> [ReplicaCommentRow] {
    try all(
      "SELECT item, id, time, text FROM replica_comments WHERE account = ? ORDER BY time, id LIMIT ?", account, limit
    ) {
      ReplicaCommentRow(
        item: try $0.uuid(0).bytes, id: try $0.uuid(1).bytes, time: Timestamp(nanoseconds: try $0[2]), text: try $0[3])
    }
  }

  /// Forgets a comment that waits, with its event.
  package func removeReplicaComment(_ id: [UInt8], of account: Int64) throws {
    try run("DELETE FROM replica_comments WHERE account = ? AND id = ?", account, id)
    try run("DELETE FROM waiting_events WHERE owner = ? AND uuid = ?", account, id)
  }

  package func countReplicaComments(of account: Int64) throws -> Int64 {
    try first("SELECT count(*) FROM replica_comments WHERE account = ?", account) { try $0[0] as Int64 } ?? 0
  }
}
