import SheafModel
import SheafWire
import Synchronization

/// The chunks that were found missing or damaged in the last minutes.
///
/// Contents are given out as they are read, so the first answer breaks off in the middle, which a client takes for a
/// break of the network. The next one says from the beginning that the contents are damaged.
final class FoundDamage: Sendable {
  private struct Place: Hashable {
    let zone: String
    let hash: ChunkHash
  }

  /// Nanoseconds for which it is remembered: somebody may mend the store.
  private static let span: Int64 = 600 * 1_000_000_000
  private static let limit = 10_000

  /// When each was found.
  private let found = Mutex<[Place: Timestamp]>([:])

  func note(_ hash: ChunkHash, in zone: String, at now: Timestamp) {
    found.withLock { found in
      if found.count >= Self.limit { found = found.filter { Self.isRecent($0.value, now) } }
      if found.count < Self.limit { found[Place(zone: zone, hash: hash)] = now }
    }
  }

  /// Whether a chunk was found so that has some of the bytes of a range of contents.
  func isKnown(of extents: [Extent], _ range: Range<Int64>, in zone: String, at now: Timestamp) -> Bool {
    found.withLock { found in
      if found.isEmpty { return false }
      var start: Int64 = 0
      for extent in extents {
        let end = start + extent.length
        if end > range.lowerBound, start < range.upperBound, let hash = extent.hash,
          let time = found[Place(zone: zone, hash: hash)], Self.isRecent(time, now)
        {
          return true
        }
        start = end
      }
      return false
    }
  }

  private static func isRecent(_ time: Timestamp, _ now: Timestamp) -> Bool {
    let age = now.nanoseconds.subtractingReportingOverflow(time.nanoseconds)
    return !age.overflow && (0..<span).contains(age.partialValue)
  }
}
