/// `POST /v1/connections`: makes this machine a device of the account that a link enrols.
package struct ConnectionRequest: Sendable, Codable {
  /// An enrolment link. It makes one device, so it stands in no log and no error.
  package let link: String
  /// What people call the machine.
  package let device: String

  package init(link: String, device: String) {
    self.link = link
    self.device = device
  }
}

/// `POST /v1/connections/preview`: what a ``ConnectionRequest`` would connect.
package struct ConnectionPreview: Sendable, Codable {
  /// The account that the link is for.
  package let account: AccountHandle
  /// The hub, by its address.
  package let hub: String
  /// Whether an account of that handle is in the library and has documents, or deleted ones.
  package let hasDocuments: Bool

  package init(account: AccountHandle, hub: String, hasDocuments: Bool) {
    self.account = account
    self.hub = hub
    self.hasDocuments = hasDocuments
  }
}

/// `PATCH /v1/connections/{handle}`: how much is sent and fetched from now on. What is nil stays as it is.
package struct ConnectionChange: Sendable, Codable {
  /// The lowest limit. Below it the contents of an answer would wait for longer than a hub does for its clients.
  package static let lowestLimit: Int64 = 16 * 1024

  package let isPaused: Bool?
  /// Bytes of contents in a second; 0 for no limit.
  package let limit: Int64?

  package init(isPaused: Bool?, limit: Int64?) {
    self.isPaused = isPaused
    self.limit = limit
  }
}

/// How a connected account is with its hub.
package struct ConnectionStatus: Sendable, Codable {
  package enum State: String, Sendable, Codable {
    case connecting, connected
    /// The hub is not reached; another attempt follows.
    case disconnected
    /// Another attempt does not help.
    case failed
  }

  package var account: AccountHandle
  /// The hub, by its address; nil where this machine has lost its key, which tells of which hub it is.
  package var hub: String?
  package var state: State
  /// Since when it is so.
  package var since: Timestamp
  /// Why it is not connected, and what to do about it.
  package var problem: String?
  /// Items of which the hub does not have everything yet.
  package var unsent: Int64
  /// Items of which this machine does not have everything yet.
  package var unfetched: Int64
  /// Whether this machine and the hub had the same when they were compared last, and nothing has changed here since.
  package var isSettled: Bool
  /// Whether nothing is sent or fetched because somebody wants it so.
  package var isPaused: Bool
  /// Bytes of contents that may be sent and fetched in a second; nil without a limit.
  package var limit: Int64?
  /// Bytes of contents that were sent and fetched since the process that does it began.
  package var movedBytes: Int64
  /// What went otherwise than wanted lately, the latest last, in words for people.
  package var notices: [String]

  package init(
    account: AccountHandle, hub: String?, state: State, since: Timestamp, problem: String?, unsent: Int64,
    unfetched: Int64, isSettled: Bool, isPaused: Bool, limit: Int64?, movedBytes: Int64, notices: [String]
  ) {
    self.account = account
    self.hub = hub
    self.state = state
    self.since = since
    self.problem = problem
    self.unsent = unsent
    self.unfetched = unfetched
    self.isSettled = isSettled
    self.isPaused = isPaused
    self.limit = limit
    self.movedBytes = movedBytes
    self.notices = notices
  }

  private enum CodingKeys: CodingKey {
    case account, hub, state, since, problem, unsent, unfetched, isSettled, isPaused, limit, movedBytes, notices
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(account, forKey: .account)
    try container.encode(hub, forKey: .hub)
    try container.encode(state, forKey: .state)
    try container.encode(since, forKey: .since)
    try container.encode(problem, forKey: .problem)
    try container.encode(unsent, forKey: .unsent)
    try container.encode(unfetched, forKey: .unfetched)
    try container.encode(isSettled, forKey: .isSettled)
    try container.encode(isPaused, forKey: .isPaused)
    try container.encode(limit, forKey: .limit)
    try container.encode(movedBytes, forKey: .movedBytes)
    try container.encode(notices, forKey: .notices)
  }
}

/// A device of a connected account.
package struct ConnectedDevice: Sendable, Codable {
  package let id: String
  package let name: String
  /// RFC 3339.
  package let added: String
  package let seen: String?
  /// Whether it is this machine.
  package let isOwn: Bool
  /// When it was removed to destroy what it has of the account, RFC 3339; nil for a device.
  package let wipeAsked: String?
  /// When it told that it is done.
  package let wiped: String?

  package init(
    id: String, name: String, added: String, seen: String?, isOwn: Bool, wipeAsked: String? = nil, wiped: String? = nil
  ) {
    self.id = id
    self.name = name
    self.added = added
    self.seen = seen
    self.isOwn = isOwn
    self.wipeAsked = wipeAsked
    self.wiped = wiped
  }

  private enum CodingKeys: CodingKey { case id, name, added, seen, isOwn, wipeAsked, wiped }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(name, forKey: .name)
    try container.encode(added, forKey: .added)
    try container.encode(seen, forKey: .seen)
    try container.encode(isOwn, forKey: .isOwn)
    try container.encode(wipeAsked, forKey: .wipeAsked)
    try container.encode(wiped, forKey: .wiped)
  }
}

/// A link that enrols another device.
package struct DeviceLink: Sendable, Codable {
  package let link: String
  /// RFC 3339.
  package let expires: String

  package init(link: String, expires: String) {
    self.link = link
    self.expires = expires
  }
}

/// Links for devices that were made useless, as nobody had used them.
package struct RevokedDeviceLinks: Sendable, Codable {
  package let revoked: Int

  package init(revoked: Int) { self.revoked = revoked }
}
