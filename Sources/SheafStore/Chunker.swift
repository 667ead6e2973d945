/// Finds content-defined chunk boundaries: a byte inserted at the front moves all later boundaries with it.
///
/// A gear rolling hash with normalised chunking, after Xia et al., "FastCDC: a Fast and Efficient Content-Defined
/// Chunking Approach for Data Deduplication" (USENIX ATC 2016). The table and the limits are no part of the file
/// format: with other values, files stay readable and fewer duplicates are found.
package enum Chunker {
  /// Bytes of the smallest chunk: no boundary comes before them, and a smaller document is one chunk.
  package static let minimum = 32 * 1024
  /// Bytes at which the looser mask takes over.
  package static let normal = 64 * 1024
  /// Bytes of the largest chunk.
  package static let maximum = 256 * 1024

  private static let strictMask: UInt64 = 0xFFFF_C000_0000_0000
  private static let looseMask: UInt64 = 0xFFFC_0000_0000_0000

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

  /// Length of the first chunk of `bytes`.
  ///
  /// - Parameter bytes: at least ``maximum`` bytes, or the rest of the document.
  package static func firstChunkLength(_ bytes: UnsafeRawBufferPointer) -> Int {
    let count = min(bytes.count, maximum)
    guard count > minimum else { return count }
    return gear.withUnsafeBufferPointer { gear in
      var hash: UInt64 = 0
      // The hash depends on the last 64 bytes alone, so it may start that late.
      var position = minimum - 64
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
