import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary
@testable import SheafStore

/// What contents, history and trash take.
struct UsageTests {
  private func usage(_ fixture: LibraryFixture, _ path: String? = nil) throws -> UsageReport {
    try fixture.library.usage(fixture.account, of: path.map { try fixture.path($0) }) { _ in }
  }

  @Test func eachByteCountsOnceWhereItIsNeededFirst() throws {
    var random = SeededRandom(seed: 1)
    let fixture = try LibraryFixture()
    for folder in ["t", "t/in", "u", "empty"] { try fixture.mkdir(folder) }
    let (first, second, gone) = (random.bytes(1000), random.bytes(2000), random.bytes(4000))
    try fixture.save("t/in/a", first)
    fixture.clock.advance(60)
    try fixture.save("t/in/a", second)
    // A copy takes nothing, and neither does what is deleted and there, too.
    try fixture.save("t/copy", second)
    try fixture.save("u/copy", second)
    try fixture.unlink("u/copy")
    try fixture.save("u/gone", gone)
    try fixture.unlink("u/gone")
    try fixture.save("own", random.bytes(500))
    let report = try usage(fixture)
    #expect(report.path == "Documents" && report.contents == 2500 && report.history == 1000 && report.trash == 4000)
    #expect(report.total == 7500)
    #expect(report.folders.map(\.path) == ["u", "t", "empty"].map { "Documents/\($0)" })
    #expect(report.folders.map(\.trash) == [4000, 0, 0] && report.folders.map(\.history) == [0, 1000, 0])
    #expect(report.folders.map(\.contents) == [0, 2000, 0])
    #expect(report.folders.first?.id == (try fixture.library.itemStatus(fixture.path("u")).id))
    let inside = try usage(fixture, "t")
    #expect(inside.folders.map(\.path) == ["Documents/t/in"] && inside.total == 3000)
    let document = try usage(fixture, "t/in/a")
    #expect(document.folders.isEmpty && document.contents == 2000 && document.history == 1000 && document.trash == 0)
    // What is in a deleted folder is in the trash of the folder around.
    try fixture.unlink("t/in/a")
    try fixture.rmdir("t/in")
    let deleted = try usage(fixture, "t")
    #expect(deleted.folders.isEmpty && deleted.contents == 2000 && deleted.history == 0 && deleted.trash == 1000)
    expect(.notFound) { _ = try usage(fixture, "t/in") }
    try fixture.finish()
  }

  /// The parts together are the chunks that are stored, in whatever form.
  @Test func theSumIsWhatIsStored() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    try fixture.mkdir("t")
    var text = random.bytes(20_000)
    for round in 0..<30 {
      text[Int(random.next() % 20_000)] &+= 1
      try fixture.save("t/a", text)
      if round % 10 == 9 {
        try fixture.save("t/b", Array(text.prefix(5000)) + random.bytes(3000))
        try fixture.unlink("t/b")
      }
      fixture.clock.advance(30)
    }
    try fixture.save("large", random.bytes(9 << 20))
    func stored() throws -> Int64 {
      try fixture.library.store.snapshot { transaction in
        let chunks = "SELECT coalesce(sum(length(data)), 0) FROM chunks WHERE encoding <> 2"
        let packs = "SELECT coalesce(sum(length(data)), 0) FROM packs"
        return try [chunks, packs].reduce(0) { $0 + (try transaction.first($1) { try $0[0] as Int64 } ?? 0) }
      }
    }
    for _ in 0..<2 {
      _ = try fixture.library.compact { _ in }
      let report = try usage(fixture)
      let sum = try stored()
      // A share of a pack is rounded down.
      #expect(report.total <= sum && report.total > sum - 100, random.note)
      #expect(report.history > 0 && report.trash > 0, random.note)
    }
    try fixture.finish()
  }

  @Test func onlyTheOwnerIsTold() throws {
    try People.story { people in
      try people.as(.alice) { alice in
        try alice.mkdir("Documents/t")
        try alice.save("Documents/t/a", "one")
      }
      try people.share("Documents/t", with: [(.bob, .readWrite)])
      try people.as(.bob) { (bob: Person) throws in
        for path in ["Shared/alice@example.com/t", "Shared/alice@example.com/t/a"] {
          expect(.accessDenied) { _ = try people.library.usage(bob.name.handle, of: bob.path(path)) { _ in } }
        }
        #expect(try people.library.usage(bob.name.handle, of: nil) { _ in }.total == 0)
      }
      #expect(try people.library.usage(People.Name.alice.handle, of: nil) { _ in }.total == 3)
    }
  }
}
