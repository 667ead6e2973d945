import Foundation
import Testing

/// Which folders of `SheafLibrary` call functions of which others: those of `Library`, which span rooms.
/// docs/ARCHITECTURE.md has the table, and the sources agree with it.
@Suite struct FolderTests {
  /// A parameter of a function, as far as a call shows it.
  private struct Parameter {
    let label: String
    let mayBeAbsent: Bool
    let isFunction: Bool
  }

  private struct Function {
    let folder: String
    let file: String
    let isPrivate: Bool
    let parameters: [Parameter]

    /// Whether a call with these labels, and perhaps a closure after them, can mean this function.
    func fits(_ labels: [String], trailingClosure: Bool) -> Bool {
      var rest = parameters[...]
      for label in labels {
        while let first = rest.first, first.label != label {
          guard first.mayBeAbsent else { return false }
          rest.removeFirst()
        }
        guard rest.popFirst() != nil else { return false }
      }
      if trailingClosure {
        guard let closure = rest.lastIndex(where: \.isFunction) else { return false }
        rest.remove(at: closure)
      }
      return rest.allSatisfy(\.mayBeAbsent)
    }
  }

  /// The parts of `Library` in one file, without comments and texts.
  private struct Part {
    let folder: String
    let file: String
    let code: String
  }

  private static func parts() throws -> [Part] {
    try RoomTests.library().compactMap { file in
      let components = file.path.split(separator: "/")
      guard components.count > 3 else { return nil }
      var code = ""
      var isLibrary = false
      for line in file.code {
        if line.hasPrefix("extension Library ") || line.hasPrefix("package extension Library ") { isLibrary = true }
        if isLibrary { code += line.replacing(/"(\\.|[^"\\])*"/, with: "\"\"") + "\n" }
        if line == "}" { isLibrary = false }
      }
      return Part(folder: String(components[2]), file: file.path, code: code)
    }
  }

  /// What stands between a parenthesis and its end, split at the commas that are in no other brackets; and what
  /// follows.
  private static func list(_ code: Substring) -> (items: [Substring], rest: Substring) {
    var (items, depth, start) = ([Substring](), 0, code.startIndex)
    for index in code.indices {
      switch code[index] {
      case "(", "[", "{":
        depth += 1
        if depth == 1 { start = code.index(after: index) }
      case ")", "]", "}":
        depth -= 1
        if depth == 0 {
          items.append(code[start..<index])
          return (items.filter { !$0.allSatisfy(\.isWhitespace) }, code[code.index(after: index)...])
        }
      case "," where depth == 1:
        items.append(code[start..<index])
        start = code.index(after: index)
      default: break
      }
    }
    return (items, "")
  }

  private static func functions(_ parts: [Part]) -> [Substring: [Function]] {
    var functions: [Substring: [Function]] = [:]
    for part in parts {
      for found in part.code.matches(of: /(?m)^  ((?:[@\w]+ )*)func (\w+)(?:<[^(]*>)?(?=\()/) {
        let parameters = list(part.code[found.range.upperBound...]).items.compactMap { item -> Parameter? in
          guard let label = item.firstMatch(of: /^\s*(?:@\w+ )*(\w+)(?: \w+)?\s*:/)?.1 else { return nil }
          return Parameter(
            label: label == "_" ? "" : String(label), mayBeAbsent: item.contains(" = "), isFunction: item.contains("->")
          )
        }
        functions[found.2, default: []].append(
          Function(
            folder: part.folder, file: part.file, isPrivate: found.1.contains("private"), parameters: parameters))
      }
    }
    return functions
  }

  /// For each folder those whose functions it calls. A call that functions of several folders fit tells nothing.
  private static func calls() throws -> [String: Set<String>] {
    let parts = try parts()
    let functions = functions(parts)
    var calls: [String: Set<String>] = [:]
    for part in parts {
      for found in part.code.matches(of: /(?:^|[^\w.]|\b(?:self|library)\.)(\w+)(?=\(| \{)/) {
        guard let known = functions[found.1], !part.code[..<found.1.startIndex].hasSuffix("func ") else { continue }
        var (labels, rest) = ([String](), part.code[found.range.upperBound...])
        if rest.hasPrefix("(") {
          let (items, after) = list(rest)
          labels = items.map { $0.firstMatch(of: /^\s*(\w+)\s*:/).map { String($0.1) } ?? "" }
          rest = after
        }
        let isFollowed = rest.hasPrefix(" {")
        let meant = known.filter {
          (!$0.isPrivate || $0.file == part.file)
            && ($0.fits(labels, trailingClosure: isFollowed) || $0.fits(labels, trailingClosure: false))
        }
        let folders = Set(meant.map(\.folder))
        if folders.count == 1, !folders.contains(part.folder) { calls[part.folder, default: []].formUnion(folders) }
      }
    }
    return calls
  }

  @Test func foldersCallWhatThePageSays() throws {
    let page = ArchitectureTests.root.appendingPathComponent("docs/ARCHITECTURE.md")
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
    let head = try #require(lines.firstIndex(of: "| folder | calls functions of |"))
    var table: [String: Set<String>] = [:]
    for line in lines[(head + 2)...].prefix(while: { $0.hasPrefix("|") }) {
      let names = line.matches(of: /`(\w+)`/).map { String($0.1) }
      table[try #require(names.first)] = Set(names.dropFirst())
    }
    let calls = try Self.calls()
    for folder in Set(table.keys).union(calls.keys).sorted() {
      let (written, found) = (table[folder] ?? [], calls[folder] ?? [])
      #expect(found.subtracting(written) == [], "\(folder) calls functions of folders that the page does not name")
      #expect(written.subtracting(found) == [], "\(folder) calls no function of folders that the page names")
    }
  }
}
