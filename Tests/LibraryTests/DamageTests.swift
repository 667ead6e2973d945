import Foundation
import GRDB
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// What damaged bytes and numbers do not take along.
struct DamageTests {
  /// Runs `before`, changes the closed library, and runs `after` in it.
  private func withDamage(
    _ sql: String, _ before: (LibraryFixture) throws -> Void, _ after: (LibraryFixture) throws -> Void
  ) throws {
    try withLibraryFolder { folder in
      let path = folder + "/library.sqlite"
      let fixture = try LibraryFixture(at: path)
      try before(fixture)
      try fixture.finish()
      let queue = try DatabaseQueue(path: path)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
      let damaged = try LibraryFixture(at: path, clock: fixture.clock)
      try after(damaged)
      try damaged.library.close()
      try? FileManager.default.removeItem(atPath: damaged.folder)
    }
  }

  private func contents(_ fixture: LibraryFixture, _ path: String, _ number: Int64) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try fixture.library.readVersion(fixture.path(path), number: number) { bytes += $0 }
    return bytes
  }

  private func text(_ number: Int, _ rest: [UInt8]) -> [UInt8] { Array("version \(number)".utf8) + rest }

  @Test(arguments: [
    "data = zeroblob(length(data))", "encoding = 1", "encoding = 2, data = x'0700'", "encoding = 9", "size = size + 1",
    "data = x'', size = 0",
  ])
  func whatIsSavedAgainIsStoredAgain(_ damage: String) throws {
    var random = SeededRandom()
    let bytes = random.bytes(150_000)
    try withDamage("UPDATE chunks SET \(damage)") { fixture in
      try fixture.save("a", bytes)
      try fixture.save("b", bytes)
    } _: { fixture in
      #expect((try? fixture.holds("a", bytes)) != true)
      try fixture.save("a", bytes)
      #expect(try fixture.holds("a", bytes), random.note)
      #expect(try fixture.holds("b", bytes), random.note)
      try fixture.expectSound()
    }
  }

  /// The beginning of a document's chunk is another document, whose own chunk is damaged.
  @Test func packingLeavesWhatIsSoundWhereItsCopyIsDamaged() throws {
    var random = SeededRandom()
    let whole = random.bytes(12_000)
    let beginning = Array(whole.prefix(9000))
    try withDamage("UPDATE chunks SET data = zeroblob(length(data)) WHERE size = 9000") { fixture in
      try fixture.save("a", whole)
      try fixture.cutShort("a", to: 9000)
      try fixture.save("a", beginning + Array(" and on".utf8))
      try fixture.save("b", beginning)
    } _: { fixture in
      _ = try fixture.library.compact { _ in }
      #expect(try contents(fixture, "a", 1) == whole, random.note)
      #expect(try contents(fixture, "a", 2) == beginning, random.note)
    }
  }

  @Test(arguments: ["1", "0x7FFFFFFFFFFFFFFF"])
  func packingGoesByTheBytesThereAre(_ size: String) throws {
    var random = SeededRandom()
    let rest = random.bytes(5000)
    try withDamage("UPDATE versions SET size = \(size) WHERE number IN (2, 3)") { fixture in
      for number in 1...6 { try fixture.save("a", text(number, rest)) }
    } _: { fixture in
      #expect(try fixture.library.compact { _ in }.versionsPacked == 5)
      for number in 1...6 { #expect(try contents(fixture, "a", Int64(number)) == text(number, rest), random.note) }
      let problems = try fixture.library.check { _ in }.problems
      #expect(problems.count == 2 && problems.allSatisfy { $0.contains("its size is not that") }, "\(problems)")
    }
  }

  /// What a chunk's row says of its size is summed nowhere.
  @Test(arguments: ["0x7FFFFFFFFFFFFFFF", "-0x7FFFFFFFFFFFFFFF", "-1"])
  func compressingGoesByTheBytesThereAre(_ size: String) throws {
    var random = SeededRandom()
    let texts = (0..<8).map { String(repeating: "line \($0) of a text\n", count: 200) }
    let bytes = random.bytes(5000)
    try withDamage("UPDATE chunks SET size = \(size) WHERE id > (SELECT min(id) FROM chunks) + 1") { fixture in
      for (number, text) in texts.enumerated() { try fixture.save("\(number)", text) }
      try fixture.save("random", bytes)
    } _: { fixture in
      _ = try fixture.library.compact { _ in }
      let problems = try fixture.library.check { _ in }.problems
      #expect(problems.contains { $0.contains("its size is wrong") }, "\(problems)")
      #expect(try fixture.text("0") == texts[0], random.note)
    }
  }

  // MARK: - Folders in each other

  /// By the names that they had, a folder was in itself, or two in each other: nobody goes from one to the next for
  /// ever.
  @Test(arguments: [["a": "a"], ["a": "b", "b": "a"], ["a": "b", "b": "c", "c": "a"]])
  func noFolderWasInItself(_ parents: [String: String]) throws {
    let late = 4_000_000_000_000_000_000
    var sql = "UPDATE entries SET since = \(late) WHERE parent = (SELECT documents FROM accounts);"
    for (name, parent) in parents {
      sql += """
        INSERT INTO past_names SELECT (SELECT ino FROM inodes WHERE name = CAST('\(parent)' AS BLOB)), name, \(late), item, 0,
        owner FROM inodes WHERE name = CAST('\(name)' AS BLOB);
        """
    }
    try withDamage(sql) { fixture in
      for name in ["a", "b", "c"] { try fixture.mkdir(name) }
    } _: { fixture in
      let time = fixture.clock.now
      for name in parents.keys {
        let top = try fixture.ino(name)
        _ = try fixture.library.pastFolder(top, at: time, .library)
        var (folder, passed) = (top, 0)
        while passed < 10 {
          let entries = try fixture.library.pastEntries(of: folder, below: top, at: time, .library)
          guard let entry = entries.first, case .folder(let ino) = entry.kind else { break }
          #expect(try fixture.library.pastEntry(folder, entry.name, below: top, at: time, .library) == entry)
          (folder, passed) = (ino, passed + 1)
        }
        #expect(passed == parents.count - 1)
        expect(.notFound) {
          _ = try fixture.library.pastEntry(folder, Array(name.utf8), below: top, at: time, .library)
        }
        _ = try fixture.library.restoreFolder(fixture.path(name), .init(time: time, dryRun: true)) { _ in }
      }
    }
  }

  /// Where its rows say that it was in several folders, one of them shows it.
  @Test func aFolderWasInOneFolderAtATime() throws {
    let rows = [("b", 4), ("c", 3)].map { parent, until in
      """
      INSERT INTO past_names SELECT (SELECT ino FROM inodes WHERE name = CAST('\(parent)' AS BLOB)), name,
      \(until)000000000000000000, item, 0, owner FROM inodes WHERE name = CAST('a' AS BLOB);
      """
    }
    let late = "UPDATE entries SET since = 4000000000000000000 WHERE ino = (SELECT ino FROM inodes WHERE name = x'61');"
    try withDamage(late + rows.joined()) { fixture in
      for name in ["a", "b", "c"] { try fixture.mkdir(name) }
    } _: { fixture in
      let root = try fixture.root
      let entries = try ["", "b", "c"].map { name in
        try fixture.library.pastEntries(of: fixture.ino(name), below: root, at: fixture.clock.now, .library)
          .map { String(decoding: $0.name, as: UTF8.self) }.sorted()
      }
      #expect(entries == [["b", "c"], [], ["a"]])
    }
  }

  /// `Documents` lies in a folder that it holds.
  @Test func aPathDoesNotComeBackToWhereItBegan() throws {
    try withDamage(
      """
      UPDATE entries SET ino = (SELECT documents FROM accounts) WHERE name = CAST('x' AS BLOB);
      UPDATE inodes SET parent = (SELECT ino FROM inodes WHERE name = CAST('a' AS BLOB)), name = CAST('x' AS BLOB)
      WHERE ino = (SELECT documents FROM accounts);
      """
    ) { fixture in
      for name in ["a", "a/x"] { try fixture.mkdir(name) }
    } _: { fixture in
      let library = fixture.library
      let isFolder = try library.locked { try library.resolve(fixture.path("a")).isFolder }
      #expect(isFolder)
      for path in ["a/x", "a/x/a", "a/x/a/x/a"] {
        expect(.corrupt) { _ = try library.locked { try library.resolve(fixture.path(path)).ino } }
        expect(.corrupt) { _ = try library.children(fixture.path(path)) }
      }
    }
  }

  /// What a damaged pack holds is not gone; who purges something else has nothing to do with it.
  @Test func aPurgeFailsWhereItsPackStays() throws {
    var random = SeededRandom()
    let rest = random.bytes(5000)
    try withDamage("UPDATE packs SET data = x'00'") { fixture in
      for number in 1...6 { try fixture.save("a", text(number, rest)) }
      for number in 1...2 { try fixture.save("b", "\(number)") }
      _ = try fixture.library.compact { _ in }
      for number in 3...4 { try fixture.save("b", "\(number)") }
    } _: { fixture in
      for number: Int64 in [2, 3] {
        #expect { try fixture.library.purge(fixture.path("a"), version: number) } throws: {
          ($0 as? SheafError)?.kind == .corrupt && "\($0)".contains("still holds what was purged")
        }
      }
      #expect(try fixture.versions("a").map(\.number) == [1, 4, 5, 6])
      try fixture.library.purge(fixture.path("b"), version: 3)
    }
  }
}
