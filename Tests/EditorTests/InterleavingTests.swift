import ConformanceKit
import Foundation
import MountKit
import SheafLibrary
import SheafModel
import Testing

/// Two programs save the same documents in all ways at once, and the process is killed in between (rule 6 of
/// docs/ARCHITECTURE.md).
@Suite(.serialized) struct InterleavingTests {
  static let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap(Int.init) ?? Int.random(in: 0..<1_000_000)

  @Test func nothingThatWasClosedIsLost() throws {
    print("SHEAF_SEED=\(Self.seed)")
    var chance = Chance(seed: UInt64(Self.seed))
    let mounted = try MountedLibrary()
    defer { mounted.breakMount() }
    // They save faster than people do, and each text is looked for.
    try mounted.sheafSucceeds("account", "add", mounted.handle, "--library", mounted.library)
    try mounted.sheafSucceeds("library", "set", "--rapid-saves", "keep", "--library", mounted.library)
    let log = mounted.folder.path + "/log"
    for round in 0..<5 {
      try mounted.mount()
      var programs: [BackgroundCommand] = []
      for number in 1...2 {
        programs.append(
          try BackgroundCommand(
            Command([
              Repository.path("Tests/EditorTests/interleave"), "\(Self.seed * 100 + round * 10 + number)",
              mounted.documents, log, "doc", "report.md", "notes.txt", "mine-\(number)",
            ])))
      }
      Thread.sleep(forTimeInterval: 0.5 + Double(chance.next() % 2000) / 1000)
      try mounted.killServer()
      Thread.sleep(forTimeInterval: 0.1)
      programs.forEach { $0.end() }
      mounted.breakMount()
      try examine(mounted, log)
    }
  }

  /// - Parameter log: the file of texts that were closed.
  private func examine(_ mounted: MountedLibrary, _ log: String) throws {
    let closed = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    let items = try mounted.query("SELECT id FROM items WHERE kind = 1").compactMap(Int64.init)
    let library = try Library.open(LibraryLocation(path: mounted.library))
    var found: Set<String> = []
    for item in items {
      for file in try library.versionFiles(of: item, .library) {
        found.insert(try text(of: file, of: item, in: library).trimmingCharacters(in: .whitespaces))
      }
    }
    let problems = try library.check { _ in }.problems
    try library.close()
    #expect(problems == [])
    let lost = closed.filter { !found.contains($0) }
    #expect(lost.isEmpty, "lost \(lost.prefix(5)); SHEAF_SEED=\(Self.seed): of \(closed.count) texts")
    #expect(try mounted.query("SELECT uuid FROM items GROUP BY uuid HAVING count(*) > 1") == [])
    #expect(try mounted.query("SELECT item FROM inodes WHERE item IS NOT NULL GROUP BY item HAVING count(*) > 1") == [])
    // A document is empty that was made anew right before the kill: as a replacement (3), with its former text below.
    // So is what the next program then linked as its backup.
    let empty = try mounted.query(
      """
      WITH named AS (SELECT CAST(i.name AS TEXT) AS name, v.* FROM versions v JOIN inodes i ON i.item = v.item),
        anew AS (SELECT v.name, v.item, v.number FROM named v JOIN versions f ON f.item = v.item
          AND f.number = v.number - 1 AND f.size > 0 WHERE v.size = 0 AND v.cause = 3)
      SELECT v.name || ': ' || (SELECT group_concat(a.number || ' of ' || a.size || ' by ' || a.cause, ', ')
        FROM versions a WHERE a.item = v.item) FROM named v WHERE v.size = 0
        AND (v.item, v.number) NOT IN (SELECT item, number FROM anew)
        AND NOT (v.number = 1 AND v.name IN (SELECT name || '.bak' FROM anew))
      """)
    #expect(empty == [], "SHEAF_SEED=\(Self.seed)")
    #expect(closed.count > 5)
  }

  private func text(of file: Library.VersionFile, of item: Int64, in library: Library) throws -> String {
    let reader = try library.openVersion(of: item, number: file.number, .library)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try buffer.withUnsafeMutableBytes { try library.read(reader, at: 0, into: $0) }
    return String(decoding: buffer[..<count], as: UTF8.self)
  }
}

/// Random numbers that a seed replays (SplitMix64).
struct Chance {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
