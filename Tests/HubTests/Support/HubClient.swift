import AsyncHTTPClient
import Foundation
import NIOCore
import NIOSSL
import SheafWire
import Synchronization

/// An HTTP client of a hub.
struct HubClient: Sendable {
  struct Answer: Sendable {
    let status: Int
    let headers: [String: String]
    let body: Data

    func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
      try JSONDecoder().decode(type, from: body)
    }

    /// What went wrong; nil for an answer that is no problem.
    var problem: Problem.Kind? {
      guard headers["content-type"] == "application/problem+json" else { return nil }
      return (try? decode(Problem.self))?.kind
    }
  }

  /// Shuts the client down at the latest when nothing refers to it.
  private final class Owner: Sendable {
    let client: HTTPClient
    private let isClosed = Atomic(false)

    init(_ client: HTTPClient) { self.client = client }

    deinit { if !isClosed.load(ordering: .acquiring) { client.shutdown { _ in } } }

    func close() async {
      if !isClosed.exchange(true, ordering: .acquiringAndReleasing) { try? await client.shutdown() }
    }
  }

  private let owner: Owner
  /// `https://127.0.0.1:8443`
  let base: String

  /// - Parameter roots: The certificates to trust, PEM; nil for plain HTTP.
  init(base: String, roots: String? = nil) throws {
    var configuration = HTTPClient.Configuration()
    if let roots {
      var tls = TLSConfiguration.makeClientConfiguration()
      tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(roots.utf8)))
      configuration.tlsConfiguration = tls
    }
    configuration.httpVersion = .http1Only
    // A certificate that is not trusted is not tried again.
    configuration.connectionPool.retryConnectionEstablishment = false
    owner = Owner(HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration))
    self.base = base
  }

  var address: String { String(base.split(separator: "/")[1]) }

  func close() async { await owner.close() }

  func send(
    _ method: String, _ path: String, body: Data? = nil, type: String = "application/json", token: String? = nil,
    headers: [(String, String)] = []
  ) async throws -> Answer {
    let response = try await start(method, path, body: body, type: type, token: token, headers: headers)
    var bytes = Data()
    for try await part in response.body { bytes.append(contentsOf: part.readableBytesView) }
    return Answer(
      status: Int(response.status.code),
      headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { $1 }, body: bytes)
  }

  func send(
    _ method: String, _ path: String, json: some Encodable, token: String? = nil
  ) async throws -> Answer {
    try await send(method, path, body: try JSONEncoder().encode(json), token: token)
  }

  /// The answer with its body to come.
  func start(
    _ method: String, _ path: String, body: Data? = nil, type: String = "application/json", token: String? = nil,
    headers: [(String, String)] = []
  ) async throws -> HTTPClientResponse {
    var request = HTTPClientRequest(url: base + path)
    request.method = .init(rawValue: method)
    if let body {
      request.body = .bytes(ByteBuffer(bytes: body))
      request.headers.add(name: "Content-Type", value: type)
    }
    if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    return try await owner.client.execute(request, timeout: .seconds(120))
  }

  /// Enrolls a device by a code.
  func enroll(_ device: TestDevice, code: String) async throws -> EnrolledDevice {
    try await send("POST", "/v1/enrollments", json: try device.enrollment(code, at: address)).decode()
  }

  /// Begins a session; returns its token.
  func begin(_ device: TestDevice, _ enrolled: EnrolledDevice) async throws -> String {
    let challenge: Challenge = try await send("POST", "/v1/challenges").decode()
    let session = try device.session(enrolled, challenge, at: address)
    return try await send("POST", "/v1/sessions", json: session).decode(SessionToken.self).token
  }
}
