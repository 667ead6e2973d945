/// `GET /v1/events` and `GET /v1/shares/SHARE/events`: some of a log's events in order, and where to go on.
public struct LogPage<Event: Hashable & Sendable & Codable>: Hashable, Sendable, Codable {
  public var events: [Event]
  /// The number of the last event that was read. It passes over events that the account does not see.
  public var next: Int64
  /// The number of the newest event in the log, even if the account does not see it.
  public var last: Int64
  /// Of the log and its epoch, at `next`.
  public var token: String

  public init(events: [Event], next: Int64, last: Int64, token: String) {
    self.events = events
    self.next = next
    self.last = last
    self.token = token
  }
}

/// A message of `GET /v1/events/stream`: logs that went on.
public struct LogNews: Hashable, Sendable, Codable {
  public struct Log: Hashable, Sendable, Codable {
    /// The share whose log it is; null for the account's own.
    public var share: WireID?
    /// The number of its newest event.
    public var last: Int64
    /// What a page that ends with it has: of another epoch the same number has another token.
    public var token: String
    /// How far the account has read its notices in it.
    public var read: Int64

    public init(share: WireID?, last: Int64, token: String, read: Int64 = 0) {
      self.share = share
      self.last = last
      self.token = token
      self.read = read
    }

    private enum CodingKeys: CodingKey { case share, last, token, read }

    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      share = try container.decodeIfPresent(WireID.self, forKey: .share)
      last = try container.decode(Int64.self, forKey: .last)
      token = try container.decode(String.self, forKey: .token)
      read = try container.decodeIfPresent(Int64.self, forKey: .read) ?? 0
    }

    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(share, forKey: .share)
      try container.encode(last, forKey: .last)
      try container.encode(token, forKey: .token)
      try container.encode(read, forKey: .read)
    }
  }

  public var logs: [Log]

  public init(logs: [Log]) { self.logs = logs }
}
