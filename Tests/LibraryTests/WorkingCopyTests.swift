import Foundation
import SheafModel
import Testing

@testable import SheafLibrary
@testable import SheafStore

/// Contents against a byte array that has the same done to it.
struct WorkingCopyTests {
  /// Chunks in memory, counted; numbered by contents as the store numbers them.
  final class FakeStorage: ChunkStorage {
    private(set) var chunks: [Int64: [UInt8]] = [:]
    private var numbers: [[UInt8]: Int64] = [:]
    private(set) var loads: [Int64] = []

    func chunk(_ id: Int64) throws -> [UInt8] {
      loads.append(id)
      guard let bytes = chunks[id] else { throw SheafError(.corrupt, subject: "chunk \(id)") }
      return bytes
    }

    func store(_ pieces: [UnsafeRawBufferPointer]) throws -> [Int64] { pieces.map { store(Array($0)) } }

    private func store(_ bytes: [UInt8]) -> Int64 {
      if let id = numbers[bytes] { return id }
      let id = Int64(chunks.count + 1)
      chunks[id] = bytes
      numbers[bytes] = id
      return id
    }

    func store(bytes: [UInt8]) throws -> Int64 { try bytes.withUnsafeBytes { try store([$0])[0] } }

    func forgetLoads() { loads = [] }

    /// Bytes of all chunks that were ever stored.
    var storedBytes: Int { chunks.values.reduce(0) { $0 + $1.count } }

    /// A whole document with these bytes, written at once.
    func content(_ bytes: [UInt8]) throws -> StoredContent {
      var copy = WorkingCopy(.empty)
      try bytes.withUnsafeBytes { try copy.write($0, at: 0, from: self) }
      return try flush(&copy)
    }

    func flush(_ copy: inout WorkingCopy) throws -> StoredContent {
      var flushed = try copy.stored(in: self)
      let stored = try flushed.stored(in: self)
      copy.adopt(flushed)
      return stored
    }

    func bytes(_ copy: inout WorkingCopy, _ range: Range<Int64>? = nil) throws -> [UInt8] {
      let range = range ?? 0..<copy.size
      var buffer = [UInt8](repeating: 0xEE, count: range.count)
      let count = try buffer.withUnsafeMutableBytes { try copy.read(at: range.lowerBound, into: $0, from: self) }
      return Array(buffer.prefix(count))
    }
  }

  /// What the oracle knows: the bytes, and which of them were written since they were last a hole.
  private struct Oracle {
    var bytes: [UInt8] = []
    var isData: [Bool] = []

    mutating func resize(_ size: Int) {
      bytes = Array(bytes.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - bytes.count))
      isData = Array(isData.prefix(size)) + [Bool](repeating: false, count: max(0, size - isData.count))
    }

    mutating func write(_ data: [UInt8], at offset: Int) {
      if offset + data.count > bytes.count { resize(offset + data.count) }
      bytes.replaceSubrange(offset..<(offset + data.count), with: data)
      isData.replaceSubrange(offset..<(offset + data.count), with: [Bool](repeating: true, count: data.count))
    }

    mutating func punch(_ range: Range<Int>) {
      for index in range { (bytes[index], isData[index]) = (0, false) }
    }

    func next(hole: Bool, at offset: Int) -> Int64? {
      isData[offset...].firstIndex { $0 != hole }.map { Int64($0) }
    }
  }

  /// Each would be a chunk of its own, and storing them would keep everybody waiting for seconds.
  @Test func veryManyBytesInAHoleAreFewChunks() throws {
    var random = SeededRandom()
    let storage = FakeStorage()
    var copy = WorkingCopy(.empty)
    try copy.truncate(to: 1_000_000, from: storage)
    var bytes = [UInt8](repeating: 0, count: 1_000_000)
    for _ in 0..<4_000 {
      let offset = Int.random(in: 0..<900_000, using: &random)
      bytes[offset] = 7
      try [UInt8(7)].withUnsafeBytes { try copy.write($0, at: Int64(offset), from: storage) }
    }
    var stored = WorkingCopy(try storage.flush(&copy))
    #expect(try stored.extents(of: 0..<1_000_000, from: storage).count < 100, random.note)
    #expect(try storage.bytes(&stored) == bytes, random.note)
  }

  /// However short what was written is, and however far apart, little is stored at a time.
  @Test func scatteredBytesAreStoredSomeAtATime() throws {
    let storage = FakeStorage()
    var copy = WorkingCopy(.empty)
    for index in 0..<1_000 {
      try [UInt8(7)].withUnsafeBytes { try copy.write($0, at: Int64(index) * 1_000_003, from: storage) }
    }
    var steps = 0
    while !copy.dirty.isEmpty {
      let (content, part) = try copy.stored(first: 1 << 20, runs: 64, in: storage)
      #expect(part.runs.count <= 64)
      copy.adopt(content, of: part)
      steps += 1
    }
    #expect(steps == 16)
    var stored = WorkingCopy(try storage.flush(&copy))
    #expect(try storage.bytes(&stored, 998 * 1_000_003..<998 * 1_000_003 + 2) == [7, 0])
    #expect(stored.size == 999 * 1_000_003 + 1)
  }

  @Test(arguments: [3_000, 300_000, 3_000_000])
  func randomChangesAgainstAnOracle(_ extent: Int) throws {
    var random = SeededRandom()
    let file = WorkingFile(path: FileManager.default.temporaryDirectory.path + "/working-\(UUID().uuidString)", of: "")
    defer { unlink(file.path) }
    for _ in 0..<(extent > 1_000_000 ? 2 : 6) {
      let storage = FakeStorage()
      var copy = WorkingCopy(.empty)
      var base = StoredContent.empty
      var oracle = Oracle()
      for step in 0..<80 {
        let offset = Int.random(in: 0...extent, using: &random)
        let count = Int.random(in: 1...max(1, extent / 8), using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
          let data = random.bytes(count)
          try data.withUnsafeBytes {
            if Bool.random(using: &random) {
              try copy.write($0, at: Int64(offset), from: storage)
            } else {
              try copy.write($0, at: Int64(offset), spillingTo: file, from: storage)
            }
          }
          oracle.write(data, at: offset)
        case 4:
          let data = [UInt8](repeating: UInt8.random(in: 0...1, using: &random), count: count)
          try data.withUnsafeBytes { try copy.write($0, at: Int64(oracle.bytes.count), from: storage) }
          oracle.write(data, at: oracle.bytes.count)
        case 5:
          try copy.truncate(to: Int64(offset), from: storage)
          oracle.resize(offset)
        case 6 where offset < oracle.bytes.count:
          let range = offset..<min(oracle.bytes.count, offset + count)
          try copy.replace(
            Int64(range.lowerBound)..<Int64(range.upperBound), with: [.hole(Int64(range.count))], from: storage)
          oracle.punch(range)
        case 7 where offset + count < oracle.bytes.count && !copy.dirty.isEmpty:
          // What copy_file_range does within a document, once everything is stored.
          _ = try storage.flush(&copy)
          let target = Int.random(in: 0...(oracle.bytes.count - count), using: &random)
          let extents = try copy.extents(of: Int64(offset)..<Int64(offset + count), from: storage)
          try copy.replace(Int64(target)..<Int64(target + count), with: extents, from: storage)
          let (bytes, isData) = (oracle.bytes[offset..<(offset + count)], oracle.isData[offset..<(offset + count)])
          oracle.bytes.replaceSubrange(target..<(target + count), with: bytes)
          oracle.isData.replaceSubrange(target..<(target + count), with: isData)
        case 8:
          switch Int.random(in: 0..<3, using: &random) {
          case 0: try copy.spill(to: file, from: storage)
          case 1:
            let (content, part) = try copy.stored(
              first: extent / 10, runs: Int.random(in: 1...40, using: &random), in: storage)
            copy.adopt(content, of: part)
          default:
            // Stored, and gone on with.
            _ = try storage.flush(&copy)
          }
        default:
          // Saved, and opened anew.
          base = try StoredContent(encoded: storage.flush(&copy).encoded)
          copy = WorkingCopy(base)
        }
        if let log = copy.log, let area = copy.area, copy.dirty.memoryCount == 0 {
          // What a process that is killed leaves for the next.
          var again = WorkingCopy(base)
          try again.apply(WriteLog(encoded: log.encoded), in: area, from: storage)
          try #require(try storage.bytes(&again) == oracle.bytes, "step \(step) of SHEAF_SEED=\(random.seed)")
          try #require(try WorkingFile.holds(log, path: file.path))
        }
        #expect(copy.size == Int64(oracle.bytes.count), random.note)
        let lower = Int.random(in: 0...oracle.bytes.count, using: &random)
        let upper = min(oracle.bytes.count, lower + count)
        try #require(
          try storage.bytes(&copy, Int64(lower)..<Int64(upper)) == Array(oracle.bytes[lower..<upper]),
          "step \(step) of SHEAF_SEED=\(random.seed)")
        if lower < oracle.bytes.count {
          for hole in [true, false] {
            try #require(
              try copy.next(hole: hole, at: Int64(lower), from: storage) == oracle.next(hole: hole, at: lower),
              "step \(step) of SHEAF_SEED=\(random.seed)")
          }
        }
      }
      try #require(try storage.bytes(&copy) == oracle.bytes, random.note)
      let stored = try storage.flush(&copy)
      #expect(stored.length == Int64(oracle.bytes.count), random.note)
      #expect(stored.dataLength == Int64(oracle.isData.count { $0 }), random.note)
      var again = WorkingCopy(stored)
      try #require(try storage.bytes(&again) == oracle.bytes, random.note)
    }
  }

  @Test func piecesAndTheWholeAreCutAlike() throws {
    var random = SeededRandom()
    let bytes = random.bytes(6_000_000)
    let storage = FakeStorage()
    let whole = try storage.content(bytes)
    for piece in [4096, 70_000, 131_072, 1_000_003] {
      var copy = WorkingCopy(.empty)
      for start in stride(from: 0, to: bytes.count, by: piece) {
        let part = Array(bytes[start..<min(start + piece, bytes.count)])
        try part.withUnsafeBytes { try copy.write($0, at: Int64(start), from: storage) }
        if Int.random(in: 0..<20, using: &random) == 0 { _ = try storage.flush(&copy) }
      }
      let stored = try storage.flush(&copy)
      let note: Comment = "in pieces of \(piece), SHEAF_SEED=\(random.seed)"
      // What is appended a little at a time lies in chunks of its own until there are a dozen.
      if piece > 16_384 { #expect(stored == whole, note) }
      #expect(try Content.areSame(stored, whole, from: storage), note)
    }
  }

  @Test func aPageInALargeChunkIsStoredAlone() throws {
    var random = SeededRandom()
    var bytes = random.bytes(2_000_000)
    let storage = FakeStorage()
    var copy = WorkingCopy(try storage.content(bytes))
    var alone = 0
    for step in 0..<300 {
      let before = storage.storedBytes
      let start = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
      let page = random.bytes(4096)
      bytes.replaceSubrange(start..<(start + 4096), with: page)
      try page.withUnsafeBytes { try copy.write($0, at: Int64(start), from: storage) }
      _ = try storage.flush(&copy)
      // A page in what is left of a chunk takes that along, and now and then the short chunks around it.
      #expect(storage.storedBytes - before <= 6 * Chunker.maximum, "step \(step) of SHEAF_SEED=\(random.seed)")
      if step < 20, storage.storedBytes - before == 4096 { alone += 1 }
    }
    #expect(alone >= 10, random.note)
    #expect(try storage.bytes(&copy) == bytes, random.note)
  }

  @Test func whatIsAppendedALittleAtATimeIsStoredOnce() throws {
    var random = SeededRandom()
    let storage = FakeStorage()
    var bytes = random.bytes(300_000)
    var copy = WorkingCopy(try storage.content(bytes))
    let before = storage.storedBytes
    for _ in 0..<400 {
      let part = random.bytes(512)
      try part.withUnsafeBytes { try copy.write($0, at: Int64(bytes.count), from: storage) }
      bytes += part
      _ = try storage.flush(&copy)
    }
    #expect(try storage.bytes(&copy) == bytes, random.note)
    // Joined from time to time, so some times over, but not with a whole chunk each time.
    #expect(storage.storedBytes - before < 12 * 400 * 512, random.note)
  }

  @Test func writingTheSameBytesAgainChangesNothing() throws {
    var random = SeededRandom()
    let bytes = random.bytes(2_000_000)
    let storage = FakeStorage()
    let before = try storage.content(bytes)
    for _ in 0..<50 {
      var copy = WorkingCopy(before)
      let start = Int.random(in: 0..<bytes.count, using: &random)
      let part = Array(bytes[start..<min(bytes.count, start + Int.random(in: 1...300_000, using: &random))])
      try part.withUnsafeBytes { try copy.write($0, at: Int64(start), from: storage) }
      #expect(try Content.areSame(storage.flush(&copy), before, from: storage), random.note)
    }
  }

  @Test func aByteAtTheFrontStoresFewChunks() throws {
    var random = SeededRandom()
    let bytes = random.bytes(4 << 20)
    let storage = FakeStorage()
    _ = try storage.content(bytes)
    let before = storage.chunks.count
    let after = try storage.content([7] + bytes)
    // The first chunks until a boundary is found again, and the list.
    #expect(storage.chunks.count - before <= 4, random.note)
    var copy = WorkingCopy(after)
    #expect(try storage.bytes(&copy) == [7] + bytes)
  }

  @Test func aPageOfTenGigabytesIsAPagesWork() throws {
    var random = SeededRandom()
    let storage = FakeStorage()
    // 10 GB of chunks that are shared, as copies of a document are.
    let piece = try storage.content(random.bytes(64 << 20))
    var source = WorkingCopy(piece)
    let extents = try source.extents(of: 0..<source.size, from: storage)
    var large = WorkingCopy(.empty)
    for _ in 0..<160 { try large.replace(large.size..<large.size, with: extents, from: storage) }
    #expect(large.size == 160 * (64 << 20))
    let before = try storage.flush(&large)

    var copy = WorkingCopy(before)
    storage.forgetLoads()
    let chunks = storage.chunks.count
    let page = random.bytes(4096)
    let offset = Int64(5_000_000_000)
    try page.withUnsafeBytes { try copy.write($0, at: offset, from: storage) }
    let after = try storage.flush(&copy)
    // The chunk with the page, perhaps its neighbour, and the list of extents they are in.
    #expect((2...4).contains(storage.chunks.count - chunks), random.note)
    #expect(storage.loads.count <= 40, "\(storage.loads.count) chunks read, SHEAF_SEED=\(random.seed)")
    guard case .nodes(let old) = before, case .nodes(let new) = after else {
      Issue.record("a large document has nodes")
      return
    }
    #expect(Set(new).subtracting(old).count <= 2, random.note)
    #expect(try storage.bytes(&copy, offset..<(offset + 4096)) == page)
  }

  @Test func holesCostNothing() throws {
    let storage = FakeStorage()
    var copy = WorkingCopy(.empty)
    try copy.truncate(to: 1 << 40, from: storage)
    try [UInt8(1)].withUnsafeBytes { try copy.write($0, at: 1 << 39, from: storage) }
    let stored = try storage.flush(&copy)
    #expect(storage.chunks.count == 1 && stored.length == 1 << 40 && stored.dataLength == 1)
    #expect(try copy.next(hole: false, at: 0, from: storage) == 1 << 39)
    #expect(try copy.next(hole: true, at: 1 << 39, from: storage) == (1 << 39) + 1)
    #expect(try copy.next(hole: false, at: (1 << 39) + 1, from: storage) == nil)
  }

  @Test func seekingInALargeDocumentReadsOneList() throws {
    var random = SeededRandom()
    let storage = FakeStorage()
    var copy = WorkingCopy(.empty)
    // Every other page a hole, so that there are many extents and lists.
    for page in 0..<6000 {
      let bytes = random.bytes(16)
      try bytes.withUnsafeBytes { try copy.write($0, at: Int64(page) * 8192, from: storage) }
    }
    copy = WorkingCopy(try storage.flush(&copy))
    storage.forgetLoads()
    #expect(try copy.next(hole: true, at: 0, from: storage) == 16)
    #expect(try copy.next(hole: false, at: 16, from: storage) == 8192)
    #expect(storage.loads.count == 1)
  }

  @Test func equalBytesAreEqualHoweverTheyAreCut() throws {
    var random = SeededRandom()
    let storage = FakeStorage()
    var bytes = random.bytes(1_500_000)
    for index in 400_000..<500_000 { bytes[index] = 0 }
    let left = try storage.content(bytes)
    // The same bytes with a hole, cut short in the middle of a chunk, and in one list.
    var other = WorkingCopy(try storage.content(bytes + [1, 2, 3]))
    try other.truncate(to: Int64(bytes.count), from: storage)
    try other.replace(400_000..<500_000, with: [.hole(100_000)], from: storage)
    let right = try storage.flush(&other)
    #expect(left != right)
    #expect(try Content.areSame(left, right, from: storage))
    #expect(try Content.areSame(right, left, from: storage))
    for _ in 0..<20 {
      let place = Int64.random(in: 0..<Int64(bytes.count), using: &random)
      var changed = WorkingCopy(right)
      let byte = bytes[Int(place)] ^ 1
      try [byte].withUnsafeBytes { try changed.write($0, at: place, from: storage) }
      #expect(try !Content.areSame(left, storage.flush(&changed), from: storage), random.note)
    }
  }

  @Test func damageIsAnErrorNotACrash() throws {
    let storage = FakeStorage()
    let short = try [UInt8](1...3).withUnsafeBytes { try storage.store($0) }
    var missing = WorkingCopy(.extents([Extent(chunk: 99, length: 10)]))
    #expect(throws: SheafError.self) { try storage.bytes(&missing) }
    var tooLong = WorkingCopy(.extents([Extent(chunk: short, length: 10)]))
    #expect(throws: SheafError.self) { try storage.bytes(&tooLong) }
    var noNode = WorkingCopy(.nodes([ExtentNode(chunk: 99, length: 10, data: 10)]))
    #expect(throws: SheafError.self) { try storage.bytes(&noNode) }
    #expect(throws: SheafError.self) { try noNode.truncate(to: 5, from: storage) }
  }

  /// A list whose extents are shorter than it says must not have memory shown in the place of what it lacks.
  @Test func aNodeOfAnotherLengthIsRefused() throws {
    let storage = FakeStorage()
    let extents = StoredContent.encode([Extent(chunk: try storage.store(bytes: [1, 2, 3]), length: 3)])
    let node = ExtentNode(chunk: try storage.store(bytes: extents), length: 100, data: 3)
    var copy = WorkingCopy(.nodes([node]))
    #expect { _ = try storage.bytes(&copy) } throws: { ($0 as? SheafError)?.kind == .corrupt }
    let whole = try storage.content([1, 2, 3] + [UInt8](repeating: 0, count: 97))
    #expect(try !Content.areSame(whole, .nodes([node]), from: storage))
    #expect(try !Content.areSame(.nodes([node]), whole, from: storage))
  }
}
