import SheafModel
import Testing

@testable import SheafStore

/// The stored form of contents (docs/FORMAT.md, "Contents").
struct StoredContentTests {
  private func randomContent(_ random: inout SeededRandom) -> StoredContent {
    let count = Int.random(in: 0...80, using: &random)
    if Bool.random(using: &random) {
      return .extents(
        (0..<count).map { _ in
          let length = Int64.random(in: 1...(1 << 50), using: &random)
          return Bool.random(using: &random)
            ? .hole(length)
            : Extent(
              chunk: .random(in: 1...(1 << 40), using: &random), offset: .random(in: 0...300_000, using: &random),
              length: length)
        })
    }
    return .nodes(
      (0..<count).map { _ in
        let length = Int64.random(in: 1...(1 << 50), using: &random)
        return ExtentNode(
          chunk: .random(in: 1...(1 << 40), using: &random), length: length,
          data: .random(in: 0...length, using: &random))
      })
  }

  @Test func roundTrip() throws {
    var random = SeededRandom()
    for _ in 0..<500 {
      let content = randomContent(&random)
      #expect(try StoredContent(encoded: content.encoded) == content, random.note)
      if case .extents(let extents) = content {
        #expect(try StoredContent.decodeNode(StoredContent.encode(extents)) == extents, random.note)
      }
    }
  }

  @Test func examplesOfTheFormat() throws {
    #expect(StoredContent.empty.encoded == [0])
    #expect(
      StoredContent.extents([Extent(chunk: 300, length: 5), .hole(128)]).encoded == [0, 0xAC, 2, 0, 5, 0, 0, 0x80, 1])
    #expect(StoredContent.nodes([ExtentNode(chunk: 7, length: 200, data: 100)]).encoded == [1, 7, 0xC8, 1, 100])
  }

  @Test(
    arguments: [
      [], [2], [0, 1], [0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0x80], [1, 1, 1], [1, 0, 5, 0], [1, 3, 0, 0], [1, 3, 5, 6],
      [0, 0, 7, 9],
      // A number of 64 bits, and one of more than ten bytes.
      [0, 1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
      [0, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
      // Lengths, and an offset and a length, whose sum is no file's.
      [0, 1, 0] + largest + [2, 0, 1], [0, 1, 1] + largest, [1, 1] + largest + [0, 2, 1, 0],
      [0, 0, 0] + largest, [1, 1] + largest + [0],
    ] as [[UInt8]])
  func damagedBytesAreRefused(_ bytes: [UInt8]) {
    #expect { try StoredContent(encoded: bytes) } throws: { ($0 as? SheafError)?.kind == .corrupt }
  }

  private static let largest: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]

  @Test func randomDamageNeverCrashes() throws {
    var random = SeededRandom()
    for _ in 0..<3000 {
      var bytes = randomContent(&random).encoded
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: .min ... .max, using: &random)
      }
      bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
      do {
        let content = try StoredContent(encoded: bytes)
        #expect(content.length >= content.dataLength && content.dataLength >= 0, random.note)
      } catch {
        #expect(error.kind == .corrupt, random.note)
      }
      _ = try? StoredContent.decodeNode(bytes)
    }
  }

  @Test func chunksKeepToTheirLimits() {
    var random = SeededRandom()
    let bytes = (0..<2_000_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    bytes.withUnsafeBytes { whole in
      var rest = whole
      var lengths: [Int] = []
      while !rest.isEmpty {
        let length = Chunker.firstChunkLength(rest)
        lengths.append(length)
        rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      }
      #expect(lengths.reduce(0, +) == bytes.count)
      #expect(lengths.dropLast().allSatisfy { (Chunker.minimum...Chunker.maximum).contains($0) }, random.note)
      #expect((8...40).contains(lengths.count), random.note)
    }
  }
}
