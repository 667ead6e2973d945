import Hummingbird
import SheafModel

/// Where a server listens.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
  /// A port of this machine's addresses, or of one of them.
  case port(HubAddress)
  /// A Unix socket, for a proxy on this machine.
  case socket(String)

  /// Takes `ADDRESS:PORT` or `unix:PATH`.
  ///
  /// - Throws: ``SheafError`` of kind `invalid`.
  package init(_ text: String) throws {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard path.hasPrefix("/"), path.utf8.count <= SocketPath.maximumLength else {
        throw SheafError(
          .invalid, subject: text.printable,
          reason: "is no absolute path of at most \(SocketPath.maximumLength) bytes, as a socket needs")
      }
      self = .socket(path)
    } else {
      guard text.contains(where: { !$0.isNumber }) else {
        throw SheafError(
          .invalid, subject: text.printable, reason: "is a port without an address",
          advice: "write 127.0.0.1:\(text) for this machine alone, or 0.0.0.0:\(text)".printable)
      }
      self = .port(try HubAddress(text))
    }
  }

  /// With the port, which `description` leaves out where it is the usual one.
  var place: String {
    switch self {
    case .port(let address): "\(address.host):\(address.port)"
    case .socket: description
    }
  }

  package var description: String {
    switch self {
    case .port(let address): address.description
    case .socket(let path): "unix:\(path)"
    }
  }

  /// Whether only this machine can reach it.
  package var isLocal: Bool {
    switch self {
    case .port(let address): address.isLoopback
    case .socket: true
    }
  }

  var bindAddress: BindAddress {
    switch self {
    case .port(let address): .hostname(address.host, port: address.port)
    case .socket(let path): .unixDomainSocket(path: path)
    }
  }
}
