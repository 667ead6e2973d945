/// To which table each page of a damaged file belongs, by the file's pointer map (SQLite file format, 1.8). It knows the
/// pages to which no sound page leads any more.
struct PointerMap {
  /// The pages of a B-tree.
  struct Tree {
    /// In the order of the file.
    fileprivate(set) var pages: [Int64] = []
    /// Those below which others are.
    fileprivate(set) var inner: Set<Int64> = []
  }

  /// Pages from one of a tree to its root at most: more than any tree has.
  private static let deepest = 64
  /// No page of a file has this byte (1.5).
  private static let pendingByte: Int64 = 0x4000_0000

  /// The trees by their roots.
  private(set) var trees: [Int64: Tree] = [:]
  /// Whether it knows of every page what it is.
  private(set) var isWhole = true

  /// - Returns: nil where the file has none.
  init?(of pages: SQLitePages) {
    guard pages.header.hasPointerMap, (1..<1 << 32).contains(pages.count) else { return nil }
    // What each page is, and for one in a tree the page above it.
    var kinds = [UInt8](repeating: 0, count: Int(pages.count) + 1)
    var above = [UInt32](repeating: 0, count: Int(pages.count) + 1)
    // The list of tables begins on the first page, of which the map says nothing.
    kinds[1] = 1
    // A page of the map has entries of five bytes, as many as fit.
    let group = Int64(pages.usable / 5) + 1
    let pending = Self.pendingByte / Int64(pages.header.pageSize) + 1
    for first in stride(from: 2, through: pages.count, by: Int(group)) {
      let map = first == pending ? first + 1 : first
      let bytes = pages.page(map)
      for page in stride(from: map + 1, to: min(first + group, pages.count + 1), by: 1) where page != pending {
        let place = Int(5 * (page - map - 1))
        guard let bytes, (1...5).contains(bytes[place]) else {
          isWhole = false
          continue
        }
        kinds[Int(page)] = bytes[place]
        above[Int(page)] = UInt32(truncatingIfNeeded: SQLiteHeader.number(bytes, place + 1, 4))
      }
    }
    for page in kinds.indices where kinds[page] == 1 || kinds[page] == 5 {
      var (root, steps) = (page, 0)
      while kinds[root] == 5, steps < Self.deepest, above[root] < kinds.count {
        (root, steps) = (Int(above[root]), steps + 1)
      }
      guard kinds[root] == 1 else {
        isWhole = false
        continue
      }
      trees[Int64(root), default: Tree()].pages.append(Int64(page))
      if kinds[page] == 5 { trees[Int64(root)]?.inner.insert(Int64(above[page])) }
    }
  }
}
