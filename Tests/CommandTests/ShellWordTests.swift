import ConformanceKit
import Foundation
import MountKit
import SheafModel
import Testing

/// Commands that are printed can be pasted, whatever the names in them are.
struct ShellWordTests {
  private static let names = [
    "", "notes.md", "My Letters", "it's", "a; touch pwned", "$(id)", "`id`", "a\nb", "\u{1B}[31m", "\u{202E}gpj.exe",
    "~", "*", "\\", "\\'", "-x", "ä", "a\u{0}".replacing("\u{0}", with: ""), "#", "!", "{a,b}", "a\t'\\b",
  ]

  private func said(_ word: String) throws -> String {
    try Command(["bash", "-c", "printf '%s|' \(word)"], limit: .seconds(20)).succeed().text
  }

  @Test func aShellReadsOneWord() throws {
    for name in Self.names { #expect(try said(name.shellWord) == "\(name)|") }
    let seed = UInt64.random(in: 0...UInt64(Int64.max))
    var random = SeededRandom(seed: seed)
    for _ in 0..<60 {
      let scalars = (0..<Int.random(in: 0...12, using: &random)).map { _ in
        Unicode.Scalar(UInt8.random(in: 1...127, using: &random))
      }
      let name = String(String.UnicodeScalarView(scalars))
      #expect(try said(name.shellWord) == "\(name)|", "seed \(seed)")
    }
  }

  @Test func bytesThatAreNoTextAreOneWord() throws {
    let names: [[UInt8]] = [
      [0x62, 0xE9, 0x64], [0xFF], Array("it's \\ ".utf8) + [0xC3], Array("a\n$(id)ä".utf8) + [0x80, 0x7F],
    ]
    for name in names {
      let word = name.shellWord
      let said = try Command(["bash", "-c", "printf '%s|' \(word)"], limit: .seconds(20)).succeed().output
      #expect(said == name + Array("|".utf8), "\(word)")
      #expect(word.utf8.allSatisfy { (0x20...0x7E).contains($0) })
    }
    #expect(Array("My Letters".utf8).shellWord == "'My Letters'")
  }

  @Test func aPlainNameStaysAsItIs() {
    #expect("Documents/plans/a.md".shellWord == "Documents/plans/a.md" && "My Letters".shellWord == "'My Letters'")
    // Nothing that moves a terminal's cursor, or turns the order of what is read, is printed as it is.
    let odd = "\u{202E}a\u{7}".shellWord.unicodeScalars
    #expect(odd.allSatisfy { $0.isASCII && $0.value >= 0x20 })
  }
}
