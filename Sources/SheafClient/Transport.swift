import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import SheafModel

/// Requests to a library's API over its Unix socket, JSON in and out, errors as ``SheafError``.
final class Transport: Sendable {
  /// Longest answer that is taken whole, in bytes.
  private static let maximumAnswer = 256 * 1024 * 1024
  /// Connections at once.
  private static let maximumConnections = 4096
  /// Longest error that is taken whole, in bytes.
  private static let maximumError = 64 * 1024

  private let client: HTTPClient
  private let socket: SocketPath
  private let library: String
  private let keepsConnections: Bool

  /// - Parameters:
  ///   - socket: Path of the socket.
  ///   - library: Path of the library.
  init(socket path: String, library: String, keepsConnections: Bool) throws(SheafError) {
    socket = try SocketPath(path)
    self.keepsConnections = keepsConnections
    self.library = library
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(5)
    configuration.redirectConfiguration = .disallow
    // A stream has a connection of its own for as long as it is read, and a sidecar one for each sink.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.maximumConnections
    // Checked for each connection: the process that listened before may be gone.
    let trust = ServerTrust(socket: path, library: library)
    configuration.http1_1ConnectionDebugInitializer = { trust.verify($0) }
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  func shutdown() async { try? await client.shutdown() }

  /// Sends a request and decodes the answer.
  func fetch<Answer: Decodable>(
    _ method: Method, _ resource: String, query: String = "", body: (any Encodable & Sendable)? = nil,
    within limit: TimeAmount? = nil
  ) async throws -> Answer {
    let response = try await send(method, resource, query: query, body: body, within: limit)
    return try await described { try Self.decode(await response.body.collect(upTo: Self.maximumAnswer)) }
  }

  /// Fetches a value from a process that may be older and answer without one: nil then.
  func fetchIfAny<Answer: Decodable>(
    _ method: Method, _ resource: String, query: String = ""
  ) async throws -> Answer? {
    let response = try await send(method, resource, query: query, body: nil, within: nil)
    let answer = try await described { try await response.body.collect(upTo: Self.maximumAnswer) }
    return answer.readableBytes == 0 ? nil : try Self.decode(answer) as Answer
  }

  /// Sends a request whose answer has no body.
  func perform(
    _ method: Method, _ resource: String, query: String = "", body: (any Encodable & Sendable)? = nil
  ) async throws {
    let response = try await send(method, resource, query: query, body: body, within: nil)
    _ = try await described { try await response.body.collect(upTo: Self.maximumAnswer) }
  }

  /// Sends a request and passes on the answer's bytes as they come.
  func stream(
    _ method: Method, _ resource: String, query: String = "", body: (any Encodable & Sendable)? = nil,
    into sink: (ByteBuffer) async throws -> Void
  ) async throws {
    let response = try await send(method, resource, query: query, body: body, within: nil)
    var iterator = response.body.makeAsyncIterator()
    while let buffer = try await described({ try await iterator.next() }) { try await sink(buffer) }
  }

  /// Decodes a part of an answer.
  static func decode<Value: Decodable>(_ buffer: ByteBuffer) throws(SheafError) -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: Data(buffer.readableBytesView))
    } catch {
      throw SheafError(
        .inputOutput, subject: "the process that owns the library", reason: "answers what this program cannot read",
        advice: "unmount the library and mount it again, so that both are of one version")
    }
  }

  /// Sends a request whose answer goes on until client or server ends it, and returns its body.
  ///
  /// The connection serves nothing else, and is closed in the end.
  func open(_ resource: String, query: String) async throws -> HTTPClientResponse.Body {
    try await send(.get, resource, query: query, body: nil, within: nil, isLast: true).body
  }

  private func send(
    _ method: Method, _ resource: String, query: String, body: (any Encodable & Sendable)?, within limit: TimeAmount?,
    isLast: Bool = false
  ) async throws -> HTTPClientResponse {
    let host = PercentCoding.encode(socket.address.utf8).replacing("/", with: "%2F")
    var request = HTTPClientRequest(url: "http+unix://\(host)\(resource)\(query.isEmpty ? "" : "?" + query)")
    request.method = .init(rawValue: method.rawValue)
    if isLast || !keepsConnections { request.headers.add(name: "connection", value: "close") }
    if let body {
      request.headers.add(name: "content-type", value: "application/json")
      request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(body)))
    }
    let prepared = request
    let response = try await described {
      try await client.execute(prepared, deadline: limit.map { .now() + $0 } ?? .distantFuture)
    }
    guard (200..<300).contains(response.status.code) else {
      let answer = try await described { try await response.body.collect(upTo: Self.maximumError) }
      throw (try? Self.decode(answer)) as SheafError?
        ?? SheafError(.inputOutput, subject: library, reason: "the process that owns it answers \(response.status)")
    }
    return response
  }

  /// Runs `body`, and turns a failure of the connection into an error that helps a person.
  func described<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let error as SheafError {
      throw error
    } catch let error as CancellationError {
      throw error
    } catch {
      throw SheafError(
        .unavailable, subject: library, reason: "the process that owns it broke off: \(error)".printable,
        advice: "try again")
    }
  }

  enum Method: String {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
  }
}
