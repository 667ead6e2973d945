import Foundation
import SheafModel
import Testing

@testable import SheafLibrary

/// One event for each thing that a person did.
struct EventLogTests {
  /// A program that is not running any more.
  private func program(_ number: Int32) -> Caller { Caller(uid: 0, gid: 0, thread: number, door: 0, groups: { [] }) }

  private func withLibrary(_ body: (LibraryFixture) throws -> Void) throws {
    let fixture = try LibraryFixture()
    try body(fixture)
    try fixture.finish()
  }

  private func unlink(_ fixture: LibraryFixture, _ path: String, _ caller: Caller) throws {
    let (parent, name) = try fixture.place(path)
    try fixture.library.unlink(parent, name, caller)
  }

  private func rmdir(_ fixture: LibraryFixture, _ path: String, _ caller: Caller) throws {
    let (parent, name) = try fixture.place(path)
    try fixture.library.rmdir(parent, name, caller)
  }

  /// Lets what is open be settled, and gives what was logged since the last time.
  private func events(_ fixture: LibraryFixture, after position: inout Int64) throws -> [Event] {
    fixture.clock.advance(20)
    try fixture.library.locked {
      try fixture.library.settleSessions()
      try fixture.library.settleEvents(all: true)
    }
    let page = try fixture.library.events(after: position, limit: 1000, for: nil)
    position = page.next
    return page.events
  }

  /// A tree of established documents.
  private func makeTree(_ fixture: LibraryFixture) throws -> Int64 {
    for folder in ["t", "t/a", "t/a/b"] { try fixture.mkdir(folder) }
    for file in ["t/1", "t/a/2", "t/a/b/3", "t/a/b/4"] { try fixture.save(file, file) }
    var position: Int64 = 0
    _ = try events(fixture, after: &position)
    return position
  }

  /// As git makes an object: the name that it was made under is gone before anybody hears of it.
  @Test func aFileThatGotAnotherNameBeforeIsToldWithThat() throws {
    try withLibrary { fixture in
      try fixture.mkdir("k")
      var position: Int64 = 0
      _ = try events(fixture, after: &position)
      let (git, rm) = (program(4_100_001), program(4_100_002))
      let (parent, name) = try fixture.place("k/tmp_obj_x")
      let made = try fixture.library.create(parent, name, mode: 0o444, flags: O_RDWR, git)
      try fixture.write(made.handle, Array("hello".utf8))
      try fixture.close(made.handle)
      _ = try fixture.library.link(made.attributes.ino, parent, Array("final".utf8), git)
      try unlink(fixture, "k/tmp_obj_x", git)
      try unlink(fixture, "k/final", rm)
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.type) == [.created, .deleted])
      #expect(logged.allSatisfy { $0.data.item.name == "final" && $0.data.item.path == "k/final" })
    }
  }

  /// What an exchange leaves under the name of no backup is a document of which people hear.
  @Test func whatAnExchangeLeavesIsTold() throws {
    try withLibrary { fixture in
      try fixture.save("doc", "old")
      var position: Int64 = 0
      _ = try events(fixture, after: &position)
      let editor = program(4_100_001)
      for (name, isTold) in [("new", true), ("doc~", false)] {
        let (parent, bytes) = try fixture.place(name)
        let made = try fixture.library.create(parent, bytes, mode: 0o644, flags: O_RDWR, editor)
        try fixture.write(made.handle, Array("new \(name)".utf8))
        try fixture.close(made.handle)
        let document = try fixture.library.lookup(parent, Array("doc".utf8), editor).ino
        try fixture.library.rename(parent, bytes, to: parent, Array("doc".utf8), .exchange, editor)
        #expect(try fixture.ino(name) == document)
        let logged = try events(fixture, after: &position)
        let told = logged.map { "\($0.type) \($0.data.item.name)" }.sorted()
        #expect(told == (isTold ? ["created \(name)"] : []) + ["edit doc"])
        try fixture.save(name, "by others")
        #expect(try events(fixture, after: &position).map(\.type) == (isTold ? [.edit] : []))
      }
    }
  }

  /// It may be a temporary file for a while, and not for as long as it is saved again and again.
  @Test(arguments: [false, true]) func aProgramThatGoesOnSavingANewFileIsNotWaitedFor(_ staysOpen: Bool) throws {
    try withLibrary { fixture in
      let living = program(Int32(getppid()))
      let (parent, name) = try fixture.place("app.log")
      let made = try fixture.library.create(parent, name, mode: 0o644, flags: O_RDWR, living)
      try fixture.write(made.handle, Array("0".utf8))
      try fixture.close(made.handle)
      let open = staysOpen ? try fixture.library.open(made.attributes.ino, flags: O_WRONLY, living) : nil
      func told() throws -> [EventType] {
        // Upkeep ends what was closed, soon after.
        try fixture.library.locked { try fixture.library.settleSessions() }
        try fixture.library.settleDueEventsInSteps()
        return try fixture.library.events(after: 0, limit: 10, for: nil).events.map(\.type)
      }
      for _ in 1...4 {
        fixture.clock.advance(3)
        #expect(try told() == [])
        let handle = try open ?? fixture.library.open(made.attributes.ino, flags: O_WRONLY, living)
        try fixture.write(handle, Array("\(fixture.clock.now)".utf8))
        if open == nil { try fixture.close(handle) }
      }
      fixture.clock.advance(3)
      #expect(try told().first == .created)
      if let open { try fixture.close(open) }
    }
  }

  @Test func deletingAFolderIsOneEvent() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      let rm = program(4_100_001)
      for file in ["t/a/b/3", "t/a/b/4"] { try unlink(fixture, file, rm) }
      try rmdir(fixture, "t/a/b", rm)
      try unlink(fixture, "t/a/2", rm)
      try rmdir(fixture, "t/a", rm)
      try unlink(fixture, "t/1", rm)
      try rmdir(fixture, "t", rm)
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.type) == [.deleted])
      let data = try #require(logged.first?.data)
      #expect(data.item.path == "t" && data.item.kind == "folder" && data.contentCount == 6)
      #expect(
        Set(data.contents?.map(\.path) ?? []) == ["t/1", "t/a", "t/a/2", "t/a/b", "t/a/b/3", "t/a/b/4"])
      // All of it comes back, and its return comes after: one event, too.
      #expect(try fixture.library.recover(fixture.path("t"), id: nil) { _ in }.count == 7)
      let back = try events(fixture, after: &position)
      #expect(back.map(\.type) == [.created] && back.map(\.subject) == logged.map(\.subject))
      #expect(back[0].data.item.path == "t" && back[0].data.contentCount == 6)
      #expect(Set(back[0].data.contents?.map(\.path) ?? []) == Set(data.contents?.map(\.path) ?? []))
      #expect(back[0].sentence() == "Alice recovered t with 6 items in it")
      // Whoever asks for one of them hears of both.
      let scope = try fixture.library.eventScope(fixture.path("t/a/b/3"))
      let told = try fixture.library.events(after: nil, limit: 1000, for: fixture.account, in: scope).events
      #expect(told.map(\.type) == [.created, .deleted, .created])
    }
  }

  @Test func aDocumentThatComesBackSaysSoAndSoDoTheFoldersAboveIt() throws {
    try withLibrary { fixture in
      try fixture.save("a", "text")
      for folder in ["t", "t/u"] { try fixture.mkdir(folder) }
      try fixture.save("t/u/b", "text")
      var position: Int64 = 0
      _ = try events(fixture, after: &position)
      try fixture.unlink("a")
      try fixture.unlink("t/u/b")
      for folder in ["t/u", "t"] { try fixture.rmdir(folder) }
      _ = try events(fixture, after: &position)
      _ = try fixture.library.recover(fixture.path("a"), id: nil) { _ in }
      let alone = try events(fixture, after: &position)
      #expect(alone.map { $0.sentence() } == ["Alice recovered a"] && alone[0].data.version?.number == 1)
      _ = try fixture.library.recover(fixture.path("t/u/b"), id: nil) { _ in }
      let back = try events(fixture, after: &position)
      #expect(back.map { $0.sentence() } == ["Alice recovered t with the item in it", "Alice recovered b"])
      #expect(back[0].data.contents?.map(\.path) == ["t/u"] && back[1].data.item.path == "t/u/b")
    }
  }

  @Test func destroyingAFolderIsOneEvent() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      try fixture.library.purge(fixture.path("t"), version: nil)
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.type) == [.deleted] && logged[0].data.contentCount == 6 && logged[0].data.item.path == "t")
    }
  }

  @Test func aFolderIsNotGoneBeforeWhatWasInItIsThere() throws {
    try withLibrary { fixture in
      try fixture.mkdir("t")
      var position: Int64 = 0
      _ = try events(fixture, after: &position)
      // Made by a program that lives, deleted by one that has ended.
      let (parent, name) = try fixture.place("t/a")
      let handle = try fixture.library.create(
        parent, name, mode: 0o644, flags: O_RDWR | O_CREAT, program(getpid())
      ).handle
      try fixture.library.flush(handle)
      try fixture.library.release(handle)
      try unlink(fixture, "t/a", program(4_100_001))
      try rmdir(fixture, "t", program(4_100_001))
      fixture.clock.advance(3)
      try fixture.library.locked { try fixture.library.settleEvents() }
      #expect(try fixture.library.events(after: position, limit: 10, for: nil).events.isEmpty)
      fixture.clock.advance(20)
      try fixture.library.locked { try fixture.library.settleEvents() }
      let logged = try fixture.library.events(after: position, limit: 10, for: nil).events
      #expect(logged.map(\.data.item.path) == ["t/a", "t"] && logged.map(\.type) == [.created, .deleted])
    }
  }

  @Test func whatAnotherProgramDeletedIsAnEventOfItsOwn() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      try unlink(fixture, "t/1", program(4_100_001))
      let rm = program(4_100_002)
      for file in ["t/a/b/3", "t/a/b/4"] { try unlink(fixture, file, rm) }
      try rmdir(fixture, "t/a/b", rm)
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.data.item.path) == ["t/1", "t/a/b"] && logged.map(\.data.contentCount) == [nil, 2])
    }
  }

  @Test(arguments: [300, 5000])
  func aManyTimesLargerFolderIsOneEventToo(_ count: Int) throws {
    try withLibrary { fixture in
      try fixture.mkdir("t")
      for number in 1...count { try fixture.mkdir("t/\(number)") }
      var position: Int64 = 0
      while try !events(fixture, after: &position).isEmpty {}
      let rm = program(4_100_001)
      for number in 1...count { try rmdir(fixture, "t/\(number)", rm) }
      try rmdir(fixture, "t", rm)
      let logged = try events(fixture, after: &position)
      #expect(logged.count == 1 && logged.first?.data.contentCount == Int64(count))
      #expect(logged.first?.data.contents?.map(\.path) == (1...100).map { "t/\($0)" })
    }
  }

  @Test func deletionsOfALargeFolderThatStaysAreEventsEach() throws {
    try withLibrary { fixture in
      try fixture.mkdir("t")
      for number in 1...3000 { try fixture.mkdir("t/\(number)") }
      var position: Int64 = 0
      while try !events(fixture, after: &position).isEmpty {}
      for number in 1...3000 { try rmdir(fixture, "t/\(number)", program(4_100_001)) }
      var paths: [String] = []
      while true {
        let logged = try events(fixture, after: &position)
        if logged.isEmpty { break }
        paths += logged.map(\.data.item.path)
      }
      #expect(paths == (1...3000).map { "t/\($0)" })
    }
  }

  @Test func aDeletionThatTakesLongIsOneEvent() throws {
    try withLibrary { fixture in
      try fixture.mkdir("t")
      for number in 1...3000 { try fixture.mkdir("t/\(number)") }
      var position: Int64 = 0
      while try !events(fixture, after: &position).isEmpty {}
      // A program that lives, and takes twice the time for which it is waited otherwise.
      let rm = program(getpid())
      for number in 1...3000 {
        try rmdir(fixture, "t/\(number)", rm)
        fixture.clock.advance(milliseconds: 10)
        if number % 100 == 0 { try fixture.library.locked { try fixture.library.settleEvents() } }
      }
      #expect(try fixture.library.events(after: position, limit: 1, for: nil).events.isEmpty)
      // When it pauses, what it did so far is told.
      fixture.clock.advance(20)
      try fixture.library.locked { try fixture.library.settleEvents() }
      #expect(try !fixture.library.events(after: position, limit: 1, for: nil).events.isEmpty)
    }
  }

  @Test func movingAFolderIsOneEvent() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      try fixture.rename("t/a", "a2")
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.type) == [.moved])
      #expect(logged[0].data.previousPath == "t/a" && logged[0].data.previousName == "a")
      #expect(logged[0].data.item.path == "a2" && logged[0].data.item.name == "a2")
    }
  }

  /// Makes a document as a program does.
  private func make(_ fixture: LibraryFixture, _ path: String, _ caller: Caller) throws {
    let handle = try begin(fixture, path, caller)
    try fixture.close(handle)
  }

  /// Begins to.
  private func begin(_ fixture: LibraryFixture, _ path: String, _ caller: Caller) throws -> UInt64 {
    let (parent, name) = try fixture.place(path)
    let handle = try fixture.library.create(parent, name, mode: 0o644, flags: O_RDWR | O_CREAT, caller).handle
    try fixture.write(handle, Array(path.utf8))
    return handle
  }

  private func rename(_ fixture: LibraryFixture, _ path: String, _ newPath: String, _ caller: Caller) throws {
    let ((parent, name), (newParent, newName)) = (try fixture.place(path), try fixture.place(newPath))
    try fixture.library.rename(parent, name, to: newParent, newName, .replace, caller)
  }

  /// `moved u/a was t/a`.
  private func line(_ event: Event) -> String {
    "\(event.type.rawValue.split(separator: ".").last ?? "") \(event.data.item.path)"
      + (event.data.previousPath.map { " was \($0)" } ?? "")
  }

  @Test func whatWasDoneInAFolderIsToldBeforeItMoves() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      let shell = program(getpid())
      try make(fixture, "t/new", shell)
      try make(fixture, "t/a/new", shell)
      try rename(fixture, "t/a/new", "t/a/newer", program(4_100_001))
      let unfinished = try begin(fixture, "t/unfinished", shell)
      try rename(fixture, "t", "u", program(4_100_001))
      let page = try fixture.library.events(after: position, limit: 10, for: nil)
      #expect(
        page.events.map(line) == [
          "created t/new", "created t/a/new", "renamed t/a/newer was t/a/new", "renamed u was t",
        ])
      position = page.next
      // What was still being made then is told where it is now.
      try fixture.close(unfinished)
      #expect(try events(fixture, after: &position).map(line) == ["created u/unfinished"])
      #expect(try events(fixture, after: &position).isEmpty)
    }
  }

  @Test func whatAProgramPutsInPlaceIsCreatedThere() throws {
    try withLibrary { fixture in
      let (parent, _) = try fixture.place("staged.tmp")
      let installer = program(getpid())
      _ = try fixture.library.make(.folder, parent, Array("staged.tmp".utf8), mode: 0o755, installer)
      try make(fixture, "staged.tmp/a", installer)
      try make(fixture, "staged.tmp/b", installer)
      try rename(fixture, "staged.tmp/b", "b", installer)
      try rename(fixture, "staged.tmp", "final", installer)
      var position: Int64 = 0
      #expect(
        Set(try events(fixture, after: &position).map(line)) == ["created final", "created final/a", "created b"])
    }
  }

  @Test func movingWhatAnotherProgramJustMadeIsAnEvent() throws {
    try withLibrary { fixture in
      var position = try makeTree(fixture)
      try make(fixture, "a", program(getpid()))
      try fixture.library.locked { try fixture.library.settleSessions() }
      try fixture.save("a", "more")
      try rename(fixture, "a", "b", program(4_100_001))
      try rename(fixture, "b", "t/b", program(4_100_002))
      #expect(
        try events(fixture, after: &position).map(line) == [
          "created a", "edit a", "renamed b was a", "moved t/b was b",
        ])
    }
  }

  @Test func renamingOverADocumentIsOneEvent() throws {
    try withLibrary { fixture in
      try fixture.save("a", "new text")
      try fixture.save("b", "old text")
      try fixture.save("c", "old text")
      var position: Int64 = 0
      _ = try events(fixture, after: &position)
      let ids = try ["b", "c"].map { try fixture.library.itemStatus(fixture.path($0)).id }
      try fixture.rename("a", "b")
      let logged = try events(fixture, after: &position)
      #expect(logged.map(\.type) == [.edit] && logged[0].subject == ids[0] && logged[0].data.previousPath == "a")
      let scope = try fixture.library.eventScope(fixture.path("a"))
      let told = try fixture.library.events(after: nil, limit: 10, for: fixture.account, in: scope).events
      #expect(told.map(line) == ["created a", "edit b was a"])
      // Equal contents make no version: that the other one is gone is told all the same.
      try fixture.save("b", "old text")
      _ = try events(fixture, after: &position)
      try fixture.rename("c", "b")
      let equal = try events(fixture, after: &position)
      #expect(equal.map(\.type) == [.deleted], "\(equal)")
      #expect(equal.first?.subject == ids[1] && equal.first?.data.item.path == "c")
    }
  }
}
