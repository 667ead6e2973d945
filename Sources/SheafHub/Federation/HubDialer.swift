import AsyncHTTPClient
import NIOCore
import NIOSSL
import SheafModel
import SheafWire

/// A request of this hub to another one.
package struct HubExchange: Sendable {
  package let path: String
  /// JSON to post; nil for a request that only asks.
  package let body: [UInt8]?
  package let headers: [(name: String, value: String)]
}

/// What another hub answered.
package struct HubAnswer: Sendable {
  package let status: Int
  package let body: [UInt8]

  package init(status: Int, body: [UInt8]) {
    self.status = status
    self.body = body
  }
}

/// Why another hub did not answer.
package struct HubDialFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// The way to other hubs.
package protocol HubDialing: Sendable {
  /// - Throws: ``HubDialFailure``, or the cancellation of the task.
  func exchange(_ exchange: HubExchange, with address: HubAddress) async throws -> HubAnswer
}

/// Dials other hubs: by TLS with a certificate that the system's roots vouch for, at port 443 of a public address alone,
/// without redirects, and for answers of 64 KiB at most.
package struct HubDialer: HubDialing {
  package static let longestAnswer = 64 * 1024
  private static let port = 443
  private static let seconds: Int64 = 10

  package init() {}

  package func exchange(_ exchange: HubExchange, with address: HubAddress) async throws -> HubAnswer {
    guard address.port == Self.port else {
      throw HubDialFailure("\(address) names a port, and other hubs are dialled at 443 alone")
    }
    let found: String
    do {
      found = try await AddressGuard.resolve(address.host)
    } catch {
      throw HubDialFailure("\(error)")
    }
    return try await Self.answer(
      to: exchange, at: "https://\(address)", Self.configuration(for: address.host, at: found))
  }

  /// - Parameter found: The address that was checked.
  static func configuration(for host: String, at found: String) -> HTTPClient.Configuration {
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.httpVersion = .http1Only
    configuration.timeout.connect = .seconds(seconds)
    configuration.connectionPool.retryConnectionEstablishment = false
    // The connection goes to the checked address; the certificate is still verified for the name.
    configuration.dnsOverride = [host: found]
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    // The other hub has answered, and need not answer the end of the connection, too.
    tls.shutdownTimeout = .milliseconds(100)
    configuration.tlsConfiguration = tls
    return configuration
  }

  /// Asks by a client of its own, so that no connection outlives the look at the address.
  static func answer(
    to exchange: HubExchange, at base: String, _ configuration: HTTPClient.Configuration
  ) async throws -> HubAnswer {
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    do {
      let answer = try await Self.answer(to: exchange, at: base, client)
      try? await client.shutdown()
      return answer
    } catch {
      try? await client.shutdown()
      switch error {
      case is HubDialFailure, is CancellationError: throw error
      case is NIOTooManyBytesError: throw HubDialFailure("\(base) answers with more than \(longestAnswer) bytes")
      default: throw HubDialFailure("\(base): \(error)")
      }
    }
  }

  private static func answer(
    to exchange: HubExchange, at base: String, _ client: HTTPClient
  ) async throws -> HubAnswer {
    var request = HTTPClientRequest(url: base + exchange.path)
    request.headers.add(name: "user-agent", value: "sheaf-hub")
    for header in exchange.headers { request.headers.add(name: header.name, value: header.value) }
    if let body = exchange.body {
      request.method = .POST
      request.headers.add(name: "content-type", value: "application/json")
      request.body = .bytes(ByteBuffer(bytes: body))
    }
    let response = try await client.execute(request, deadline: .now() + .seconds(seconds))
    let body = try await response.body.collect(upTo: longestAnswer)
    return HubAnswer(status: Int(response.status.code), body: [UInt8](body.readableBytesView))
  }
}
