/// Bytes written and not stored yet: runs in order of offset that never touch the same byte twice.
struct DirtyRuns {
  struct Run {
    var start: Int64
    var bytes: [UInt8]

    var end: Int64 { start + Int64(bytes.count) }
  }

  private(set) var runs: [Run] = []
  /// Bytes of all runs.
  private(set) var count = 0

  /// Bytes of a run up to which a write at its end is appended to it.
  private static let runLimit = 1 << 20

  var isEmpty: Bool { runs.isEmpty }

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
    if index < runs.count, runs[index].start <= offset, end <= runs[index].end {
      let place = Int(offset - runs[index].start)
      runs[index].bytes.withUnsafeMutableBytes {
        UnsafeMutableRawBufferPointer(rebasing: $0[place..<(place + data.count)]).copyMemory(from: data)
      }
      return
    }
    if index < runs.count, runs[index].start < end { remove(offset..<end) }
    // Sequential writing: the run before ends where this begins.
    let next = self.index(endingAfter: offset)
    count += data.count
    if next > 0, runs[next - 1].end == offset, runs[next - 1].bytes.count < Self.runLimit {
      runs[next - 1].bytes.append(contentsOf: data)
    } else {
      runs.insert(Run(start: offset, bytes: Array(data)), at: next)
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
      if run.start < range.lowerBound {
        pieces.append(Run(start: run.start, bytes: Array(run.bytes.prefix(Int(range.lowerBound - run.start)))))
      }
      if run.end > range.upperBound {
        pieces.append(
          Run(start: range.upperBound, bytes: Array(run.bytes.suffix(Int(run.end - range.upperBound)))))
      }
      count -= run.bytes.count
      last += 1
    }
    guard first < last else { return }
    count += pieces.reduce(0) { $0 + $1.bytes.count }
    runs.replaceSubrange(first..<last, with: pieces)
  }

  mutating func removeAll() {
    runs.removeAll()
    count = 0
  }

  /// Runs that touch `range`.
  func touching(_ range: Range<Int64>) -> ArraySlice<Run> {
    let first = index(endingAfter: range.lowerBound)
    var last = first
    while last < runs.count, runs[last].start < range.upperBound { last += 1 }
    return runs[first..<last]
  }

  /// Copies what was written in `range` over `buffer`, whose first byte is that of `range`.
  func overlay(_ range: Range<Int64>, onto buffer: UnsafeMutableRawBufferPointer) {
    for run in touching(range) {
      let lower = max(run.start, range.lowerBound)
      let upper = min(run.end, range.upperBound)
      run.bytes.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(
          rebasing: buffer[Int(lower - range.lowerBound)..<Int(upper - range.lowerBound)]
        ).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: bytes[Int(lower - run.start)..<Int(upper - run.start)]))
      }
    }
  }
}
