/// Which chunks are referred to: a bit each, in pages for the numbers that there are.
struct ChunkMarks {
  /// Numbers of a page.
  private static let pageLength: Int64 = 64 * 512
  private static let emptyPage = [UInt64](repeating: 0, count: 512)

  private var pages: [Int64: [UInt64]] = [:]
  private var expanded: Set<Int64> = []
  private let limit: Int64

  init(limit: Int64) { self.limit = limit }

  /// Marks a chunk. Holes have none, and chunks newer than the sweep are none of its business.
  mutating func insert(_ chunk: Int64) {
    guard chunk > 0, chunk <= limit else { return }
    let place = Int(chunk % Self.pageLength)
    pages[chunk / Self.pageLength, default: Self.emptyPage][place / 64] |= 1 << UInt64(place % 64)
  }

  /// Whether the chunk is marked.
  func contains(_ chunk: Int64) -> Bool {
    guard chunk > 0, chunk <= limit, let page = pages[chunk / Self.pageLength] else { return false }
    let place = Int(chunk % Self.pageLength)
    return page[place / 64] & 1 << UInt64(place % 64) != 0
  }

  /// Whether nothing refers to a chunk that was there when the sweep began.
  func isDead(_ chunk: Int64) -> Bool {
    chunk > 0 && chunk <= limit && !contains(chunk)
  }

  /// Notes that what a node lists is being marked; false where it was before.
  mutating func expand(_ node: Int64) -> Bool { expanded.insert(node).inserted }
}
