import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Destroying what was deleted: `sheaf purge --deleted`.
struct EmptyingTrashTests {
  private static let day: Int64 = 86_400

  private func paths(_ fixture: LibraryFixture) throws -> Set<String> {
    Set(try fixture.library.deleted(fixture.account, below: nil).map(\.path))
  }

  /// Measures and then destroys; both say the same.
  @discardableResult
  private func empty(
    _ fixture: LibraryFixture, _ path: String? = nil, olderThan: Int64? = nil, largerThan: Int64? = nil
  ) throws -> TrashExtent {
    let path = try path.map { try fixture.path($0) }
    let selection = TrashSelection(olderThan: olderThan, largerThan: largerThan)
    let before = try fixture.library.deleted(fixture.account, below: nil).count
    let extent = try fixture.library.trashExtent(fixture.account, below: path, selection) { _ in }
    #expect(try fixture.library.deleted(fixture.account, below: nil).count == before)
    #expect(try fixture.library.emptyTrash(fixture.account, below: path, selection) { _ in } == extent)
    return extent
  }

  /// A folder with a document in it, both deleted.
  private func deleteFolder(_ fixture: LibraryFixture, _ folder: String, bytes: Int) throws {
    try fixture.mkdir(folder)
    try fixture.save(folder + "/x", [UInt8](repeating: 1, count: bytes))
    try fixture.unlink(folder + "/x")
    try fixture.rmdir(folder)
  }

  @Test func everythingOrWhatIsBelowAPathGoes() throws {
    let fixture = try LibraryFixture()
    for folder in ["t", "t/in", "u"] { try fixture.mkdir(folder) }
    for name in ["a", "t/a", "t/in/a", "u/a", "u/b"] {
      for text in ["1", "twelve bytes"] {
        try fixture.save(name, text)
        fixture.clock.advance(20)
      }
      try fixture.unlink(name)
    }
    try fixture.save("t/present", "stays")
    try deleteFolder(fixture, "t/gone", bytes: 100)
    #expect(try empty(fixture, "t/gone/x") == TrashExtent(items: 1, bytes: 100))
    #expect(try empty(fixture, "u/b") == TrashExtent(items: 1, bytes: 12))
    #expect(try empty(fixture, "t/in") == TrashExtent(items: 1, bytes: 12))
    #expect(try paths(fixture) == ["a", "t/a", "t/gone", "u/a"].reduce(into: []) { $0.insert("Documents/" + $1) })
    #expect(try empty(fixture, "t").items == 2)
    #expect(try paths(fixture) == ["Documents/a", "Documents/u/a"])
    // A document that is there keeps its history; only those that had its name before go.
    try fixture.save("u/a", "anew")
    #expect(try empty(fixture, "u/a") == TrashExtent(items: 1, bytes: 12))
    #expect(try fixture.text("u/a") == "anew" && fixture.text("t/present") == "stays")
    #expect(try empty(fixture) == TrashExtent(items: 1, bytes: 12))
    #expect(try empty(fixture) == TrashExtent(items: 0, bytes: 0) && paths(fixture) == [])
    expect(.notFound) { try empty(fixture, "nowhere") }
    // What went is nowhere.
    #expect(try fixture.library.store.read { try $0.deleted(before: nil, limit: 10) }.isEmpty)
    #expect(try fixture.chunkCount == 2)
    try fixture.finish()
  }

  @Test func whatIsYoungerOrSmallerStays() throws {
    let fixture = try LibraryFixture()
    try deleteFolder(fixture, "old", bytes: 5000)
    try fixture.mkdir("mixed")
    try fixture.save("mixed/early", [UInt8](repeating: 2, count: 2000))
    try fixture.save("mixed/late", [UInt8](repeating: 3, count: 2000))
    try fixture.unlink("mixed/early")
    try fixture.save("small", "x")
    try fixture.unlink("small")
    try fixture.library.settleEventsInSteps()
    fixture.clock.advance(10 * Self.day)
    try fixture.unlink("mixed/late")
    try fixture.rmdir("mixed")
    fixture.clock.advance(Self.day)
    #expect(try empty(fixture, largerThan: 5000).items == 0)
    // A folder counts with all that is in it.
    #expect(try empty(fixture, olderThan: 20 * Self.day, largerThan: 1) == TrashExtent(items: 0, bytes: 0))
    #expect(try empty(fixture, olderThan: 11 * Self.day - 1, largerThan: 4999) == TrashExtent(items: 2, bytes: 5000))
    // What was deleted long ago from a folder goes with it, and not before.
    #expect(try empty(fixture, olderThan: 5 * Self.day) == TrashExtent(items: 1, bytes: 1))
    #expect(try paths(fixture).count == 3)
    #expect(try empty(fixture, largerThan: 3999) == TrashExtent(items: 3, bytes: 4000))
    #expect(try paths(fixture) == [])
    try fixture.finish()
  }

  /// A clock that is far ahead makes nothing old, and one that was behind neither.
  @Test func theClockIsNotBelievedBlindly() throws {
    let fixture = try LibraryFixture()
    try fixture.save("keep", "1")
    try fixture.save("a", "1")
    try fixture.unlink("a")
    try fixture.library.settleEventsInSteps()
    fixture.clock.advance(40 * Self.day)
    expect(.unavailable) { try empty(fixture, olderThan: Self.day) }
    #expect(try paths(fixture) == ["Documents/a"])
    fixture.clock.advance(Self.day)
    try fixture.save("keep", "2")
    try fixture.library.settleEventsInSteps()
    fixture.clock.advance(-20 * Self.day)
    try fixture.save("b", "2")
    try fixture.unlink("b")
    try fixture.library.settleEventsInSteps()
    fixture.clock.advance(21 * Self.day)
    // By its time b is 21 days old; the event before it says that it is one day old.
    #expect(try empty(fixture, olderThan: 10 * Self.day) == TrashExtent(items: 1, bytes: 1))
    #expect(try paths(fixture) == ["Documents/b"])
    try fixture.finish()
  }

  @Test func onlyTheOwnerDestroys() throws {
    try People.story { people in
      let library = people.library
      try people.as(.alice) { alice in
        try alice.mkdir("Documents/t")
        for name in ["a", "t/a"] { try alice.save("Documents/" + name, "one") }
      }
      try people.share("Documents/t", with: [(.bob, .readWrite)])
      people.clock.advance(60)
      try people.as(.alice) { alice in for name in ["a", "t/a"] { try alice.unlink("Documents/" + name) } }
      try people.as(.bob) { bob in
        try bob.save("Documents/b", "one")
        try bob.unlink("Documents/b")
      }
      let (alice, bob) = (People.Name.alice.handle, People.Name.bob.handle)
      for path in ["Shared/alice@example.com/t", "Shared/alice@example.com/t/a"] {
        let path = try ItemPath(account: bob, path)
        expect(.accessDenied) { _ = try library.emptyTrash(bob, below: path, TrashSelection()) { _ in } }
      }
      #expect(try library.deleted(bob, below: nil).count == 2)
      #expect(try library.emptyTrash(bob, below: nil, TrashSelection()) { _ in }.items == 1)
      #expect(try library.deleted(bob, below: nil).count == 1 && library.deleted(alice, below: nil).count == 2)
      #expect(try library.emptyTrash(alice, below: nil, TrashSelection()) { _ in }.items == 2)
      #expect(try library.deleted(bob, below: nil).isEmpty)
    }
  }

  /// Much goes in steps, others work in between, and what was recovered meanwhile stays.
  @Test func muchGoesInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("t")
    let folder = try fixture.ino("t")
    for number in 0..<100 {
      _ = try library.make(.file, folder, Array("f\(number)".utf8), mode: 0o644, .library)
    }
    for number in 0..<100 { try library.unlink(folder, Array("f\(number)".utf8), .library) }
    try library.settleEventsInSteps()
    var steps: [Int64] = []
    let destroyed = try library.emptyTrash(fixture.account, below: nil, TrashSelection()) { progress in
      if progress.total > 0 { steps.append(progress.done) }
      // The oldest goes last.
      if steps.count == 1 { _ = try? library.recover(fixture.path("t/f0"), id: nil) { _ in } }
    }
    let batch = Int64(Library.purgeBatch)
    #expect(steps == Array(stride(from: batch, to: 100, by: Int(batch))) + [100] && destroyed.items == 99)
    #expect(try fixture.names("t") == ["f0"] && paths(fixture) == [])
    try fixture.finish()
  }
}
