import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import SheafHubClient
package import SheafModel
import SheafWire

/// Posts events to a URL by the Standard Webhooks specification.
///
/// One event is a CloudEvent in structured JSON; a batch is an array of them.
package final class WebhookSink: Sink {
  /// Most bytes of a response that are read; the rest is dropped with the connection.
  private static let maximumResponse = 64 * 1024
  package let account: AccountHandle?
  package let batch: Int
  private let url: String
  private let secrets: [WebhookSecret]
  private let timeout: Duration
  private let clients: WebhookClients
  private let clock: any SidecarClock

  /// - Parameters:
  ///   - url: `http:` or `https:`.
  ///   - secrets: One, or two while the receiver changes from one to the other: then each request has both signatures.
  ///   - timeout: For a request with its whole response.
  ///   - isGuarded: Whether it connects only to public addresses (``AddressGuard``).
  package init(
    url: String, secrets: [WebhookSecret], account: AccountHandle?, batch: Int, timeout: Duration,
    isGuarded: Bool = false, clock: any SidecarClock
  ) {
    self.url = url
    self.secrets = secrets
    self.account = account
    self.batch = batch
    self.timeout = timeout
    self.clock = clock
    clients = WebhookClients(
      host: isGuarded ? (URL(string: url)?.host ?? "").trimmingCharacters(in: ["[", "]"]) : nil)
  }

  package func close() async { await clients.shutdown() }

  package func deliver(_ deliveries: [Delivery]) async throws {
    let request = request(deliveries)
    let status: (code: UInt, reason: String, retryAfter: String?)
    do {
      status = try await withTimeout(timeout) { [clients] in
        let response = try await clients.current().execute(request, deadline: .distantFuture)
        // All of it, within bounds: a response that breaks off does not count.
        var count = 0
        for try await bytes in response.body {
          count += bytes.readableBytes
          if count > Self.maximumResponse { break }
        }
        return (
          response.status.code, response.status.reasonPhrase, response.headers.first(name: "retry-after")
        )
      }
    } catch is TimedOut {
      throw DeliveryFailure("no answer within \(timeout)")
    } catch let failure as DeliveryFailure {
      throw failure
    } catch let error as IOError {
      throw DeliveryFailure(String(cString: strerror(error.errnoCode)))
    } catch {
      throw DeliveryFailure("\(error)")
    }
    switch status.code {
    case 200..<300: return
    case 410: throw DeliveryFailure("410: the endpoint says that it is gone for good", .disable)
    default:
      throw DeliveryFailure(
        "\(status.code) \(status.reason)",
        .retry(after: status.retryAfter.flatMap { RetryAfter.seconds($0, at: clock.now) }))
    }
  }

  private func request(_ deliveries: [Delivery]) -> HTTPClientRequest {
    var body = ByteBuffer()
    let id: String
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    if batch > 1 {
      id = Self.batchID(deliveries)
      body.writeString("[")
      for (index, delivery) in deliveries.enumerated() {
        if index > 0 { body.writeString(",") }
        body.writeImmutableBuffer(delivery.json)
      }
      body.writeString("]")
      request.headers.add(name: "content-type", value: "application/cloudevents-batch+json")
    } else {
      id = deliveries[0].event.id
      body = deliveries[0].json
      request.headers.add(name: "content-type", value: "application/cloudevents+json")
    }
    let timestamp = clock.now.seconds
    request.headers.add(name: "user-agent", value: "sheaf-sidecar")
    request.headers.add(name: "webhook-id", value: id)
    request.headers.add(name: "webhook-timestamp", value: "\(timestamp)")
    if !secrets.isEmpty {
      let bytes = Data(body.readableBytesView)
      let signatures = secrets.map { $0.signature(id: id, timestamp: timestamp, body: bytes) }
      request.headers.add(name: "webhook-signature", value: signatures.joined(separator: " "))
    }
    request.body = .bytes(body)
    return request
  }

  /// The id of these events in this order, the same whenever they are sent again, and different for any others.
  private static func batchID(_ deliveries: [Delivery]) -> String {
    if deliveries.count == 1 { return deliveries[0].event.id }
    var hash = SHA256()
    for delivery in deliveries { hash.update(data: Data(delivery.event.id.utf8)) }
    return "batch_" + Hexadecimal.text(of: hash.finalize().prefix(16))
  }
}

/// The HTTP client of a webhook: a single one, or one for each address that a guarded host resolves to.
private actor WebhookClients {
  /// Seconds for connecting.
  private static let connectSeconds: Int64 = 5

  /// The host whose addresses are checked; nil for no guard.
  private let host: String?
  private var client: HTTPClient?
  private var address: String?

  init(host: String?) { self.host = host }

  /// The client for the next request.
  ///
  /// - Throws: ``AddressGuard/Refusal`` if the host has an address that is not public.
  func current() async throws -> HTTPClient {
    var found: String?
    if let host { found = try await AddressGuard.resolve(host) }
    if let client, address == found { return client }
    let former = client
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.timeout.connect = .seconds(Self.connectSeconds)
    configuration.connectionPool.idleTimeout = .seconds(20)
    configuration.connectionPool.retryConnectionEstablishment = false
    // The connection goes to the checked address; the certificate is still verified for the host.
    if let host, let found { configuration.dnsOverride = [host: found] }
    let made = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    (client, address) = (made, found)
    try? await former?.shutdown()
    return made
  }

  func shutdown() async {
    try? await client?.shutdown()
    client = nil
  }
}
