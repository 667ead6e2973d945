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
    var part = (old: 0..<old.count, new: 0..<new.count)
    trim(&part, old, new) { matches[$0] = Int32($1) }
    // A line that the other text does not have matches nothing, and is in the way of what does.
    let names = Int(max(old.max() ?? 0, new.max() ?? 0)) + 1
    let counts = (count(old[part.old], names), count(new[part.new], names))
    let rows = (
      part.old.filter { counts.1[Int(old[$0])] > 0 }, part.new.filter { counts.0[Int(new[$0])] > 0 }
    )
    let (left, right) = (rows.0.map { old[$0] }, rows.1.map { new[$0] })
    let anchors = anchors(left, right, counts)
    var last = (old: 0, new: 0)
    for anchor in anchors + [(old: left.count, new: right.count)] {
      var gap = (old: last.old..<anchor.old, new: last.new..<anchor.new)
      trim(&gap, left, right) { matches[rows.0[$0]] = Int32(rows.1[$1]) }
      guard let found = shortest(left[gap.old], right[gap.new], &effort) else { return nil }
      for match in found { matches[rows.0[match.old]] = Int32(rows.1[match.new]) }
      if anchor.old < left.count { matches[rows.0[anchor.old]] = Int32(rows.1[anchor.new]) }
      last = (anchor.old + 1, anchor.new + 1)
    }
    return matches
  }

  private static func count(_ lines: ArraySlice<Int32>, _ names: Int) -> [Int32] {
    var counts = [Int32](repeating: 0, count: names)
    for line in lines { counts[Int(line)] += 1 }
    return counts
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
    _ old: [Int32], _ new: [Int32], _ counts: ([Int32], [Int32])
  ) -> [(old: Int, new: Int)] {
    var places = [Int32](repeating: -1, count: counts.0.count)
    for (index, line) in new.enumerated() where counts.0[Int(line)] == 1 && counts.1[Int(line)] == 1 {
      places[Int(line)] = Int32(index)
    }
    let pairs = old.enumerated().compactMap { index, line in
      places[Int(line)] < 0 ? nil : (old: index, new: Int(places[Int(line)]))
    }
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
    _ old: ArraySlice<Int32>, _ new: ArraySlice<Int32>, _ effort: inout Int
  ) -> [(old: Int, new: Int)]? {
    let (height, width) = (old.count, new.count)
    if height == 0 || width == 0 { return [] }
    let (top, left) = (old.startIndex, new.startIndex)
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
        while row < height, row - diagonal < width, row - diagonal >= 0, old[top + row] == new[left + row - diagonal] {
          row += 1
          effort -= 1
        }
        reached.append(Int32(row))
        if row >= height, row - diagonal >= width {
          steps.append(reached)
          return trace(step, diagonal, reach).map { (top + $0.old, left + $0.new) }
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
