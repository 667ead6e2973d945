/// Chunks whose rows are known to hold the bytes of their hashes: those that this process stored or looked at.
struct SoundChunks {
  /// The highest number of an earlier process.
  private let earlier: Int64
  private var seen: Set<Int64> = []
  private static let limit = 65_536

  init(after earlier: Int64) { self.earlier = earlier }

  func contains(_ id: Int64) -> Bool { id > earlier || seen.contains(id) }

  mutating func insert(_ id: Int64) {
    if seen.count >= Self.limit { seen = [] }
    seen.insert(id)
  }
}
