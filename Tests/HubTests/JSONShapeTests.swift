import Foundation
import SheafWire
import Testing

/// What is looked at in JSON from strangers before it is decoded.
@Suite struct JSONShapeTests {
  @Test(
    arguments: [
      ("", 0, 0, 0), ("7", 0, 0, 1), ("[]", 1, 1, 0), ("[{},{}]", 2, 4, 0), (#"{"a":[1,23],"b":-4.5e6}"#, 2, 4, 6),
      ("[1 2\n3\t4]", 1, 1, 1), (#"["[{,\"123",null]"#, 1, 2, 4), (#"["\\",12]"#, 1, 2, 2), ("]]]", 0, 0, 0),
      (#""123""#, 0, 0, 0),
    ] as [(String, Int, Int, Int)])
  func theShapeIsMeasured(_ text: String, _ depth: Int, _ values: Int, _ number: Int) {
    let shape = JSONShape(of: Array(text.utf8))
    #expect(shape.depth == depth && shape.values == values && shape.number == number, "\(text) \(shape)")
  }

  /// As many extents, and holes between them, as one request has room for, are not too many values.
  @Test func whatARequestHasRoomForIsTaken() throws {
    let hash = try #require(ChunkHash(String(repeating: "a", count: 64)))
    let count = 1_000
    let extents = (0..<count).map { Extent(hash: $0.isMultiple(of: 2) ? hash : nil, length: 1) }
    let bytes = try Array(JSONEncoder().encode(extents))
    let shape = JSONShape(of: bytes)
    #expect(shape.values * (WireLimits.bytesPerRequest / bytes.count + 1) <= JSONShape.mostSentValues)
  }
}
