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
  /// The hub, by its address.
  package var hub: String
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
  /// What went otherwise than wanted lately, the latest last, in words for people.
  package var notices: [String]

  package init(
    account: AccountHandle, hub: String, state: State, since: Timestamp, problem: String?, unsent: Int64,
    unfetched: Int64, isSettled: Bool, notices: [String]
  ) {
    self.account = account
    self.hub = hub
    self.state = state
    self.since = since
    self.problem = problem
    self.unsent = unsent
    self.unfetched = unfetched
    self.isSettled = isSettled
    self.notices = notices
  }

  private enum CodingKeys: CodingKey {
    case account, hub, state, since, problem, unsent, unfetched, isSettled, notices
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

  package init(id: String, name: String, added: String, seen: String?, isOwn: Bool) {
    self.id = id
    self.name = name
    self.added = added
    self.seen = seen
    self.isOwn = isOwn
  }

  private enum CodingKeys: CodingKey { case id, name, added, seen, isOwn }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(name, forKey: .name)
    try container.encode(added, forKey: .added)
    try container.encode(seen, forKey: .seen)
    try container.encode(isOwn, forKey: .isOwn)
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
