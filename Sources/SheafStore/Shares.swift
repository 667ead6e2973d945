package import Foundation
package import SheafModel

/// A row of `shares`.
package struct ShareRow: Hashable, Sendable {
  /// The shared item, by whose id the share is known.
  package let item: Int64
  package let uuid: UUID
  package var token: ShareToken
  package var title: String
  package var anyone: PublicPermission = .none
  /// The permission of invitations that name none.
  package var permission: SharePermission = .readWrite
  package var allowsInvites = false
  package var allowsRequests = false
  /// False once the owner stopped sharing.
  package var isActive = true
  package let created: Timestamp
  /// When the sharing that goes on began.
  package var since: Timestamp
  /// Its URL, if it is one of a hub; nil for a share of this library.
  package var url: String?

  package init(item: Int64, uuid: UUID, token: ShareToken, title: String, time: Timestamp) {
    self.item = item
    self.uuid = uuid
    self.token = token
    self.title = title
    created = time
    since = time
  }

  fileprivate init(_ row: Row) throws {
    item = try row[0]
    uuid = try row.uuid(1)
    token = try ShareToken(stored: row[2])
    title = try row[3]
    anyone = try PublicPermission(code: row[4])
    permission = try SharePermission(code: row[5])
    allowsInvites = try row[6] as Int64 != 0
    allowsRequests = try row[7] as Int64 != 0
    isActive = try row[8] as Int64 != 0
    created = try Timestamp(nanoseconds: row[9])
    since = try Timestamp(nanoseconds: row[10])
    url = try row[11]
  }
}

/// A row of `participants`.
package struct ParticipantRow: Hashable, Sendable {
  package let share: Int64
  package let account: Int64
  package var role: Role
  package var permission: SharePermission
  package var acceptance: Acceptance
  /// Their own name for the entry in `Shared/`; nil for the item's.
  package var name: [UInt8]?
  /// When `acceptance` became what it is.
  package var since: Timestamp
  /// Number of the event of their joining; nil before.
  package var joined: Int64?
  /// Number of the event of their departure; nil before, and after they joined again.
  package var ended: Int64?

  package init(
    share: Int64, account: Int64, role: Role, permission: SharePermission, acceptance: Acceptance, since: Timestamp
  ) {
    self.share = share
    self.account = account
    self.role = role
    self.permission = permission
    self.acceptance = acceptance
    self.since = since
  }

  fileprivate init(_ row: Row) throws {
    share = try row[0]
    account = try row[1]
    role = try Role(code: row[2])
    permission = try SharePermission(code: row[3])
    acceptance = try Acceptance(code: row[4])
    name = try row.bytes(5).isEmpty ? nil : row.name(5)
    since = try Timestamp(nanoseconds: row[6])
    joined = try row[7]
    ended = try row[8]
  }
}

/// A row of `one_time_links`.
package struct OneTimeLinkRow: Hashable, Sendable {
  package let token: ShareToken
  package let share: Int64
  package let permission: SharePermission
  package let inviter: Int64
  package let expires: Timestamp

  package init(token: ShareToken, share: Int64, permission: SharePermission, inviter: Int64, expires: Timestamp) {
    self.token = token
    self.share = share
    self.permission = permission
    self.inviter = inviter
    self.expires = expires
  }

  fileprivate init(_ row: Row) throws {
    token = try ShareToken(stored: row[0])
    share = try row[1]
    permission = try SharePermission(code: row[2])
    inviter = try row[3]
    expires = try Timestamp(nanoseconds: row[4])
  }
}

/// A row of `access_requests`.
package struct AccessRequestRow: Hashable, Sendable {
  package let share: Int64
  package let account: Int64
  package let time: Timestamp
  package let isBlocked: Bool

  package init(share: Int64, account: Int64, time: Timestamp, isBlocked: Bool) {
    self.share = share
    self.account = account
    self.time = time
    self.isBlocked = isBlocked
  }

  fileprivate init(_ row: Row) throws {
    share = try row[0]
    account = try row[1]
    time = try Timestamp(nanoseconds: row[2])
    isBlocked = try row[3] as Int64 != 0
  }
}

/// A word of the model, stored as its place in a list.
private protocol CodedWord: Equatable {
  /// The words, with the code of the first.
  static var codes: (first: Int64, words: [Self]) { get }
}

extension CodedWord {
  fileprivate init(code: Int64) throws {
    let (index, overflow) = code.subtractingReportingOverflow(Self.codes.first)
    guard !overflow, Self.codes.words.indices.contains(Int(index)) else {
      throw SheafError(.corrupt, subject: "a share", advice: "run sheaf check")
    }
    self = Self.codes.words[Int(index)]
  }

  fileprivate var code: Int64 { Self.codes.first + Int64(Self.codes.words.firstIndex(of: self) ?? 0) }
}

extension Role: CodedWord {
  fileprivate static var codes: (first: Int64, words: [Role]) {
    (1, [.owner, .administrator, .privateUser, .publicUser])
  }
}

extension SharePermission: CodedWord {
  fileprivate static var codes: (first: Int64, words: [SharePermission]) { (1, [.readOnly, .readWrite]) }
}

extension Acceptance: CodedWord {
  fileprivate static var codes: (first: Int64, words: [Acceptance]) { (1, [.pending, .accepted, .removed]) }
}

extension PublicPermission: CodedWord {
  fileprivate static var codes: (first: Int64, words: [PublicPermission]) { (0, [.none, .readOnly, .readWrite]) }
}

extension StoreTransaction {
  private static let shareColumns =
    "item, uuid, token, title, public_permission, permission, allow_invites, allow_requests, active, created, since, url"

  /// All shares, stopped ones too.
  package func shares() throws -> [ShareRow] {
    try all("SELECT \(Self.shareColumns) FROM shares ORDER BY item", decode: ShareRow.init)
  }

  package func save(_ share: ShareRow) throws {
    try run(
      "INSERT OR REPLACE INTO shares (\(Self.shareColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
      share.item, share.uuid.bytes, share.token.text, share.title, share.anyone.code, share.permission.code,
      share.allowsInvites ? 1 : 0, share.allowsRequests ? 1 : 0, share.isActive ? 1 : 0, share.created.nanoseconds,
      share.since.nanoseconds, share.url)
  }

  /// Removes a share with everything that belongs to it.
  package func deleteShare(_ item: Int64) throws {
    try run("DELETE FROM participants WHERE share = ?", item)
    try endInvitations(of: item)
    try run("DELETE FROM access_requests WHERE share = ?", item)
    for prefix in [Self.declinedPrefix, Self.withdrawnPrefix] {
      // Their keys go on with a dot, which is followed by a slash.
      try run("DELETE FROM settings WHERE key > ? AND key < ?", "\(prefix)\(item).", "\(prefix)\(item)/")
    }
    try run("DELETE FROM shares WHERE item = ?", item)
  }

  /// Removes a share's one-time links and requests for access. Blocked people stay blocked if the item is shared again.
  package func endInvitations(of share: Int64) throws {
    try run("DELETE FROM one_time_links WHERE share = ?", share)
    try run("DELETE FROM access_requests WHERE share = ? AND blocked = 0", share)
  }

  // MARK: - Participants

  private static let participantColumns = "share, account, role, permission, acceptance, name, since, joined, ended"

  package func participants() throws -> [ParticipantRow] {
    try all(
      "SELECT \(Self.participantColumns) FROM participants ORDER BY share, account", decode: ParticipantRow.init)
  }

  package func save(_ participant: ParticipantRow) throws {
    try run(
      "INSERT OR REPLACE INTO participants (\(Self.participantColumns)) VALUES (?,?,?,?,?,?,?,?,?)",
      participant.share, participant.account, participant.role.code, participant.permission.code,
      participant.acceptance.code, participant.name.map { Data($0) }, participant.since.nanoseconds,
      participant.joined, participant.ended)
  }

  package func deleteParticipant(_ share: Int64, _ account: Int64) throws {
    try run("DELETE FROM participants WHERE share = ? AND account = ?", share, account)
  }

  // MARK: - One-time links

  private static let linkColumns = "token, share, permission, inviter, expires"

  package func oneTimeLink(_ token: ShareToken) throws -> OneTimeLinkRow? {
    try first(
      "SELECT \(Self.linkColumns) FROM one_time_links WHERE token = ?", token.text, decode: OneTimeLinkRow.init)
  }

  /// The links to a share that an account gave out.
  package func oneTimeLinks(of share: Int64, by inviter: Int64) throws -> [OneTimeLinkRow] {
    try all(
      "SELECT \(Self.linkColumns) FROM one_time_links WHERE share = ? AND inviter = ?", share, inviter,
      decode: OneTimeLinkRow.init)
  }

  /// How many of a share's one-time links can still be claimed at `time`.
  package func countOneTimeLinks(_ share: Int64, at time: Timestamp) throws -> Int {
    try first(
      "SELECT count(*) FROM one_time_links WHERE share = ? AND expires > ?", share, time.nanoseconds
    ) { try $0[0] as Int } ?? 0
  }

  package func insert(_ link: OneTimeLinkRow) throws {
    try run(
      "INSERT INTO one_time_links (token, share, permission, inviter, expires) VALUES (?,?,?,?,?)",
      link.token.text, link.share, link.permission.code, link.inviter, link.expires.nanoseconds)
  }

  package func deleteOneTimeLink(_ token: ShareToken) throws {
    try run("DELETE FROM one_time_links WHERE token = ?", token.text)
  }

  /// Removes the links that an account gave out, or all that died before `time`.
  package func deleteOneTimeLinks(of share: Int64, by inviter: Int64) throws {
    try run("DELETE FROM one_time_links WHERE share = ? AND inviter = ?", share, inviter)
  }

  package func deleteOneTimeLinks(before time: Timestamp) throws {
    try run("DELETE FROM one_time_links WHERE expires <= ?", time.nanoseconds)
  }

  // MARK: - Those who ask

  /// The requests for access to a share, oldest first.
  package func accessRequests(_ share: Int64) throws -> [AccessRequestRow] {
    try all(
      "SELECT share, account, time, blocked FROM access_requests WHERE share = ? ORDER BY time, account", share
    ) { try AccessRequestRow($0) }
  }

  /// What an account asks for and has no answer to, oldest first.
  package func accessRequests(by account: Int64) throws -> [AccessRequestRow] {
    try all(
      """
      SELECT share, account, time, blocked FROM access_requests WHERE account = ? AND blocked = 0 ORDER BY time, share
      """, account
    ) { try AccessRequestRow($0) }
  }

  /// Whether somebody was blocked.
  package func isBlocked(_ share: Int64, _ account: Int64) throws -> Bool {
    try first(
      "SELECT blocked FROM access_requests WHERE share = ? AND account = ?", share, account
    ) { try $0[0] as Int64 != 0 } ?? false
  }

  package func save(_ request: AccessRequestRow) throws {
    try run(
      "INSERT OR REPLACE INTO access_requests (share, account, time, blocked) VALUES (?,?,?,?)",
      request.share, request.account, request.time.nanoseconds, request.isBlocked ? 1 : 0)
  }

  /// Removes what is known of somebody's asking, for someone who was let in.
  package func deleteAccessRequest(_ share: Int64, _ account: Int64) throws {
    try run("DELETE FROM access_requests WHERE share = ? AND account = ?", share, account)
    for setting in [Self.declined(share, account), Self.withdrawn(share, account)] { try setSetting(setting, nil) }
  }

  private static let declinedPrefix = "declined."
  private static let withdrawnPrefix = "withdrawn."

  private static func declined(_ share: Int64, _ account: Int64) -> String { "\(declinedPrefix)\(share).\(account)" }

  private static func withdrawn(_ share: Int64, _ account: Int64) -> String { "\(withdrawnPrefix)\(share).\(account)" }

  /// When a request for access was turned down, unless that was forgotten since.
  package func declined(_ share: Int64, _ account: Int64) throws -> Timestamp? {
    try numberSetting(Self.declined(share, account)).map { Timestamp(nanoseconds: $0) }
  }

  /// Forgets what an account asks for. Where it was blocked stays known.
  package func withdrawAccessRequests(of account: Int64) throws {
    try run("DELETE FROM access_requests WHERE account = ? AND blocked = 0", account)
  }

  /// When a request for access was made that was taken back since, unless that was forgotten.
  package func withdrawn(_ share: Int64, _ account: Int64) throws -> Timestamp? {
    try numberSetting(Self.withdrawn(share, account)).map { Timestamp(nanoseconds: $0) }
  }

  /// Takes a request back, and forgets which ones were made before `forgotten`.
  package func withdrawAccessRequest(_ request: AccessRequestRow, forgetting forgotten: Timestamp) throws {
    try deleteAccessRequest(request.share, request.account)
    try forget(Self.withdrawnPrefix, before: forgotten)
    try setSetting(Self.withdrawn(request.share, request.account), request.time.nanoseconds)
  }

  /// Turns a request down, and forgets which ones were before `forgotten`.
  package func declineAccessRequest(
    _ share: Int64, _ account: Int64, at time: Timestamp, forgetting forgotten: Timestamp
  ) throws {
    try deleteAccessRequest(share, account)
    try forget(Self.declinedPrefix, before: forgotten)
    try setSetting(Self.declined(share, account), time.nanoseconds)
  }

  /// Forgets the settings of a prefix that are times before this one.
  private func forget(_ prefix: String, before time: Timestamp) throws {
    try run(
      "DELETE FROM settings WHERE key > ? AND key < ? AND value < ?", prefix, prefix.dropLast() + "/",
      time.nanoseconds)
  }
}
