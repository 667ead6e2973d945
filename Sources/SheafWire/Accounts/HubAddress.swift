/// A hub's address as people and devices write it: `NAME` or `NAME:PORT`. Without a port it is 443, which is never
/// written.
public struct HubAddress: Hashable, Sendable, CustomStringConvertible {
  private static let usualPort = 443

  /// A host name in lower case, an IPv4 address, or an IPv6 address without its brackets.
  public let host: String
  /// 0 for one that the system chooses, as tests want it.
  public let port: Int

  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// - Returns: nil for a text that is no address.
  public init?(parsing text: String) {
    var rest = Substring(text)
    var host: Substring
    if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
      host = rest[rest.index(after: rest.startIndex)..<end]
      guard host.contains(":"), host.utf8.allSatisfy({ Self.isHexDigit($0) || ":.".utf8.contains($0) }) else {
        return nil
      }
      rest = rest[rest.index(after: end)...]
    } else {
      host = rest.prefix { $0 != ":" }
      rest = rest.dropFirst(host.count)
      guard host.utf8.allSatisfy({ Self.isLetterOrDigit($0) || "-.".utf8.contains($0) }), !host.hasPrefix("-") else {
        return nil
      }
    }
    guard !host.isEmpty, host.utf8.count <= 253 else { return nil }
    guard !rest.isEmpty else {
      self.init(host: host.lowercased(), port: Self.usualPort)
      return
    }
    guard rest.hasPrefix(":"), rest.dropFirst().utf8.allSatisfy({ (48...57).contains($0) }),
      let number = Int(rest.dropFirst()), number < 65_536
    else { return nil }
    self.init(host: host.lowercased(), port: number)
  }

  public var description: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == Self.usualPort ? name : "\(name):\(port)"
  }

  /// Whether it is this machine's own, which no other can reach.
  public var isLoopback: Bool {
    if host == "localhost" || host == "::1" { return true }
    // A name that begins so may lead anywhere.
    let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
    return numbers.count == 4 && numbers[0] == 127 && !numbers.contains(nil)
  }

  /// The scheme by which machines dial a hub at this address.
  ///
  /// - Parameter isPlain: Whether the hub has no TLS of its own. Other machines reach it through a proxy that has.
  public func scheme(isPlain: Bool) -> String { isPlain && isLoopback ? "http" : "https" }

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
