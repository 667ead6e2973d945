import Foundation
import Testing

/// The hub's SQL runs on every engine that docs/SCALE.md names, since it uses nothing but the words that are listed
/// there.
@Suite struct StatementTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Statements of the hub's sources, with the file that has each.
  static func statements() throws -> [(file: String, text: String)] {
    let folder = root.appendingPathComponent("Sources/SheafHub")
    let literal = #/"""\n(?s:(.*?))"""|"((?:[^"\\\n]|\\.)*)"/#
    let statement = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|BEGIN|SET|PRAGMA|VACUUM|TRUNCATE|LOCK)\b/
    var found: [(String, String)] = []
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where name.hasSuffix(".swift") {
      let source = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
      for match in source.matches(of: literal) {
        let text = String(match.1 ?? match.2 ?? "")
        if text.firstMatch(of: statement) != nil { found.append((name, text)) }
      }
    }
    return found
  }

  @Test func everyWordIsListed() throws {
    let page = try String(contentsOf: Self.root.appendingPathComponent("docs/SCALE.md"), encoding: .utf8)
    let list = try #require(page.firstMatch(of: /## Statements\n(?s:.*?)```sql\n(?s:(.*?))```/)?.1)
    let allowed = Set(list.split { !$0.isLetter && $0 != "_" }.map(String.init))
    let statements = try Self.statements()
    #expect(statements.count > 80, "the statements were not found")
    for (file, text) in statements {
      let code = text.replacing(/'[^']*'/, with: "")
      for word in code.matches(of: /\b[A-Z][A-Z_]+\b/) where !allowed.contains(String(word.0)) {
        Issue.record("\(file) uses \(word.0): \(text)")
      }
    }
  }

  @Test func placeholdersAreNumberedAsTheyAppear() throws {
    for (file, text) in try Self.statements() {
      var highest = 0
      for match in text.matches(of: /\$(\d+)/) {
        let number = try #require(Int(match.1))
        #expect(number <= highest + 1, "\(file): \(text)")
        highest = max(highest, number)
      }
    }
  }

  /// A zone's rows lie together, wherever that is.
  @Test func everyKeyBeginsWithTheZone() throws {
    // What leads to a zone, and what is the hub's own.
    let others: Set = ["handles", "links", "secrets", "settings"]
    for (file, text) in try Self.statements() {
      if let table = text.firstMatch(of: /CREATE TABLE IF NOT EXISTS (\w+)/)?.1 {
        let hasKey = text.contains("PRIMARY KEY (zone") || text.contains("zone TEXT NOT NULL PRIMARY KEY")
        #expect(hasKey || others.contains(String(table)), "\(file): \(text)")
      } else if text.contains(" INDEX ") {
        #expect(text.contains("(zone, "), "\(file): \(text)")
      } else if text.contains("WHERE"), !others.contains(where: { text.contains(" \($0) ") }) {
        #expect(text.contains("zone = $"), "\(file): \(text)")
      }
    }
  }
}
