import SheafStore

/// Bytes written and not stored yet: runs in order of offset that never touch the same byte twice.
///
/// A run lies in memory or in an area of the working file.
struct DirtyRuns {
  enum Bytes {
    case memory([UInt8])
    /// In an area, at a place.
    case area(WorkingFile.Area, Int64, count: Int)
  }

  struct Run {
    var start: Int64
    var bytes: Bytes

    var count: Int {
      switch bytes {
      case .memory(let bytes): bytes.count
      case .area(_, _, let count): count
      }
    }

    var end: Int64 { start + Int64(count) }

    var isInMemory: Bool { if case .memory = bytes { true } else { false } }

    /// The part of it in `range`, which lies within it.
    func part(_ range: Range<Int64>) -> Run {
      let first = Int(range.lowerBound - start)
      return switch bytes {
      case .memory(let bytes): Run(start: range.lowerBound, bytes: .memory(Array(bytes[first..<(first + range.count)])))
      case .area(let area, let place, _):
        Run(start: range.lowerBound, bytes: .area(area, place + Int64(first), count: range.count))
      }
    }

    /// Copies the bytes of `range`, which lies within it.
    func copy(_ range: Range<Int64>, to target: UnsafeMutableRawBufferPointer) throws {
      let first = Int(range.lowerBound - start)
      switch bytes {
      case .memory(let bytes):
        bytes.withUnsafeBytes {
          target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[first..<(first + range.count)]))
        }
      case .area(let area, let place, _): try area.read(at: place + Int64(first), into: target)
      }
    }
  }

  private(set) var runs: [Run] = []
  /// Bytes of all runs, and of those in memory.
  private(set) var count = 0
  private(set) var memoryCount = 0
  /// Runs in memory.
  private(set) var memoryRuns = 0

  /// Bytes of a run up to which a write at its end is appended to it.
  private static let runLimit = 1 << 20

  var isEmpty: Bool { runs.isEmpty }

  /// Whether something lies in the working file.
  var hasSpilled: Bool { memoryCount < count }

  /// Index of the first run that ends after `offset`.
  private func index(endingAfter offset: Int64) -> Int {
    var low = 0
    var high = runs.count
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].end > offset { high = middle } else { low = middle + 1 }
    }
    return low
  }

  mutating func write(_ data: UnsafeRawBufferPointer, at offset: Int64) {
    guard !data.isEmpty else { return }
    let end = offset + Int64(data.count)
    let index = index(endingAfter: offset)
    if index < runs.count, runs[index].start <= offset, end <= runs[index].end,
      overwrite(index, data, Int(offset - runs[index].start))
    {
      return
    }
    if index < runs.count, runs[index].start < end { remove(offset..<end) }
    // Sequential writing: the run before ends where this begins.
    let next = self.index(endingAfter: offset)
    count += data.count
    memoryCount += data.count
    if next > 0, runs[next - 1].end == offset, runs[next - 1].count < Self.runLimit, append(data, to: next - 1) {
      return
    }
    runs.insert(Run(start: offset, bytes: .memory(Array(data))), at: next)
    memoryRuns += 1
  }

  /// Overwrites a part of a run; false where it is not in memory.
  private mutating func overwrite(_ index: Int, _ data: UnsafeRawBufferPointer, _ place: Int) -> Bool {
    guard case .memory(var bytes) = runs[index].bytes else { return false }
    // Referred to once, so that it is not copied.
    runs[index].bytes = .memory([])
    bytes.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[place..<(place + data.count)]).copyMemory(from: data)
    }
    runs[index].bytes = .memory(bytes)
    return true
  }

  /// Appends to a run; false where it is not in memory.
  private mutating func append(_ data: UnsafeRawBufferPointer, to index: Int) -> Bool {
    guard case .memory(var bytes) = runs[index].bytes else { return false }
    runs[index].bytes = .memory([])
    bytes.append(contentsOf: data)
    runs[index].bytes = .memory(bytes)
    return true
  }

  /// Notes that `length` bytes at `offset` were written to an area.
  mutating func write(_ length: Int, at offset: Int64, in area: WorkingFile.Area, place: Int64) {
    remove(offset..<(offset + Int64(length)))
    let next = index(endingAfter: offset)
    count += length
    if next > 0, runs[next - 1].end == offset, case .area(let other, let start, let before) = runs[next - 1].bytes,
      other === area, start + Int64(before) == place
    {
      runs[next - 1].bytes = .area(area, start, count: before + length)
    } else {
      runs.insert(Run(start: offset, bytes: .area(area, place, count: length)), at: next)
    }
  }

  /// Forgets what was written in `range`.
  mutating func remove(_ range: Range<Int64>) {
    guard !range.isEmpty else { return }
    let first = index(endingAfter: range.lowerBound)
    var last = first
    var pieces: [Run] = []
    while last < runs.count, runs[last].start < range.upperBound {
      let run = runs[last]
      if run.start < range.lowerBound { pieces.append(run.part(run.start..<range.lowerBound)) }
      if run.end > range.upperBound { pieces.append(run.part(range.upperBound..<run.end)) }
      forget(run)
      last += 1
    }
    guard first < last else { return }
    for piece in pieces { note(piece) }
    runs.replaceSubrange(first..<last, with: pieces)
  }

  private mutating func note(_ run: Run) {
    count += run.count
    guard run.isInMemory else { return }
    memoryCount += run.count
    memoryRuns += 1
  }

  private mutating func forget(_ run: Run) {
    count -= run.count
    guard run.isInMemory else { return }
    memoryCount -= run.count
    memoryRuns -= 1
  }

  mutating func removeAll() { self = DirtyRuns() }

  /// The first `most` runs, `limit` bytes of them.
  func prefix(_ limit: Int, runs most: Int) -> DirtyRuns {
    var result = DirtyRuns()
    for run in runs.prefix(most) where result.count < limit {
      let length = min(Int64(run.count), Int64(limit - result.count))
      let part = length == run.count ? run : run.part(run.start..<(run.start + length))
      result.runs.append(part)
      result.note(part)
    }
    return result
  }

  /// Runs that touch `range`.
  func touching(_ range: Range<Int64>) -> ArraySlice<Run> {
    let first = index(endingAfter: range.lowerBound)
    var last = first
    while last < runs.count, runs[last].start < range.upperBound { last += 1 }
    return runs[first..<last]
  }

  /// Copies what was written in `range` over `buffer`, whose first byte is that of `range`.
  ///
  /// - Throws: ``SheafError`` of kind `inputOutput`.
  func overlay(_ range: Range<Int64>, onto buffer: UnsafeMutableRawBufferPointer) throws {
    for run in touching(range) {
      let part = max(run.start, range.lowerBound)..<min(run.end, range.upperBound)
      let place = Int(part.lowerBound - range.lowerBound)
      try run.copy(part, to: UnsafeMutableRawBufferPointer(rebasing: buffer[place..<(place + part.count)]))
    }
  }
}
