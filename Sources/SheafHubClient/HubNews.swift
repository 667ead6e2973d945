import AsyncHTTPClient
import NIOCore
package import SheafWire

/// How far the logs of an account go, told by one stream of Server-Sent Events, which is opened again whenever it ends,
/// after a pause that grows with each failure.
///
/// It ends with its task alone. What goes wrong is an element, so that whoever reads can say it.
package struct HubNews: AsyncSequence, Sendable {
  package enum Element: Sendable {
    /// Logs with the numbers of their newest events: all of them when a stream begins, then those that went on.
    case logs([LogNews.Log], isBeginning: Bool)
    /// The stream ended or could not be opened; another attempt follows.
    case failure(HubFailure)
  }

  let client: DeviceClient
  let limits: DeviceClientLimits

  package func makeAsyncIterator() -> Iterator { Iterator(client: client, limits: limits) }

  package struct Iterator: AsyncIteratorProtocol {
    /// Bytes of a message: an account has up to 1,000 shares to be told of, and as many that ended lately.
    private static let longestMessage = 1024 * 1024

    private let client: DeviceClient
    private let limits: DeviceClientLimits
    private var bytes: HTTPClientResponse.Body.AsyncIterator?
    private var text = ServerSentText(longest: longestMessage)
    private var isBeginning = true
    /// Seconds before the next attempt; nil if none failed.
    private var pause: Double?
    private var asked: Double?

    fileprivate init(client: DeviceClient, limits: DeviceClientLimits) {
      self.client = client
      self.limits = limits
    }

    package mutating func next() async -> Element? {
      while !Task.isCancelled {
        do {
          return .logs(try await news(), isBeginning: isBeginning)
        } catch let failure as HubFailure {
          bytes = nil
          pause = Swift.min(pause.map { $0 * 2 } ?? limits.pauses.first, limits.pauses.longest)
          asked = failure.retryAfter
          return .failure(failure)
        } catch {
          bytes = nil
        }
      }
      return nil
    }

    /// The logs of the next message.
    private mutating func news() async throws -> [LogNews.Log] {
      if bytes == nil {
        if let pause {
          // Not all devices come at once when a hub is back.
          try await Task.sleep(
            for: .seconds(Swift.max(pause * .random(in: 0.5...1), Swift.min(asked ?? 0, limits.pauses.longest))))
        }
        text = ServerSentText(longest: Self.longestMessage)
        bytes = try await client.openNews()
        isBeginning = true
      } else {
        isBeginning = false
      }
      while true {
        do {
          while let message = try text.next() {
            guard case .data(let data) = message else { continue }
            let news = try client.decodeNews(data)
            (pause, asked) = (nil, nil)
            return news.logs
          }
        } catch is ServerSentText.TooLong {
          throw client.babbles
        }
        guard var reading = bytes else { throw client.brokeOff }
        bytes = nil
        guard let more = try await client.next(&reading) else { throw client.brokeOff }
        bytes = reading
        text.append(more)
      }
    }
  }
}
