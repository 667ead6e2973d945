import Foundation
import Testing

/// What comments cite exists: documents, sections in them, and numbered rules.
@Suite struct CommentTests {
  /// The text of a file of the repository; nil where it is none.
  private func text(_ path: String) -> String? {
    try? String(contentsOf: ArchitectureTests.root.appendingPathComponent(path), encoding: .utf8)
  }

  /// The lines of each comment of a file as one line. In files that are not Swift every line counts.
  private func comments(_ path: String, _ lines: [Substring]) -> [String] {
    var found: [String] = [], isOpen = false
    for line in lines {
      let line = line.drop { $0 == " " }
      let isWhole = line.hasPrefix("//") || !path.hasSuffix(".swift")
      let start = isWhole ? line.startIndex : line.firstRange(of: "// ")?.lowerBound
      defer { isOpen = isWhole }
      guard let start else { continue }
      let words = line[start...].drop { "/# ".contains($0) }
      if isOpen { found[found.count - 1] += " " + words } else { found.append(String(words)) }
    }
    return found
  }

  @Test func documentsAndSectionsThatAreCitedExist() throws {
    var files = try ArchitectureTests.files("Sources") + ArchitectureTests.files("Tests")
    for folder in ["Tests", "mount-scripts", "examples"] {
      let names = try FileManager.default.subpathsOfDirectory(
        atPath: ArchitectureTests.root.appendingPathComponent(folder).path)
      for path in names.map({ "\(folder)/\($0)" }) where !path.hasSuffix(".swift") && !path.contains("/Corpus/") {
        if let text = text(path) { files.append((path, text.split(separator: "\n"))) }
      }
    }
    files.append(("Package.swift", try #require(text("Package.swift")).split(separator: "\n")))
    let form = #/\b((?:docs/)?[A-Z]{3,}\.md)\b(?:, "([^"]+)")?/#
    var cited = 0
    for (path, lines) in files {
      for comment in comments(path, lines) where comment.contains(".md") {
        for match in comment.matches(of: form) {
          cited += 1
          guard let page = text(String(match.1)) else {
            Issue.record("\(path) cites \(match.1), which does not exist")
            continue
          }
          guard let section = match.2 else { continue }
          let isThere = page.split(separator: "\n").contains { $0.hasPrefix("#") && $0.hasSuffix("# \(section)") }
          #expect(isThere, "\(path) cites \"\(section)\" of \(match.1), which does not exist")
        }
      }
    }
    #expect(cited > 20, "the citations were not found")
  }

  /// A rule is cited as one of a type, whose head has the list, as one of docs/ARCHITECTURE.md, or as one of the same
  /// file.
  @Test func rulesThatAreCitedExist() throws {
    let files = try ArchitectureTests.files("Sources") + ArchitectureTests.files("Tests")
    let item = #/^ *///? (?:- )?(\d+)\. /#
    var rules = ["docs/ARCHITECTURE.md": Set<Int>()]
    for match in try #require(text("docs/ARCHITECTURE.md")).matches(of: /\n\| (\d+) \|/) {
      rules["docs/ARCHITECTURE.md"]?.insert(try #require(Int(match.1)))
    }
    for (path, lines) in files {
      var head: Set<Int> = []
      for line in lines {
        if line.hasPrefix("//") || line.hasPrefix("  //") {
          guard let number = line.firstMatch(of: item).flatMap({ Int($0.1) }) else { continue }
          head.insert(number)
          rules[path, default: []].insert(number)
        } else if !head.isEmpty {
          let type = line.firstMatch(of: /\b(?:actor|class|enum|extension|protocol|struct) (\w+)/)
          if let type { rules[String(type.1), default: []].formUnion(head) }
          head = []
        }
      }
    }
    let form = #/\b[Rr]ules? (\d+(?:(?:, | and | to )\d+)*)(?: of (?:``(\w+)``|(docs/[A-Z]+\.md)|(identity)\b))?/#
    var cited = 0
    for (path, lines) in files {
      for comment in comments(path, lines) where comment.contains("ule") {
        for match in comment.matches(of: form) {
          cited += 1
          let owner = match.2 ?? match.3 ?? match.4 ?? Substring(path)
          let known = rules[owner == "identity" ? "Identity" : String(owner)] ?? []
          for number in match.1.matches(of: /\d+/).compactMap({ Int($0.0) }) where !known.contains(number) {
            Issue.record("\(path) cites rule \(number) of \(owner), which does not exist")
          }
        }
      }
    }
    #expect(cited > 50, "the citations were not found")
  }
}
