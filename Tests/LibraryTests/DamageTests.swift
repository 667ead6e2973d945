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
