import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle
import SheafModel

/// Answers requests as Hummingbird's `Application` does, and sleeps while there are none. `Application` keeps a clock
/// for the header `Date`, which wakes the process every second.
struct LibraryServer: Service {
  let responder: RouterResponder<BasicRequestContext>
  let builder: HTTPServerBuilder
  let configuration: ServerConfiguration
  let clients: ClientCount
  let turns: Turns
  let eventLoops: any EventLoopGroup
  let onServerRunning: @Sendable () -> Void
  let logger: Logger

  func run() async throws {
    let server = try builder.buildServer(
      configuration: configuration, eventLoopGroup: eventLoops, logger: logger,
      responder: { [responder, clients, turns, logger] request, writer, channel in
        if let refusal = clients.refusal(of: channel) {
          var response = refusal.response()
          response.headers[.connection] = "close"
          response.headers[.date] = Self.date()
          try await writer.write(response: response.head, body: response.body)
          // Bytes already written go first.
          return channel.close(mode: .output, promise: nil)
        }
        let context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        var response: Response
        do {
          let answer = try await turns.take { () -> Response? in
            // Nobody waits for it any more.
            guard channel.isActive else { return nil }
            return try await responder.respond(to: request, context: context)
          }
          guard let answer else { return }
          response = answer
        } catch let refusal as SheafError {
          response = refusal.response()
        } catch {
          logger.error("a request could not be answered", metadata: ["error": "\(error)"])
          response = Response(status: .internalServerError)
        }
        response.headers[.date] = Self.date()
        try await writer.write(response: response.head, body: response.body)
      },
      onServerRunning: { [onServerRunning] _ in onServerRunning() })
    try await server.run()
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
