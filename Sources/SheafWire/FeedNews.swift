/// A message of `GET /v1/stream`: how far the feed of the zone goes, and the inbox of the account.
public struct FeedNews: Hashable, Sendable, Codable {
  /// The zone's newest number.
  public var number: Int64
  /// The number of the inbox, which rises with each change of it.
  public var inbox: Int64

  public init(number: Int64, inbox: Int64) {
    self.number = number
    self.inbox = inbox
  }
}
