import SheafModel
import Synchronization

/// A hub's address as people and devices write it: `NAME` or `NAME:PORT`. Without a port it is 443, which is never
/// written.
package struct HubAddress: Hashable, Sendable, CustomStringConvertible {
  private static let usualPort = 443

  /// A host name in lower case, an IPv4 address, or an IPv6 address without its brackets.
  package let host: String
  /// 0 for one that the system chooses, as tests want it.
  package let port: Int

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// - Throws: ``SheafError`` of kind `invalid`.
  package init(_ text: String) throws {
    let invalid = SheafError(
      .invalid, subject: text.printable, reason: "is no address", advice: "write hub.example or hub.example:8443")
    var rest = Substring(text)
    var host: Substring
    if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
      host = rest[rest.index(after: rest.startIndex)..<end]
      guard host.contains(":"), host.utf8.allSatisfy({ Self.isHexDigit($0) || ":.".utf8.contains($0) }) else {
        throw invalid
      }
      rest = rest[rest.index(after: end)...]
    } else {
      host = rest.prefix { $0 != ":" }
      rest = rest.dropFirst(host.count)
      guard host.utf8.allSatisfy({ Self.isLetterOrDigit($0) || "-.".utf8.contains($0) }), !host.hasPrefix("-") else {
        throw invalid
      }
    }
    guard !host.isEmpty, host.utf8.count <= 253 else { throw invalid }
    self.host = host.lowercased()
    guard !rest.isEmpty else {
      port = Self.usualPort
      return
    }
    guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ (48...57).contains($0) }),
      let number = Int(rest.dropFirst()), number < 65_536
    else { throw invalid }
    port = number
  }

  package var description: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == Self.usualPort ? name : "\(name):\(port)"
  }

  /// Whether it is this machine's own, which no other can reach.
  package var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: false
    }
  }
}

/// The addresses at which a hub is dialled. A proof that a device made for another address is none for this hub.
package final class HubAddresses: Sendable {
  private let known: Mutex<[HubAddress]>

  /// - Parameter addresses: At least one; the first is the one that links have.
  package init(_ addresses: [HubAddress]) { known = Mutex(addresses) }

  /// The address that links have.
  package var first: HubAddress? { known.withLock(\.first) }

  func contains(_ text: String) -> Bool { known.withLock { $0.contains { $0.description == text } } }

  /// Notes the port that the system chose.
  func choose(port: Int) {
    known.withLock { known in
      for (index, address) in known.enumerated() where address.port == 0 {
        known[index] = HubAddress(host: address.host, port: port)
      }
    }
  }
}
