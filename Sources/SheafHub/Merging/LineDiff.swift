/// Finds which lines two texts have in common, in order.
///
/// Lines that are once in both texts are matched first (as patience sorting finds the longest rising row of them), and
/// what lies between those by Myers' greedy algorithm, for as long as its effort lasts. So the usual cost grows with the
/// length alone, and the worst one has a bound.
enum LineDiff {
  /// Steps that one merge may take.
  static let effort = 8_000_000
  /// Lines that two parts between matches may differ by, for which memory grows with the square.
  private static let differenceLimit = 1_500

  /// The index in `new` of each line of `old`; -1 for one that has none.
  ///
  /// - Parameter effort: The steps that are left; fewer afterwards.
  /// - Returns: nil where the effort does not suffice.
  static func matches(_ old: [Int32], _ new: [Int32], _ effort: inout Int) -> [Int32]? {
    var matches = [Int32](repeating: -1, count: old.count)
    var counts = LineCounts(old, new)
    var last = (old: 0, new: 0)
    for anchor in anchors(old, new, &counts) + [(old: old.count, new: new.count)] {
      var gap = (old: last.old..<anchor.old, new: last.new..<anchor.new)
      trim(&gap, old, new) { matches[$0] = Int32($1) }
      // A line that the other part does not have matches nothing, and is in the way of what does.
      counts.count(old[gap.old], new[gap.new])
      let rows = (
        gap.old.filter { counts.new(old[$0]) > 0 }, gap.new.filter { counts.old(new[$0]) > 0 }
      )
      counts.forget(old[gap.old], new[gap.new])
      guard let found = shortest(rows.0.map { old[$0] }, rows.1.map { new[$0] }, &effort) else { return nil }
      for match in found { matches[rows.0[match.old]] = Int32(rows.1[match.new]) }
      if anchor.old < old.count { matches[anchor.old] = Int32(anchor.new) }
      last = (anchor.old + 1, anchor.new + 1)
    }
    slideInsertions(old, new, &matches, &effort)
    slideDeletions(old, &matches, &effort)
    return effort > 0 ? matches : nil
  }

  // MARK: - Where a change is

  /// Moves lines that are in the new text alone as far down as the lines below allow, so that one and the same change is
  /// at one place, whatever else was changed around it.
  private static func slideInsertions(
    _ old: [Int32], _ new: [Int32], _ matches: inout [Int32], _ effort: inout Int
  ) {
    for below in matches.indices.reversed() {
      // Nothing of the old text lies between.
      guard below == 0 || matches[below - 1] >= 0 else { continue }
      var (first, next) = (below == 0 ? 0 : Int(matches[below - 1]) + 1, below)
      while next < matches.count, Int(matches[next]) > first, old[next] == new[first], effort > 0 {
        matches[next] = Int32(first)
        (first, next) = (first + 1, next + 1)
        effort -= 1
      }
    }
  }

  /// The same for lines that are in the old text alone.
  private static func slideDeletions(_ old: [Int32], _ matches: inout [Int32], _ effort: inout Int) {
    for above in matches.indices.reversed() where matches[above] < 0 && (above == 0 || matches[above - 1] >= 0) {
      let start = above == 0 ? -1 : matches[above - 1]
      var (first, next, match) = (above, above + 1, start + 1)
      while effort > 0 {
        while next < matches.count, matches[next] < 0 {
          next += 1
          effort -= 1
        }
        // Nothing of the new text lies between.
        guard next < matches.count, matches[next] == match, old[next] == old[first] else { break }
        matches[first] = match
        matches[next] = -1
        (first, next, match) = (first + 1, next + 1, match + 1)
        effort -= 1
      }
    }
  }

  /// How often each line is in parts of two texts.
  private struct LineCounts {
    private var counts: [(old: Int32, new: Int32)]

    init(_ old: [Int32], _ new: [Int32]) {
      counts = Array(repeating: (0, 0), count: Int(max(old.max() ?? 0, new.max() ?? 0)) + 1)
    }

    func old(_ line: Int32) -> Int32 { counts[Int(line)].old }

    func new(_ line: Int32) -> Int32 { counts[Int(line)].new }

    func isOnceInBoth(_ line: Int32) -> Bool { counts[Int(line)] == (1, 1) }

    mutating func count(_ old: ArraySlice<Int32>, _ new: ArraySlice<Int32>) {
      for line in old { counts[Int(line)].old += 1 }
      for line in new { counts[Int(line)].new += 1 }
    }

    mutating func forget(_ old: ArraySlice<Int32>, _ new: ArraySlice<Int32>) {
      for line in old { counts[Int(line)].old = 0 }
      for line in new { counts[Int(line)].new = 0 }
    }
  }

  /// Matches the lines at which two parts begin and end alike, and takes them off.
  private static func trim(
    _ part: inout (old: Range<Int>, new: Range<Int>), _ old: [Int32], _ new: [Int32], _ match: (Int, Int) -> Void
  ) {
    var (start, end) = ((part.old.lowerBound, part.new.lowerBound), (part.old.upperBound, part.new.upperBound))
    while start.0 < end.0, start.1 < end.1, old[start.0] == new[start.1] {
      match(start.0, start.1)
      start = (start.0 + 1, start.1 + 1)
    }
    while start.0 < end.0, start.1 < end.1, old[end.0 - 1] == new[end.1 - 1] {
      end = (end.0 - 1, end.1 - 1)
      match(end.0, end.1)
    }
    part = (start.0..<end.0, start.1..<end.1)
  }

  /// Of the lines that are once in both texts, the most that are in one order.
  private static func anchors(
    _ old: [Int32], _ new: [Int32], _ counts: inout LineCounts
  ) -> [(old: Int, new: Int)] {
    counts.count(old[...], new[...])
    var places: [Int32: Int] = [:]
    for index in new.indices where counts.isOnceInBoth(new[index]) { places[new[index]] = index }
    let pairs = old.indices.compactMap { index in places[old[index]].map { (old: index, new: $0) } }
    counts.forget(old[...], new[...])
    // The pair with the lowest end for each length of a rising row, and for each pair the one before it.
    var ends: [Int] = []
    var before = [Int](repeating: -1, count: pairs.count)
    for (index, pair) in pairs.enumerated() {
      var (low, high) = (0, ends.count)
      while low < high {
        let middle = (low + high) / 2
        if pairs[ends[middle]].new < pair.new { low = middle + 1 } else { high = middle }
      }
      if low > 0 { before[index] = ends[low - 1] }
      if low == ends.count { ends.append(index) } else { ends[low] = index }
    }
    var row: [(old: Int, new: Int)] = []
    var next = ends.last ?? -1
    while next >= 0 {
      row.append(pairs[next])
      next = before[next]
    }
    return row.reversed()
  }

  /// The matches of a shortest way from one part to the other (Myers, "An O(ND) difference algorithm").
  private static func shortest(
    _ old: [Int32], _ new: [Int32], _ effort: inout Int
  ) -> [(old: Int, new: Int)]? {
    let (height, width) = (old.count, new.count)
    if height == 0 || width == 0 { return [] }
    // How far each diagonal was followed: of every step the diagonals from -step to step, by twos.
    var steps: [[Int32]] = []
    func reach(_ step: Int, _ diagonal: Int) -> Int { Int(steps[step][(diagonal + step) / 2]) }
    for step in 0...min(height + width, differenceLimit) {
      var reached: [Int32] = []
      reached.reserveCapacity(step + 1)
      for diagonal in stride(from: -step, through: step, by: 2) {
        var row = 0
        if step > 0 { row = Self.start(step, diagonal, reach) }
        effort -= 1
        while row < height, row - diagonal < width, row - diagonal >= 0, old[row] == new[row - diagonal] {
          row += 1
          effort -= 1
        }
        reached.append(Int32(row))
        if row >= height, row - diagonal >= width {
          steps.append(reached)
          return trace(step, diagonal, reach)
        }
        guard effort > 0 else { return nil }
      }
      steps.append(reached)
    }
    return nil
  }

  /// Where a diagonal begins in a step: a line further down the one above, or to the right of the one below.
  private static func start(_ step: Int, _ diagonal: Int, _ reach: (Int, Int) -> Int) -> Int {
    if diagonal == -step { return reach(step - 1, diagonal + 1) }
    if diagonal == step { return reach(step - 1, diagonal - 1) + 1 }
    return max(reach(step - 1, diagonal - 1) + 1, reach(step - 1, diagonal + 1))
  }

  /// The matches on the way that ended on a diagonal.
  private static func trace(
    _ step: Int, _ diagonal: Int, _ reach: (Int, Int) -> Int
  ) -> [(old: Int, new: Int)] {
    var matches: [(old: Int, new: Int)] = []
    var (step, diagonal) = (step, diagonal)
    while true {
      let start = step == 0 ? 0 : start(step, diagonal, reach)
      for row in stride(from: reach(step, diagonal) - 1, through: start, by: -1) {
        matches.append((row, row - diagonal))
      }
      if step == 0 { return matches }
      let isBelow = diagonal != -step && reach(step - 1, diagonal - 1) + 1 == start
      diagonal += isBelow ? -1 : 1
      step -= 1
    }
  }
}
