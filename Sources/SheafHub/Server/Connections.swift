import HTTPTypes
import HummingbirdCore
import NIOCore
import Synchronization

/// The open connections of a server, of which there are a limited number.
///
/// When one too many is opened, the one goes that has waited longest for its client: to begin a request, or to send the
/// rest of one. So clients who open connections and say nothing keep nobody else out. A connection whose request is
/// being answered stays.
final class Connections: Sendable {
  /// Connections past the limit that are accepted while none can go.
  static let spare = 256

  private enum Phase {
    /// The client is to begin a request, or to send the rest of one, since this turn.
    case waiting(UInt64)
    case answering
  }

  private struct State {
    var channels: [ObjectIdentifier: (channel: any Channel, phase: Phase)] = [:]
    var turn: UInt64 = 0
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) { self.limit = limit }

  /// Takes in a new connection, for which another one goes if there are too many.
  func open(_ channel: any Channel) {
    let gone = state.withLock { state -> (any Channel)? in
      state.turn += 1
      state.channels[ObjectIdentifier(channel)] = (channel, .waiting(state.turn))
      guard state.channels.count > limit, let gone = Self.longestWaiting(in: state, but: channel) else { return nil }
      // It counts no longer, so that the next connection finds another one.
      state.channels.removeValue(forKey: ObjectIdentifier(gone))
      return gone
    }
    gone?.close(promise: nil)
  }

  private static func longestWaiting(in state: State, but newest: any Channel) -> (any Channel)? {
    var found: (channel: any Channel, since: UInt64)?
    for (channel, phase) in state.channels.values where channel !== newest {
      if case .waiting(let since) = phase, since < found?.since ?? .max { found = (channel, since) }
    }
    return found?.channel
  }

  func close(_ channel: any Channel) {
    state.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
  }

  /// Notes that a request has begun to arrive.
  ///
  /// - Returns: the request, which notes that its body has arrived, if it has one.
  func receive(_ request: Request, on channel: any Channel) -> Request {
    let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
    guard hasBody else {
      set(.answering, of: channel)
      return request
    }
    var request = request
    let body = request.body
    request.body = RequestBody(
      asyncSequence: HeardBody(body: body) { [self] in set(.answering, of: channel) })
    return request
  }

  /// Notes that a request is answered.
  func finish(_ channel: any Channel) {
    state.withLock { state in
      state.turn += 1
      state.channels[ObjectIdentifier(channel)]?.phase = .waiting(state.turn)
    }
  }

  private func set(_ phase: Phase, of channel: any Channel) {
    state.withLock { $0.channels[ObjectIdentifier(channel)]?.phase = phase }
  }
}

/// A body that tells when it has arrived.
private struct HeardBody: AsyncSequence, Sendable {
  let body: RequestBody
  let ended: @Sendable () -> Void

  struct AsyncIterator: AsyncIteratorProtocol {
    var base: RequestBody.AsyncIterator
    let ended: @Sendable () -> Void

    mutating func next() async throws -> ByteBuffer? {
      let next = try await base.next()
      if next == nil { ended() }
      return next
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), ended: ended) }
}

/// Tells of a connection that it is there, and that it is gone.
final class ConnectionHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  private let connections: Connections

  init(_ connections: Connections) { self.connections = connections }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { connections.open(context.channel) }
  }

  func channelActive(context: ChannelHandlerContext) {
    connections.open(context.channel)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    connections.close(context.channel)
    context.fireChannelInactive()
  }
}
