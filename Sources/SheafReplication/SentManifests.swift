import SheafWire
import Synchronization

/// The extents of large versions that this machine sent lately: of the next version only what changed is cut anew.
final class SentManifests: Sendable {
  /// Extents of a version, and of all, that are worth their memory.
  private static let (fewest, most) = (64, 1 << 18)

  private let manifests = Mutex<[(version: WireID, extents: [Extent])]>([])

  subscript(_ version: WireID) -> [Extent]? {
    manifests.withLock { $0.last { $0.version == version }?.extents }
  }

  /// Keeps the extents of a version; those that were kept first go.
  func keep(_ extents: [Extent], of version: WireID) {
    guard extents.count >= Self.fewest else { return }
    manifests.withLock { manifests in
      manifests.append((version, extents))
      while manifests.count > 1, manifests.reduce(0, { $0 + $1.extents.count }) > Self.most { manifests.removeFirst() }
    }
  }

  /// Forgets all: the hub misses chunks.
  func forget() { manifests.withLock { $0 = [] } }
}
