import Crypto
import SheafHubStore
import SheafModel
import SheafWire

/// The rows of a zone's shares, in a transaction that has taken the zone, or in a reader's.
struct ShareRows {
  let zone: String
  var connection: any SQLConnection

  /// The zone that a link leads to, which confirms it.
  static func zone(of link: ShareToken, in connection: inout any SQLConnection) throws -> String? {
    try connection.query("SELECT zone FROM links WHERE hash = $1", [.blob(HubShare.hash(link))]).first?.text(0)
  }

  /// The account of a handle.
  static func person(_ handle: AccountHandle, in connection: inout any SQLConnection) throws -> Person? {
    try connection.query("SELECT zone FROM handles WHERE handle = $1", [.text(handle.description)]).first.map {
      Person(zone: try $0.text(0), handle: handle.description, name: nil)
    }
  }

  // MARK: - Reading

  mutating func share(_ id: WireID) throws -> HubShare? {
    try connection.query(
      """
      SELECT share, item, token, title, active, anyone, permission, invites, requests, kind FROM shares
      WHERE zone = $1 AND share = $2
      """, [.text(zone), .blob(id.bytes)]
    ).first.map { try share($0) }
  }

  mutating func share(of item: WireID) throws -> HubShare? {
    try connection.query(
      """
      SELECT share, item, token, title, active, anyone, permission, invites, requests, kind FROM shares
      WHERE zone = $1 AND item = $2
      """, [.text(zone), .blob(item.bytes)]
    ).first.map { try share($0) }
  }

  /// The share that a link leads to.
  mutating func share(by link: ShareToken) throws -> HubShare? {
    if let row = try connection.query(
      """
      SELECT share, item, token, title, active, anyone, permission, invites, requests, kind FROM shares
      WHERE zone = $1 AND token = $2
      """, [.text(zone), .text(link.text)]
    ).first {
      return try share(row)
    }
    let invited = try connection.query(
      "SELECT share FROM invitations WHERE zone = $1 AND hash = $2", [.text(zone), .blob(HubShare.hash(link))])
    return try invited.first.flatMap { try share(StoredZone.id($0.blob(0))) }
  }

  /// The ids of the zone's shares; those of now alone, or those that were stopped, too.
  mutating func ids(activeOnly: Bool) throws -> [WireID] {
    try connection.query("SELECT share, active FROM shares WHERE zone = $1 ORDER BY share", [.text(zone)])
      .filter { try !activeOnly || $0.integer(1) == 1 }.map { try StoredZone.id($0.blob(0)) }
  }

  private mutating func share(_ row: SQLRow) throws -> HubShare {
    let id = try row.blob(0)
    let values: [SQLValue] = [.text(zone), .blob(id)]
    var share = HubShare(
      id: try StoredZone.id(id), item: try StoredZone.id(row.blob(1)), kind: try Self.word(row.text(9)),
      token: ShareToken(stored: try row.text(2)),
      title: try row.text(3), isActive: try row.integer(4) == 1, anyone: try Self.word(row.text(5)),
      permission: try Self.word(row.text(6)), allowsInvites: try row.integer(7) == 1,
      allowsRequests: try row.integer(8) == 1, members: [:], asking: [:], invitations: [:])
    let members = try connection.query(
      """
      SELECT account, handle, name, role, permission, acceptance, since FROM participants
      WHERE zone = $1 AND share = $2
      """, values)
    for row in members {
      let person = Person(zone: try row.text(0), handle: try row.text(1), name: try row.optionalText(2))
      share.members[person.zone] = Member(
        person: person, role: try Self.word(row.text(3)), permission: try Self.word(row.text(4)),
        acceptance: try Self.word(row.text(5)), since: Timestamp(nanoseconds: try row.integer(6)))
    }
    let asking = try connection.query(
      "SELECT account, handle, name, time, state FROM requests WHERE zone = $1 AND share = $2", values)
    for row in asking {
      let person = Person(zone: try row.text(0), handle: try row.text(1), name: try row.text(2))
      share.asking[person.zone] = Asking(
        person: person, time: Timestamp(nanoseconds: try row.integer(3)), state: try Self.word(row.text(4)))
    }
    let invitations = try connection.query(
      "SELECT hash, permission, inviter, expires FROM invitations WHERE zone = $1 AND share = $2", values)
    for row in invitations {
      share.invitations[try row.blob(0)] = Invitation(
        permission: try Self.word(row.text(1)), inviter: try row.text(2),
        expires: Timestamp(nanoseconds: try row.integer(3)))
    }
    share.linkEnd = try connection.query(
      "SELECT time FROM link_ends WHERE zone = $1 AND share = $2", values
    ).first.map { Timestamp(nanoseconds: try $0.integer(0)) }
    return share
  }

  private static func word<Word: RawRepresentable>(_ text: String) throws -> Word where Word.RawValue == String {
    guard let word = Word(rawValue: text) else { throw HubStoreError.corrupt("a share has an unknown word") }
    return word
  }

  // MARK: - Writing

  /// Stores the changes of a share, and writes an outgoing row for everybody whom they concern.
  ///
  /// - Parameters:
  ///   - before: The share as it is stored; nil for a new one.
  ///   - action: The person who changes it, and the time.
  mutating func write(
    _ share: HubShare, before: HubShare?, _ owner: Person, _ action: ShareAction, _ head: inout ZoneHead
  ) throws {
    if share == before { return }
    try checkInvitations(of: share, since: before)
    let revision = try writeRow(share, at: action.time)
    let events = ShareEvents.events(of: share, since: before)
    if share.isActive, !(before?.isActive ?? false) {
      // Only the owner sees what was before.
      var feed = try SharedHead.read(share.id, of: zone, &connection)
      try feed.advance(share.id, of: zone, &connection)
      (feed.since, feed.opened) = (head.number, feed.number)
      try feed.write(share.id, of: zone, &connection)
    }
    try writeMemberships(events, share, before, action, &head)
    let key: [SQLValue] = [.text(zone), .blob(share.id.bytes)]
    for account in (before?.members ?? [:]).keys where Guests.isGuest(account) && share.member(account) == nil {
      try Guests.remove(account, from: share.id, of: zone, &connection)
    }
    for (account, _) in before?.members ?? [:] where share.members[account] == nil {
      try connection.execute(
        "DELETE FROM participants WHERE zone = $1 AND share = $2 AND account = $3", key + [.text(account)])
    }
    for (account, member) in share.members where member != before?.members[account] {
      try connection.execute(
        """
        INSERT INTO participants (zone, share, account, handle, name, role, permission, acceptance, since)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (zone, share, account) DO UPDATE SET handle = excluded.handle, name = excluded.name,
          role = excluded.role, permission = excluded.permission, acceptance = excluded.acceptance,
          since = excluded.since
        """,
        key + [
          .text(account), .text(member.person.handle), .optional(member.person.name), .text(member.role.rawValue),
          .text(member.permission.rawValue), .text(member.acceptance.rawValue), .integer(member.since.nanoseconds),
        ])
    }
    for (account, _) in before?.asking ?? [:] where share.asking[account] == nil {
      try connection.execute(
        "DELETE FROM requests WHERE zone = $1 AND share = $2 AND account = $3", key + [.text(account)])
    }
    for (account, asking) in share.asking where asking != before?.asking[account] {
      try connection.execute(
        """
        INSERT INTO requests (zone, share, account, handle, name, time, state) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (zone, share, account) DO UPDATE SET time = excluded.time, state = excluded.state
        """,
        key + [
          .text(account), .text(asking.person.handle), .text(asking.person.name ?? asking.person.handle),
          .integer(asking.time.nanoseconds), .text(asking.state.rawValue),
        ])
    }
    try writeLinks(share, before)
    let news = Dictionary(
      events.compactMap { event in
        OutsiderNews(event, share, action).flatMap { news in event.account.map { ($0, news) } }
      }
    ) { $1 }.merging(OutsiderNews.ending(share, before, action)) { $1 }
    try tell(share, before, revision, owner, news)
  }

  /// Invitations of one account that another one has not answered, at most: nobody fills another person's inbox.
  static let mostUnanswered: Int64 = 100

  private mutating func checkInvitations(of share: HubShare, since before: HubShare?) throws {
    for (account, member) in share.members
    where member.acceptance == .pending && before?.members[account]?.acceptance != .pending {
      let count = try connection.query(
        "SELECT COUNT(*) FROM participants WHERE zone = $1 AND account = $2 AND acceptance = $3",
        [.text(zone), .text(account), .text(Acceptance.pending.rawValue)]
      ).first?.integer(0)
      guard count ?? 0 < Self.mostUnanswered else {
        throw HubError(
          .conflict,
          "\(member.person.handle) has not answered \(Self.mostUnanswered) invitations of this account, the most there are"
        )
      }
    }
  }

  /// Logs what became of the share and its people, and notes from where to where each of them sees feed and log.
  private mutating func writeMemberships(
    _ events: [ShareEvents.Change], _ share: HubShare, _ before: HubShare?, _ action: ShareAction,
    _ head: inout ZoneHead
  ) throws {
    for event in events {
      try head.append(action.pending(event, share, &self), to: zone, in: &connection)
      guard event.type == .memberAdded || event.type == .memberRemoved || event.type == .shareCreated,
        let account = event.account
      else { continue }
      let feed = try SharedHead.read(share.id, of: zone, &connection)
      let key: [SQLValue] = [.text(zone), .blob(share.id.bytes), .text(account)]
      if event.type == .memberRemoved {
        try end(key, feed)
      } else {
        try connection.execute(
          """
          INSERT INTO memberships (zone, share, account, number, events, ended) VALUES ($1, $2, $3, $4, $5, NULL)
          ON CONFLICT (zone, share, account) DO UPDATE SET number = excluded.number, events = excluded.events,
            ended = excluded.ended
          """, key + [.integer(feed.number), .integer(feed.events - 1)])
      }
    }
    if let before, before.isActive, !share.isActive {
      let feed = try SharedHead.read(share.id, of: zone, &connection)
      for (account, member) in before.members where member.acceptance == .accepted {
        try end([.text(zone), .blob(share.id.bytes), .text(account)], feed)
      }
    }
  }

  private mutating func end(_ key: [SQLValue], _ feed: SharedHead) throws {
    try connection.execute(
      "UPDATE memberships SET ended = $1 WHERE zone = $2 AND share = $3 AND account = $4",
      [.integer(feed.events)] + key)
  }

  /// - Returns: the share's next revision.
  private mutating func writeRow(_ share: HubShare, at now: Timestamp) throws -> Int64 {
    let known = try connection.query(
      "SELECT revision FROM shares WHERE zone = $1 AND share = $2", [.text(zone), .blob(share.id.bytes)]
    ).first?.integer(0)
    // Above all that a copy of this hub may have told other hubs that is older by a clock.
    let revision = max((known ?? 0) + 1, now.seconds)
    try connection.execute(
      """
      INSERT INTO shares (zone, share, item, kind, token, title, active, anyone, permission, invites, requests,
        revision) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      ON CONFLICT (zone, share) DO UPDATE SET token = excluded.token, title = excluded.title,
        active = excluded.active, anyone = excluded.anyone, permission = excluded.permission,
        invites = excluded.invites, requests = excluded.requests, revision = excluded.revision
      """,
      [
        .text(zone), .blob(share.id.bytes), .blob(share.item.bytes), .text(share.kind.rawValue),
        .text(share.token.text), .text(share.title),
        .integer(share.isActive ? 1 : 0), .text(share.anyone.rawValue), .text(share.permission.rawValue),
        .integer(share.allowsInvites ? 1 : 0), .integer(share.allowsRequests ? 1 : 0), .integer(revision),
      ])
    return revision
  }

  private mutating func writeLinks(_ share: HubShare, _ before: HubShare?) throws {
    let key: [SQLValue] = [.text(zone), .blob(share.id.bytes)]
    if share.linkEnd != before?.linkEnd {
      if let end = share.linkEnd {
        try connection.execute(
          """
          INSERT INTO link_ends (zone, share, time) VALUES ($1, $2, $3)
          ON CONFLICT (zone, share) DO UPDATE SET time = excluded.time
          """, key + [.integer(end.nanoseconds)])
      } else {
        try connection.execute("DELETE FROM link_ends WHERE zone = $1 AND share = $2", key)
      }
    }
    if let before, before.token != share.token { try forget(link: HubShare.hash(before.token)) }
    if before?.token != share.token { try add(link: HubShare.hash(share.token)) }
    for (hash, _) in before?.invitations ?? [:] where share.invitations[hash] == nil {
      try connection.execute(
        "DELETE FROM invitations WHERE zone = $1 AND share = $2 AND hash = $3", key + [.blob(hash)])
      try forget(link: hash)
    }
    for (hash, invitation) in share.invitations where before?.invitations[hash] == nil {
      try connection.execute(
        """
        INSERT INTO invitations (zone, share, hash, permission, inviter, expires) VALUES ($1, $2, $3, $4, $5, $6)
        """,
        key + [
          .blob(hash), .text(invitation.permission.rawValue), .text(invitation.inviter),
          .integer(invitation.expires.nanoseconds),
        ])
      try add(link: hash)
    }
  }

  private mutating func add(link hash: [UInt8]) throws {
    try connection.execute("INSERT INTO links (hash, zone) VALUES ($1, $2)", [.blob(hash), .text(zone)])
  }

  private mutating func forget(link hash: [UInt8]) throws {
    try connection.execute("DELETE FROM links WHERE hash = $1", [.blob(hash)])
  }

  /// Writes an outgoing row for each account for which the share looks otherwise than before, or to which there is
  /// something to say. A row that waits already gives way to the newer one.
  private mutating func tell(
    _ share: HubShare, _ before: HubShare?, _ revision: Int64, _ owner: Person, _ news: [String: OutsiderNews]
  ) throws {
    // Those who ask hear what becomes of their request, and nothing of other changes.
    let asking = Set(share.asking.keys).union(before?.asking.keys ?? [:].keys).filter {
      share.asking[$0]?.state != before?.asking[$0]?.state
    }
    let accounts = Set(share.members.keys).union(before?.members.keys ?? [:].keys).union(news.keys).union(asking)
    for account in accounts.sorted() {
      var note = InboxNote(share, for: account, owner)
      let former = before.map { InboxNote($0, for: account, owner) }
      note.news = news[account]
      if note == former { continue }
      // Whoever is out and still asks is told of nothing else.
      if note.offer == nil, former?.offer == nil, note.news == nil, !asking.contains(account) { continue }
      if Guests.isGuest(account) {
        try tellAbroad(note, account, of: share.id, revision)
        continue
      }
      try connection.execute(
        """
        INSERT INTO outgoing (zone, account, share, revision, acceptance, entry) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (zone, account, share) DO UPDATE SET revision = excluded.revision,
          acceptance = excluded.acceptance, entry = excluded.entry
        """,
        [
          .text(zone), .text(account), .blob(share.id.bytes), .integer(revision), .text(note.acceptance.rawValue),
          .text(try StoredZone.encoded(note)),
        ])
    }
  }

  /// The same for an account of another hub.
  private mutating func tellAbroad(_ note: InboxNote, _ account: String, of share: WireID, _ revision: Int64) throws {
    try connection.execute(
      """
      INSERT INTO outgoing_abroad (zone, share, account, revision, entry) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (zone, share, account) DO UPDATE SET revision = excluded.revision, entry = excluded.entry
      """,
      [
        .text(zone), .blob(share.bytes), .blob(Array(account.utf8)), .integer(revision),
        .text(try StoredZone.encoded(note)),
      ])
  }
}

extension InboxNote {
  /// What an account is told of a share of this hub.
  init(_ share: HubShare, for account: String, _ owner: Person) {
    self.owner = owner.handle
    address = nil
    let member = share.member(account)
    acceptance = member?.acceptance ?? .removed
    asked =
      member == nil && !Guests.isGuest(account)
      ? share.request(of: account).map {
        Asked(
          title: share.title, ownerName: owner.name ?? owner.handle, kind: share.kind, time: $0.time.nanoseconds)
      } : nil
    offer = member.map {
      Offer(
        token: share.token.text, title: share.title, ownerName: owner.name ?? owner.handle, kind: share.kind,
        role: $0.role,
        permission: $0.permission, anyone: share.anyone, requests: share.waiting(for: $0),
        tag: Self.tag(of: share, for: account))
    }
  }

  /// The same for the same settings and people, as far as an account may know of them.
  private static func tag(of share: HubShare, for account: String) -> String {
    var words = [
      share.token.text, share.title, share.anyone.rawValue, share.permission.rawValue, "\(share.allowsInvites)",
      "\(share.allowsRequests)", share.linkEnd?.secondsText ?? "",
    ]
    for member in (try? share.people(for: account)) ?? [] {
      words += [
        member.person.handle, member.person.name ?? "", member.role.rawValue, member.permission.rawValue,
        member.acceptance.rawValue,
      ]
    }
    let digest = SHA256.hash(data: Array(words.joined(separator: "\0").utf8))
    return Hexadecimal.text(of: digest.prefix(12))
  }
}
