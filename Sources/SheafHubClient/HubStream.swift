import AsyncHTTPClient
import NIOCore

/// The messages of a stream of Server-Sent Events, which is opened again whenever it ends, after a pause that grows with
/// each failure. It ends with its task alone.
struct HubStream<Message: Sendable> {
  enum Element {
    /// A message; the first one of a stream says how everything is, and that the hub is reached.
    case message(Message, isBeginning: Bool)
    /// The stream ended or could not be opened; another attempt follows.
    case failure(HubFailure)
  }

  private let client: DeviceClient
  private let path: String
  /// Bytes of a message.
  private let longest: Int
  /// Reads and checks a message.
  private let decode: @Sendable (ByteBuffer) async throws -> Message
  private var bytes: HTTPClientResponse.Body.AsyncIterator?
  private var text: ServerSentText
  private var isBeginning = true
  /// Seconds before the next attempt; nil if none failed.
  private var pause: Double?
  /// Seconds for which the hub asked.
  private var asked: Double?

  init(
    _ client: DeviceClient, path: String, longest: Int,
    decode: @escaping @Sendable (ByteBuffer) async throws -> Message
  ) {
    self.client = client
    self.path = path
    self.longest = longest
    self.decode = decode
    text = ServerSentText(longest: longest)
  }

  mutating func next() async -> Element? {
    while !Task.isCancelled {
      do {
        return .message(try await message(), isBeginning: isBeginning)
      } catch let failure as HubFailure {
        bytes = nil
        pause = min(pause.map { $0 * 2 } ?? client.limits.pauses.first, client.limits.pauses.longest)
        asked = failure.retryAfter
        return .failure(failure)
      } catch {
        bytes = nil
      }
    }
    return nil
  }

  private mutating func message() async throws -> Message {
    if bytes == nil {
      if let pause {
        // Not all devices come at once when a hub is back.
        try await Task.sleep(
          for: .seconds(max(pause * .random(in: 0.5...1), min(asked ?? 0, client.limits.pauses.longest))))
      }
      text = ServerSentText(longest: longest)
      bytes = try await client.open(HubRequest(path)).body.makeAsyncIterator()
      isBeginning = true
    } else {
      isBeginning = false
    }
    while true {
      do {
        while let message = try text.next() {
          guard case .data(let data) = message else { continue }
          let read = try await decode(data)
          (pause, asked) = (nil, nil)
          return read
        }
      } catch is ServerSentText.TooLong {
        throw client.babbles
      }
      guard var reading = bytes else { throw client.brokeOff("the stream") }
      bytes = nil
      guard let more = try await client.next(&reading) else { throw client.brokeOff("the stream") }
      bytes = reading
      text.append(more)
    }
  }
}
