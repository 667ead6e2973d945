/// Finds content-defined chunk boundaries: a byte inserted at the front moves all later boundaries with it.
///
/// A gear rolling hash with normalised chunking, after Xia et al., "FastCDC: a Fast and Efficient Content-Defined
/// Chunking Approach for Data Deduplication" (USENIX ATC 2016). Who cuts with other limits, or another table, finds
/// other boundaries, and nothing else is different.
package struct ChunkBoundaries: Hashable, Sendable {
  /// Bytes of the smallest chunk: no boundary comes before them, and shorter contents are one chunk.
  package let minimum: Int
  /// Bytes at which the looser mask takes over.
  package let normal: Int
  /// Bytes of the largest chunk.
  package let maximum: Int
  private let strictMask: UInt64
  private let looseMask: UInt64

  private static let gear: [UInt64] = {
    // SplitMix64 from a fixed seed.
    var state: UInt64 = 0x5348_4541_465F_4344
    return (0..<256).map { _ in
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
      return word ^ (word >> 31)
    }
  }()

  /// Bytes on which the hash depends.
  private static let window = 64

  /// - Parameter normal: A power of two. A chunk has a little more bytes on average, where the limits allow it.
  package init(minimum: Int, normal: Int, maximum: Int) {
    precondition(minimum >= Self.window && minimum <= normal && normal <= maximum && normal.nonzeroBitCount == 1)
    self.minimum = minimum
    self.normal = normal
    self.maximum = maximum
    // A boundary is rare before `normal` bytes, and likely after them.
    let bits = normal.trailingZeroBitCount
    strictMask = ~0 << (UInt64.bitWidth - (bits + 2))
    looseMask = ~0 << (UInt64.bitWidth - (bits - 2))
  }

  /// Length of the first chunk of `bytes`.
  ///
  /// - Parameter bytes: at least ``maximum`` bytes, or the rest of the contents.
  package func firstChunkLength(_ bytes: UnsafeRawBufferPointer) -> Int {
    let count = min(bytes.count, maximum)
    guard count > minimum else { return count }
    return Self.gear.withUnsafeBufferPointer { gear in
      var hash: UInt64 = 0
      var position = minimum - Self.window
      while position < minimum {
        hash = (hash << 1) &+ gear[Int(bytes[position])]
        position += 1
      }
      let middle = min(normal, count)
      while position < middle {
        hash = (hash << 1) &+ gear[Int(bytes[position])]
        position += 1
        if hash & strictMask == 0 { return position }
      }
      while position < count {
        hash = (hash << 1) &+ gear[Int(bytes[position])]
        position += 1
        if hash & looseMask == 0 { return position }
      }
      return count
    }
  }
}
