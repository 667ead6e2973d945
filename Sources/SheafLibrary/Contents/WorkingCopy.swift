import SheafModel
import SheafStore

/// The contents of a file as its readers and writers see them: stored extents, overlaid with later writes.
///
/// Written bytes lie in memory or in the working file (``dirty``) until a version is made. Then ``stored(in:)`` cuts
/// only the written neighbourhoods into chunks, and returns the contents that a version can hold.
struct WorkingCopy {
  /// Stored extents; exactly `size` bytes, holes where only `dirty` has data.
  private(set) var content: Content
  private(set) var dirty = DirtyRuns()
  /// Whether ``dirty`` is some of very many runs.
  private var isPartOfMany = false
  /// The steps since the contents were last stored, except for writes that lie in memory; nil if the log cannot express
  /// them.
  private(set) var log: WriteLog? = WriteLog()
  /// Where the working file has what was written since then.
  private(set) var area: WorkingFile.Area?
  /// Whether anything differs from what was stored last, even if only the length.
  private(set) var isChanged = false

  static let maximumSize = StoredContent.maximumLength

  init(_ stored: StoredContent) { content = Content(stored) }

  var size: Int64 { content.length }

  /// Every chunk that the contents refer to.
  func referredChunks(_ storage: any ChunkSource) throws -> [Int64] { try content.referredChunks(storage) }

  // MARK: - Reading

  /// Copies up to `buffer.count` bytes from `offset`; returns how many, 0 past the end.
  mutating func read(
    at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, from storage: any ChunkSource
  ) throws -> Int {
    var plan = try plan(at: offset, count: buffer.count, from: storage)
    try plan.fetch(from: storage)
    try plan.copy(to: buffer)
    return plan.count
  }

  /// Where up to `count` bytes from `offset` come from; nothing past the end.
  mutating func plan(at offset: Int64, count: Int, from storage: any ChunkSource) throws -> ReadPlan {
    guard offset < size else { return ReadPlan(count: 0) }
    let range = offset..<min(size, offset + Int64(count))
    var plan = ReadPlan(count: range.count)
    let written = dirty.touching(range)
    if !(written.first.map { $0.start <= range.lowerBound && $0.end >= range.upperBound } ?? false) {
      try content.plan(range, at: 0, &plan, from: storage)
    }
    for run in written {
      let part = max(run.start, range.lowerBound)..<min(run.end, range.upperBound)
      plan.add(run.part(part), at: Int(part.lowerBound - range.lowerBound))
    }
    return plan
  }

  // MARK: - Changing

  /// Writes `data` at `offset`, filling a gap before it with a hole.
  mutating func write(_ data: UnsafeRawBufferPointer, at offset: Int64, from storage: any ChunkSource) throws {
    guard !data.isEmpty else { return }
    try lengthen(to: offset + Int64(data.count), from: storage)
    dirty.write(data, at: offset)
    isChanged = true
  }

  private mutating func lengthen(to end: Int64, from storage: any ChunkSource) throws {
    if end > size { try content.replace(size..<size, with: [.hole(end - size)], from: storage) }
  }

  /// Writes `data` at `offset` to the working file.
  ///
  /// - Throws: `noSpace` with nothing changed, `inputOutput`.
  mutating func write(
    _ data: UnsafeRawBufferPointer, at offset: Int64, spillingTo file: WorkingFile, from storage: any ChunkSource
  ) throws {
    guard !data.isEmpty else { return }
    let area = self.area ?? file.area()
    self.area = area
    let place = try area.append(data)
    try lengthen(to: offset + Int64(data.count), from: storage)
    log?.append(.write(offset: offset, length: data.count, place: place, checksum: WriteLog.checksum(data)))
    dirty.write(data.count, at: offset, in: area, place: place)
    isChanged = true
  }

  /// Moves what lies in memory to the working file.
  ///
  /// - Throws: `noSpace`, `inputOutput`; bytes that were not moved stay where they were.
  mutating func spill(to file: WorkingFile, from storage: any ChunkSource) throws {
    for run in dirty.runs {
      guard case .memory(let bytes) = run.bytes else { continue }
      try bytes.withUnsafeBytes { try write($0, at: run.start, spillingTo: file, from: storage) }
    }
  }

  /// Does again what a log says, whose bytes lie in `area`.
  mutating func apply(_ log: WriteLog, in area: WorkingFile.Area, from storage: any ChunkSource) throws {
    for step in log.steps {
      switch step {
      case .write(let offset, let length, let place, _):
        try lengthen(to: offset + Int64(length), from: storage)
        dirty.write(length, at: offset, in: area, place: place)
      case .truncate(let size): try truncate(to: size, from: storage)
      case .hole(let range):
        // Bytes that lay in memory then, and had lengthened the document, have a later step or are gone.
        try lengthen(to: range.upperBound, from: storage)
        try replace(range, with: [.hole(Int64(range.count))], from: storage)
      }
    }
    (self.log, self.area, isChanged) = (log, area, true)
  }

  /// Shortens, or lengthens with a hole.
  mutating func truncate(to newSize: Int64, from storage: any ChunkSource) throws {
    if newSize < size {
      dirty.remove(newSize..<size)
      try content.replace(newSize..<size, with: [], from: storage)
    } else if newSize > size {
      try content.replace(size..<size, with: [.hole(newSize - size)], from: storage)
    } else {
      return
    }
    log?.append(.truncate(newSize))
    isChanged = true
  }

  /// Puts `extents` in the place of `range` (fallocate's holes, copy_file_range's shared chunks).
  mutating func replace(_ range: Range<Int64>, with extents: [Extent], from storage: any ChunkSource) throws {
    dirty.remove(range)
    try content.replace(range, with: extents, from: storage)
    if extents.count == 1, extents[0].isHole, extents[0].length == range.count {
      log?.append(.hole(range))
    } else {
      log = nil
    }
    isChanged = true
  }

  /// Takes bytes of absent contents that were fetched.
  ///
  /// - Parameters:
  ///   - id: Row of the absent contents.
  ///   - range: Which bytes of them.
  mutating func fill(
    _ id: Int64, _ range: Range<Int64>, with fetched: inout Content, from storage: any ChunkSource
  ) throws {
    try content.fill(id, range, with: &fetched, from: storage)
  }

  /// Takes other contents whole.
  mutating func replaceAll(with stored: StoredContent) {
    dirty.removeAll()
    content = Content(stored)
    (log, area) = (nil, nil)
    isChanged = true
  }

  /// The extents of `range`; everything written must be stored.
  mutating func extents(of range: Range<Int64>, from storage: any ChunkSource) throws -> [Extent] {
    try content.extents(touching: range, from: storage).map { start, extent in
      let lower = max(start, range.lowerBound)
      let upper = min(start + extent.length, range.upperBound)
      return extent.dropping(first: lower - start).prefix(upper - lower)
    }
  }

  /// The first offset at or after `offset` that is data or a hole; nil where there is none before the end.
  mutating func next(hole: Bool, at offset: Int64, from storage: any ChunkSource) throws -> Int64? {
    var position = offset
    // A group at a time, so that the answer costs what it takes to find it.
    while position < size {
      let group = try content.groupExtents(at: position, from: storage)
      if group.isEmpty { break }
      if let found = next(hole: hole, from: &position, in: group) { return found }
    }
    return nil
  }

  private func next(
    hole: Bool, from position: inout Int64, in group: [(start: Int64, extent: Extent)]
  ) -> Int64? {
    for (start, extent) in group {
      position = max(position, start)
      let end = start + extent.length
      guard extent.isHole else {
        if !hole { return position }
        position = end
        continue
      }
      for run in dirty.touching(position..<end) {
        if run.start > position {
          if hole { return position }
          position = run.start
        }
        if !hole { return position }
        position = min(end, run.end)
      }
      if position < end, hole { return position }
      position = end
    }
    return nil
  }

  /// Bytes that are data rather than holes; writes into holes count in full.
  var dataLength: Int64 { min(size, content.dataLength + Int64(dirty.count)) }

  // MARK: - Storing

  /// The contents with everything written stored as chunks; `self` stays as it is until ``adopt(_:)``.
  ///
  /// Splits only what changed into chunks: from the boundary before each written run up to the first boundary after it
  /// that the new contents share with the old. A short run in the midst of a chunk is laid over it as a chunk of its
  /// own.
  func stored(in storage: any ChunkStorage) throws -> Content {
    var result = content
    var index = 0
    while index < dirty.runs.count {
      let firstRun = dirty.runs[index]
      if try isPatch(firstRun, in: &result, storage) {
        let bytes = try [UInt8](unsafeUninitializedCapacity: firstRun.count) { buffer, count in
          try firstRun.copy(firstRun.start..<firstRun.end, to: UnsafeMutableRawBufferPointer(buffer))
          count = firstRun.count
        }
        let chunk = try bytes.withUnsafeBytes { try storage.store($0) }
        let extent = Extent(chunk: chunk, length: Int64(bytes.count))
        try result.replace(firstRun.start..<firstRun.end, with: [extent], from: storage)
        index += 1
        continue
      }
      let window = try start(of: firstRun, in: &result, storage)
      var position = window
      var covered = firstRun.end
      index += 1
      var extents: [Extent] = []
      var buffer: [UInt8] = []
      /// The part of `buffer` that is in no chunk yet, and whether it ends where the contents end.
      var rest = 0..<0
      var isWhole = false
      var end = window
      while true {
        // Take in the runs that this window has come to.
        while index < dirty.runs.count, dirty.runs[index].start <= position + filledHole {
          covered = max(covered, dirty.runs[index].end)
          index += 1
        }
        if position >= covered, try isBoundary(position, of: &result, storage) {
          end = position
          break
        }
        if rest.count < Chunker.maximum, !isWhole {
          isWhole = try fill(&buffer, from: position, until: covered, &result, storage)
          rest = 0..<buffer.count
        }
        if rest.isEmpty {
          isWhole = false
          let hole = try holeLength(at: position, &result, storage)
          extents.append(.hole(hole))
          position += hole
          continue
        }
        try buffer.withUnsafeBytes { bytes in
          // As many as can be found before the next look at what was written and where the old boundaries are.
          var pieces: [UnsafeRawBufferPointer] = []
          repeat {
            let length = Chunker.firstChunkLength(UnsafeRawBufferPointer(rebasing: bytes[rest]))
            pieces.append(UnsafeRawBufferPointer(rebasing: bytes[rest].prefix(length)))
            rest = (rest.lowerBound + length)..<rest.upperBound
            position += Int64(length)
          } while position < covered && (isWhole ? !rest.isEmpty : rest.count >= Chunker.maximum)
          let chunks = try storage.store(pieces)
          for (chunk, piece) in zip(chunks, pieces) { extents.append(Extent(chunk: chunk, length: Int64(piece.count))) }
        }
      }
      try result.replace(window..<end, with: extents, from: storage)
    }
    return result
  }

  /// Takes what ``stored(in:)`` gave, once it is recorded.
  mutating func adopt(_ stored: Content) {
    content = stored
    content.forgetReferences()
    // Chunks that no version refers to are not what a log can begin from.
    if dirty.memoryCount > 0 { log = nil }
    dirty.removeAll()
  }

  /// The first `limit` bytes of what was written, in `runs` runs at most, stored as chunks, and what of ``dirty`` it was;
  /// to be given to ``adopt(_:of:)``.
  func stored(
    first limit: Int, runs: Int, in storage: any ChunkStorage
  ) throws -> (content: Content, part: DirtyRuns) {
    var part = self
    part.isPartOfMany = dirty.runs.count >= Self.manyRuns
    part.dirty = dirty.prefix(limit, runs: runs)
    return (try part.stored(in: storage), part.dirty)
  }

  /// Takes what ``stored(first:in:)`` gave, once it is recorded.
  mutating func adopt(_ stored: Content, of part: DirtyRuns) {
    // Extents that it replaced are freed when a version is made, as nothing stored refers to them any more.
    content = stored
    if part.memoryCount > 0 { log = nil }
    for run in part.runs { dirty.remove(run.start..<run.end) }
  }

  /// Says that the contents are those that were stored last.
  mutating func markUnchanged() {
    isChanged = false
    (log, area) = (WriteLog(), nil)
  }

  /// Bytes of a run up to which it may become a chunk of its own.
  private static let patchLimit = 16 * 1024
  /// Bytes of stored extents from which on a short run is laid over them.
  private static let patchedLength = Int64(Chunker.minimum / 2)
  /// Bytes of a chunk at the end up to which what is appended is joined with it.
  private static let tailLimit: Int64 = 4 * 1024
  /// Chunks at the end, each shorter than usual, that are joined once there are so many.
  private static let tailPieces = 12

  /// Whether a run is to be laid over what is stored, rather than chunked together with its neighbourhood: it is short,
  /// and either lies in a chunk of which most stays, or takes the place of whole extents, as the next change of a page
  /// does.
  private func isPatch(_ run: DirtyRuns.Run, in result: inout Content, _ storage: any ChunkSource) throws -> Bool {
    guard run.count <= Self.patchLimit, run.end <= result.length else { return false }
    let touched = try result.extents(touching: run.start..<run.end, from: storage)
    guard let first = touched.first, let last = touched.last, !touched.contains(where: \.extent.isHole) else {
      return false
    }
    let end = last.start + last.extent.length
    return (first.start == run.start && end == run.end)
      || (end - first.start >= Self.patchedLength && Int64(run.count) * 4 <= end - first.start)
  }

  /// Where chunking must begin for a run: at the boundary before it, or where it begins inside a hole.
  ///
  /// The chunk that ends where the run begins is taken along: the end of the document may have cut it short. But what
  /// is appended a little at a time is not stored with all of that chunk each time.
  private func start(of run: DirtyRuns.Run, in result: inout Content, _ storage: any ChunkSource) throws -> Int64 {
    guard run.start > 0,
      let (start, extent) = try result.extents(touching: (run.start - 1)..<run.start, from: storage).first,
      !extent.isHole
    else { return run.start }
    let isAppended = start + extent.length == run.start && run.end == result.length
    guard isAppended, run.count <= Self.patchLimit, extent.length > Self.tailLimit else { return start }
    let tail = max(0, run.start - Int64(Chunker.normal))..<run.start
    let pieces = try result.extents(touching: tail, from: storage).reversed().prefix { !$0.extent.isHole }
    return pieces.count < Self.tailPieces ? run.start : pieces.last?.start ?? start
  }

  /// Whether `position` is the end, or an extent that nothing is written on begins there, or it lies in a hole.
  private func isBoundary(_ position: Int64, of result: inout Content, _ storage: any ChunkSource) throws -> Bool {
    guard position < result.length else { return true }
    guard let (start, extent) = try result.extents(touching: position..<(position + 1), from: storage).first else {
      return true
    }
    return extent.isHole || start == position
  }

  /// Bytes from `position` in a hole up to its end or what is written into it.
  private func holeLength(at position: Int64, _ result: inout Content, _ storage: any ChunkSource) throws -> Int64 {
    guard let (start, extent) = try result.extents(touching: position..<(position + 1), from: storage).first else {
      return size - position
    }
    let end = start + extent.length
    return (dirty.touching(position..<end).first?.start ?? end) - position
  }

  /// Runs from which on they are so many that holes between them of less than a block of a disk become zeros: each run
  /// would be a chunk of its own.
  private static let manyRuns = 1_024

  /// Bytes of the longest hole between two runs that becomes zeros.
  private var filledHole: Int64 { isPartOfMany || dirty.runs.count >= Self.manyRuns ? 4_095 : 0 }

  /// Bytes that are made ready at a time where so many were written: several chunks.
  private static let fillSize = 4 * Chunker.maximum

  /// Fills `buffer` with the next bytes from `position`: a whole chunk's worth, several where `covered` is further, or
  /// up to the next hole or the end; says whether it was the latter.
  private func fill(
    _ buffer: inout [UInt8], from position: Int64, until covered: Int64, _ result: inout Content,
    _ storage: any ChunkSource
  ) throws -> Bool {
    let wanted = min(size, max(position + Int64(Chunker.maximum), min(covered, position + Int64(Self.fillSize))))
    var end = wanted
    // Stop where a hole begins that nothing is written in, so that sparse files stay sparse.
    var written = position
    for (start, extent) in try result.extents(touching: position..<end, from: storage) {
      let extentEnd = min(end, start + extent.length)
      guard extent.isHole else {
        written = extentEnd
        continue
      }
      var reached = max(start, position)
      for run in dirty.touching(reached..<extentEnd) {
        if run.start > reached + filledHole { break }
        reached = min(extentEnd, run.end)
      }
      if reached < extentEnd {
        written = reached
        break
      }
      written = extentEnd
    }
    end = written
    buffer = [UInt8](unsafeUninitializedCapacity: Int(end - position)) { _, count in count = Int(end - position) }
    try buffer.withUnsafeMutableBytes { raw in
      if !isWritten(position..<end) { try result.read(position..<end, into: raw, from: storage) }
      try dirty.overlay(position..<end, onto: raw)
    }
    return end < wanted || end == size
  }

  /// Whether all of `range` was written, so that nothing stored shows through.
  private func isWritten(_ range: Range<Int64>) -> Bool {
    var reached = range.lowerBound
    for run in dirty.touching(range) {
      if run.start > reached { return false }
      reached = run.end
    }
    return reached >= range.upperBound
  }
}
