import SheafModel
package import SheafWire

/// Extents of a version at a hub that a later version of the document has, too, since its bytes there are the same at the
/// same place: they need not be read and cut again.
///
/// An extent follows from its bytes and from what comes after them for at most ``reach``, as a run of zeros that begins in
/// it is a hole or not by its length. So the last ones before a change are cut anew.
package struct KnownExtents: Sendable {
  /// Bytes after an extent that it may depend on: more than the longest run of zeros that is no hole.
  private static let reach = 2 * Int64(WireLimits.chunkBytes)

  private let extents: [Extent]
  /// The places of extents that stay, by where they begin.
  private let indices: [Int64: Int]

  package static let none = KnownExtents([], same: [], size: 0)

  /// - Parameters:
  ///   - extents: Those of the earlier version.
  ///   - same: Where both versions have the same bytes, in order.
  ///   - size: Bytes of the later version.
  package init(_ extents: [Extent], same: [Range<Int64>], size: Int64) {
    self.extents = extents
    let length = extents.reduce(0) { $0 + $1.length }
    var indices: [Int64: Int] = [:]
    var (start, rest) = (Int64(0), same[...])
    for (index, extent) in extents.enumerated() {
      let end = start + extent.length
      while let first = rest.first, first.upperBound < end { rest.removeFirst() }
      guard let range = rest.first else { break }
      let isLast = range.upperBound == length && length == size
      if range.lowerBound <= start, end <= range.upperBound, isLast || end <= range.upperBound - Self.reach {
        indices[start] = index
      }
      start = end
    }
    self.indices = indices
  }

  /// Bytes of the extents that stay.
  package var length: Int64 { indices.values.reduce(0) { $0 + extents[$1].length } }

  /// The extents that follow each other from a place on; none where none begins there.
  func run(at place: Int64) -> ArraySlice<Extent> {
    guard let first = indices[place] else { return [] }
    var (end, next) = (first, place)
    while end < extents.count, indices[next] == end {
      next += extents[end].length
      end += 1
    }
    return extents[first..<end]
  }
}
