import Foundation
import Glibc
import SheafModel
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// What a replica survives: programs that write while the hub has something newer, copies of a library, a hub that
/// says what it must not.
@Suite struct ReplicaFaultTests {
  /// A program that writes a document, and has not closed it.
  private struct Writer {
    let machine: LibraryMachine
    let handle: UInt64
    let appends: Bool

    init(_ machine: LibraryMachine, _ path: String, appends: Bool) throws {
      self.machine = machine
      self.appends = appends
      let ino = try #require(try machine.inode(path))
      handle = try machine.library.open(ino, flags: O_RDWR | (appends ? O_APPEND : 0), machine.program)
    }

    func write(_ text: String) throws {
      try Array(text.utf8).withUnsafeBytes {
        try machine.library.write(
          handle, at: 0, $0, appends: appends, isWriteBack: false, by: nil, clearsCapability: false)
      }
    }

    func close() throws {
      try machine.library.flush(handle)
      try machine.library.release(handle)
    }
  }

  /// Its name is for a moment that of something new here, of which the hub has not heard yet.
  @Test func whatWaitsForItsNameGetsAllItsVersions() throws {
    try LibraryStory.tell { story in
      for text in ["one", "two", "three"] { try story.laptop.save(text, at: "trip.md") }
      try story.connect(story.laptop)
      let id = try #require(try story.laptop.id("trip.md"))
      try story.desktop.save("other", at: "trip.md")
      // The desktop's clock stands still, so its document is too young to be sent.
      for _ in 0..<20 where try !story.desktop.step(&story.hub, losesAnswer: false) {}
      #expect(try story.desktop.id("trip.md") != id && story.desktop.history(of: id).isEmpty)
      try story.sync()
      #expect(try story.desktop.history(of: id).values.map(\.text).sorted() == ["one", "three", "two"])
    }
  }

  /// A plan is made of what is, never of what the one before left half done, also after a restart.
  @Test func nothingIsPlannedBeforeTheFormerPlanIsDone() throws {
    try LibraryStory.tell { story in
      let (laptop, desktop) = (story.laptop, story.desktop)
      try story.sync()
      try laptop.save("one", at: "one.md")
      laptop.rest()
      while try laptop.library.sends(of: laptop.account, limit: 10).isEmpty {
        #expect(try laptop.step(&story.hub, losesAnswer: false))
      }
      try laptop.save("two", at: "two.md")
      laptop.rest()
      for _ in 0..<2 {
        #expect(try laptop.library.plan(laptop.account) == .planned([]))
        #expect(try laptop.library.sends(of: laptop.account, limit: 10).count == 1)
        try laptop.restart()
      }
      try story.connect(laptop)
      while try desktop.library.step(of: desktop.account) == nil {
        #expect(try desktop.step(&story.hub, losesAnswer: false))
      }
      try desktop.save("three", at: "three.md")
      desktop.rest()
      for _ in 0..<2 {
        #expect(try desktop.library.plan(desktop.account) == .planned([]))
        #expect(try desktop.library.sends(of: desktop.account, limit: 10).isEmpty)
        try desktop.restart()
      }
      try story.sync()
      #expect(story.paths == ["one.md", "three.md", "two.md"])
    }
  }

  /// A document is deleted here while a save of it is on its way, after another one: it comes back, since another machine
  /// changed it, and that save is still to be sent. Else nobody would have it once the machine frees its contents.
  @Test func whatWasSavedBeforeItWasDeletedIsSentWhenItComesBack() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one\ntwo\nthree\n", at: "trip.md")
      try story.sync()
      let id = try #require(try story.laptop.id("trip.md"))
      try story.desktop.save("one\ntwo\nTHREE\n", at: "trip.md")
      try story.connect(story.desktop)
      try story.laptop.save("ONE\ntwo\nthree\n", at: "trip.md")
      story.laptop.rest()
      while try story.laptop.library.sends(of: story.laptop.account, limit: 10).isEmpty {
        #expect(try story.laptop.step(&story.hub, losesAnswer: false))
      }
      try story.laptop.save("last before it was deleted\n", at: "trip.md")
      try story.laptop.remove("trip.md")
      try story.sync()
      #expect(story.hub.texts.contains("last before it was deleted\n"))
      #expect(story.paths.contains("trip.md") && story.paths.count <= 2, "\(story.paths)")
      #expect(try story.desktop.id("trip.md") == id)
    }
  }

  /// Until it is closed, the machine shows what the program wrote, and has nothing to do.
  @Test(arguments: [false, true])
  func whatAProgramWritesWaitsForItsEndAndIsComparedThen(_ appends: Bool) throws {
    try LibraryStory.tell { story in
      let poem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
      try story.laptop.save(poem, at: "trip.md")
      try story.sync()
      let writer = try Writer(story.laptop, "trip.md", appends: appends)
      try writer.write(appends ? "mine\n" : "ONE")
      let mine = appends ? poem + "mine\n" : poem.replacing("one", with: "ONE")
      let yours = poem.replacing("four", with: "FOUR")
      try story.desktop.save(yours, at: "trip.md")
      try story.connect(story.desktop)
      try story.connect(story.laptop)
      let ino = try #require(try story.laptop.inode("trip.md"))
      for _ in 0..<10 {
        story.laptop.rest()
        let isBusy = try story.laptop.step(&story.hub, losesAnswer: false)
        #expect(!isBusy, "it is planned again: \(story.laptop.stages.suffix(3))")
      }
      #expect(try story.laptop.text(ino) == mine)
      try writer.close()
      try story.sync()
      #expect(try story.text("trip.md") == mine.replacing("four", with: "FOUR"))
      #expect(story.paths == ["trip.md"] && story.hub.texts.isSuperset(of: [mine, yours]))
    }
  }

  @Test func whatAProgramWritesOnTheSameLineIsBeside() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one\n", at: "trip.md")
      try story.sync()
      let writer = try Writer(story.laptop, "trip.md", appends: false)
      try writer.write("ONE")
      try story.desktop.save("two\n", at: "trip.md")
      try story.connect(story.desktop)
      try story.connect(story.laptop)
      try writer.write("TWO")
      try story.connect(story.laptop)
      try writer.close()
      try story.sync()
      #expect(try story.text("trip.md") == "two\n")
      #expect(try story.text("trip (alice@hub.example 2027-01-15 laptop).md") == "TWO\n" && story.paths.count == 2)
    }
  }

  @Test func aDocumentThatIsOpenAndUnchangedShowsWhatIsNewAndGoesOnFromThere() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one\n", at: "log.txt")
      try story.sync()
      let writer = try Writer(story.laptop, "log.txt", appends: true)
      try story.desktop.save("one\ntwo\n", at: "log.txt")
      try story.sync()
      #expect(try story.text("log.txt") == "one\ntwo\n")
      try writer.write("three\n")
      try writer.close()
      try story.sync()
      #expect(try story.text("log.txt") == "one\ntwo\nthree\n" && story.paths == ["log.txt"])
    }
  }

  @Test func whatAProgramWritesAndOthersDeleteComesBack() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("plans")
      try story.laptop.save("one", at: "plans/trip.md")
      try story.sync()
      let writer = try Writer(story.laptop, "plans/trip.md", appends: true)
      try writer.write(" and more")
      try story.desktop.remove("plans")
      try story.connect(story.desktop)
      try story.connect(story.laptop)
      for _ in 0..<5 {
        story.laptop.rest()
        let isBusy = try story.laptop.step(&story.hub, losesAnswer: false)
        #expect(!isBusy, "it is planned again: \(story.laptop.stages.suffix(3))")
      }
      try writer.close()
      try story.sync()
      #expect(try story.text("plans/trip.md") == "one and more" && story.paths == ["plans", "plans/trip.md"])
    }
  }

  // MARK: - Copies of a library

  /// The copy takes over the key; the one that began first stops, says so, and keeps what it has.
  @Test(arguments: [false, true])
  func ofTwoCopiesOfALibraryOneStopsAndSaysSo(_ isHigherZone: Bool) throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "one.md")
      try story.sync()
      let copy = try story.laptop.copied(as: "copy")
      do {
        defer { try? copy.finish() }
        try copy.save("by the copy", at: "two.md")
        try story.connect(copy)
        try story.laptop.save("by the first", at: "three.md")
        let error = #expect(throws: SheafError.self) { try story.connect(story.laptop) }
        #expect(error?.kind == .busy && error?.reason.contains("copy of this library") == true)
        #expect(story.hub.texts == ["one", "by the copy"])
        // The copy goes on, and so does the first one with a key of its own.
        try copy.save("more", at: "two.md")
        try story.connect(copy)
        try story.laptop.connectAnew(toHigherZone: isHigherZone)
        try story.sync()
        try story.connect(copy)
        #expect(story.paths == ["one.md", "three.md", "two.md"])
        let ino = try #require(try copy.inode("three.md"))
        #expect(try copy.text(ino) == "by the first" && story.text("two.md") == "more")
      }
    }
  }

  /// The laptop gets back what it had an hour ago, after both machines went on: its library, or all of its disk.
  @Test(arguments: [false, true])
  func aLibraryOfAnHourAgoLosesNothingThatTheHubHas(_ isWhole: Bool) throws {
    try LibraryStory.tell { story in
      for name in ["a", "b", "c"] { try story.laptop.save("one", at: name) }
      try story.sync()
      try story.laptop.copy(.backup)
      try story.laptop.save("by the laptop", at: "a")
      try story.laptop.save("made since", at: "d")
      try story.laptop.remove("c")
      try story.sync()
      try story.desktop.save("by the desktop", at: "b")
      try story.desktop.move("d", to: "moved")
      try story.connect(story.desktop)
      _ = try story.laptop.putBack(.backup, withSerials: isWhole)
      try story.laptop.save("after", at: "e")
      try story.laptop.save("after that", at: "f")
      try story.sync()
      #expect(story.paths == ["a", "b", "e", "f", "moved"])
      #expect(try story.text("f") == "after that")
      #expect(try story.text("a") == "by the laptop" && story.text("b") == "by the desktop")
      #expect(try story.text("moved") == "made since" && story.text("e") == "after")
    }
  }

  // MARK: - A hub that says what it must not

  @Test func noDocumentGetsTheIdOfAnotherAccountsOrOfOneThatIsHere() throws {
    try LibraryStory.tell { story in
      let machine = story.laptop
      let bob = try AccountHandle("bob@hub.example")
      _ = try machine.library.addAccount(bob, name: nil)
      let folder = try machine.library.documents(of: bob)
      let account = try machine.library.number(of: bob)
      let caller = Caller(uid: 0, gid: 0, thread: 0, door: 0, account: account, groups: { [] })
      try machine.save("bob's", folder, "secret", caller)
      let secret = try machine.library.lookup(folder, Array("secret".utf8), caller).ino
      let item = try #require(
        try machine.library.locked { try machine.library.item(of: machine.library.inode(secret)) })
      try machine.save("mine", at: "a")
      try machine.save("other", at: "b")
      let (a, b) = (try #require(try machine.id("a")), try #require(try machine.id("b")))
      for id in [WireID(item.uuid), b] {
        let isDone = try machine.library.carryOut(
          0, .identify(a, as: id, versions: [:]), of: machine.account, contents: nil)
        #expect(!isDone)
      }
      #expect(try machine.id("a") == a && machine.id("b") == b)
      let kept = try machine.library.locked { try machine.library.item(of: machine.library.inode(secret)) }
      #expect(kept?.uuid == item.uuid)
      try story.sync()
      #expect(story.paths == ["a", "b"])
    }
  }
}
