import Foundation
import SheafWire
import Testing

/// Ids and hashes as text, and in the order of their bytes.
@Suite struct WireIDTests {
  @Test func idsAreUUIDsInLowerCase() throws {
    for _ in 0..<1_000 {
      let uuid = UUID()
      let id = WireID(uuid)
      #expect(id.description == uuid.uuidString.lowercased())
      #expect(WireID(uuid.uuidString) == id && WireID(id.description) == id && WireID(bytes: id.bytes) == id)
      #expect(id.bytes == withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) })
    }
    #expect(WireID.root.description == "00000000-0000-0000-0000-000000000000")
  }

  @Test func idsAreInTheOrderOfTheirBytes() {
    let ids = (0..<200).map { number in
      // Equal at first, so that later bytes decide.
      WireID(bytes: (0..<16).map { UInt8.random(in: 0...255) & ($0 < number % 17 ? 0 : 255) })
    }.compactMap { $0 }
    for one in ids {
      for other in ids { #expect((one < other) == one.bytes.lexicographicallyPrecedes(other.bytes)) }
    }
  }

  @Test(arguments: [
    "",
    "0",
    "00000000-0000-0000-0000-00000000000",
    "00000000-0000-0000-0000-0000000000000",
    "0000000000000-0000-0000-000000000000",
    "00000000-0000-0000-0000_000000000000",
    "00000000-0000-0000-0000-00000000000g",
    "00000000-0000-0000-0000-0000000000é",
    "{0000000-0000-0000-0000-00000000000}",
    "00000000-0000-0000-0000-00000000000\u{0}",
    "-0000000-00000-0000-0000-00000000000",
    "@0000000-0000-0000-0000-000000000000",
    "G0000000-0000-0000-0000-000000000000",
    "`0000000-0000-0000-0000-000000000000",
    ":0000000-0000-0000-0000-000000000000",
  ])
  func otherTextsAreNoIDs(_ text: String) { #expect(WireID(text) == nil) }

  @Test func idsHaveSixteenBytes() {
    for count in [0, 15, 17, 32] { #expect(WireID(bytes: .init(repeating: 1, count: count)) == nil) }
  }

  @Test func hashesAreLowerCaseDigits() throws {
    let bytes = (0..<32).map { UInt8($0 * 8 + 7) }
    let hash = try #require(ChunkHash(bytes: bytes))
    #expect(hash.description == bytes.map { String(format: "%02x", $0) }.joined())
    #expect(ChunkHash(hash.description) == hash)
    #expect(Hexadecimal.bytes(of: "00ff7a") == [0, 255, 122] && Hexadecimal.text(of: [0, 255, 122]) == "00ff7a")
    for text in ["", "0", "0g", "FF", "0 ", "é", "00\u{0}0"] { #expect(Hexadecimal.bytes(of: text) == nil) }
    for text in [hash.description.uppercased(), String(hash.description.dropLast()), hash.description + "0", ""] {
      #expect(ChunkHash(text) == nil)
    }
  }
}
