import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SheafModel
import SheafWire

/// How long a client waits for a hub, and how much it takes of it.
package struct DeviceClientLimits: Sendable {
  package var connect = Duration.seconds(10)
  /// For a request with its whole answer.
  package var request = Duration.seconds(60)
  /// How long a stream may say nothing: a hub says something every 15 seconds.
  package var silence = Duration.seconds(45)
  /// Bytes of an answer.
  package var answer = 64 * 1024 * 1024
  /// Seconds between attempts to open a stream, at first and at most.
  package var pauses = (first: 0.5, longest: 60.0)
  /// How often a request is made again that a hub asks to make later, and how long it may ask to wait for that.
  package var patience = (times: 3, seconds: 10.0)

  package init() {}
}

/// A request to a hub.
struct HubRequest: Sendable {
  var method: HTTPMethod = .GET
  let path: String
  var body: Data?
  var token: String?

  init(_ path: String, token: String? = nil) {
    self.path = path
    self.token = token
  }

  init(posting body: some Encodable, to path: String) throws {
    self.path = path
    method = .POST
    self.body = try JSONEncoder().encode(body)
  }
}

/// Requests to one hub, whose key is checked on each connection before anything is sent. Every failure is a
/// ``HubFailure``, or the cancellation of the task.
final class HubTransport: Sendable {
  /// Bytes of a problem.
  private static let longestProblem = 64 * 1024

  let hub: HubIdentity
  let limits: DeviceClientLimits
  private let client: HTTPClient

  init(_ hub: HubIdentity, limits: DeviceClientLimits) {
    self.hub = hub
    self.limits = limits
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.timeout.connect = TimeAmount(limits.connect)
    configuration.timeout.read = TimeAmount(limits.silence)
    configuration.httpVersion = .http1Only
    // Who is refused for its key is not dialled again and again.
    configuration.connectionPool.retryConnectionEstablishment = false
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let fingerprint = hub.fingerprint {
      // The key itself is known: names, dates and issuers of the certificate say nothing more.
      tls.certificateVerification = .none
      configuration.http1_1ConnectionDebugInitializer = { Self.verify($0, fingerprint, hub) }
    }
    configuration.tlsConfiguration = tls
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  func shutdown() async { try? await client.shutdown() }

  /// Checks the key of the server's certificate, on a connection that has sent nothing yet, and closes it if the key is
  /// another one. That the server has the key was shown by the handshake.
  private static func verify(
    _ channel: any Channel, _ fingerprint: [UInt8], _ hub: HubIdentity
  ) -> EventLoopFuture<Void> {
    channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
      let key = try certificate?.extractPublicKey().toSPKIBytes()
      guard let key, Array(SHA256.hash(data: key)) == fingerprint else {
        throw HubFailure(
          .certificateChanged, hub, "shows another key than the one that its link named",
          advice: "ask its administrator whether the key was replaced; if so, connect anew with a new link")
      }
    }.flatMapError { error in
      channel.close(promise: nil)
      return channel.eventLoop.makeFailedFuture(error)
    }
  }

  // MARK: - Requests

  /// Sends a request and decodes the answer. What a hub asks to make later is made later, a few times.
  func fetch<Answer: Decodable & Sendable>(_ request: HubRequest, as type: Answer.Type = Answer.self) async throws
    -> Answer
  {
    var attempt = 1
    while true {
      do {
        return try await attemptFetch(request)
      } catch let failure as HubFailure where failure.kind == .busy && attempt < limits.patience.times {
        guard let pause = failure.retryAfter, pause <= limits.patience.seconds else { throw failure }
        attempt += 1
        try await Task.sleep(for: .seconds(pause))
      }
    }
  }

  private func attemptFetch<Answer: Decodable & Sendable>(_ request: HubRequest) async throws -> Answer {
    let bytes = try await described { [self] in
      try await withTimeout(limits.request) { [self] in
        let response = try await execute(request)
        return try await collect(response, upTo: limits.answer)
      }
    }
    return try decode(bytes)
  }

  /// Opens a stream that goes on until one side ends it.
  func open(_ request: HubRequest) async throws -> HTTPClientResponse.Body.AsyncIterator {
    try await described { [self] in
      try await withTimeout(limits.request) { [self] in try await execute(request).body }.makeAsyncIterator()
    }
  }

  /// The next bytes of a stream; nil at its end.
  func next(_ bytes: inout HTTPClientResponse.Body.AsyncIterator) async throws -> ByteBuffer? {
    do {
      return try await bytes.next()
    } catch {
      throw failure(error)
    }
  }

  private func execute(_ request: HubRequest) async throws -> HTTPClientResponse {
    var made = HTTPClientRequest(url: "\(hub)\(request.path)")
    made.method = request.method
    made.headers.add(name: "user-agent", value: "sheaf")
    if let token = request.token { made.headers.add(name: "authorization", value: "Bearer \(token)") }
    if let body = request.body {
      made.headers.add(name: "content-type", value: "application/json")
      made.body = .bytes(ByteBuffer(bytes: body))
    }
    let response = try await client.execute(made, deadline: .distantFuture)
    let status = Int(response.status.code)
    if (200..<300).contains(status) { return response }
    if (300..<400).contains(status) {
      throw HubFailure(
        .moved, hub, "sends its devices elsewhere (status \(status)), which is not followed",
        advice: "ask its administrator for the address, and connect anew with a new link")
    }
    throw refusal(
      status, retryAfter: response.headers.first(name: "retry-after"),
      try? decode(try await collect(response, upTo: Self.longestProblem)))
  }

  /// The failure that an answer tells.
  private func refusal(_ status: Int, retryAfter: String?, _ problem: Problem?) -> HubFailure {
    // Hubs write seconds.
    let seconds = retryAfter.flatMap { UInt16($0) }.map(Double.init)
    let kind = problem?.status == status ? problem?.kind : nil
    if status == 503 || status == 429 {
      let reason = problem?.detail ?? "answers \(status)"
      return HubFailure(.busy, hub, reason, advice: "try again later", retryAfter: seconds)
    }
    guard let kind, let problem else {
      return HubFailure(
        .nonsense, hub, "answers \(status), and not as hubs do", advice: "see whether a hub is there")
    }
    return HubFailure(.refused(kind), hub, problem.detail, retryAfter: seconds)
  }

  private func collect(_ response: HTTPClientResponse, upTo limit: Int) async throws -> ByteBuffer {
    do {
      return try await response.body.collect(upTo: limit)
    } catch is NIOTooManyBytesError {
      throw nonsense("answers with more than \(limit) bytes")
    }
  }

  func decode<Answer: Decodable>(_ bytes: ByteBuffer) throws -> Answer {
    let view = bytes.readableBytesView
    guard JSONDepth.of(view) <= JSONDepth.deepest else { throw nonsense("answers with JSON that is nested too deep") }
    do {
      return try JSONDecoder().decode(Answer.self, from: Data(view))
    } catch {
      throw nonsense("answers with something else than was asked for")
    }
  }

  func nonsense(_ reason: String) -> HubFailure {
    HubFailure(.nonsense, hub, reason, advice: "see whether this program is as new as the hub")
  }

  // MARK: - Failures

  private func described<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch {
      throw failure(error)
    }
  }

  /// What a failure of the connection means.
  private func failure(_ error: any Error) -> any Error {
    switch error {
    case is HubFailure, is CancellationError: return error
    case let error as HTTPClientError where error == .cancelled && Task.isCancelled: return CancellationError()
    case is TimedOut: return unreachable("does not answer within \(limits.request)")
    case let error as HTTPClientError where error == .readTimeout: return unreachable("falls silent")
    case let error as HTTPClientError where error == .connectTimeout: return unreachable("cannot be reached in time")
    case let error as NIOSSLError where "\(error)".contains("CERTIFICATE_VERIFY_FAILED"): return untrusted
    case let error as IOError: return unreachable(String(cString: strerror(error.errnoCode)))
    case is NIOConnectionError: return unreachable("nobody answers at this address")
    default: return unreachable("\(error)")
    }
  }

  private func unreachable(_ reason: String) -> HubFailure {
    HubFailure(.unreachable, hub, reason, advice: "see whether the hub runs and the network is there")
  }

  private var untrusted: HubFailure {
    let now = Date().formatted(.iso8601)
    return HubFailure(
      .notTrusted, hub, "shows a certificate that this machine does not trust",
      advice: "see whether the link is whole (with what follows #), and whether this machine's clock is right: \(now)")
  }
}
