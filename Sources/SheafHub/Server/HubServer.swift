import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import SheafModel
import SheafWire
import Synchronization

/// Serves a hub over HTTP.
///
/// ```swift
/// let server = try HubServer(hub: hub, listen: listen, certificate: files, logger: logger)
/// try await server.start()
/// // … requests come and go …
/// await server.stop()
/// ```
package final class HubServer: Sendable {
  private let hub: Hub
  private let listen: ListenAddress
  private let group: ServiceGroup
  private let running = Mutex<Task<Void, any Error>?>(nil)
  private let binding: AsyncThrowingStream<Int?, any Error>
  private let bound: AsyncThrowingStream<Int?, any Error>.Continuation

  /// - Parameters:
  ///   - certificate: Nil for plain HTTP, which only this machine may reach.
  ///   - fingerprint: The fingerprint of a certificate that the hub made itself, for links.
  /// - Throws: ``SheafError`` for plain HTTP at an address that other machines reach.
  package init(
    hub: Hub, listen: ListenAddress, certificate: CertificateFiles?, fingerprint: String? = nil,
    limits: ServerLimits = ServerLimits(), logger: Logger
  ) throws {
    guard certificate != nil || listen.isLocal else {
      throw SheafError(
        .invalid, subject: listen.description, reason: "is no address of this machine alone, as plain HTTP needs",
        advice: "listen at 127.0.0.1 or a socket behind a proxy, or use a certificate")
    }
    self.hub = hub
    self.listen = listen
    (binding, bound) = AsyncThrowingStream.makeStream(of: Int?.self)
    // Messages of the parts below may name addresses and paths; the hub logs failures itself.
    var quiet = logger
    quiet.logLevel = max(logger.logLevel, .warning)
    let watch = SessionWatch(accounts: hub.accounts, shares: hub.sharedFeeds, limits: limits, logger: logger)
    let news = ZoneNews(logger: logger) { try await hub.numbers(of: $0) }
    let routes = HubRoutes(
      hub: hub, watch: watch, news: news, limits: limits, scheme: certificate == nil ? "http" : "https",
      fingerprint: fingerprint)
    let connections = Connections(limit: limits.connections)
    let responder = Responder(
      router: routes.router(logger: logger).buildResponder(), connections: connections, logger: logger)
    var builder = HTTPServerBuilder.http1(
      configuration: .init(
        additionalChannelHandlers: [
          IdleStateHandler(writeTimeout: TimeAmount(limits.writeTime)), WriteTimeout(), ConnectionHandler(connections),
        ],
        idleTimeout: TimeAmount(limits.idleTime),
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: limits.headers, maxHeaderListSize: limits.headers, maxHeaderFieldCount: 64)))
    if let certificate { builder = try .tls(builder, tlsConfiguration: certificate.configuration()) }
    let server = try builder.buildServer(
      configuration: ServerConfiguration(
        address: listen.bindAddress,
        availableConnectionsDelegate: .maximum(limits.connections + Connections.spare, logger: quiet)),
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet,
      responder: { request, writer, channel in
        try await responder.respond(to: request, writer: writer, channel: channel)
      },
      onServerRunning: { [bound] channel in
        bound.yield(channel.localAddress?.port)
        bound.finish()
      })
    // They end in the reverse order, each when the one before has ended: the server waits for its streams to end.
    var configuration = ServiceGroupConfiguration(
      services: [
        server, HourlyUpkeep(hub: hub, certificate: certificate, logger: logger),
        CourierRounds(courier: hub.courier, logger: logger), news,
        watch,
      ], logger: quiet)
    configuration.maximumGracefulShutdownDuration = limits.grace
    group = ServiceGroup(configuration: configuration)
  }

  /// Binds the address, and returns once it answers.
  ///
  /// - Throws: ``SheafError`` if it cannot be bound.
  package func start() async throws {
    let task = Task { [group, bound] in
      do {
        try await group.run()
      } catch {
        bound.finish(throwing: error)
        throw error
      }
    }
    running.withLock { $0 = task }
    do {
      for try await port in binding {
        if let port { hub.addresses.choose(port: port) }
      }
      // Whoever reaches the folder may connect, a proxy of another user too: requests prove themselves by their tokens.
      if case .socket(let path) = listen { _ = chmod(path, 0o666) }
    } catch let error as IOError {
      throw SheafError(
        systemError: error.errnoCode, subject: listen.place, advice: Self.advice(after: error.errnoCode))
    } catch let error where error is SocketAddressError || error is SocketAddressError.UnknownHost {
      throw SheafError(
        .invalid, subject: listen.description, reason: "is no address, and no name of one, that this machine knows",
        advice: "name one of its addresses with --listen, or 0.0.0.0 for all")
    } catch is UnixDomainSocketPathWrongType {
      throw SheafError(
        .exists, subject: listen.description, reason: "is there already, and is no socket",
        advice: "name another path with --listen")
    } catch {
      throw SheafError(.inputOutput, subject: listen.description, reason: "cannot be bound: \(error)".printable)
    }
  }

  /// What to do where an address cannot be bound.
  private static func advice(after error: Int32) -> String {
    switch error {
    case EADDRINUSE: "see whether another program listens there, and name another address with --listen"
    case EADDRNOTAVAIL: "name an address of this machine with --listen, or 0.0.0.0 for all"
    case EACCES: "ports below 1024 need root, or CAP_NET_BIND_SERVICE; name another one with --listen"
    default: "name another address with --listen"
    }
  }

  /// Ends streams, lets requests that are being answered end, and closes.
  package func stop() async {
    await group.triggerGracefulShutdown()
    let task = running.withLock { $0 }
    _ = await task?.result
  }
}

/// Answers requests by the routes.
private struct Responder: Sendable {
  /// How long a client that was refused may go on to send its body.
  private static let patience = TimeAmount.seconds(2)

  let router: RouterResponder<HubContext>
  let connections: Connections
  let logger: Logger

  func respond(to request: Request, writer: consuming ResponseWriter, channel: any Channel) async throws {
    var request = request
    let expected = ExpectedBody(of: request, on: channel)
    if let expected { request.body = expected.asked(request.body) }
    request = connections.receive(request, on: channel)
    defer { connections.finish(channel) }
    let context = HubContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    var response: Response
    do {
      response = try await router.respond(to: request, context: context)
    } catch {
      logger.error("a request could not be answered", metadata: ["reason": "\(type(of: error))"])
      response = Response(Problem(.failure, detail: "the hub failed to answer"))
    }
    response.headers[.date] = Self.date()
    if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
    response.headers[.xContentTypeOptions] = "nosniff"
    // A body that was not read may be long.
    let isRefusedUnread =
      response.status == .contentTooLarge || response.status.code == 507 || expected?.isUnread ?? false
    if isRefusedUnread { response.headers[.connection] = "close" }
    try await writer.write(response: response.head, body: response.body)
    if isRefusedUnread {
      channel.close(mode: .output, promise: nil)
      channel.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    }
  }

  /// The time in HTTP's form (RFC 9110, section 5.6.7): `Sat, 21 Nov 2026 10:32:05 GMT`.
  private static func date() -> String {
    var (now, parts) = (time(nil), tm())
    gmtime_r(&now, &parts)
    // English, since no locale was set.
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { text in
      guard let start = text.baseAddress else { return "" }
      strftime(start, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
      return String(cString: start)
    }
  }
}
