/// Deleted items, each with the folder from which it was deleted, to find out which ones retention erases.
struct DeletedForest {
  private var parents: [Int64: Int64] = [:]
  /// How many were deleted from each.
  private var counts: [Int64: Int] = [:]

  mutating func add(_ ino: Int64, in parent: Int64) {
    parents[ino] = parent
    counts[parent, default: 0] += 1
  }

  /// The folder from which something was deleted.
  func folder(of ino: Int64) -> Int64? { parents[ino] }

  /// The items to erase, each before the deleted folder that it is in.
  ///
  /// An item that was deleted from a folder stays as long as the folder, and comes back with it. Folders of a damaged
  /// library that lie in each other stay.
  ///
  /// - Parameters:
  ///   - due: the items that are old enough.
  ///   - late: the items that are old only by the time of their deletion, and stay with everything in them.
  func erasable(due: Set<Int64>, late: Set<Int64>) -> [Int64] {
    // From the bottom up: first items from which nothing was deleted, then those of whose contents nothing is left to
    // look at.
    var order = parents.keys.filter { counts[$0] == nil }.sorted()
    var left = counts
    var next = 0
    while next < order.count {
      if let parent = parents[order[next]], parents[parent] != nil {
        left[parent, default: 0] -= 1
        if left[parent] == 0 { order.append(parent) }
      }
      next += 1
    }
    var (staying, belowLate): (Set<Int64>, Set<Int64>) = ([], [])
    for ino in order {
      if !due.contains(ino) { staying.insert(ino) }
      if staying.contains(ino), let parent = parents[ino] { staying.insert(parent) }
    }
    for ino in order.reversed() {
      if let parent = parents[ino], parents[parent] != nil, late.contains(parent) || belowLate.contains(parent) {
        belowLate.insert(ino)
      }
    }
    return order.filter { !staying.contains($0) && !belowLate.contains($0) }
  }
}
