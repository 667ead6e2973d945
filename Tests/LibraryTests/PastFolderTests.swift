import Foundation
import Glibc
import SheafModel
import SheafStore
import Testing

@testable import SheafLibrary

/// Folders as they were.
struct PastFolderTests {
  private func rows(_ library: Library) throws -> [PastNameRow] {
    try library.locked {
      try library.read { transaction in
        var rows: [PastNameRow] = []
        try transaction.pastNames { rows.append($0) }
        return rows
      }
    }
  }

  /// Whatever two people do in a folder, it is shown as it was after each action, to both of them.
  @Test func aFolderIsShownAsItWas() throws {
    var random = SeededRandom()
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/w") }
      try people.share("Documents/w", with: [(.bob, .readWrite)])
      people.clock.advance(1)
      let folder = try people.as(.alice) { try $0.inode("Documents/w") }
      var story = PastStory(people, [.alice: "Documents/w", .bob: "Shared/alice@example.com/w"])
      for round in 0..<300 {
        try story.step(&random)
        guard round % 30 == 29 else { continue }
        #expect(try people.as(.alice) { try $0.present("Documents/w") } == story.tree, random.note)
        for _ in 0..<8 {
          let (first, last) = (story.moments[0].time.seconds, people.clock.now.seconds)
          let second = Int64.random(in: first...last, using: &random)
          let time = try #require(Library.pastTime(Array("@\(Timestamp(seconds: second).nameText)".utf8)))
          for who in [People.Name.alice, .bob] {
            #expect(try people.as(who) { try $0.past(folder, at: time) } == story.held(at: time), random.note)
          }
        }
      }
    }
  }

  @Test func onlyTimesOpen() {
    for name in ["@", "@2026-11-17", "2026-11-17T18-00-00Z", "@2026-11-17T18:00:00Z", "@2026-02-30T18-00-00Z", "@x"] {
      #expect(Library.pastTime(Array(name.utf8)) == nil)
    }
    #expect(
      Library.pastTime(Array("@2026-11-17T18-00-00Z".utf8))
        == Timestamp(rfc3339: "2026-11-17T18:00:00.999999999Z"))
  }

  /// Neither what is yet to come nor what was before the folder is there.
  @Test func aFolderHasNoPastBeforeItWasMadeAndNoFuture() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    fixture.clock.advance(100)
    try fixture.mkdir("w")
    let folder = try fixture.ino("w")
    let now = fixture.clock.now
    expect(.notFound) { _ = try library.pastFolder(folder, at: Timestamp(seconds: now.seconds - 1), .library) }
    expect(.notFound) { _ = try library.pastFolder(folder, at: Timestamp(seconds: now.seconds + 1), .library) }
    expect(.notFound) {
      _ = try library.pastEntries(of: folder, below: folder, at: Timestamp(seconds: now.seconds + 1), .library)
    }
    let shown = try library.pastFolder(folder, at: now, .library)
    #expect(shown.mode & 0o7777 == 0o555 && shown.nlink == 2)
    try fixture.finish()
  }

  /// A document that has no version yet was empty; one whose versions of then are gone is not shown.
  @Test func contentsAreThoseOfThen() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    let handle = try fixture.open("a", O_RDWR | O_CREAT)
    let made = fixture.clock.now
    fixture.clock.advance(100)
    try fixture.write(handle, Array("one".utf8))
    try fixture.close(handle)
    let one = fixture.clock.now
    fixture.clock.advance(100)
    try fixture.save("a", "two")
    let two = fixture.clock.now
    let alice = Person(library: library, name: .alice, process: 0)
    let root = try fixture.root
    #expect(try alice.past(root, at: made) == ["a": ""])
    #expect(try alice.past(root, at: one) == ["a": "one"])
    #expect(try alice.past(root, at: Timestamp(nanoseconds: two.nanoseconds - 1)) == ["a": "one"])
    #expect(try alice.past(root, at: two) == ["a": "two"])
    try library.purge(fixture.path("a"), version: 1)
    #expect(try alice.past(root, at: one) == [:])
    #expect(try alice.past(root, at: two) == ["a": "two"])
    try fixture.finish()
  }

  /// The version of a time is found by halves, whatever versions are left.
  @Test func theVersionOfATimeIsFoundWhateverIsThinned() throws {
    var random = SeededRandom()
    let fixture = try LibraryFixture()
    let library = fixture.library
    for number in 0..<60 {
      try fixture.save("a", "text \(number)")
      fixture.clock.advance(Int64.random(in: 1...50, using: &random))
    }
    let document = try fixture.ino("a")
    var kept = try fixture.versions("a").map { (number: $0.number, time: $0.time) }
    while kept.count > 1 {
      let found = try library.locked { try library.item(of: library.inode(document)) }
      let item = try #require(found)
      for _ in 0..<10 {
        let time = Timestamp(
          seconds: Int64.random(in: 1_800_000_000 - 20...fixture.clock.now.seconds + 20, using: &random))
        let expected = kept.last { $0.time <= time }?.number ?? (kept.first?.number == 1 ? 0 : nil)
        #expect(try library.locked { try library.versionNumber(of: item, at: time) } == expected, random.note)
      }
      let gone = kept.remove(at: Int.random(in: 0..<kept.count - 1, using: &random))
      try library.locked { try library.makeChange(.thin) { try $0.rows.deleteVersion(item.id, gone.number) } }
    }
    try fixture.finish()
  }

  /// A participant sees a folder from its entry on, and nothing that is not in the share any more.
  @Test func aParticipantSeesTheShareAlone() throws {
    try People.story { people in
      let alice = try people.as(.alice) { $0 }
      try alice.mkdir("Documents/w")
      try alice.mkdir("Documents/own")
      try alice.save("Documents/w/a", "before")
      try alice.save("Documents/own/later", "secret")
      let before = people.clock.now
      people.clock.advance(60)
      try people.share("Documents/w", with: [(.bob, .readOnly)])
      let shared = people.clock.now
      people.clock.advance(60)
      try alice.save("Documents/w/a", "after")
      try alice.save("Documents/w/leaves", "leaves")
      try alice.save("Documents/w/goes", "goes")
      let inside = people.clock.now
      people.clock.advance(60)
      try alice.rename("Documents/w/leaves", "Documents/own/leaves")
      try alice.rename("Documents/own/later", "Documents/w/later")
      try alice.unlink("Documents/w/goes")
      let entered = people.clock.now
      people.clock.advance(60)
      // Out and in again: it is seen from its last entry on.
      try alice.rename("Documents/w/a", "Documents/own/a")
      people.clock.advance(60)
      try alice.rename("Documents/own/a", "Documents/w/a")
      let again = people.clock.now
      people.clock.advance(60)
      let (folder, own) = (try alice.inode("Documents/w"), try alice.inode("Documents/own"))
      let bob = try people.as(.bob) { $0 }
      expect(.notFound) { _ = try bob.past(folder, at: before) }
      #expect(try bob.past(folder, at: shared) == [:])
      #expect(try bob.past(folder, at: inside) == ["goes": "goes"])
      #expect(try bob.past(folder, at: entered) == ["later": "secret"])
      #expect(try bob.past(folder, at: again) == ["later": "secret", "a": "after"])
      expect(.accessDenied) { _ = try bob.past(own, at: inside) }
      #expect(try alice.past(folder, at: inside) == ["a": "after", "leaves": "leaves", "goes": "goes"])
      #expect(try alice.past(own, at: inside) == ["later": "secret"])
      try alice.remove("Documents/w", .bob)
      expect(.accessDenied) { _ = try bob.past(folder, at: inside) }
    }
  }

  /// Ways in which editors save leave the document under its name all the time, and their other files nowhere.
  @Test func savingLeavesNoGap() throws {
    try People.story { people in
      let editor = Person(library: people.library, name: .alice, process: getpid())
      try editor.mkdir("Documents/w")
      try editor.save("Documents/w/a", "0")
      let folder = try editor.inode("Documents/w")
      people.clock.advance(100)
      try people.library.settleEventsInSteps()
      people.library.expireIdentity()
      var times: [(Timestamp, String)] = []
      for round in 1...9 {
        times.append((people.clock.now, "\(round - 1)"))
        switch round % 3 {
        case 0:
          try editor.save("Documents/w/.a.tmp", "\(round)")
          people.clock.advance(1)
          try editor.rename("Documents/w/.a.tmp", "Documents/w/a")
        case 1:
          try editor.unlink("Documents/w/a")
          people.clock.advance(1)
          try editor.save("Documents/w/a", "\(round)")
        default:
          try editor.rename("Documents/w/a", "Documents/w/a~")
          people.clock.advance(1)
          try editor.save("Documents/w/a", "\(round)")
          people.clock.advance(1)
          try editor.unlink("Documents/w/a~")
        }
        people.clock.advance(100)
        try people.library.settleEventsInSteps()
        people.library.expireIdentity()
      }
      for (time, text) in times {
        for shift in [Int64(0), 1_000_000_000] {
          let tree = try editor.past(folder, at: Timestamp(nanoseconds: time.nanoseconds + shift))
          #expect(tree["a"] != nil, "\(text) \(shift)")
          if shift == 0 { #expect(tree["a"] == text) }
          #expect(tree[".a.tmp"] == nil)
        }
      }
      #expect(try rows(people.library).allSatisfy { $0.name != Array("a".utf8) && $0.name != Array(".a.tmp".utf8) })
    }
  }

  /// What is destroyed was nowhere.
  @Test func aPurgeTakesPastNamesAlong() throws {
    let fixture = try LibraryFixture()
    try fixture.mkdir("w")
    try fixture.save("w/a", "x")
    fixture.clock.advance(60)
    let time = fixture.clock.now
    fixture.clock.advance(60)
    try fixture.rename("w/a", "w/b")
    fixture.clock.advance(60)
    try fixture.rename("w/b", "w/c")
    #expect(try rows(fixture.library).map { String(decoding: $0.name, as: UTF8.self) }.sorted() == ["a", "b"])
    let alice = Person(library: fixture.library, name: .alice, process: 0)
    #expect(try alice.past(fixture.ino("w"), at: time) == ["a": "x"])
    try fixture.library.purge(fixture.path("w/c"), version: nil)
    #expect(try rows(fixture.library) == [])
    #expect(try alice.past(fixture.ino("w"), at: time) == [:])
    try fixture.finish()
  }

  /// Past names are thinned as versions are: short ones go first, and after a year all.
  @Test func pastNamesAreThinned() throws {
    let fixture = try LibraryFixture()
    try fixture.save("long", "x")
    try fixture.save("short", "x")
    fixture.clock.advance(30 * 60)
    try fixture.rename("short", "short-2")
    fixture.clock.advance(2 * 3600)
    try fixture.rename("long", "long-2")
    func names() throws -> [String] {
      try rows(fixture.library).map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    }
    _ = try fixture.library.compact { _ in }
    #expect(try names() == ["long", "short"])
    for (days, left) in [(2, ["long"]), (6, [])] as [(Int64, [String])] {
      fixture.clock.advance(days * 86_400)
      _ = try fixture.library.compact { _ in }
      #expect(try names() == left)
    }
    try fixture.finish()
  }

  /// A folder with many names, and one with many that it had, are listed in steps.
  @Test func longListingsAreMadeInSteps() throws {
    let fixture = try LibraryFixture()
    let library = fixture.library
    try fixture.mkdir("w")
    let folder = try fixture.ino("w")
    for number in 0..<200 {
      let name = Array("f\(number)".utf8)
      _ = try library.make(.folder, folder, name, mode: 0o755, .library)
    }
    fixture.clock.advance(60)
    let time = fixture.clock.now
    fixture.clock.advance(60)
    for number in 0..<100 {
      try library.rename(
        folder, Array("f\(number)".utf8), to: folder, Array("g\(number)".utf8), .noReplace, .library)
    }
    let entries = try library.pastEntries(of: folder, below: folder, at: time, .library)
    #expect(Set(entries.map(\.name)) == Set((0..<200).map { Array("f\($0)".utf8) }))
    try library.locked {
      var (some, names): ([Library.PastEntry], Set<[UInt8]>) = ([], [])
      let cookie = try library.addPresent(of: folder, below: folder, after: 0, at: time, .library, to: &some, &names)
      // What has its name since is not among them.
      #expect(cookie != nil && some.count < Library.pastStep)
      (some, names) = ([], [])
      let last = try library.addPast(
        of: folder, below: folder, after: nil, at: time, .library, to: &some, &names)
      #expect(last != nil && some.count == Library.pastStep)
    }
    try fixture.finish()
  }
}
