import Dispatch
import Glibc

/// Keeps requests whose host somebody else chose away from this machine and its networks (OWASP, "Server-Side Request
/// Forgery Prevention").
///
/// It resolves a host and checks all its addresses, and the connection goes to a checked one: it does not matter if the
/// name resolves to another address a moment later.
package enum AddressGuard {
  /// Why a host is not connected to.
  package struct Refusal: Error, Hashable, CustomStringConvertible {
    package let description: String

    fileprivate init(_ description: String) { self.description = description }
  }

  /// The address to connect to for a host.
  ///
  /// - Throws: ``Refusal`` if the host has no address, or one that is not public.
  package static func resolve(_ host: String) async throws -> String {
    let addresses = try await lookUp(host)
    for address in addresses where !isPublic(address) {
      throw Refusal("\(host) has the address \(text(address)), which is not public")
    }
    guard let first = addresses.first else { throw Refusal("\(host) has no address") }
    return text(first)
  }

  /// Whether an address, 4 or 16 bytes in network order, is one of the public Internet (IANA's special-purpose
  /// registries).
  package static func isPublic(_ address: [UInt8]) -> Bool {
    if address.count == 4 { return isPublicV4(address) }
    guard address.count == 16 else { return false }
    // IPv4 addresses within IPv6: mapped, translated (RFC 6052), 6to4.
    if address.prefix(10).allSatisfy({ $0 == 0 }), address[10] == 0xFF, address[11] == 0xFF {
      return isPublicV4(Array(address.suffix(4)))
    }
    if address.prefix(12).elementsEqual([0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) {
      return isPublicV4(Array(address.suffix(4)))
    }
    if address[0] == 0x20, address[1] == 0x02 { return isPublicV4(Array(address[2..<6])) }
    // Of the rest only global unicast, without its special parts: 2001::/23 (Teredo and others), documentation.
    guard address[0] & 0xE0 == 0x20 else { return false }
    if address[0] == 0x20, address[1] == 0x01 {
      if address[2] < 0x02 { return false }
      if address[2] == 0x0D, address[3] == 0xB8 { return false }
    }
    return !(address[0] == 0x3F && address[1] == 0xFF && address[2] < 0x10)
  }

  private static func isPublicV4(_ address: [UInt8]) -> Bool {
    switch (address[0], address[1], address[2]) {
    case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): false
    case (100, 64...127, _): false
    case (169, 254, _), (192, 168, _): false
    case (172, 16...31, _): false
    case (192, 0, 0), (192, 0, 2), (192, 88, 99), (198, 51, 100), (203, 0, 113): false
    case (198, 18...19, _): false
    default: true
    }
  }

  /// All addresses of a host, by getaddrinfo(3) on a thread of its own.
  private static func lookUp(_ host: String) async throws -> [[UInt8]] {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: "sheaf.resolve").async {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, nil, &hints, &list)
        guard result == 0 else {
          continuation.resume(throwing: Refusal("\(host): \(String(cString: gai_strerror(result)))"))
          return
        }
        defer { freeaddrinfo(list) }
        var addresses: [[UInt8]] = []
        var next = list
        while let entry = next?.pointee {
          if let address = bytes(of: entry), !addresses.contains(address) { addresses.append(address) }
          next = entry.ai_next
        }
        continuation.resume(returning: addresses)
      }
    }
  }

  private static func bytes(of entry: addrinfo) -> [UInt8]? {
    switch entry.ai_family {
    case AF_INET:
      entry.ai_addr.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        withUnsafeBytes(of: $0.pointee.sin_addr) { Array($0) }
      }
    case AF_INET6:
      entry.ai_addr.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        withUnsafeBytes(of: $0.pointee.sin6_addr) { Array($0) }
      }
    default: nil
    }
  }

  private static func text(_ address: [UInt8]) -> String {
    var buffer = [CChar](repeating: 0, count: 64)
    inet_ntop(address.count == 4 ? AF_INET : AF_INET6, address, &buffer, socklen_t(buffer.count))
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
