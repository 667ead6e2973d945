import NIOCore
import SheafModel
import Synchronization

/// How many clients are connected, and whether new ones are still served.
///
/// A client greets before it asks for anything (`GET /v1`). Whoever was greeted may finish: the service ends only once
/// all of them have gone, or after its patience.
final class ClientCount: Sendable {
  private struct State {
    var connections = 0
    /// Those that read a stream, and for whom nobody waits.
    var streams = 0
    /// Connections past the limit.
    var excess: Set<ObjectIdentifier> = []
    var isClosed = false
  }

  private let limit: Int
  private let state = Mutex(State())

  /// - Parameter limit: how many are served at once.
  init(limit: Int) { self.limit = limit }

  /// Greets a client.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` once the service is ending.
  func greet() throws {
    guard !state.withLock({ $0.isClosed }) else {
      throw SheafError(.unavailable, reason: "the process is ending", advice: "try again")
    }
  }

  /// Why a connection is not served; nil for one that is.
  func refusal(of channel: any Channel) -> SheafError? {
    guard state.withLock({ $0.excess.contains(ObjectIdentifier(channel)) }) else { return nil }
    return SheafError(
      .unavailable, reason: "\(limit) clients are connected here, which is the most",
      advice: "try again when some have gone")
  }

  /// Waits until nobody is connected, at most for `patience`; from then on nobody is greeted.
  func close(patience: Duration) async {
    let deadline = ContinuousClock.now + patience
    while !closeIfIdle(), ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(2))
    }
    state.withLock { $0.isClosed = true }
  }

  /// Runs `body` for a client who stays connected without end, and whom ``close(patience:)`` does not wait for.
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
