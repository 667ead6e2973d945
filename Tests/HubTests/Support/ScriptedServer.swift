import Foundation
import Glibc
import MountKit
import SheafModel
import SheafWire
import Synchronization

@testable import SheafHubClient

/// A server of this machine that answers as a test says: with nonsense, slowly, or not at all. It serves one request on
/// each connection.
final class ScriptedServer: Sendable {
  enum Answer: Sendable {
    /// These bytes, and the end.
    case bytes(String)
    /// These bytes, and then nothing for as long as the client waits.
    case stuck(String)
    /// These bytes again and again, for as long as the client takes them.
    case endless(String)

    static func json(_ text: String, status: String = "200 OK") -> Answer {
      .bytes(
        """
        HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n\
        Connection: close\r\n\r\n\(text)
        """)
    }

    static func problem(_ kind: Problem.Kind, _ headers: String = "") -> Answer {
      let text =
        #"{"type":"urn:sheaf:problem:\#(kind.rawValue)","title":"","status":\#(kind.status),"detail":"so it is"}"#
      return .bytes(
        """
        HTTP/1.1 \(kind.status) Problem\r\nContent-Type: application/problem+json\r\nContent-Length: \(text.utf8.count)\
        \r\n\(headers)Connection: close\r\n\r\n\(text)
        """)
    }
  }

  private let listener: Int32
  let port: Int
  private let paths = Mutex<[String]>([])

  /// - Parameter answer: What a path is answered with; nil for what a hub would do to begin a session.
  init(_ answer: @escaping @Sendable (String) -> Answer?) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard bound else { throw Command.Failure(description: "no port: \(String(cString: strerror(errno)))") }
    listener = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        Thread.detachNewThread { self.serve(connection, answer) }
      }
    }
  }

  /// Ends it; what is served goes on.
  func close() { shutdown(listener, Int32(SHUT_RDWR)) }

  /// What was asked for so far.
  var asked: [String] { paths.withLock { $0 } }

  var device: Device {
    get throws {
      Device(
        hub: try HubIdentity(scheme: "http", address: "127.0.0.1:\(port)", fingerprint: nil),
        handle: try AccountHandle("alice@hub.example"), zone: WireID().description, id: WireID().description,
        key: .init())
    }
  }

  private func serve(_ connection: Int32, _ answer: (String) -> Answer?) {
    defer { Glibc.close(connection) }
    guard let path = Self.request(connection) else { return }
    paths.withLock { $0.append(path) }
    switch answer(path) ?? Self.usual(path) {
    case .bytes(let text):
      Self.write(text, connection)
      shutdown(connection, Int32(SHUT_WR))
      Self.drain(connection)
    case .stuck(let text):
      Self.write(text, connection)
      Self.drain(connection)
    case .endless(let text):
      while Self.write(text, connection) {}
    }
  }

  private static func usual(_ path: String) -> Answer {
    switch path {
    case "/v1/challenges": .json(#"{"nonce":"abc","expires":"2026-11-26T00:02:00Z"}"#, status: "201 Created")
    case "/v1/sessions": .json(#"{"token":"abc","expires":"2026-11-26T01:00:00Z"}"#, status: "201 Created")
    default: .problem(.notFound)
    }
  }

  /// The path of a request, which is read with its body.
  private static func request(_ connection: Int32) -> String? {
    var text = ""
    while true {
      if let end = text.range(of: "\r\n\r\n") {
        let length = text.firstMatch(of: /(?i)content-length: (\d+)/).flatMap { Int($0.1) } ?? 0
        if text[end.upperBound...].utf8.count >= length { break }
      }
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = read(connection, &buffer, buffer.count)
      guard count > 0 else { return nil }
      text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    return text.split(separator: " ").dropFirst().first.map(String.init)
  }

  @discardableResult
  private static func write(_ text: String, _ connection: Int32) -> Bool {
    let bytes = Array(text.utf8)
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        send(connection, $0.baseAddress?.advanced(by: written), $0.count - written, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      written += count
    }
    return true
  }

  /// Reads until the client has gone.
  private static func drain(_ connection: Int32) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while read(connection, &buffer, buffer.count) > 0 {}
  }
}
