import Foundation
import Glibc
import SheafModel
import Testing

@testable import SheafLibrary

/// What is told where something passes the border of a share: by being moved, or as that begins while it is made.
extension EventVisibilityTests {
  /// Has a folder made and shared by alice.
  private func share(_ people: People, _ folder: String, with names: People.Name...) throws {
    try people.as(.alice) { try $0.mkdir("Documents/\(folder)") }
    try people.share("Documents/\(folder)", with: names.map { ($0, .readWrite) })
  }

  /// Lets everything become old and be told; gives the number of the newest event.
  private func rest(_ people: People) throws -> Int64 {
    people.clock.advance(60)
    try settle(people)
    return people.library.lastEvent
  }

  private func id(_ people: People, _ path: String) throws -> String {
    try people.as(.alice) { try $0.attribute("id", "Documents/\(path)") }
  }

  private func subjects(_ people: People, _ name: People.Name, after position: Int64) throws -> [String] {
    try people.library.events(after: position, limit: 100, for: name.handle).events.map(\.subject)
  }

  /// What is logged while a page is read is for the next one, which knows who sees it.
  @Test func aPageEndsWhereItIsKnownWhoSeesWhat() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let position = try rest(people)
      let known = try [People.Name.bob.handle, nil].map { try people.library.eventVisibility($0) }
      try people.as(.alice) { try $0.share("Documents/plans", with: [.bob]) }
      let erin = try AccountHandle("erin@example.com")
      _ = try people.library.addAccount(erin, name: nil)
      _ = try people.library.make(
        .folder, people.library.documents(of: erin), Array("hers".utf8), mode: 0o755, .library)
      try settle(people)
      for visibility in known {
        let page = try people.library.events(after: position, limit: 100, as: visibility)
        #expect(page == EventPage(events: [], next: position, last: position))
      }
      #expect(try seen(people, .bob, after: position) == ["updated plans"])
      #expect(try seen(people, nil, after: position).last == "created hers")
    }
  }

  // MARK: - While it is made

  @Test func whatIsStillMadeWhenItsFolderIsSharedIsToldToThoseWhoJoin() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      _ = try rest(people)
      let handle = try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.save("Documents/plans/done.md", "x")
        try alice.library.locked { try alice.library.settleSessions() }
        return try alice.open("Documents/plans/long.md", O_RDWR | O_CREAT)
      }
      try people.as(.alice) { try $0.write(handle, "one") }
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      let joined = people.library.lastEvent
      try people.as(.alice) { (alice) throws in
        try alice.write(handle, "two")
        try alice.close(handle)
      }
      #expect(try seen(people, .bob, after: joined) == ["created plans/long.md"])
      #expect(try seen(people, .bob).allSatisfy { !$0.contains("done.md") })
      let created = try people.library.events(after: joined, limit: 10, for: People.Name.alice.handle).events
      #expect(created.map(\.data.share?.title) == ["plans"])
    }
  }

  /// Whether it is in memory by then does not matter, as after a crash.
  @Test func whatIsStillMadeWhenItsFolderMovesIsToldWhereItIs() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/new") }
      try share(people, "team", with: .bob)
      let before = try rest(people)
      let handle = try people.as(.alice, process: getpid()) { try $0.open("Documents/new/long.md", O_RDWR | O_CREAT) }
      try people.as(.alice) { (alice) throws in
        try alice.write(handle, "one")
        try alice.rename("Documents/new", "Documents/team/new")
        try alice.close(handle)
      }
      people.library.locked {
        try? people.library.settleSessions()
        people.library.inodes = InodeTable()
      }
      #expect(try seen(people, .bob, after: before) == ["created team/new", "created team/new/long.md"])
      let own = try seen(people, .alice, after: before)
      #expect(own == ["moved team/new was new", "created team/new/long.md"])
    }
  }

  private func made(_ people: People, _ name: People.Name, after position: Int64) throws -> [String] {
    try seen(people, name, after: position).filter { $0.hasPrefix("created ") }
  }

  /// It may still be a temporary file of its program, and has no event yet.
  @Test func whatWasMadeBeforeSomebodyJoinsIsToldToTheOthersAlone() throws {
    try People.story { people in
      try share(people, "plans", with: .carol)
      let before = try rest(people)
      for name in ["new", "again"] {
        try people.as(.alice, process: getpid()) { (alice) throws in
          try alice.close(alice.open("Documents/plans/\(name)", O_RDWR | O_CREAT))
        }
        people.clock.advance(4)
        try people.share("Documents/plans", with: [(.bob, .readWrite)])
        people.clock.advance(60)
        try settle(people)
        if name == "new" { try people.as(.alice) { try $0.remove("Documents/plans", .bob) } }
      }
      #expect(try made(people, .bob, after: before) == [])
      for name in [People.Name.alice, .carol] {
        #expect(try made(people, name, after: before) == ["created plans/new", "created plans/again"])
      }
      let position = people.library.lastEvent
      try people.as(.alice) { try $0.save("Documents/plans/new", "x") }
      #expect(try seen(people, .bob, after: position) == ["edit plans/new"])
    }
  }

  @Test func whatEntersAShareWhileItIsMadeIsToldToThoseWhoAreThere() throws {
    try People.story { people in
      try share(people, "plans", with: .carol)
      let before = try rest(people)
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.close(alice.open("Documents/new", O_RDWR | O_CREAT))
      }
      people.clock.advance(4)
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(1)
      try people.as(.alice, process: getpid()) { try $0.rename("Documents/new", "Documents/plans/new") }
      people.clock.advance(1)
      try people.share("Documents/plans", with: [(.dan, .readWrite)])
      people.clock.advance(60)
      for name in [People.Name.bob, .carol] {
        #expect(try made(people, name, after: before) == ["created plans/new"])
      }
      #expect(try made(people, .dan, after: before) == [])
    }
  }

  /// By its time it was made before.
  @Test func whatIsMadeByAClockThatWasPutBackIsToldToThoseWhoAreThere() throws {
    try People.story { people in
      try share(people, "plans", with: .carol)
      people.clock.advance(20)
      try people.share("Documents/plans", with: [(.bob, .readWrite)])
      people.clock.advance(-5)
      try people.as(.alice, process: getpid()) { (alice) throws in
        try alice.close(alice.open("Documents/plans/new", O_RDWR | O_CREAT))
      }
      people.clock.advance(60)
      #expect(try made(people, .bob, after: 0) == ["created plans/new"])
    }
  }

  /// Its event comes when the session ends: with the next process, where this one is killed.
  @Test func whatWasSavedBeforeSomebodyJoinsIsToldToTheOthersAlone() throws {
    try People.story { people in
      try share(people, "plans", with: .carol)
      try people.as(.alice) { try $0.save("Documents/plans/a.md", "one") }
      let before = try rest(people)
      let handle = try people.as(.alice) { (alice) throws in
        let handle = try alice.open("Documents/plans/a.md", O_RDWR)
        try alice.write(handle, "two")
        try alice.library.fsync(alice.inode("Documents/plans/a.md"))
        return handle
      }
      people.clock.advance(4)
      let url = try people.as(.alice) { (alice) throws in
        try alice.add("Documents/plans", .bob, .readOnly)
        return try alice.share("Documents/plans").url
      }
      try people.as(.bob) { _ = try $0.accept(url) }
      let folder = people.fixture.folder + "/killed"
      try people.library.copyAsKilled(to: folder)
      let next = try LibraryFixture(at: folder + "/library.sqlite", clock: people.clock)
      func edits(_ name: People.Name) throws -> Int {
        try next.library.events(after: before, limit: 100, for: name.handle).events.count { $0.type == .edit }
      }
      #expect(try [edits(.alice), edits(.carol), edits(.bob)] == [1, 1, 0])
      try next.finish()
      try people.as(.alice) { try $0.close(handle) }
    }
  }

  // MARK: - Moved

  @Test func whoSawWhatReplacesAnotherOneElsewhereIsToldThatItIsGone() throws {
    try People.story { people in
      try share(people, "plans", with: .bob, .carol)
      try share(people, "trips", with: .carol, .dan)
      try people.as(.alice) { (alice) throws in
        for name in ["plans/a.md", "plans/b.md", "trips/c.md", "d.md"] { try alice.save("Documents/\(name)", name) }
      }
      var position = try rest(people)
      let ids = try ["plans/a.md", "plans/b.md", "trips/c.md"].map { try id(people, $0) }
      try people.as(.alice) { try $0.rename("Documents/plans/a.md", "Documents/d.md") }
      #expect(try seen(people, .bob, after: position) == ["deleted plans/a.md"])
      #expect(try subjects(people, .bob, after: position) == [ids[0]])
      #expect(
        try seen(people, .alice, after: position) == ["edit d.md was plans/a.md", "deleted plans/a.md"])
      // It can come back as what it was.
      position = people.library.lastEvent
      _ = try people.library.recover(ItemPath(account: People.Name.alice.handle, "Documents/plans/a.md"), id: nil) {
        _ in
      }
      #expect(try seen(people, .bob, after: position) == ["created plans/a.md"])
      #expect(try subjects(people, .bob, after: position) == [ids[0]])
      // Over one that others see.
      position = people.library.lastEvent
      try people.as(.alice) { try $0.rename("Documents/plans/b.md", "Documents/trips/c.md") }
      #expect(try seen(people, .bob, after: position) == ["deleted plans/b.md"])
      #expect(try seen(people, .dan, after: position) == ["edit trips/c.md"])
      #expect(try seen(people, .carol, after: position) == ["edit trips/c.md was plans/b.md", "deleted plans/b.md"])
      #expect(try subjects(people, .carol, after: position) == [ids[2], ids[1]])
    }
  }

  /// Where both places are in the share, the edit tells of it.
  @Test func whatReplacesAnotherOneInItsShareIsOneEvent() throws {
    try People.story { people in
      try share(people, "plans", with: .bob)
      try people.as(.alice) { (alice) throws in
        for name in ["a.md", "b.md"] { try alice.save("Documents/plans/\(name)", name) }
      }
      let position = try rest(people)
      try people.as(.alice) { try $0.rename("Documents/plans/a.md", "Documents/plans/b.md") }
      #expect(try seen(people, .bob, after: position) == ["edit plans/b.md was plans/a.md"])
      #expect(try seen(people, .alice, after: position) == ["edit plans/b.md was plans/a.md"])
    }
  }

  @Test func aSharedFolderThatIsReplacedIsDeleted() throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/new") }
      try share(people, "plans", with: .bob)
      let position = try rest(people)
      let plans = try id(people, "plans")
      try people.as(.alice) { try $0.rename("Documents/new", "Documents/plans") }
      #expect(try seen(people, .bob, after: position) == ["deleted plans"])
      #expect(try subjects(people, .bob, after: position) == [plans])
      #expect(try seen(people, .alice, after: position) == ["deleted plans", "renamed plans was new"])
      #expect(try people.as(.bob) { try $0.entries(.alice) } == [])
    }
  }

  @Test func whatGoesFromOneShareToAnotherIsMovedForWhoSeesBoth() throws {
    try People.story { people in
      try share(people, "plans", with: .bob, .carol)
      try people.as(.alice) { try $0.mkdir("Documents/private") }
      try share(people, "private/plans", with: .bob, .dan)
      try people.as(.alice) { try $0.save("Documents/plans/a.md", "x") }
      let position = try rest(people)
      try people.as(.alice) { try $0.rename("Documents/plans/a.md", "Documents/private/plans/a.md") }
      #expect(try seen(people, .bob, after: position) == ["moved plans/a.md was plans/a.md"])
      #expect(try seen(people, .carol, after: position) == ["deleted plans/a.md"])
      #expect(try seen(people, .dan, after: position) == ["created plans/a.md"])
    }
  }

  // MARK: - Out, and back

  /// What they saw stays what they saw, of other people too.
  @Test func whoIsOutKeepsTheNewsOfOthers() throws {
    try People.story { people in
      try share(people, "plans", with: .bob)
      let url = try people.share("Documents/plans", with: [(.carol, .readOnly)])
      try people.as(.alice) { try $0.save("Documents/plans/a.md", "x") }
      let before = try seen(people, .bob)
      #expect(before.suffix(3) == ["updated plans", "added plans", "created plans/a.md"])
      try people.as(.bob) { try $0.library.leave($0.path("Shared/alice@example.com/plans")) }
      #expect(try seen(people, .bob) == before + ["removed plans"])
      // Nor does an invitation take it away, accepted or not, and whatever becomes of the share.
      try people.as(.alice) { try $0.add("Documents/plans", .bob, .readOnly) }
      #expect(try seen(people, .bob) == before + ["removed plans", "updated plans"])
      try people.as(.alice) { try $0.library.unshare($0.path("Documents/plans")) }
      #expect(try seen(people, .bob) == before + ["removed plans", "updated plans"])
      expect(.notFound) { _ = try people.as(.bob) { try $0.accept(url) } }
    }
  }

  @Test(arguments: [true, false])
  func aPublicUserWhoIsOutSeesNoNewsOfOthers(_ isRemoved: Bool) throws {
    try People.story { people in
      try people.as(.alice) { try $0.mkdir("Documents/plans") }
      let url = try people.as(.alice) { try $0.share("Documents/plans") { $0.anyone = .readOnly } }.url
      try people.as(.bob) { _ = try $0.accept(url) }
      try people.share("Documents/plans", with: [(.carol, .readOnly)])
      #expect(try seen(people, .bob) == ["added plans"])
      if isRemoved {
        try people.as(.alice) { try $0.remove("Documents/plans", .bob) }
      } else {
        try people.as(.bob) { try $0.library.leave($0.path("Shared/alice@example.com/plans")) }
      }
      #expect(try seen(people, .bob) == ["added plans", "removed plans"])
      try people.as(.alice) { try $0.add("Documents/plans", .bob, .readOnly) }
      #expect(try seen(people, .bob) == ["added plans", "removed plans", "updated plans"])
    }
  }
}
