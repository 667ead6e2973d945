import NIOCore

/// How much a server takes at once, and for how long it waits.
package struct ServerLimits: Sendable {
  /// Connections; for a further one, the one goes that has waited longest for its client.
  package var connections = 4096
  /// Bytes of large bodies that arrive and are worked on at the same time.
  package var bodies = 256 * 1024 * 1024
  /// Bytes of contents that clients are being given at the same time.
  package var answers = 512 * 1024 * 1024
  /// Streams, and requests that wait for news.
  package var streams = 2048
  /// Streams, and requests that wait for news, of one device.
  package var streamsOfDevice = 16
  /// How long a connection stays open without a request, or with a request that does not go on.
  package var idleTime = Duration.seconds(60)
  /// How long a client may take no bytes of an answer.
  package var writeTime = Duration.seconds(60)
  /// How long a stream says nothing: less than devices wait for it (``DeviceClientLimits/silence``, 45 s), and long
  /// enough that an idle machine gets some 300 bytes a minute.
  package var silence = Duration.seconds(30)
  /// How long a server that ends waits for requests that are being answered.
  package var grace = Duration.seconds(10)
  /// Bytes of all header fields of a request.
  package var headers = 16 * 1024

  package init() {}
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
