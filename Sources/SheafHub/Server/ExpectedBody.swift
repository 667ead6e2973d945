import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTP1
import Synchronization

/// The body of a request whose client asks before it sends it (`Expect: 100-continue`, RFC 9110, section 10.1.1).
///
/// The client is told to go on when somebody wants to read the body. A request that is refused before that gets its
/// answer without the body, and its connection ends: the client may or may not send the body after that.
final class ExpectedBody: Sendable {
  private let channel: any Channel
  private let isWanted = Atomic(false)

  /// - Returns: nil for a request whose client sends the body in any case.
  init?(of request: Request, on channel: any Channel) {
    guard request.headers[.expect]?.lowercased() == "100-continue" else { return nil }
    self.channel = channel
  }

  /// Whether the client waits still.
  var isUnread: Bool { !isWanted.load(ordering: .acquiring) }

  /// The body, which is asked for when it is read.
  func asked(_ body: RequestBody) -> RequestBody {
    RequestBody(asyncSequence: Asked(body: body, expected: self))
  }

  private func ask() async throws {
    guard !isWanted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let bytes = channel.allocator.buffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
    try await channel.eventLoop.submit { [channel] in
      // Past the encoder of answers: an answer has one head, and this is not it.
      let context = try channel.pipeline.syncOperations.context(handlerType: HTTPResponseEncoder.self)
      context.writeAndFlush(NIOAny(bytes), promise: nil)
    }.get()
  }

  private struct Asked: AsyncSequence, Sendable {
    let body: RequestBody
    let expected: ExpectedBody

    struct AsyncIterator: AsyncIteratorProtocol {
      var base: RequestBody.AsyncIterator
      let expected: ExpectedBody

      mutating func next() async throws -> ByteBuffer? {
        try await expected.ask()
        return try await base.next()
      }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), expected: expected) }
  }
}
