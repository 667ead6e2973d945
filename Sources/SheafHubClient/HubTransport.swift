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
  /// For a request with its whole answer, beside the time that its body takes.
  package var request = Duration.seconds(60)
  /// Bytes of a body that are sent in a second at least.
  package var slowest = 16 * 1024
  /// How long a stream may say nothing: a hub says something every 15 seconds.
  package var silence = Duration.seconds(45)
  /// Bytes of an answer.
  package var answer = 1024 * 1024
  /// Bytes of a ``LongAnswer``: hubs end most pages after a mebibyte, and 65,536 copied parts of a version have five.
  package var longAnswer = 16 * 1024 * 1024
  /// Values in the JSON of an answer.
  package var values = JSONShape.mostValues
  /// Versions of one list.
  package var versions = 100_000
  /// Seconds between attempts to open a stream, at first and at most.
  package var pauses = (first: 0.5, longest: 60.0)
  /// How often a request is made again that a hub asks to make later, and how long it may ask to wait for that.
  package var patience = (times: 3, seconds: 10.0)

  package init() {}
}

/// A request to a hub.
struct HubRequest: Sendable {
  struct Body: Sendable {
    let bytes: ByteBuffer
    let type: String
    /// How the bytes are compressed; nil for bytes as they are.
    let encoding: String?
  }

  let method: HTTPMethod
  let path: String
  let body: Body?
  private(set) var token: String?

  init(_ path: String, method: HTTPMethod = .GET, token: String? = nil) {
    self.method = method
    self.path = path
    self.token = token
    body = nil
  }

  init(posting body: some Encodable, to path: String) throws { try self.init(.POST, body, to: path) }

  /// Sends a value as JSON.
  init(_ method: HTTPMethod, _ body: some Encodable, to path: String) throws {
    self.method = method
    self.path = path
    self.body = Body(bytes: ByteBuffer(bytes: try JSONEncoder().encode(body)), type: "application/json", encoding: nil)
  }

  /// Puts bytes to a path, compressed where that makes them fewer.
  init(putting bytes: ByteBuffer, to path: String) {
    method = .PUT
    self.path = path
    let frame = Zstandard.smaller(bytes)
    body = Body(bytes: frame ?? bytes, type: "application/octet-stream", encoding: frame == nil ? nil : "zstd")
  }

  /// The same in a session.
  func with(token: String) -> HubRequest {
    var request = self
    request.token = token
    return request
  }
}

/// Requests to one hub, whose key is checked on each connection before anything is sent. Every failure is a
/// ``HubFailure``, or the cancellation of the task.
final class HubTransport: Sendable {
  /// Bytes of a problem.
  private static let longestProblem = 64 * 1024
  /// Bytes of JSON that are decoded where they are asked for.
  private static let shortJSON = 64 * 1024
  /// Decodes what is longer, one at a time in this process: whatever hubs send, it holds up nothing else, and takes the
  /// memory of one.
  private static let decoding = {
    let thread = NIOThreadPool(numberOfThreads: 1)
    thread.start()
    return thread
  }()

  let hub: HubIdentity
  let limits: DeviceClientLimits
  private let account: AccountHandle?
  private let client: HTTPClient

  /// - Parameter account: Whose device asks; nil before it is one.
  init(_ hub: HubIdentity, limits: DeviceClientLimits, account: AccountHandle? = nil) {
    self.hub = hub
    self.account = account
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
    // A hub that streams does not answer the end of a connection. Nothing is lost without that: HTTP tells where a
    // message ends.
    tls.shutdownTimeout = .milliseconds(100)
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
    let longest = Answer.self is any LongAnswer.Type ? limits.longAnswer : limits.answer
    return try await decode(try await answer(to: request, upTo: longest))
  }

  /// Fetches a value from a hub that may be older and say nothing but that it is done: nil then.
  func fetchIfAny<Answer: Decodable & Sendable>(_ request: HubRequest, as type: Answer.Type) async throws -> Answer? {
    let answer = try await answer(to: request, upTo: limits.answer)
    return answer.readableBytes == 0 ? nil : try await decode(answer) as Answer
  }

  /// Sends a request whose answer says nothing but that it is done.
  func perform(_ request: HubRequest) async throws { _ = try await answer(to: request, upTo: limits.answer) }

  private func answer(to request: HubRequest, upTo longest: Int) async throws -> ByteBuffer {
    try await patiently {
      try await described { [self] in
        try await withTimeout(time(for: request)) { [self] in
          let response = try await execute(request)
          return try await collect(response, upTo: longest)
        }
      }
    }
  }

  /// Opens a stream that goes on until one side ends it.
  func open(_ request: HubRequest) async throws -> HTTPClientResponse {
    try await described { [self] in
      try await withTimeout(time(for: request)) { [self] in try await execute(request) }
    }
  }

  /// Opens contents. What a hub asks to make later is made later, a few times.
  func openPatiently(_ request: HubRequest) async throws -> HTTPClientResponse {
    try await patiently { try await open(request) }
  }

  private func patiently<Value>(_ body: () async throws -> Value) async throws -> Value {
    var attempt = 1
    while true {
      do {
        return try await body()
      } catch let failure as HubFailure where failure.kind == .busy && attempt < limits.patience.times {
        guard let pause = failure.retryAfter, pause <= limits.patience.seconds else { throw failure }
        attempt += 1
        try await Task.sleep(for: .seconds(pause))
      }
    }
  }

  /// The time that a request may take.
  func time(for request: HubRequest) -> Duration {
    limits.request + .seconds(Double(request.body?.bytes.readableBytes ?? 0) / Double(max(1, limits.slowest)))
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
      made.headers.add(name: "content-type", value: body.type)
      if let encoding = body.encoding { made.headers.add(name: "content-encoding", value: encoding) }
      made.body = .bytes(body.bytes)
    }
    let response = try await client.execute(made, deadline: .distantFuture)
    let status = Int(response.status.code)
    if (200..<300).contains(status) { return response }
    if (300..<400).contains(status) {
      throw HubFailure(
        .moved, hub, "sends its devices elsewhere (status \(status)), which is not followed",
        advice: "ask its administrator for the address, and connect anew with a new link")
    }
    let failure = refusal(
      status, retryAfter: response.headers.first(name: "retry-after"),
      try? await decode(try await collect(response, upTo: Self.longestProblem)))
    throw failure.kind == .refused(.quota) ? full(for: request) : failure
  }

  /// The failure where an account may not have more contents: what is in a share counts for its owner.
  private func full(for request: HubRequest) -> HubFailure {
    let isShared = request.path.hasPrefix("/v1/shares/")
    let owner = isShared ? "the owner of the share" : account.map { "\($0)" } ?? "the account"
    return HubFailure(
      .refused(.quota), hub, "has no room for more contents of \(owner): the quota is used up",
      advice: "ask its administrator for more: sheaf-hub account quota")
  }

  /// The failure that an answer tells.
  func refusal(_ status: Int, retryAfter: String?, _ problem: Problem?) -> HubFailure {
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
    if kind == .full {
      return HubFailure(.refused(kind), hub, problem.detail, advice: "its administrator has to make some")
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

  /// Decodes an answer, or a message of a stream.
  func decode<Answer: Decodable & Sendable>(_ bytes: ByteBuffer) async throws -> Answer {
    guard bytes.readableBytes > Self.shortJSON else { return try decoded(bytes) }
    return try await Self.decoding.runIfActive { [self] in try decoded(bytes) }
  }

  private func decoded<Answer: Decodable>(_ bytes: ByteBuffer) throws -> Answer {
    let view = bytes.readableBytesView
    let shape = JSONShape(of: view)
    guard shape.depth <= JSONShape.deepest else { throw nonsense("answers with JSON that is nested too deep") }
    guard shape.number <= JSONShape.longestNumber else {
      throw nonsense("answers with a number of more than \(JSONShape.longestNumber) bytes")
    }
    guard shape.values <= limits.values else { throw nonsense("answers with more than \(limits.values) values") }
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
    case let error as HTTPClientError where error == .remoteConnectionClosed || error == .uncleanShutdown:
      return unreachable("closes the connection before it has answered")
    case let error as HTTPClientError where error == .tlsHandshakeTimeout: return silence
    case is HTTPParserError: return unreachable("answers with something else than HTTP/1.1, or breaks off")
    case is NIOSSLError: return unreachable("does not agree on encryption: is it a server of HTTPS?")
    default: return unreachable("\(error)")
    }
  }

  /// The failure of a hub that is not waited for any longer.
  var silence: HubFailure { unreachable("does not answer") }

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
