import NIOCore
import SheafWire
import Synchronization

/// Contents of small versions that were fetched before the steps that need them: many small documents cost one request.
final class FetchedContents: Sendable {
  /// Bytes of such contents.
  static let longest: Int64 = 64 * 1024
  /// Steps that are looked at.
  static let steps = 64

  private let contents = Mutex<[WireID: ByteBuffer]>([:])

  /// Keeps contents by their versions; those from before are forgotten.
  func keep(_ fetched: [WireID: ByteBuffer]) { contents.withLock { $0 = fetched } }

  /// The contents of a version, once.
  func take(_ version: ItemVersion) -> ByteBuffer? {
    let bytes = contents.withLock { $0.removeValue(forKey: version.id) }
    return bytes.flatMap { Int64($0.readableBytes) == version.size ? $0 : nil }
  }
}
