package import SheafWire

/// How far the feeds of the account's zone and of the shares that it joined go, told by one stream. The device then reads the feed, whose token says
/// whether the hub went back.
///
/// It ends with its task alone. What goes wrong is an element, so that whoever reads can say it.
package struct HubChanges: AsyncSequence, Sendable {
  package enum Element: Sendable {
    /// The newest numbers: when a stream begins, which says that the hub is reached, and whenever one rose.
    case at(FeedNews, isBeginning: Bool)
    /// The hub is not reached: the stream ended or could not be opened; another attempt follows.
    case failure(HubFailure)
  }

  /// Bytes of a message, which has two numbers and one for each share.
  private static let longestMessage = 128 * 1024

  let client: DeviceClient

  package func makeAsyncIterator() -> Iterator {
    let client = client
    return Iterator(
      stream: HubStream(client, path: "/v1/stream", longest: Self.longestMessage) {
        try await client.decodeChanges($0)
      })
  }

  package struct Iterator: AsyncIteratorProtocol {
    fileprivate var stream: HubStream<FeedNews>

    package mutating func next() async -> Element? {
      switch await stream.next() {
      case .message(let news, let isBeginning): .at(news, isBeginning: isBeginning)
      case .failure(let failure): .failure(failure)
      case nil: nil
      }
    }
  }
}
