import NIOCore
package import SheafWire

/// How far the feed of one share goes, told by a stream of the hub that has the share.
///
/// It ends with its task alone. What goes wrong is an element, so that whoever reads can say it.
package struct SharedNews: AsyncSequence, Sendable {
  package enum Element: Sendable {
    /// The newest number: when a stream begins, and whenever it rose.
    case at(Int64)
    /// The hub is not reached, or lets the account in no more; another attempt follows.
    case failure(HubFailure)
  }

  private static let longestMessage = 1_024

  let client: DeviceClient
  let share: WireID

  package func makeAsyncIterator() -> Iterator {
    let client = client
    return Iterator(
      stream: HubStream(client, path: "/v1/shares/\(share)/stream", longest: Self.longestMessage) {
        try await client.decodeNumber($0)
      })
  }

  package struct Iterator: AsyncIteratorProtocol {
    fileprivate var stream: HubStream<Int64>

    package mutating func next() async -> Element? {
      switch await stream.next() {
      case .message(let number, _): .at(number)
      case .failure(let failure): .failure(failure)
      case nil: nil
      }
    }
  }
}

extension DeviceClient {
  /// How far the feed of a share goes, now and whenever it goes on, for as long as it is read.
  package func news(of share: WireID) -> SharedNews { SharedNews(client: self, share: share) }

  fileprivate func decodeNumber(_ bytes: ByteBuffer) async throws -> Int64 {
    struct Message: Decodable { let number: Int64 }
    let message: Message = try await decode(bytes)
    guard message.number >= 0 else { throw nonsense("tells of a feed that is none") }
    return message.number
  }
}
