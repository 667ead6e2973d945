import Glibc
import MountKit

/// A TCP connection to this machine, on which a test sends what no HTTP client would.
final class RawConnection {
  private var descriptor: Int32

  init(port: Int) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    // A failed test ends instead of waiting for ever.
    var limit = timeval(tv_sec: 120, tv_usec: 0)
    let descriptor = descriptor
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      Glibc.close(descriptor)
      throw Command.Failure(description: "no connection to port \(port)")
    }
  }

  deinit { close() }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  /// Reads until a text has come.
  ///
  /// - Returns: whether it came before the other side closed.
  /// - Throws: `Command.Failure` if neither happens.
  func read(upTo text: String) throws -> Bool {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    // Lines that keep a stream alive come for ever.
    let deadline = ContinuousClock.now + .seconds(120)
    while !String(decoding: bytes, as: UTF8.self).contains(text) {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count == 0 || (count < 0 && errno == ECONNRESET) { return false }
      guard count > 0, ContinuousClock.now < deadline else {
        throw Command.Failure(description: "\(text) does not come")
      }
      bytes += buffer[..<count]
    }
    return true
  }

  /// Whether the other side has closed.
  var isClosed: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
    return count == 0 || (count < 0 && errno == ECONNRESET)
  }

  /// Everything until the other side closes.
  ///
  /// - Throws: `Command.Failure` if it does not.
  func readToEnd() throws -> String {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count == 0 || (count < 0 && errno == ECONNRESET) { return String(decoding: bytes, as: UTF8.self) }
      guard count > 0 else { throw Command.Failure(description: "the connection stays open") }
      bytes += buffer[..<count]
    }
  }
}

/// A port at which connections are accepted, and nothing is ever answered.
final class BlackHole {
  private let descriptor: Int32
  let port: Int

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> Int32 in
        if bind(descriptor, address, length) != 0 || listen(descriptor, 1_024) != 0 { return -1 }
        return getsockname(descriptor, address, &length)
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    guard result == 0 else { throw Command.Failure(description: "no port for a black hole") }
  }

  deinit { Glibc.close(descriptor) }

  /// How many connections there were.
  var connections: Int {
    var count = 0
    while true {
      let connection = accept(descriptor, nil, nil)
      guard connection >= 0 else { return count }
      Glibc.close(connection)
      count += 1
    }
  }
}
