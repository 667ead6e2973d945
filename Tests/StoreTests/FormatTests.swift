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

  /// The statements of a text, with all white space as one space.
  private func statements(_ sql: String) -> [String] {
    sql.split(separator: ";").map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
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
}
