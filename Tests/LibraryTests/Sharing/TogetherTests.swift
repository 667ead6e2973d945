import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// Two people who write the same document at once, each with a working copy of their own.
struct TogetherTests {
  private let mine = "Documents/a.md"
  private let theirs = "Shared/alice@example.com/a.md"

  private func together(_ body: (People) throws -> Void) throws {
    try People.story { people in
      try people.as(.alice) { try $0.save(mine, "one") }
      try people.share(mine, with: [(.bob, .readWrite)])
      // What is saved at the moment of sharing counts as from before it.
      people.clock.advance(1)
      try body(people)
    }
  }

  @Test func eachSeesTheirOwnUntilOneSaves() throws {
    try together { people in
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      try people.as(.alice) { (me) throws in
        try me.write(alice, "ALICE")
        #expect(try me.read(alice) == "ALICE" && me.status(mine).size == 5)
        #expect(try me.attribute("state", mine) == "edited")
      }
      try people.as(.bob) { (me) throws in
        #expect(try me.read(bob) == "one" && me.status(theirs).size == 3)
        #expect(try me.attribute("state", theirs) == "saved")
      }
      try people.library.flush(alice)
      // What was saved in place reaches open handles of who has no changes of their own.
      try people.as(.bob) { (me) throws in #expect(try me.read(bob) == "ALICE" && me.status(theirs).size == 5) }
      for handle in [alice, bob] { try people.library.release(handle) }
    }
  }

  @Test func theLaterCloseWinsOnRecord() throws {
    try together { people in
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      try people.as(.alice) { try $0.write(alice, "from alice") }
      try people.as(.bob) { try $0.write(bob, "from bob") }
      try people.as(.alice) { try $0.close(alice) }
      try people.as(.bob) { (me) throws in
        #expect(try me.read(bob) == "from bob")
        try me.close(bob)
      }
      try people.as(.alice) { (me) throws in
        #expect(try me.read(mine) == "from bob")
        let versions = try me.versions(mine)
        #expect(versions.map(\.author.description) == ["alice@example.com", "alice@example.com", "bob@example.com"])
        #expect(versions.map(\.base) == [nil, 1, 1])
        #expect(try me.attribute("conflict", mine) == "2")
        #expect(try me.library.itemStatus(me.path(mine)).conflict == 2)
      }
      // Who saves on top has seen both.
      try people.as(.bob) { (me) throws in
        #expect(try me.attribute("conflict", theirs) == "2")
        try me.save(theirs, "merged")
        expect(.noAttribute) { _ = try me.attribute("conflict", theirs) }
      }
    }
  }

  /// Both write at once, and save one after the other.
  private func conflict(_ people: People) throws {
    let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
    let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
    try people.as(.alice) { try $0.write(alice, "x") }
    try people.as(.bob) { try $0.write(bob, "y") }
    try people.as(.alice) { try $0.close(alice) }
    try people.as(.bob) { try $0.close(bob) }
  }

  @Test func aConflictIsDismissed() throws {
    try together { people in
      try conflict(people)
      try people.as(.alice) { (me) throws in
        try me.library.resolveConflict(me.path(mine))
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
      }
    }
  }

  @Test func aConflictGoesWithItsVersion() throws {
    try together { people in
      try conflict(people)
      try people.as(.alice) { (me) throws in
        try me.library.purge(me.path(mine), version: 1)
        #expect(try me.attribute("conflict", mine) == "2")
        try me.library.purge(me.path(mine), version: 2)
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
        #expect(try me.library.itemStatus(me.path(mine)).conflict == nil)
      }
    }
  }

  @Test func equalChangesMakeOneVersionAndNoConflict() throws {
    try together { people in
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      for (name, handle) in [(People.Name.alice, alice), (.bob, bob)] {
        try people.as(name) { try $0.write(handle, "same") }
      }
      for (name, handle) in [(People.Name.alice, alice), (.bob, bob)] { try people.as(name) { try $0.close(handle) } }
      try people.as(.alice) { (me) throws in
        #expect(try me.versions(mine).count == 2)
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
      }
    }
  }

  @Test func whoTakesTheirChangeBackLeavesTheOthers() throws {
    try together { people in
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      try people.as(.bob) { try $0.write(bob, "two") }
      try people.as(.alice) { try $0.save(mine, "alice's") }
      try people.as(.bob) { (me) throws in
        try me.write(bob, "one")
        try me.close(bob)
        #expect(try me.read(theirs) == "alice's")
      }
      try people.as(.alice) { (me) throws in
        #expect(try me.versions(mine).count == 2)
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
      }
    }
  }

  /// Both have version 1 before them; alice saves, then bob by the way of his editor.
  @Test(arguments: ["renaming a new file over", "renaming away and making anew", "truncating", "exchanging"])
  func whoSavesAnewIsOnTopOfWhatTheyRead(_ way: String) throws {
    try People.story { people in
      try people.as(.alice) { (me) throws in
        try me.mkdir("Documents/plans")
        try me.save("Documents/plans/a.md", "one")
      }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(1)
      let (mine, plans) = ("Documents/plans/a.md", "Shared/alice@example.com/plans")
      let theirs = "\(plans)/a.md"
      var saves = 0
      func saveAsBob(_ text: String, _ process: Int32) throws {
        saves += 1
        let new = "\(plans)/.a.md.\(saves)"
        try people.as(.bob, process: process) { (me) throws in
          switch way {
          case "truncating": try me.save(theirs, text)
          case "renaming away and making anew":
            try me.rename(theirs, "\(theirs)~")
            try me.save(theirs, text)
            try me.unlink("\(theirs)~")
          case "exchanging":
            try me.save(new, text)
            try me.exchange(new, theirs)
            try me.unlink(new)
          default:
            try me.save(new, text)
            try me.rename(new, theirs)
          }
        }
      }
      let editor = getpid()
      try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "one") }
      try people.as(.alice) { try $0.save(mine, "two") }
      // Another program of bob's has a look: that is not what his editor has before it.
      let other = getppid()
      try people.as(.bob, process: other) { (me) throws in #expect(try me.read(theirs) == "two") }
      try saveAsBob("bob's", editor)
      try people.as(.alice) { (me) throws in
        let last = try #require(try me.versions(mine).last)
        #expect(last.number == 3 && last.base == 1 && last.author == People.Name.bob.handle)
        #expect(try me.attribute("conflict", mine) == "2" && me.read(mine) == "bob's")
      }
      try people.as(.bob) { (me) throws in #expect(try me.attribute("conflict", theirs) == "2") }
      // Saving again, bob's editor goes on from its own.
      try saveAsBob("bob's again", editor)
      try people.as(.alice) { (me) throws in
        #expect(try me.versions(mine).last?.base == 3)
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
        try me.save(mine, "alice's")
      }
      // Whoever looked before is on top.
      try people.as(.bob, process: editor) { (me) throws in #expect(try me.read(theirs) == "alice's") }
      try saveAsBob("the end", editor)
      try people.as(.alice) { (me) throws in
        #expect(try me.versions(mine).last?.base == 5)
        expect(.noAttribute) { _ = try me.attribute("conflict", mine) }
      }
    }
  }

  /// Autosaves of both while both go on: each keeps their text, every version is whole, and only the current is open.
  @Test func autosavesOfBothNeverTear() throws {
    try together { people in
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      for round in 0..<6 {
        try people.as(.alice) { try $0.write(alice, "alice \(round)") }
        try people.as(.bob) { try $0.write(bob, "bob \(round) ...") }
        people.clock.advance(2)
        people.fixture.autosave()
        try people.as(.alice) { (me) throws in #expect(try me.read(alice) == "alice \(round)") }
        try people.fixture.expectSound()
      }
      try people.as(.alice) { try $0.close(alice) }
      try people.as(.bob) { try $0.close(bob) }
      try people.as(.alice) { (me) throws in
        let versions = try me.versions(mine)
        #expect(versions.allSatisfy { !$0.open })
        var texts: Set<String> = []
        for version in versions.dropFirst() {
          var bytes: [UInt8] = []
          try me.library.readVersion(me.path(mine), number: version.number) { bytes += $0 }
          let text = String(decoding: bytes, as: UTF8.self)
          texts.insert(text)
          #expect(text.hasPrefix(version.author.description.prefix { $0 != "@" }), "\(text) by \(version.author)")
        }
        for round in 0..<6 { #expect(texts.contains("alice \(round)") && texts.contains("bob \(round) ...")) }
      }
    }
  }

  @Test func whoReadsReadsWhatWasAutosaved() throws {
    try together { people in
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDONLY) }
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      try people.as(.alice) { try $0.write(alice, "two") }
      try people.as(.bob) { (me) throws in #expect(try me.read(bob) == "one") }
      people.clock.advance(2)
      people.fixture.autosave()
      try people.as(.bob) { (me) throws in
        #expect(try me.read(bob) == "two")
        #expect(try me.read(theirs) == "two")
      }
      for handle in [alice, bob] { try people.library.release(handle) }
      // Nobody's draft is left behind.
      let left = people.library.locked { people.library.inodes.all.count { !$0.others.isEmpty } }
      #expect(left == 0)
    }
  }

  /// What refers to the chunks of a version that is renewed keeps them, whoever it is.
  @Test(arguments: ["copying", "copying with the file open", "writing", "linking a backup"])
  func whatWasAutosavedOutlivesItsRenewal(_ way: String) throws {
    try together { people in
      var random = SeededRandom()
      let (old, new) = (random.bytes(200_000), random.bytes(200_000))
      let alice = try people.as(.alice) { try $0.open(mine, O_RDWR) }
      func autosave(_ bytes: [UInt8]) throws {
        try people.fixture.write(alice, bytes)
        people.clock.advance(2)
        people.fixture.autosave()
      }
      var bob: UInt64?
      if way == "copying with the file open" { bob = try people.as(.bob) { try $0.open(theirs, O_RDONLY) } }
      try autosave(old)
      switch way {
      case "writing":
        bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
        try people.as(.bob) { try $0.write(bob!, "b") }
        try autosave(new)
        try people.as(.bob) { try $0.close(bob!) }
        try people.as(.alice) { try $0.close(alice) }
        let bytes = try people.fixture.read("a.md")
        #expect(bytes == [UInt8(ascii: "b")] + old.dropFirst(), random.note)
      case "linking a backup":
        try people.as(.alice) { try $0.link(mine, mine + "~") }
        try autosave(new)
        try people.library.release(alice)
        #expect(try people.fixture.holds("a.md~", old), random.note)
      default:
        let source = try bob ?? people.as(.bob) { try $0.open(theirs, O_RDONLY) }
        let copy = try people.as(.bob) { try $0.open("Documents/b", O_RDWR | O_CREAT) }
        #expect(try people.library.copy(from: source, at: 0, to: copy, at: 0, count: 200_000) == 200_000)
        try people.as(.bob) { try $0.close(copy) }
        try people.library.release(source)
        try autosave(new)
        try people.library.release(alice)
        let again = try people.as(.bob) { try $0.open("Documents/b", O_RDONLY) }
        #expect(try people.fixture.read(again) == old, random.note)
        try people.library.release(again)
      }
    }
  }

  @Test func aMergeOverARenameKeepsBoth() throws {
    try together { people in
      let bob = try people.as(.bob) { try $0.open(theirs, O_RDWR) }
      try people.as(.bob) { try $0.write(bob, "from bob") }
      try people.as(.alice, process: getpid()) { (me) throws in
        try me.save("Documents/.a.md.tmp", "from alice")
        try me.rename("Documents/.a.md.tmp", mine)
        let versions = try me.versions(mine)
        #expect(versions.map(\.author.description) == ["alice@example.com", "bob@example.com", "alice@example.com"])
        #expect(try me.read(mine) == "from alice")
      }
      try people.library.release(bob)
    }
  }
}
