package import SheafWire

/// How far the logs of an account go, told by one stream.
///
/// It ends with its task alone. What goes wrong is an element, so that whoever reads can say it.
package struct HubNews: AsyncSequence, Sendable {
  package enum Element: Sendable {
    /// Logs with the numbers of their newest events: all of them when a stream begins, then those that went on.
    case logs([LogNews.Log], isBeginning: Bool)
    /// The stream ended or could not be opened; another attempt follows.
    case failure(HubFailure)
  }

  /// Bytes of a message: an account has up to 1,000 shares to be told of, and as many that ended lately.
  private static let longestMessage = 1024 * 1024

  let client: DeviceClient

  package func makeAsyncIterator() -> Iterator {
    let client = client
    return Iterator(
      stream: HubStream(client, path: "/v1/events/stream", longest: Self.longestMessage) {
        try await client.decodeNews($0)
      })
  }

  package struct Iterator: AsyncIteratorProtocol {
    fileprivate var stream: HubStream<LogNews>

    package mutating func next() async -> Element? {
      switch await stream.next() {
      case .message(let news, let isBeginning): .logs(news.logs, isBeginning: isBeginning)
      case .failure(let failure): .failure(failure)
      case nil: nil
      }
    }
  }
}
