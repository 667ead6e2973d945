import Foundation
import GRDB
import SheafModel
import Testing

@testable import SheafStore

/// Deltas, frames and packs: what goes in comes out, and what is damaged is refused.
struct PackTests {
  private func applied(_ delta: [UInt8], to base: [UInt8]) throws -> [UInt8] {
    var result: [UInt8] = []
    try Delta.apply(delta[...], to: base, into: &result)
    return result
  }

  @Test func theDeltaOfThePage() throws {
    let delta: [UInt8] = [0x02, 0x03, 0x00, 0x04, 0x00, 0x02, 0x05, 0x61, 0x62, 0x63]
    #expect(try applied(delta, to: Array("0123456789".utf8)) == Array("abc012356789".utf8))
  }

  @Test func whatWasEditedComesBack() throws {
    var random = SeededRandom()
    for _ in 0..<300 {
      let base = random.bytes(Int.random(in: 0...5000, using: &random))
      var target = base
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        let start = Int.random(in: 0...target.count, using: &random)
        let end = Int.random(in: start...min(target.count, start + 300), using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: target.replaceSubrange(start..<end, with: random.bytes(Int.random(in: 0...200, using: &random)))
        case 1: target.insert(contentsOf: target[start..<end], at: Int.random(in: 0...target.count, using: &random))
        case 2: target = Array(target[start...] + target[..<start])
        default: for index in start..<end { target[index] = 7 }
        }
      }
      let delta = try #require(Delta.encode(target, from: base), random.note)
      #expect(try applied(delta, to: base) == target, random.note)
    }
  }

  @Test func aChangedWordIsAFewBytes() throws {
    var random = SeededRandom()
    let words = (0..<200).map { _ in String(Int.random(in: 0...99_999_999, using: &random), radix: 36) }
    let text = (0..<20_000).map { _ in words.randomElement(using: &random)! }
    var changed = text
    for _ in 0..<5 { changed[Int.random(in: 0..<text.count, using: &random)] = "sheaf" }
    let (base, target) = (Array(text.joined(separator: " ").utf8), Array(changed.joined(separator: " ").utf8))
    let delta = try #require(Delta.encode(target, from: base))
    #expect(delta.count < 5 * 24, random.note)
    #expect(try applied(delta, to: base) == target, random.note)
  }

  @Test func whatIsAllNewHasNoDelta() {
    var random = SeededRandom()
    #expect(Delta.encode(random.bytes(10_000), from: random.bytes(10_000), literalLimit: 5000) == nil)
  }

  @Test func aDamagedDeltaIsRefused() throws {
    var random = SeededRandom()
    let base = random.bytes(2000)
    let good = try #require(Delta.encode(random.bytes(40) + base[500...] + random.bytes(3), from: base))
    for _ in 0..<2000 {
      var delta = good
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        delta[Int.random(in: 0..<min(12, delta.count), using: &random)] = .random(in: 0...255, using: &random)
      }
      if Bool.random(using: &random) { delta.removeLast(Int.random(in: 0...delta.count, using: &random)) }
      do {
        #expect(try applied(delta, to: base).count <= Int(Pack.memberLimit), random.note)
      } catch let error as SheafError {
        #expect(error.kind == .corrupt, random.note)
      }
    }
  }

  @Test func framesAreWhatWasCompressed() throws {
    var random = SeededRandom()
    for bytes in [[], random.bytes(1), [UInt8](repeating: 5, count: 100_000), random.bytes(70_000)] {
      let frame = try Zstandard.compress(bytes, level: Zstandard.chunkLevel)
      #expect(Zstandard.decompress(frame, limit: bytes.count) == bytes)
      if !bytes.isEmpty { #expect(Zstandard.decompress(frame, limit: bytes.count - 1) == nil) }
      #expect(Zstandard.decompress(frame.dropLast(), limit: bytes.count) == nil)
    }
    #expect(Zstandard.decompress(random.bytes(50), limit: 1 << 20) == nil)
    #expect(Zstandard.decompress([], limit: 1 << 20) == nil)
  }

  @Test func aLibraryOfTheSecondFormatIsTakenOver() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let pool = try DatabasePool(path: path)
      try Migrator.migrate(pool, path: path, to: 2)
      let bytes: [UInt8] = Array("contents".utf8)
      let hash = bytes.withUnsafeBytes { ChunkHash(of: $0) }
      try pool.write {
        try $0.execute(
          sql: "INSERT INTO chunks (id, hash, size, encoding, data) VALUES (1, ?, 8, 0, ?)",
          arguments: [Data(hash.bytes), Data(bytes)])
      }
      try pool.close()
      let store = try Store(path: path, lockPath: path + "-lock")
      #expect(try store.read { try $0.chunkBytes(1) } == bytes)
      #expect(try store.read { try $0.check { _ in } }.problems == [])
      #expect(try store.read { try $0.first("PRAGMA user_version") { try $0[0] as Int } } == Int(Schema.version))
      try store.close()
    }
  }

  @Test func membersAreMadeFromTheBase() throws {
    var random = SeededRandom()
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let texts = try fill(store, &random)
      for (index, text) in texts.enumerated() {
        #expect(try store.read { try $0.chunkBytes(Int64(index + 1)) } == text)
      }
      #expect(try store.read { try $0.check { _ in } }.problems == [])
      // A member in the midst can go.
      try store.write(.sweep) { try $0.deleteChunk(3) }
      #expect(try store.read { try $0.chunkBytes(5) } == texts[4])
      #expect(try store.read { try $0.check { _ in } }.problems == [])
      try store.close()
    }
  }

  @Test(arguments: [
    ("UPDATE chunks SET data = zeroblob(length(data)) WHERE id = 1", [1, 2, 3, 4, 5]),
    ("DELETE FROM chunks WHERE id = 1", [2, 3, 4, 5]),
    ("UPDATE packs SET data = x'00'", [2, 3, 4, 5]),
    ("UPDATE packs SET base = x'0009'", [2, 3, 4, 5]),
    ("UPDATE packs SET chunks = x'0203'", [2, 3, 4, 5]),
    ("DELETE FROM packs", [2, 3, 4, 5]),
    ("UPDATE chunks SET data = x'0101' WHERE id = 4", [4]),
    ("UPDATE chunks SET data = x'' WHERE id = 4", [4]),
    ("UPDATE chunks SET size = size + 1 WHERE id = 5", [5]),
    ("UPDATE packs SET base = x'0002000A'", [2, 3, 4, 5]),
  ])
  func damageIsReportedForAllThatNeedIt(_ sql: String, _ chunks: [Int]) throws {
    var random = SeededRandom()
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      _ = try fill(store, &random)
      try store.close()
      let queue = try DatabaseQueue(path: path)
      try queue.write { try $0.execute(sql: sql) }
      try queue.close()
      let damaged = try Store(path: path, lockPath: path + "-lock")
      let problems = try damaged.read { try $0.check { _ in } }.problems
      for chunk in 1...5 {
        let isReported = problems.contains { $0.hasPrefix("chunk \(chunk):") }
        #expect(isReported == chunks.contains(chunk), "chunk \(chunk): \(problems)")
      }
      // Reading one says so, too, where it finds out by itself, and never crashes.
      for chunk in 1...5 { _ = try? damaged.read { try $0.chunkBytes(Int64(chunk)) } }
      try damaged.close()
    }
  }

  /// A base, chunk 1, and four members.
  private func fill(_ store: Store, _ random: inout SeededRandom) throws -> [[UInt8]] {
    var texts = [random.bytes(3000)]
    for number in 1...4 {
      var text = texts[number - 1]
      text.replaceSubrange((number * 100)..<(number * 100 + 30), with: random.bytes(20))
      texts.append(text)
    }
    let hashes = texts.map { text in text.withUnsafeBytes { ChunkHash(of: $0) } }
    try store.write(.pack) { transaction in
      try texts[0].withUnsafeBytes { try transaction.insertChunk(1, hash: hashes[0], bytes: $0) }
      for number in 1...4 {
        try transaction.insertPackedChunk(Int64(number + 1), hash: hashes[number], size: Int64(texts[number].count))
      }
      let deltas = (1...4).map { Delta.encode(texts[$0], from: texts[$0 - 1])![...] }
      let pack = Pack(
        id: try transaction.nextPack, base: .extents([Extent(chunk: 1, length: 3000)]), chunks: [2, 3, 4, 5],
        deltas: deltas)
      try transaction.set(pack, data: pack.encodedDeltas)
    }
    return texts
  }
}

extension SeededRandom {
  /// Bytes without a pattern.
  fileprivate mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 32) }
  }
}
