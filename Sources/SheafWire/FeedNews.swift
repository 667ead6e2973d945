/// A message of `GET /v1/stream`: how far the feed of the zone goes, the inbox of the account, and the feeds of the shares
/// of others that the account joined.
public struct FeedNews: Hashable, Sendable, Codable {
  /// How far the feed of a share goes.
  public struct Share: Hashable, Sendable, Codable {
    public var share: WireID
    /// The share's newest number; 0 if it ended, or its item is deleted.
    public var number: Int64

    public init(share: WireID, number: Int64) {
      self.share = share
      self.number = number
    }
  }

  /// The zone's newest number.
  public var number: Int64
  /// The number of the inbox, which rises with each change of it.
  public var inbox: Int64
  /// The shares of others that went on since the message before; in the first message all. Left out if there are none.
  public var shares: [Share]

  public init(number: Int64, inbox: Int64, shares: [Share] = []) {
    self.number = number
    self.inbox = inbox
    self.shares = shares
  }

  private enum CodingKeys: CodingKey { case number, inbox, shares }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    number = try container.decode(Int64.self, forKey: .number)
    inbox = try container.decode(Int64.self, forKey: .inbox)
    shares = try container.decodeIfPresent([Share].self, forKey: .shares) ?? []
  }
}
