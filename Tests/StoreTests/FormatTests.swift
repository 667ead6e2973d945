import Foundation
import GRDB
import Testing

@testable import SheafStore

/// docs/FORMAT.md says what the program does.
struct FormatTests {
  private var page: String {
    get throws {
      let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
      return try String(contentsOf: root.appendingPathComponent("docs/FORMAT.md"), encoding: .utf8)
    }
  }

  /// The statements of a text, with all white space as one space, and none before what ends a column: SQLite writes added
  /// columns its own way.
  private func statements(_ sql: String) -> [String] {
    sql.split(separator: ";").map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
      .map { $0.replacing(" ,", with: ",").replacing(" )", with: ")") }
      .filter { !$0.isEmpty }.sorted()
  }

  @Test func theSchemaIsThatOfThePage() throws {
    let blocks = try page.components(separatedBy: "```sql\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      let schema = try store.read {
        try $0.all("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL") { try $0[0] as String }
      }
      #expect(statements(blocks.joined()) == statements(schema.joined(separator: ";")))
      try store.close()
    }
  }

  @Test(arguments: CheckRules.names)
  func theRulesAreThoseOfThePage(_ rule: String) throws { #expect(try page.contains("\n- \(rule)\n")) }

  @Test func theMarkIsThatOfThePage() throws {
    #expect(try page.contains("0x\(String(Schema.applicationID, radix: 16, uppercase: true))"))
    #expect(try page.contains("the format, \(Schema.version) today"))
  }

  /// The place of a name as the page computes it.
  @Test func namesLieWhereThePageSays() {
    var random = SeededRandom()
    for _ in 0..<200 {
      let key = Int64.random(in: .min ... .max, using: &random)
      let name = (0..<Int.random(in: 1...255, using: &random)).map { _ in UInt8.random(in: 1...255, using: &random) }
      let bits = UInt64(bitPattern: key)
      var hash = bits ^ 0xCBF2_9CE4_8422_2325
      for byte in name { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      hash = ((hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD) ^ bits
      hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
      #expect(NameHash(key: key)(name) == max(3, Int64((hash ^ (hash >> 33)) >> 1)), random.note)
    }
  }

  /// The checksum by the steps of the page, number by number.
  private func checksum(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
    let (p, f): (UInt64, UInt64) = (0x9E37_79B9_7F4A_7C15, 0x100_0000_01B3)
    var lanes = [seed, seed ^ 1, seed ^ 2, seed ^ 3]
    let blocks = bytes.count / 32
    for word in 0..<(4 * blocks) {
      var w: UInt64 = 0
      for place in 0..<8 { w |= UInt64(bytes[8 * word + place]) << (8 * place) }
      let x = (lanes[word % 4] ^ w) &* p
      lanes[word % 4] = x ^ (x >> 29)
    }
    var h = (UInt64(bytes.count) ^ seed) &* p
    for lane in lanes { h = ((h ^ lane) &* p) ^ (h >> 32) }
    for byte in bytes[(32 * blocks)...] { h = (h ^ UInt64(byte)) &* f }
    return h ^ (h >> 31)
  }

  @Test func theChecksumIsThatOfThePage() throws {
    func own(_ bytes: [UInt8], seed: UInt64) -> UInt64 {
      bytes.withUnsafeBytes { ChangeRecorder.checksum($0, seed: seed) }
    }
    let text = try page
    let examples: [([UInt8], UInt64)] = [
      ([], 0), (Array("abc".utf8), 0), ((0..<100).map { UInt8(truncatingIfNeeded: 1 + 7 * $0) }, 7),
    ]
    for (bytes, seed) in examples {
      let found = own(bytes, seed: seed)
      #expect(text.contains("0x\(String(found, radix: 16, uppercase: true))"), "\(bytes.count) bytes")
      #expect(found == checksum(bytes, seed: seed))
    }
    var random = SeededRandom()
    for count in Array(0...100) + [4096, 100_003] {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      let seed = UInt64.random(in: 0 ... .max, using: &random)
      #expect(own(bytes, seed: seed) == checksum(bytes, seed: seed), random.note)
      // Of the bytes in the working file.
      let written = bytes.withUnsafeBytes { WriteLog.checksum($0) }
      #expect(UInt64(bitPattern: written) == checksum(bytes, seed: 0) >> 1, random.note)
    }
  }

  /// Each entry of the record has the checksum of the page, with the seed of the page.
  @Test func theRecordHasTheChecksumsOfThePage() throws {
    try withFolder { folder in
      let path = folder + "/library.sqlite"
      let store = try Store(path: path, lockPath: path + "-lock")
      try store.sync()
      for number in 1...20 { try store.write(.accounts) { try $0.setSetting("test", "\(number)") } }
      let record = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "-changes")))
      func number(at place: Int) -> UInt64 { record[place..<(place + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
      var (place, entries, last) = (0, 0, Int64.min)
      while place + 24 <= record.count {
        let (length, change) = (number(at: place), Int64(bitPattern: number(at: place + 8)))
        guard length >= 24, length <= UInt64(record.count - place), change > last else { break }
        let seed = checksum(Array(record[(place + 8)..<(place + 16)]), seed: 0)
        let rest = Array(record[(place + 24)..<(place + Int(length))])
        // An entry of an earlier use of the file, half written over, ends the record.
        guard number(at: place + 16) == checksum(rest, seed: seed) else { break }
        (place, entries, last) = (place + Int(length), entries + 1, change)
      }
      #expect(entries >= 1)
      try store.close()
    }
  }

  /// FIPS 180-4 has no example of its own; these are those of its supplement (SHA-256 of one and of two blocks).
  @Test func aChunksHashIsSHA256() {
    for (text, hash) in [
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
    ] {
      let found = Array(text.utf8).withUnsafeBytes { ChunkHash(of: $0).bytes }
      let digits = found.map { String(UInt16($0) | 0x100, radix: 16).dropFirst() }.joined()
      #expect(digits == hash)
    }
  }
}
