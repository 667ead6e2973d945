import SheafWire
import Synchronization

/// How many bytes of large versions a hub lacked that had no room for them: it is asked again before they are read again.
final class LackingBytes: Sendable {
  private static let most = 256

  private let lacking = Mutex<[WireID: Int64]>([:])

  subscript(_ version: WireID) -> Int64? { lacking.withLock { $0[version] } }

  func keep(_ bytes: Int64, of version: WireID) {
    lacking.withLock { lacking in
      if lacking.count >= Self.most { lacking = [:] }
      lacking[version] = bytes
    }
  }

  func remove(_ version: WireID) { lacking.withLock { $0[version] = nil } }
}
