import Foundation
import Glibc
import MountKit
import Testing

/// The manual pages that mount-scripts/manual makes of the definitions of the commands.
@Suite struct ManualTests {
  private static let hasMandoc = access("/usr/bin/mandoc", X_OK) == 0

  /// A command as the program describes it (swift-argument-parser, `--experimental-dump-help`).
  private struct Definition: Decodable {
    struct Argument: Decodable {
      struct Name: Decodable {
        let kind: String
        let name: String

        var spelled: String { (kind == "long" ? "--" : "-") + name }
      }

      let names: [Name]?
      let valueName: String
      let shouldDisplay: Bool

      /// What the page calls it: an option by all its names, another argument by that of its value.
      var terms: [String] { names?.map(\.spelled) ?? [valueName] }
    }

    let commandName: String
    let arguments: [Argument]?
    let subcommands: [Definition]?

    var terms: [String] { (arguments ?? []).filter(\.shouldDisplay).flatMap(\.terms) }
  }

  private struct Dump: Decodable { let command: Definition }

  private static func programs(beside sheaf: String) -> [String] { ["", "-sidecar", "-hub"].map { sheaf + $0 } }

  private func makePages(of sheaf: String, in folder: TemporaryFolder) throws -> String {
    let pages = folder.path + "/man1"
    try Command([Repository.path("mount-scripts/manual"), pages], environment: ["SHEAF_BIN": sheaf]).succeed()
    return pages
  }

  private func expectClean(_ pages: String) throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: pages).sorted()
    let lint = try Command(["mandoc", "-T", "lint", "-W", "warning"] + names, in: pages).run()
    #expect(lint.status == 0 && lint.text == "", "\(lint)")
  }

  /// The text of a page without bold and underlined letters, which are printed twice.
  private func rendered(_ page: String) throws -> String {
    let output = try Command(["mandoc", "-K", "utf-8", "-T", "utf8", "-O", "width=300", page]).succeed()
    return output.text.replacing(/.\u{8}/, with: "")
  }

  @Test(.enabled(if: hasMandoc, "mandoc is not installed"))
  func everyCommandAndOptionIsOnItsPage() throws {
    let sheaf = try SheafProgram.path()
    try withTemporaryFolder { folder in
      let pages = try makePages(of: sheaf, in: folder)
      try expectClean(pages)
      var expected: Set<String> = []
      for program in Self.programs(beside: sheaf) {
        let dump = try Command([program, "--experimental-dump-help"]).succeed()
        let definition = try JSONDecoder().decode(Dump.self, from: Data(dump.output)).command
        let name = definition.commandName
        let main = try rendered("\(pages)/\(name).1")
        let mainWords = Set(main.split { $0.isWhitespace || $0 == "," }.map(String.init))
        expected.insert("\(name).1")
        for term in definition.terms { #expect(mainWords.contains(term), "\(term) in \(name)(1)") }
        for command in definition.subcommands ?? [] {
          let page = "\(name)-\(command.commandName)"
          guard command.commandName != "help" else {
            #expect(main.contains("\(name) help"))
            continue
          }
          #expect(mainWords.contains("\(page)(1)"), "\(page) in \(name)(1)")
          expected.insert("\(page).1")
          let text = try rendered("\(pages)/\(page).1")
          // In the list of options: in the synopsis they stand in brackets.
          let words = Set(text.split { $0.isWhitespace || $0 == "," }.map(String.init))
          for term in command.terms { #expect(words.contains(term), "\(term) in \(page)(1)") }
          for below in command.subcommands ?? [] {
            let title = "\(name) \(command.commandName) \(below.commandName)"
            let parts = text.components(separatedBy: "\n   \(title)\n")
            try #require(parts.count == 2, "\(title) in \(page)(1)")
            let part = parts[1].components(separatedBy: "\n   \(name) ")[0].components(separatedBy: "\nEXIT STATUS")[0]
            let words = Set(part.split { $0.isWhitespace || $0 == "," }.map(String.init))
            for term in below.terms { #expect(words.contains(term), "\(term) of \(title) in \(page)(1)") }
          }
        }
      }
      #expect(Set(try FileManager.default.contentsOfDirectory(atPath: pages)) == expected)
      let share = try rendered("\(pages)/sheaf-share.1")
      for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"] {
        #expect(share.contains("\n\(section)\n"), "\(section)")
      }
      #expect(share.contains("sheaf share ~/Sheaf/Documents/plans --with bob@example.com --can edit"))
      let hub = try rendered("\(pages)/sheaf-hub.1")
      for term in ["ENVIRONMENT", "SHEAF_HUB", "FILES", "FOLDER/hub.sqlite"] { #expect(hub.contains(term), "\(term)") }
    }
  }

  /// Whoever builds one program alone gets the pages of that one.
  @Test(.enabled(if: hasMandoc, "mandoc is not installed"))
  func aProgramThatIsNotThereGetsNoPages() throws {
    try withTemporaryFolder { folder in
      let sheaf = folder.path + "/sheaf"
      let help =
        #""arguments": [{"kind": "flag", "names": [{"kind": "long", "name": "help"}], "preferredName": "#
        + #"{"kind": "long", "name": "help"}, "abstract": "Help.", "isOptional": true, "isRepeating": false}]"#
      let serve = #"{"commandName": "serve", "abstract": "Serve.", \#(help)}"#
      try #"{"command": {"commandName": "sheaf-hub", "abstract": "Hub.", \#(help), "subcommands": [\#(serve)]}}"#
        .write(toFile: sheaf + ".json", atomically: false, encoding: .utf8)
      try "#!/bin/sh\nexec cat '\(sheaf).json'\n".write(toFile: sheaf + "-hub", atomically: false, encoding: .utf8)
      try #require(chmod(sheaf + "-hub", 0o755) == 0)
      let pages = try makePages(of: sheaf, in: folder)
      try expectClean(pages)
      let names = try FileManager.default.contentsOfDirectory(atPath: pages)
      #expect(names.sorted() == ["sheaf-hub-serve.1", "sheaf-hub.1"])
    }
  }

  /// Whatever stands in a definition is text, and nothing that troff(1), man(1) or a terminal obeys.
  @Test(.enabled(if: hasMandoc, "mandoc is not installed"))
  func nothingInADefinitionIsARequest() throws {
    let texts = [
      ".so /etc/passwd", "'so /etc/passwd", "Bell \u{7} and \u{1B}[31mred.", #"A \fBfont\fP, a \*(string and \n(yr."#,
      "Quotes ' \" ` and ~ ^.", "Pl \u{9B}31m and …",
    ]
    let discussion =
      texts.joined(separator: "\n\n") + "\n\n  .so /etc/passwd\n  '\\\" none\n\nExamples:\n  .Sh MORE \u{1B}c\n"
    func argument(_ value: String, _ abstract: String) -> [String: Any] {
      [
        "kind": "positional", "valueName": value, "abstract": abstract, "isOptional": false, "isRepeating": false,
        "shouldDisplay": true,
      ]
    }
    let command: [String: Any] = [
      "commandName": "sheaf", "abstract": ".Sh SECTION of \u{1B}", "discussion": discussion, "shouldDisplay": true,
      "arguments": texts.enumerated().map { argument(["Ar", ".", "|", "a \"b\" c", "No", "'x"][$0], $1) },
    ]
    try withTemporaryFolder { folder in
      let sheaf = folder.path + "/sheaf"
      try JSONSerialization.data(withJSONObject: ["command": command]).write(to: URL(fileURLWithPath: sheaf + ".json"))
      for program in Self.programs(beside: sheaf) {
        try "#!/bin/sh\nexec cat '\(sheaf).json'\n".write(toFile: program, atomically: false, encoding: .utf8)
        try #require(chmod(program, 0o755) == 0)
      }
      let pages = try makePages(of: sheaf, in: folder)
      try expectClean(pages)
      let source = try String(contentsOfFile: "\(pages)/sheaf.1", encoding: .utf8)
      #expect(source.utf8.allSatisfy { $0 == 10 || 32..<127 ~= $0 })
      let known: Set = [
        ".Dd", ".Dt", ".Os", ".Sh", ".Nm", ".Nd", ".Ar", ".Bl", ".It", ".El", ".Bd", ".Ed", ".Pp", ".Xr", ".Fl",
      ]
      for line in source.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
        #expect(known.contains(String(line.prefix(3))) && !line.contains("passwd"), "\(line)")
      }
      let text = try rendered("\(pages)/sheaf.1")
      for shown in [
        ".so /etc/passwd", "'so /etc/passwd", #"Bell \x07 and \x1b[31mred."#,
        #"A \fBfont\fP, a \*(string and \n(yr."#, "Quotes ' \" ` and ~ ^.", #"Pl \x9b31m and …"#, ".Sh MORE \\x1bc",
        #"'\" none"#, #"a "b" c"#,
      ] {
        #expect(text.contains(shown), "\(shown) in \(text)")
      }
    }
  }
}
