import ConformanceKit
import Foundation
import Testing

@testable import SheafHub

/// Merges of texts as a function of three texts.
@Suite struct TextMergeTests {
  static let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? 3

  /// The outcome, which must be the same whoever comes first.
  static func merged(_ base: String, _ mine: String, _ theirs: String) -> String? {
    let texts = [base, mine, theirs].map { Array($0.utf8) }
    let found = TextMerge.merged(base: texts[0], texts[1], texts[2])
    #expect(found == TextMerge.merged(base: texts[0], texts[2], texts[1]), "the order makes a difference")
    return found.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Each letter a line.
  static func lines(_ text: String) -> String { text.map { "\($0)\n" }.joined() }

  @Test(
    arguments: [
      // One side alone, both alike, and both.
      ("abc", "abc", "abc", "abc"), ("abc", "axc", "abc", "axc"), ("abc", "abc", "ab", "ab"),
      ("abc", "axc", "axc", "axc"),
      ("abcde", "xbcde", "abcdy", "xbcdy"), ("abcde", "bcde", "abcdey", "bcdey"),
      ("abcde", "aXbcde", "abcYde", "aXbcYde"),
      ("abcde", "acde", "abce", "ace"), ("abcde", "aXcde", "aXcdY", "aXcdY"), ("", "ab", "ab", "ab"),
      ("abcdef", "defabc", "abcdefg", nil),
      // A part that both changed in different ways, or next to each other.
      ("abc", "axc", "ayc", nil), ("abc", "axc", "abyc", nil), ("abc", "axbc", "aybc", nil), ("", "a", "b", nil),
      ("abc", "", "abcd", nil), ("abcd", "axcd", "abyd", nil), ("abc", "ac", "axc", nil), ("abc", "abcx", "abcy", nil),
      // Lines that are there often.
      ("aaaa", "aaa", "aaaa", "aaa"), ("aabaa", "aaba", "xaabaa", "xaaba"), ("aaaa", "aaaaa", "aaaaa", "aaaaa"),
      // What both added, or deleted, among lines like it, while each changed something else near it.
      ("yyaazz", "xyyaaazz", "yyaaazw", "xyyaaazw"), ("yyaaazz", "xyyaazz", "yyaazw", "xyyaazw"),
    ] as [(String, String, String, String?)])
  func linesOfBothSides(_ base: String, _ mine: String, _ theirs: String, _ expected: String?) {
    #expect(Self.merged(Self.lines(base), Self.lines(mine), Self.lines(theirs)) == expected.map(Self.lines))
  }

  @Test(
    arguments: [
      // The last line without an end, and one that gets it.
      ("a\nb\nc", "x\nb\nc", "a\nb\nc\nd", "x\nb\nc\nd"), ("a\nb\nc", "x\nb\nc", "a\nb\nd", "x\nb\nd"),
      ("a\nb\nc", "a\nb\nc\n", "x\nb\nc", "x\nb\nc\n"), ("a\nb\nc\n", "a\nb\nc", "x\nb\nc\n", "x\nb\nc"),
      ("a\nb\nc", "a\nb\nc\nd", "x\nb\nc", "x\nb\nc\nd"),
      // Windows' line endings stay, come and go for all lines.
      ("a\r\nb\r\nc\r\n", "x\r\nb\r\nc\r\n", "a\r\nb\r\ny\r\n", "x\r\nb\r\ny\r\n"),
      ("a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\nb\ny\n", "a\r\nb\r\ny\r\n"),
      ("a\r\nb\r\nc\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\nd\r\n", "a\nb\nc\nd\n"),
      ("a\r\nb\r\nc\r\n", "a", "x\r\na\r\nb\r\nc\r\n", "x\r\na"),
      // Where they are mixed they are a part of the line.
      ("a\r\nb\nc\n", "a\r\nb\nX\n", "x\r\nb\nc\n", "x\r\nb\nX\n"), ("a\r\nb\nc\n", "a\nb\nc\n", "x\r\nb\nc\n", nil),
      ("a\r\nb\nc\n", "a\nb\nc\n", "a\r\nb\nX\n", "a\nb\nX\n"),
      // Nothing that ends a line.
      ("", "a", "a\n", "a\n"), ("a", "b", "a", "b"), ("a", "a\r\n", "a\n", nil),
    ] as [(String, String, String, String?)])
  func endsOfLines(_ base: String, _ mine: String, _ theirs: String, _ expected: String?) {
    #expect(Self.merged(base, mine, theirs) == expected)
  }

  /// Changes in parts of their own are all there, whatever the lines are.
  @Test func changesApartFromEachOtherAreMerged() {
    var random = SeededRandom(seed: Self.seed)
    for round in 0..<200 {
      var base: [String] = [], mine: [String] = [], theirs: [String] = [], expected: [String] = []
      for part in 0..<Int.random(in: 1...12, using: &random) {
        // What stays between them is unlike everything else, and longer than what could be said to have moved past it.
        let fixed = (0..<6).map { "\(part) \($0)" }
        let old = Self.some(part, &random), new = Self.some(part, &random)
        let side = Int.random(in: 0..<4, using: &random)
        base += old
        mine += side == 0 || side == 2 ? new : old
        theirs += side == 1 || side == 2 ? new : old
        expected += side == 3 ? old : new
        base += fixed
        mine += fixed
        theirs += fixed
        expected += fixed
      }
      let found = Self.merged(Self.text(base), Self.text(mine), Self.text(theirs))
      #expect(found == Self.text(expected), "seed \(Self.seed), round \(round): \(base) \(mine) \(theirs)")
    }
  }

  private static func some(_ part: Int, _ random: inout SeededRandom) -> [String] {
    (0..<Int.random(in: 0...4, using: &random)).map { _ in
      "\(part) " + (["a", "b", "c"].randomElement(using: &random) ?? "")
    }
  }

  private static func text(_ lines: [String]) -> String { lines.map { $0 + "\n" }.joined() }

  /// No line goes but one that a side deleted, and what a side added is there once, also what both added.
  @Test func noLineIsLost() {
    var random = SeededRandom(seed: Self.seed &+ 1)
    var clean = 0
    for round in 0..<3_000 {
      let letters = Array("abcdefgh".prefix(Int.random(in: 1...8, using: &random))).map(String.init)
      let base = (0..<Int.random(in: 0...16, using: &random)).map { _ in letters.randomElement(using: &random) ?? "" }
      var (mine, theirs) = (base, base)
      var added: [[String]] = [[], []]
      /// Changes the lines of some sides at a place, as seen from the end.
      func change(_ sides: [Int]) {
        let lines = [mine, theirs]
        let place = Int.random(in: 0...(sides.map { lines[$0].count }.min() ?? 0), using: &random)
        let isNew = Bool.random(using: &random)
        let line = "new \(added[0].count) \(added[1].count)"
        for side in sides {
          var lines = side == 0 ? mine : theirs
          if isNew {
            lines.insert(line, at: lines.count - place)
            added[side].append(line)
          } else if place > 0 {
            lines.remove(at: lines.count - place)
          }
          if side == 0 { mine = lines } else { theirs = lines }
        }
      }
      for sides in [[0, 1], [0], [1]] where Bool.random(using: &random) { change(sides) }
      guard let found = Self.merged(Self.text(base), Self.text(mine), Self.text(theirs)) else { continue }
      clean += 1
      let merged = found.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
      for line in Set(base + mine + theirs + merged) {
        func count(_ lines: [String]) -> Int { lines.filter { $0 == line }.count }
        let (old, one, other) = (count(base), count(mine), count(theirs))
        let range = old == 0 ? 1...1 : max(0, one + other - old)...min(one, other)
        #expect(
          range.contains(count(merged)), "seed \(Self.seed), round \(round): \(base) \(mine) \(theirs) \(merged)")
      }
    }
    #expect(clean > 1_000)
  }

  /// What both changed alike is there once, whatever else they changed.
  @Test func equalChangesAreOne() {
    for (base, both) in [("ba", "baa"), ("baa", "ba"), ("aa", "aaa"), ("abab", "ababab"), ("ababab", "abab")] {
      let found = Self.merged(
        Self.lines("12345\(base)6789"), Self.lines("12345\(both)678"), Self.lines("2345\(both)6789"))
      #expect(found == Self.lines("2345\(both)678"), "\(base) to \(both)")
    }
  }

  /// Each side has changed half of the lines.
  @Test func aLongTextThatWasRewrittenIsMerged() {
    let base = (0..<20_000).map { "line \($0)" }
    var mine = base, theirs = base
    for index in 0..<9_000 { mine[index] = "mine \(index)" }
    for index in 11_000..<20_000 { theirs[index] = "theirs \(index)" }
    let expected = mine[..<10_000] + theirs[10_000...]
    #expect(Self.merged(Self.text(base), Self.text(mine), Self.text(theirs)) == Self.text(Array(expected)))
  }

  /// Whatever somebody sends, the effort has a bound, and what is beyond it is not merged.
  @Test func hostileTextsTakeBoundedEffort() {
    let equal = String(repeating: "ab\n", count: 270_000)
    #expect(Self.merged(equal, "x\n" + equal, equal + "y\n") == nil, "too many lines")
    let some = String(repeating: "ab\n", count: 50_000)
    #expect(Self.merged(some, "x\n" + some, some + "y\n") == "x\n" + some + "y\n")
    #expect(Self.merged(some, "x\n" + some.dropFirst(3 * 10_000), some + "y\n") != nil)
    #expect(Self.merged(String(repeating: "\n", count: 1 << 20), "\n", "") == nil)
    #expect(Self.merged("a", "b", String(repeating: "x", count: 1 << 20 + 1)) == nil)
    // Two letters at random, of which nothing fits.
    var random = SeededRandom(seed: Self.seed &+ 2)
    func noise() -> [Int32] { (0..<100_000).map { _ in Int32.random(in: 0...1, using: &random) } }
    var effort = LineDiff.effort
    #expect(LineDiff.matches(noise(), noise(), &effort) == nil)
    #expect(effort >= -100_000)
    // Each line twice, the second time in the other order: no line is there once.
    let twice = (0..<3_000).map { Int32($0) } + (0..<3_000).reversed().map { Int32($0) }
    effort = LineDiff.effort
    #expect(LineDiff.matches(twice, twice.reversed(), &effort) != nil)
    #expect(LineDiff.matches(twice, Array(twice.dropFirst(1_500) + twice.prefix(1_500)), &effort) == nil)
  }

  /// The matches are lines that are equal, in order, and between small texts the most that there are.
  @Test func matchesAreInOrder() {
    var random = SeededRandom(seed: Self.seed &+ 3)
    for round in 0..<2_000 {
      func lines() -> [Int32] {
        (0..<Int.random(in: 0...10, using: &random)).map { _ in Int32.random(in: 0...2, using: &random) }
      }
      let (old, new) = (lines(), lines())
      var effort = LineDiff.effort
      let matches = LineDiff.matches(old, new, &effort)
      #expect(matches?.count == old.count)
      var last: Int32 = -1
      for (index, match) in (matches ?? []).enumerated() where match >= 0 {
        #expect(match > last && new[Int(match)] == old[index], "seed \(Self.seed), round \(round): \(old) \(new)")
        last = match
      }
      // Where no line is once in both, the shortest way alone decides.
      let isPlain = !old.contains { line in
        [old, new].allSatisfy { $0.filter { $0 == line }.count == 1 }
      }
      if isPlain {
        #expect(matches?.filter { $0 >= 0 }.count == Self.longest(old, new), "seed \(Self.seed): \(old) \(new)")
      }
    }
  }

  private static func longest(_ old: [Int32], _ new: [Int32]) -> Int {
    var row = [Int](repeating: 0, count: new.count + 1)
    for line in old {
      var next = row
      for (index, other) in new.enumerated() {
        next[index + 1] = line == other ? row[index] + 1 : max(next[index], row[index + 1])
      }
      row = next
    }
    return row.last ?? 0
  }

  @Test func whatIsText() {
    func isText(_ text: String) -> Bool { MergeableText.allows(Array(text.utf8)) }
    for text in ["", "\n", "# Plan\n", "[a](b)\n", "{ a", "1 < 2", "\u{FEFF}Plan", "a } b", "é"] {
      #expect(isText(text))
    }
    for text in ["{}", " {\"a\": 1}\n", "[1]\n", "\u{FEFF}[\n]", "<a/>", "\n<?xml version=\"1.0\"?>", "a\0"] {
      #expect(!isText(text), "\(text)")
    }
    #expect(!MergeableText.allows([0xFF]))
    #expect(!MergeableText.allows([UInt8](repeating: 97, count: 1 << 20 + 1)))
    #expect(MergeableText.allows([UInt8](repeating: 97, count: 1 << 20)))
    func isPlace(_ ways: [String]...) -> Bool { MergeableText.allows(ways.map { $0.map { Array($0.utf8) } }) }
    #expect(isPlace(["a.md"], [".profile", "b"]) && isPlace(["json", "xml"]))
    #expect(!isPlace(["a", ".git"]) && !isPlace(["a"], ["a", "b", ".config", "c"]))
    #expect(!isPlace(["a.JSON"]) && !isPlace(["b"], ["a.xml", "c"]))
  }
}
