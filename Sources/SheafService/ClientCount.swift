import NIOCore
import SheafModel
import Synchronization

/// Counts the connected clients, and knows whether new ones are still served.
///
/// A client greets before it asks for anything (`GET /v1`). A greeted client may finish: the service ends once all of
/// them have gone, or after its patience.
final class ClientCount: Sendable {
  private struct State {
    var connections = 0
    /// Clients that read a stream, for which the end does not wait.
    var streams = 0
    /// Connections past the limit.
    var excess: Set<ObjectIdentifier> = []
    var isClosed = false
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: how many clients are served at once.
  init(limit: Int) { self.limit = limit }

  /// How many are connected.
  var connected: Int { state.withLock(\.connections) }

  /// Greets a client.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` once the service is ending.
  func greet() throws {
    guard !state.withLock({ $0.isClosed }) else {
      throw SheafError(.unavailable, reason: "the process is ending", advice: "try again")
    }
  }

  /// The reason not to serve a connection; nil for one that is served.
  func refusal(of channel: any Channel) -> SheafError? {
    guard state.withLock({ $0.excess.contains(ObjectIdentifier(channel)) }) else { return nil }
    return SheafError(
      .unavailable, reason: "\(limit) clients are connected here, which is the most",
      advice: "try again when some have gone")
  }

  /// Waits until no client is connected, at most for `patience`, and greets none from then on.
  func close(patience: Duration) async {
    let deadline = ContinuousClock.now + patience
    while !closeIfIdle(), ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(2))
    }
    state.withLock { $0.isClosed = true }
  }

  /// Runs `body` for a client that stays connected without end, and for which ``close(patience:)`` does not wait.
  func withoutCounting<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    state.withLock { $0.streams += 1 }
    defer { state.withLock { $0.streams -= 1 } }
    return try await body()
  }

  /// A channel handler that counts the connection it is added to.
  func makeHandler() -> any RemovableChannelHandler { Handler(count: self) }

  private func closeIfIdle() -> Bool {
    state.withLock { state in
      if state.connections == state.streams { state.isClosed = true }
      return state.isClosed
    }
  }

  private func add(_ channel: any Channel) {
    state.withLock { state in
      state.connections += 1
      if state.connections > limit { state.excess.insert(ObjectIdentifier(channel)) }
    }
  }

  private func remove(_ channel: any Channel) {
    state.withLock { state in
      state.connections -= 1
      state.excess.remove(ObjectIdentifier(channel))
    }
  }

  private final class Handler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let count: ClientCount

    init(count: ClientCount) { self.count = count }

    func handlerAdded(context: ChannelHandlerContext) { count.add(context.channel) }

    func handlerRemoved(context: ChannelHandlerContext) { count.remove(context.channel) }
  }
}
