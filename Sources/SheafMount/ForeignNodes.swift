import SheafLibrary
import Synchronization

/// The inodes of other accounts that a mount's kernel knows, counted as FUSE counts look-ups: what is no longer shared has to
/// be taken from the kernel, wherever in its cache it is. An account's own inodes need no such table.
final class ForeignNodes: Sendable {
  private let lookups = Mutex<[Int64: UInt64]>([:])

  /// Notes that the kernel was given the inode.
  func note(_ ino: Int64) { lookups.withLock { $0[ino, default: 0] += 1 } }

  func forget(_ nodes: [(ino: Int64, count: UInt64)]) {
    lookups.withLock { known in
      if known.isEmpty { return }
      for (ino, count) in nodes {
        guard let left = known[ino] else { continue }
        known[ino] = left > count ? left - count : nil
      }
    }
  }

  var inos: [Int64] { lookups.withLock { Array($0.keys) } }
}
