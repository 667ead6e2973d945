import SheafHubStore
import SheafModel
import SheafWire

/// Brings the news of one zone to the inboxes of others.
///
/// A change of a share writes its outgoing rows in its own transaction. Each is then brought to the inbox in a
/// transaction of the other zone, which takes it once: an inbox keeps the newest revision of each share that it was
/// told. Last, the row is deleted where it still is the one that was brought. Each step may be repeated, by any process.
struct Inboxes: Sendable {
  /// The most shares in an inbox. An invitation for which it has no room holds all the same, and the person can join by
  /// the URL.
  static let mostEntries: Int64 = 5_000
  /// How long an inbox says that something ended, in nanoseconds.
  private static let endedLifetime: Int64 = 180 * 86_400 * 1_000_000_000
  /// Nanoseconds after any change of somebody's part in a share before a new invitation to it is an event again.
  private static let invitationInterval: Int64 = 86_400 * 1_000_000_000
  private static let step: Int64 = 100

  let database: any Database
  let clock: HubClock

  /// What wakes those who wait for news of an inbox.
  static func feed(of zone: String) -> String { "\(zone) inbox" }

  private struct Outgoing: Sendable {
    let account: String
    let share: [UInt8]
    let revision: Int64
    let acceptance: String
    let entry: String
  }

  /// Brings the news of a zone. After an interruption the upkeep goes on with it.
  func deliver(from zone: String) async throws {
    while true {
      let rows = try await database.read { connection in
        try connection.query(
          "SELECT account, share, revision, acceptance, entry FROM outgoing WHERE zone = $1 LIMIT $2",
          [.text(zone), .integer(Self.step)]
        ).map {
          Outgoing(
            account: try $0.text(0), share: try $0.blob(1), revision: try $0.integer(2), acceptance: try $0.text(3),
            entry: try $0.text(4))
        }
      }
      for row in rows {
        try await bring(row)
        try await forget(row, of: zone)
      }
      if rows.count < Self.step { return }
    }
  }

  /// Puts a row into the inbox that it is for. An account that is gone has none.
  private func bring(_ row: Outgoing) async throws {
    let now = clock.now
    do {
      try await database.write { connection in
        var head = try ZoneHead.take(row.account, in: &connection)
        // A share of this hub is of no other one, whatever that said.
        if try Collaborations.forget(row.share, of: row.account, &connection) {
          try connection.execute(
            "DELETE FROM inbox WHERE zone = $1 AND share = $2", [.text(row.account), .blob(row.share)])
        }
        let note: InboxNote = try StoredZone.decoded(row.entry)
        _ = try Self.put(
          note, revision: row.revision, of: StoredZone.id(row.share), into: row.account, &head, at: now, &connection)
      }
    } catch let error as HubError where error.kind == .notFound {
      return
    }
  }

  /// Puts what another hub tells of its share into the inbox of the account that it is for.
  ///
  /// - Returns: the account's zone.
  /// - Throws: ``HubError`` of kind `notFound` for a handle that has no account here, or a share of which that hub did
  ///   not ask for keys; `forbidden` for an owner for whom it does not speak; `invalid`.
  func receive(_ news: InboxNews, from domain: String, at address: HubAddress) async throws -> String {
    let (entry, now) = (news.entry, clock.now)
    guard Federation.domain(of: entry.owner) == domain else {
      throw HubError(.forbidden, "the hub does not speak for the owner")
    }
    guard (0..<1 << 53).contains(news.revision) else { throw HubError(.invalid, "the entry is none") }
    let note = try InboxNote(entry, at: address, for: news.handle, now: now)
    return try await database.write { connection in
      guard let handle = try? AccountHandle(news.handle),
        let person = try ShareRows.person(handle, in: &connection),
        // Looked at before the row is taken, so that hubs with made-up shares hold nobody up.
        try Collaborations.isFrom(address, share: entry.share, of: person.zone, owner: entry.owner, &connection)
      else { throw HubError(.notFound, "the account was not invited") }
      _ = try Accounts.take(person.zone, in: &connection)
      var head = try ZoneHead.take(person.zone, in: &connection)
      if note.acceptance == .accepted,
        try !Collaborations.isAccepted(entry.share, of: person.zone, &connection)
          && !Self.isJoined(entry.share, by: person.zone, &connection)
      {
        // Nobody takes part by another hub's word alone.
        return person.zone
      }
      let isNews = try Self.put(
        note, revision: news.revision, of: entry.share, into: person.zone, &head, at: now, &connection)
      if isNews, note.acceptance == .removed { try Collaborations.end(entry.share, of: person.zone, &connection) }
      return person.zone
    }
  }

  /// Whether an inbox has a share as one that was accepted.
  private static func isJoined(
    _ share: WireID, by zone: String, _ connection: inout any SQLConnection
  ) throws -> Bool {
    let rows = try connection.query(
      "SELECT acceptance FROM inbox WHERE zone = $1 AND share = $2", [.text(zone), .blob(share.bytes)])
    return try rows.first?.text(0) == Acceptance.accepted.rawValue
  }

  /// The facts of a share of this hub in an account's inbox, as events tell them; nil for one that offers nothing now.
  static func facts(
    of share: WireID, in zone: String, _ connection: inout any SQLConnection
  ) throws -> EventDetails.Share? {
    let rows = try connection.query(
      "SELECT entry FROM inbox WHERE zone = $1 AND share = $2", [.text(zone), .blob(share.bytes)])
    guard let note: InboxNote = try rows.first.map({ try StoredZone.decoded($0.text(0)) }), note.address == nil,
      let offer = note.offer
    else { return nil }
    return EventDetails.Share(id: share.description, url: offer.token, title: offer.title)
  }

  /// Puts a note into an inbox that was taken, unless something newer is there, or it has no room; its news becomes an
  /// event.
  ///
  /// - Returns: whether it was put there.
  private static func put(
    _ note: InboxNote, revision: Int64, of share: WireID, into zone: String, _ head: inout ZoneHead, at now: Timestamp,
    _ connection: inout any SQLConnection
  ) throws -> Bool {
    let key: [SQLValue] = [.text(zone), .blob(share.bytes)]
    let known = try connection.query(
      "SELECT revision, acceptance, changed, entry FROM inbox WHERE zone = $1 AND share = $2", key
    ).first
    if let known {
      if try known.integer(0) >= revision { return false }
    } else {
      let count = try connection.query("SELECT COUNT(*) FROM inbox WHERE zone = $1", [.text(zone)])
      if try count.first?.integer(0) ?? 0 >= mostEntries { return false }
    }
    var stored = note
    // That they were turned down is remembered: an invitation after that is one of which they hear.
    if note.news?.type != .accessDeclined { stored.news = nil }
    try connection.execute(
      """
      INSERT INTO inbox (zone, share, owner, revision, acceptance, entry, changed)
      VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (zone, share) DO UPDATE SET owner = excluded.owner, revision = excluded.revision,
        acceptance = excluded.acceptance, entry = excluded.entry, changed = excluded.changed
      """,
      key + [
        .text(note.owner), .integer(revision), .text(note.acceptance.rawValue),
        .text(try StoredZone.encoded(stored)), .integer(now.nanoseconds),
      ])
    try advance(zone, &connection)
    if let news = note.news, try isHeard(news, known, at: now) {
      try head.append(news.event(of: share), to: zone, in: &connection)
      try head.write(zone, in: &connection)
    }
    return true
  }

  /// Whether an account hears of news: who invites and removes somebody again and again must not fill their log.
  ///
  /// - Parameter known: Acceptance, time and note of the row that was in the inbox, after its revision.
  private static func isHeard(_ news: OutsiderNews, _ known: SQLRow?, at now: Timestamp) throws -> Bool {
    guard news.type == .shareUpdated, let known else { return true }
    let former: InboxNote = try StoredZone.decoded(known.text(3))
    if former.news?.type == .accessDeclined || former.asked != nil { return true }
    return try known.text(1) != Acceptance.pending.rawValue
      && now.nanoseconds - known.integer(2) >= invitationInterval
  }

  /// Gives an inbox its next number.
  static func advance(_ zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      """
      INSERT INTO inboxes (zone, number) VALUES ($1, 1)
      ON CONFLICT (zone) DO UPDATE SET number = inboxes.number + 1
      """, [.text(zone)])
  }

  private func forget(_ row: Outgoing, of zone: String) async throws {
    _ = try await database.write { connection in
      try connection.execute(
        "DELETE FROM outgoing WHERE zone = $1 AND account = $2 AND share = $3 AND revision = $4",
        [.text(zone), .text(row.account), .blob(row.share), .integer(row.revision)])
    }
  }

  /// Brings what is left of every zone: the rows that a process had not brought when it ended.
  func deliverAll() async throws {
    let zones = try await database.read { connection in
      Set(try connection.query("SELECT zone FROM outgoing").map { try $0.text(0) })
    }
    for zone in zones.sorted() {
      try Task.checkCancellation()
      try await deliver(from: zone)
    }
  }

  /// A page of an account's inbox: the shares after a share's id, and the number of the inbox.
  func page(
    after share: WireID?, limit: Int, of zone: String
  ) async throws -> (entries: [(share: WireID, note: InboxNote)], number: Int64) {
    try await database.read { connection in
      let entries: [(WireID, InboxNote)] = try connection.query(
        "SELECT share, entry FROM inbox WHERE zone = $1 AND share > $2 ORDER BY share LIMIT $3",
        [.text(zone), .blob(share?.bytes ?? []), .integer(Int64(limit))]
      ).map { (try StoredZone.id($0.blob(0)), try StoredZone.decoded($0.text(1))) }
      let number = try connection.query("SELECT number FROM inboxes WHERE zone = $1", [.text(zone)]).first?.integer(0)
      return (entries, number ?? 0)
    }
  }

  /// Forgets shares that ended long ago.
  func forgetEnded(in zone: String) async throws {
    let limit = clock.now.nanoseconds - Self.endedLifetime
    try await database.write { connection in
      let rows = try connection.query(
        "SELECT share, entry, changed FROM inbox WHERE zone = $1 AND acceptance = $2 AND changed < $3",
        [.text(zone), .text(Acceptance.removed.rawValue), .integer(limit)])
      for row in rows {
        let note: InboxNote? = try? StoredZone.decoded(row.text(1))
        // A request still waits for its answer; it may do so for longer.
        if note?.asked != nil, try row.integer(2) >= limit - 3 * Self.endedLifetime { continue }
        try connection.execute(
          "DELETE FROM inbox WHERE zone = $1 AND share = $2", [.text(zone), .blob(try row.blob(0))])
      }
    }
  }
}
