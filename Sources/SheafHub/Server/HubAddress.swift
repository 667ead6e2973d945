import SheafModel
package import SheafWire
import Synchronization

package typealias HubAddress = SheafWire.HubAddress

extension HubAddress {
  /// - Throws: ``SheafError`` of kind `invalid` for a text that is no address.
  package init(_ text: String) throws {
    guard let address = HubAddress(parsing: text) else {
      throw SheafError(
        .invalid, subject: text.printable, reason: "is no address", advice: "write hub.example or hub.example:8443")
    }
    self = address
  }
}

/// The addresses at which a hub is dialled. A proof that a device made for another address is none for this hub.
package final class HubAddresses: Sendable {
  private let known: Mutex<[HubAddress]>

  /// - Parameter addresses: At least one; the first is the one that links have.
  package init(_ addresses: [HubAddress]) { known = Mutex(addresses) }

  /// The address that links have.
  package var first: HubAddress? { known.withLock(\.first) }

  /// All of them, as devices and other hubs sign them.
  var all: [String] { known.withLock { $0.map(\.description) } }

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
