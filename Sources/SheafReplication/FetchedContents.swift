import SheafWire
import Synchronization

/// Contents of small versions that were fetched before the steps that need them: many small documents cost one request.
final class FetchedContents: Sendable {
  /// Bytes of such contents.
  static let longest: Int64 = 64 * 1024
  /// Steps that are looked at.
  static let steps = 64

  private let contents = Mutex<[WireID: [UInt8]]>([:])

  /// Keeps contents by their versions; those from before are forgotten.
  func keep(_ fetched: [WireID: [UInt8]]) { contents.withLock { $0 = fetched } }

  func has(_ version: ItemVersion) -> Bool { contents.withLock { Int64($0[version.id]?.count ?? -1) == version.size } }

  /// The contents of a version, once.
  func take(_ version: ItemVersion) -> [UInt8]? {
    let bytes = contents.withLock { $0.removeValue(forKey: version.id) }
    return bytes.flatMap { Int64($0.count) == version.size ? $0 : nil }
  }
}
