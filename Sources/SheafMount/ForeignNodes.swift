import Fuse
import Synchronization

/// The inodes and versions of other accounts that a mount's kernel knows, counted as FUSE counts look-ups. Once
/// something is no longer shared, the kernel has to forget it, wherever in its cache it is. An account's own inodes
/// need no such table.
final class ForeignNodes: Sendable {
  private let lookups = Mutex<[NodeID: UInt64]>([:])

  /// Notes that the kernel was given the node.
  func note(_ node: NodeID) { lookups.withLock { $0[node, default: 0] += 1 } }

  func forget(_ nodes: [Forgotten]) {
    lookups.withLock { known in
      if known.isEmpty { return }
      for forgotten in nodes {
        guard let left = known[forgotten.node] else { continue }
        known[forgotten.node] = left > forgotten.count ? left - forgotten.count : nil
      }
    }
  }

  var nodes: [NodeID] { lookups.withLock { Array($0.keys) } }
}
