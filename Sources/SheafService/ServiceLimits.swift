import Glibc
import NIOCore
import SheafModel
import Synchronization

/// The limits of one door: how much it serves at once, and for how long it waits. So no door's clients hold up those of
/// another.
package struct ServiceLimits: Sendable {
  /// Connections. Those past the limit get an error, ``spareConnections`` at a time, and further ones wait to be
  /// accepted.
  package var connections: Int
  /// Requests that are being answered; others wait for their turn, as many as there may be connections. It counts until
  /// the answer begins to be sent.
  package var requests: Int
  /// Streams of events and of webhooks.
  package var streams: Int
  /// Contents on their way to clients.
  package var downloads: Int
  /// Long jobs, each of which has a thread.
  package var jobs: Int
  /// How long a connection stays open without a request, or with a request that does not go on.
  package var idleTime = Duration.seconds(120)
  /// How long a client may take no bytes of an answer.
  package var writeTime = Duration.seconds(60)

  /// Connections past the limit that are answered.
  static let spareConnections = 32

  /// How long a hub is waited for that is asked for a list, and for what it adds to one that is known without it.
  static let hubPatience = (list: Duration.seconds(60), addition: Duration.seconds(5))

  /// Bytes that are read of a connection at once: what its client sends ahead stays in the socket's buffer.
  static let readBytes = 2048

  package init(connections: Int, requests: Int, streams: Int, downloads: Int, jobs: Int) {
    self.connections = connections
    self.requests = requests
    self.streams = streams
    self.downloads = downloads
    self.jobs = jobs
  }

  /// The library's own door: people, and sidecars with a stream for each webhook.
  package static var library: ServiceLimits {
    let connections = share(4096, of: 4)
    return ServiceLimits(
      connections: connections, requests: 64, streams: connections - connections / 4, downloads: 64, jobs: 16)
  }

  /// A user's door.
  package static var user: ServiceLimits {
    let connections = share(256, of: 16)
    return ServiceLimits(connections: connections, requests: 8, streams: connections / 4, downloads: 16, jobs: 4)
  }

  /// `wanted`, but at most one `parts`-th of the descriptors that the process may have.
  private static func share(_ wanted: Int, of parts: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return wanted }
    return min(wanted, max(16, Int(clamping: limit.rlim_cur) / parts))
  }
}

/// Counts the requests of one kind that are under way at a door.
final class Slots: Sendable {
  /// A request that is under way, for as long as anything refers to the slot.
  final class Slot: Sendable {
    private let slots: Slots

    fileprivate init(_ slots: Slots) { self.slots = slots }

    deinit { slots.taken.withLock { $0 -= 1 } }
  }

  private let limit: Int
  private let kind: String
  private let taken = Mutex(0)

  /// - Parameter kind: the word for them, in the plural.
  init(_ limit: Int, _ kind: String) {
    self.limit = limit
    self.kind = kind
  }

  /// - Throws: ``SheafError`` of kind `unavailable` if the limit is reached.
  func take() throws -> Slot {
    try taken.withLock { count in
      guard count < limit else {
        throw SheafError(
          .unavailable, reason: "\(limit) \(kind) are under way here, which is the most",
          advice: "try again when some are done")
      }
      count += 1
    }
    return Slot(self)
  }
}

/// Closes a connection whose client takes none of the bytes that wait for it.
final class WriteTimeout: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .write? = event as? IdleStateHandler.IdleStateEvent, !context.channel.isWritable else {
      return context.fireUserInboundEventTriggered(event)
    }
    context.close(promise: nil)
  }
}

/// Reads little of a connection at once. Requests are decoded as they are read, and take many times their bytes.
final class SmallReads: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  func handlerAdded(context: ChannelHandlerContext) {
    let options = context.channel.syncOptions
    try? options?.setOption(
      ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: ServiceLimits.readBytes))
    try? options?.setOption(ChannelOptions.maxMessagesPerRead, value: 1)
  }
}
