/// Which chunks are referred to: a bit each.
struct ChunkMarks {
  private var bits: [UInt64]
  private var expanded: Set<Int64> = []
  private let limit: Int64

  init(limit: Int64) {
    self.limit = limit
    bits = Array(repeating: 0, count: Int(limit / 64) + 1)
  }

  /// Marks a chunk. Holes have none, and chunks newer than the sweep are none of its business.
  mutating func insert(_ chunk: Int64) {
    guard chunk > 0, chunk <= limit else { return }
    bits[Int(chunk / 64)] |= 1 << UInt64(chunk % 64)
  }

  /// Whether the chunk is marked.
  func contains(_ chunk: Int64) -> Bool {
    chunk > 0 && chunk <= limit && bits[Int(chunk / 64)] & (1 << UInt64(chunk % 64)) != 0
  }

  /// Whether nothing refers to a chunk that was there when the sweep began.
  func isDead(_ chunk: Int64) -> Bool {
    chunk > 0 && chunk <= limit && !contains(chunk)
  }

  /// Notes that what a node lists is being marked; false where it was before.
  mutating func expand(_ node: Int64) -> Bool { expanded.insert(node).inserted }
}
