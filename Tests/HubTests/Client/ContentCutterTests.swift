import ConformanceKit
import Crypto
import Foundation
import NIOCore
import SheafWire
import Testing

@testable import SheafHubClient

/// The extents of contents follow from the bytes alone, and little of them from what comes before.
@Suite struct ContentCutterTests {
  /// Some of what a document is made of.
  private enum Part {
    case bytes([UInt8])
    case zeros(Int)
  }

  private struct Cut: Equatable {
    var extents: [Extent] = []
    var chunks: [ChunkHash: [UInt8]] = [:]

    var hashes: [ChunkHash] { extents.compactMap(\.hash) }

    /// The contents.
    var bytes: [UInt8] {
      extents.reduce(into: []) { bytes, extent in
        bytes += extent.hash.flatMap { chunks[$0] } ?? [UInt8](repeating: 0, count: Int(extent.length))
      }
    }
  }

  private static var seed: UInt64 {
    ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
  }

  private static func noise(_ count: Int, _ random: inout SeededRandom) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { bytes in
      for start in stride(from: 0, to: count - count % 8, by: 8) {
        bytes.storeBytes(of: random.next(), toByteOffset: start, as: UInt64.self)
      }
      for index in (count - count % 8)..<count { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
    }
    return bytes
  }

  /// Cuts what `feed` gives to a cutter.
  private func cut(_ feed: (inout ContentCutter, (ChunkHash, ByteBuffer) throws -> Void) throws -> Void) throws -> Cut {
    var (cutter, made) = (ContentCutter(), Cut())
    let take: (ChunkHash, ByteBuffer) throws -> Void = { hash, bytes in
      #expect(hash == ChunkHash(bytes: Array(SHA256.hash(data: bytes.readableBytesView))))
      made.chunks[hash] = Array(bytes.readableBytesView)
    }
    try feed(&cutter, take)
    let length = cutter.length
    made.extents = try cutter.finish(chunk: take)
    #expect(made.extents.reduce(0) { $0 + $1.length } == length && cutter.length == 0)
    return made
  }

  private func cut(_ bytes: [UInt8]) throws -> Cut {
    try cut { cutter, chunk in try cutter.append(ByteBuffer(bytes: bytes), chunk: chunk) }
  }

  // MARK: - Equal bytes, equal extents

  @Test func equalBytesGiveEqualExtents() throws {
    let seed = Self.seed
    var random = SeededRandom(seed: seed)
    for round in 0..<12 {
      let note: Comment = "round \(round), SHEAF_SEED=\(seed)"
      var parts: [Part] = []
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        // Also runs that are as long as the shortest hole, and one byte shorter and longer.
        let limit = ContentCutter.shortestHole
        let counts = [1, 7, limit - 1, limit, limit + 1, .random(in: 1...300_000, using: &random)]
        let count = counts[Int.random(in: counts.indices, using: &random)]
        parts.append(Bool.random(using: &random) ? .zeros(count) : .bytes(Self.noise(count, &random)))
      }
      let whole = parts.reduce(into: [UInt8]()) { bytes, part in
        switch part {
        case .bytes(let some): bytes += some
        case .zeros(let count): bytes += [UInt8](repeating: 0, count: count)
        }
      }
      let once = try cut(whole)
      #expect(once.bytes == whole, note)
      let inPieces = try cut { cutter, chunk in
        var rest = whole[...]
        while !rest.isEmpty {
          let longest = Bool.random(using: &random) ? 200_000 : 100
          let piece = rest.prefix(.random(in: 0...longest, using: &random))
          try cutter.append(ByteBuffer(bytes: piece), chunk: chunk)
          rest = rest.dropFirst(piece.count)
        }
      }
      #expect(inPieces == once, note)
      let withHoles = try cut { cutter, chunk in
        for part in parts {
          switch part {
          case .bytes(let some): try cutter.append(ByteBuffer(bytes: some), chunk: chunk)
          case .zeros(let count):
            let middle = Int.random(in: 0...count, using: &random)
            try cutter.hole(Int64(middle))
            if Bool.random(using: &random) {
              try cutter.append(ByteBuffer(repeating: 0, count: count - middle), chunk: chunk)
            } else {
              try cutter.hole(Int64(count - middle))
            }
          }
        }
      }
      #expect(withHoles == once, note)
      for (index, extent) in once.extents.enumerated() {
        let follows = index > 0 && once.extents[index - 1].hash == nil
        if extent.hash == nil {
          #expect(extent.length >= ContentCutter.shortestHole && !follows, note)
        } else {
          #expect((1...256 * 1024).contains(extent.length), note)
        }
      }
    }
  }

  /// Two machines that have the same document have the same chunks: these are known.
  @Test func theBoundariesStayWhereTheyAre() throws {
    var random = SeededRandom(seed: 1)
    let made = try cut(Self.noise(500_000, &random))
    #expect(made.extents.map(\.length) == [93807, 122203, 93874, 59785, 106343, 23988])
  }

  @Test func nothingIsNoExtent() throws {
    #expect(try cut { _, _ in }.extents == [])
    #expect(try cut { cutter, _ in try cutter.hole(0) }.extents == [])
    #expect(try cut { cutter, _ in try cutter.hole(1 << 53) }.extents == [Extent(hash: nil, length: 1 << 53)])
    // A hole that is too short for one is bytes.
    let zeros = try cut { cutter, _ in try cutter.hole(5) }
    #expect(zeros.extents.count == 1 && zeros.bytes == [0, 0, 0, 0, 0] && zeros.extents[0].hash != nil)
  }

  // MARK: - What is inserted, and what is appended

  @Test func bytesAtTheFrontChangeFewExtents() throws {
    let seed = Self.seed
    var random = SeededRandom(seed: seed)
    let bytes = Self.noise(6 << 20, &random)
    let before = try cut(bytes)
    for count in [1, 100, 70_000] {
      let after = try cut(Self.noise(count, &random) + bytes)
      let fresh = Set(after.hashes).subtracting(before.hashes)
      // About one in two chunks ends where one ended before, and all that follow it are known.
      #expect(fresh.count < before.hashes.count / 2, "\(fresh.count) of \(count), SHEAF_SEED=\(seed)")
    }
  }

  /// Where chunks begin to grow, bytes that moved are found again, too.
  @Test func bytesAreFoundAgainPastAPlaceWhereChunksGrow() throws {
    let seed = Self.seed
    var random = SeededRandom(seed: seed)
    let bytes = Self.noise(16 << 20, &random)
    func cutting(after more: [UInt8]) throws -> Cut {
      try cut { cutter, chunk in
        try cutter.hole(63 << 20)
        try cutter.append(ByteBuffer(bytes: more), chunk: chunk)
        try cutter.append(ByteBuffer(bytes: bytes), chunk: chunk)
      }
    }
    let (before, after) = (try cutting(after: [1]), try cutting(after: [2, 3, 4, 5, 6]))
    let fresh = Set(after.hashes).subtracting(before.hashes)
    #expect(fresh.count < after.hashes.count / 2, "\(fresh.count), SHEAF_SEED=\(seed)")
    #expect(after.extents.map(\.length).max() ?? 0 > 256 * 1024)
  }

  @Test func whatIsAppendedLeavesWhatWasThere() throws {
    let seed = Self.seed
    var random = SeededRandom(seed: seed)
    let bytes = Self.noise(1 << 20, &random)
    let (before, after) = (try cut(bytes), try cut(bytes + Self.noise(100_000, &random)))
    #expect(after.extents.starts(with: before.extents.dropLast()), "SHEAF_SEED=\(seed)")
  }

  // MARK: - Bounds

  /// Two versions with random changes, zeros among them: with the extents of the first one, the second one is cut as
  /// without them, and little of it is read.
  @Test func knownExtentsChangeNothing() throws {
    for _ in 0..<12 {
      let seed = Self.seed
      var random = SeededRandom(seed: seed)
      var former = Self.noise(24 << 20, &random)
      func change(_ bytes: inout [UInt8]) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        let count = min(bytes.count - place, [1, 4_096, 70_000, 300_000].randomElement(using: &random)!)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.replaceSubrange(place..<(place + count), with: Self.noise(count, &random))
        case 1: bytes.append(contentsOf: Self.noise(count, &random))
        case 2: bytes.removeLast(count)
        default:
          for index in place..<(place + count) { bytes[index] = 0 }
        }
      }
      for _ in 0..<20 { change(&former) }
      // Runs of zeros that end, or begin, where the later change is.
      let place = Int.random(in: 1 << 20..<former.count - (1 << 20), using: &random)
      for index in place - Int.random(in: 0..<200_000, using: &random)..<place { former[index] = 0 }
      var later = former
      for index in place..<place + Int.random(in: 1..<150_000, using: &random) {
        later[index] = Bool.random(using: &random) ? 0 : later[index]
      }
      if Bool.random(using: &random) { for index in place..<place + 100_000 { later[index] = 0 } }
      for _ in 0..<Int.random(in: 0..<3, using: &random) { change(&later) }

      let extents = try cut(former).extents
      let expected = try cut(later)
      var same: [Range<Int64>] = []
      for start in stride(from: 0, to: min(former.count, later.count), by: 1_000) {
        let end = min(start + 1_000, former.count, later.count)
        guard former[start..<end] == later[start..<end] else { continue }
        if let last = same.last, last.upperBound == start {
          same[same.count - 1] = last.lowerBound..<Int64(end)
        } else {
          same.append(Int64(start)..<Int64(end))
        }
      }
      let known = KnownExtents(extents, same: same, size: Int64(later.count))
      var read = 0
      let made = try cut { cutter, chunk in
        while true {
          try cutter.take(known)
          let start = Int(cutter.length)
          guard start < later.count else { break }
          let piece = later[start..<min(later.count, start + (1 << 20))]
          read += piece.count
          try cutter.append(ByteBuffer(bytes: piece), chunk: chunk)
        }
      }
      // Two thousand extents say nothing to a reader.
      let isSame = made.extents == expected.extents
      #expect(isSame, "SHEAF_SEED=\(seed)")
      if same == [0..<Int64(later.count)] { #expect(read == 0) }
    }
  }

  @Test func chunksGrowWithTheirDistanceFromTheBeginning() throws {
    let seed = Self.seed
    var random = SeededRandom(seed: seed)
    for (start, limits) in [
      (0, 32 << 10...256 << 10), (64 << 20, 128 << 10...1 << 20), (1 << 30, 512 << 10...4 << 20),
      (16 << 30, 2 << 20...4 << 20), (1 << 50, 2 << 20...4 << 20),
    ] as [(Int64, ClosedRange<Int64>)] {
      let bytes = Self.noise(9 << 20, &random)
      let made = try cut { cutter, chunk in
        try cutter.hole(start)
        try cutter.append(ByteBuffer(bytes: bytes), chunk: chunk)
      }
      let lengths = made.extents.filter { $0.hash != nil }.map(\.length)
      #expect(lengths.dropLast().allSatisfy { limits.contains($0) }, "\(start), SHEAF_SEED=\(seed)")
      #expect(lengths.count > 1 && lengths.reduce(0, +) == 9 << 20, "\(start), SHEAF_SEED=\(seed)")
    }
  }

  /// The worst contents for the number of extents: so many bytes fit of any.
  @Test func sixtyFourGibibytesFitWhateverTheyAre() throws {
    var (cutter, hole) = (ContentCutter(), Int64(64 << 10))
    let error = #expect(throws: ContentCutter.TooLarge.self) {
      while true {
        try cutter.append(ByteBuffer(bytes: [1])) { _, _ in }
        // The shortest hole at this place.
        for (start, shortest) in [(64 << 20, 256 << 10), (1 << 30, 1 << 20), (16 << 30, 4 << 20)] as [(Int64, Int64)]
        where cutter.length >= start { hole = shortest }
        try cutter.hole(hole)
      }
    }
    #expect(cutter.length >= 64 << 30 && error?.description.contains("65536") == true, "\(cutter.length)")
  }

  @Test func noDocumentIsLargerThanAHubTakes() throws {
    var cutter = ContentCutter()
    try cutter.hole(1 << 53)
    #expect(throws: ContentCutter.TooLarge.self) { try cutter.hole(1) }
    #expect(throws: ContentCutter.TooLarge.self) { try cutter.append(ByteBuffer(bytes: [1])) { _, _ in } }
    var other = ContentCutter()
    #expect(throws: ContentCutter.TooLarge.self) { try other.hole(.max) }
    #expect(throws: ContentCutter.TooLarge.self) { try other.hole(-1) }
  }

  /// What `chunk` throws ends the cutting.
  @Test func whoTakesChunksMayFail() throws {
    struct Full: Error {}
    var random = SeededRandom(seed: 1)
    var cutter = ContentCutter()
    #expect(throws: Full.self) {
      try cutter.append(ByteBuffer(bytes: Self.noise(300_000, &random))) { _, _ in throw Full() }
    }
  }
}
