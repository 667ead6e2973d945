import Foundation
import Glibc

/// A client's end of a connection, which does only what it is told to.
final class RawConnection: Sendable {
  struct Failure: Error {
    let call: String
    let number: CInt
  }

  struct Answer {
    let status: Int
    /// Status line and header fields.
    let head: String
    let body: String
  }

  private let descriptor: CInt

  private init(_ path: String) throws {
    descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failure(call: "socket", number: errno) }
    var patience = timeval(tv_sec: 30, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw Failure(call: "connect", number: errno) }
  }

  deinit { close(descriptor) }

  static func open(_ path: String) async throws -> RawConnection { try await blocking { try RawConnection(path) } }

  /// Sends a request and leaves the answer where it is.
  func request(_ method: String, _ resource: String, body: String = "") async throws {
    try await send(
      "\(method) /v1\(resource) HTTP/1.1\r\nHost: sheaf\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  /// Sends text as it is.
  func send(_ text: String) async throws {
    try await Self.blocking { [descriptor] in
      let bytes = Array(text.utf8)
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes {
          Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        guard count > 0 else { throw Failure(call: "send", number: errno) }
        sent += count
      }
    }
  }

  /// Sends a request and takes its answer.
  func ask(_ method: String, _ resource: String, body: String = "") async throws -> Answer {
    try await request(method, resource, body: body)
    return try await answer()
  }

  /// Takes an answer whose length its head tells.
  func answer() async throws -> Answer {
    try await Self.blocking { [descriptor] in
      var text = ""
      while true {
        if let end = text.range(of: "\r\n\r\n") {
          let head = String(text[..<end.lowerBound])
          let body = String(text[end.upperBound...])
          let length =
            head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst("content-length:".count).drop { $0 == " " }) } ?? 0
          if body.utf8.count >= length {
            return Answer(status: Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0, head: head, body: body)
          }
        }
        let more = try Self.receive(descriptor)
        guard !more.isEmpty else { throw Failure(call: "recv", number: 0) }
        text += String(decoding: more, as: UTF8.self)
      }
    }
  }

  /// Takes an answer's first bytes; none where the other side closed.
  func firstBytes() async throws -> [UInt8] { try await Self.blocking { [descriptor] in try Self.receive(descriptor) } }

  private static func receive(_ descriptor: CInt) throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    if count < 0, errno == ECONNRESET { return [] }
    guard count >= 0 else { throw Failure(call: "recv", number: errno) }
    return Array(buffer[..<count])
  }

  /// Runs what may wait on a thread of its own: the service answers on those of the tasks.
  private static func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
    }
  }
}
