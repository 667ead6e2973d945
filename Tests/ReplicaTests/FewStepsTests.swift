import Foundation
import SheafModel
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// A machine with thousands of new documents does nothing twice: what the hub has done needs no step and no second
/// comparison, and what it told is made under its name at once.
@Suite struct FewStepsTests {
  /// Names of the steps that a machine carried out since a place in its stages, and how many it carried out together.
  private static func steps(_ machine: LibraryMachine, from start: Int) -> [String] {
    machine.stages[start...].compactMap { stage in
      stage.hasPrefix("made together") ? stage : ["make", "set", "place", "delete"].first { stage.hasPrefix($0 + "(") }
    }
  }

  private static func isAtRest(_ machine: LibraryMachine) throws -> Bool {
    let counts = try machine.library.replicaCounts(machine.account)
    return counts == ReplicaCounts(changes: 0, saves: 0, sends: 0, news: 0, histories: 0)
  }

  @Test func whatWasSentIsNotLookedAtAgain() throws {
    try LibraryStory.tell { story in
      try story.sync()
      for folder in ["a", "b"] {
        try story.laptop.makeFolder(folder)
        for name in ["one", "two", "three"] { try story.laptop.save("\(folder) \(name)", at: "\(folder)/\(name)") }
      }
      let start = story.laptop.stages.count
      story.laptop.rest()
      var counts = try story.laptop.library.replicaCounts(story.laptop.account)
      while counts.changes > 0 || counts.sends > 0 {
        #expect(try story.laptop.step(&story.hub, losesAnswer: false))
        counts = try story.laptop.library.replicaCounts(story.laptop.account)
      }
      // All is settled by the verdicts, before the feed tells of it.
      #expect(try Self.isAtRest(story.laptop))
      let replica = try #require(try story.laptop.library.replica(story.laptop.account))
      let page = story.hub.page(after: replica.read, limit: 100)
      #expect(page.items.count >= 6)
      try story.laptop.library.note(
        FeedPage(items: page.items, token: "\(story.hub.epoch)", hasMore: false), of: story.laptop.account)
      #expect(try Self.isAtRest(story.laptop))
      #expect(Self.steps(story.laptop, from: start).isEmpty)
      // What the verdicts did not say is known.
      let one = try #require(try story.laptop.id("a/one"))
      let base = try story.laptop.library.locked {
        var tree = try ReplicaTree(story.laptop.library, replica)
        return try tree.base(one)
      }
      #expect(base?.version?.size == 5 && base == page.items.first { $0.item == one })
      try story.sync()
    }
  }

  /// What was changed between the send and its verdict is sent.
  @Test func whatWasChangedMeanwhileIsSent() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "trip.md")
      try story.laptop.save("one", at: "list.md")
      story.laptop.rest()
      while try story.laptop.library.sends(of: story.laptop.account, limit: 10).isEmpty {
        #expect(try story.laptop.step(&story.hub, losesAnswer: false))
      }
      try story.laptop.save("two", at: "trip.md")
      try story.laptop.move("list.md", to: "moved.md")
      try story.sync()
      #expect(try story.text("trip.md") == "two")
      #expect(story.paths == ["moved.md", "trip.md"])
      let id = try #require(try story.desktop.id("trip.md"))
      #expect(try story.desktop.history(of: id).values.map(\.text).sorted() == ["one", "two"])
    }
  }

  /// Documents that both machines had before they were connected are one where their contents are equal, with the
  /// versions of both.
  @Test(arguments: [false, true]) func equalDocumentsWithHistoriesBecomeOne(_ isAlike: Bool) throws {
    try LibraryStory.tell { story in
      for machine in [story.laptop, story.desktop] {
        let other = isAlike || machine === story.laptop ? "" : "other "
        try machine.makeFolder("plans")
        for text in ["one", "two", "three"] { try machine.save("\(other)\(text)", at: "plans/trip.md") }
        try machine.save("\(other)text", at: "plans/differs.md")
        try machine.save("\(machine.name)", at: "plans/differs.md")
        try machine.save("four", at: "plans/trip.md")
      }
      try story.sync()
      #expect(story.paths == ["plans", "plans/differs (2).md", "plans/differs.md", "plans/trip.md"])
      #expect(try story.text("plans/trip.md") == "four")
      let own = ["one", "two", "three", "four"]
      let all = isAlike ? own : own + ["other one", "other two", "other three", "four"]
      for machine in [story.laptop, story.desktop] {
        let id = try #require(try machine.id("plans/trip.md"))
        let history = try machine.history(of: id).values.sorted { $0.number < $1.number }
        #expect(history.map(\.text) == all, "\(machine.name)")
        let bases = try machine.library.versions(
          ItemPath(account: AccountHandle("alice@hub.example"), "Documents/plans/trip.md")
        ).map(\.base)
        let alike: [Int64?] = [nil, 1, 2, 3]
        #expect(bases == (isAlike ? alike : alike + [nil, 5, 6, 4]), "\(machine.name)")
        let ino = try #require(try machine.inode("plans/trip.md"))
        #expect(
          try machine.library.locked { try machine.library.item(of: machine.library.inode(ino))?.conflict } == nil)
      }
      // Both go on from there.
      try story.desktop.save("five", at: "plans/trip.md")
      try story.sync()
      #expect(try story.text("plans/trip.md") == "five")
      #expect(story.paths.count == 4)
    }
  }

  @Test func whatIsNewIsMadeUnderItsNameAtOnce() throws {
    try LibraryStory.tell { story in
      try story.sync()
      try story.laptop.makeFolder("a")
      try story.laptop.makeFolder("a/b")
      for name in ["one", "two"] { try story.laptop.save(name, at: "a/b/\(name)") }
      try story.laptop.makeLink("a/link", to: "b/one")
      try story.connect(story.laptop)
      let start = story.desktop.stages.count
      try story.connect(story.desktop)
      #expect(Self.steps(story.desktop, from: start) == ["make", "make", "make", "made together: 2"])
      try story.sync()
    }
  }

  /// What was made together and is as the hub has it is not compared once more.
  @Test func whatIsMadeTogetherIsSettled() throws {
    try LibraryStory.tell { story in
      try story.sync()
      for number in 0..<20 { try story.laptop.save("text \(number)", at: "\(number).md") }
      try story.connect(story.laptop)
      let (library, account) = (story.desktop.library, story.desktop.account)
      while try library.step(of: account) == nil {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      }
      // One name is taken by now.
      try story.desktop.save("here", at: "7.md")
      var made: [Int] = []
      while try library.step(of: account) != nil {
        made.append(try library.makeTogether(of: account) { story.hub.text($0.id).map { Array($0.utf8) } })
        if made.last == 0 { break }
      }
      #expect(made.reduce(0, +) == 20 && made.count == 2)
      // The one that is not called as at the hub, and the one that has its name.
      #expect(try library.replicaCounts(account).changes == 2)
      try story.sync()
      let texts = try Set(story.paths.map { try story.text($0) })
      #expect(texts == Set((0..<20).map { "text \($0)" } + ["here"]))
    }
  }

  /// What was just received is compared once more, and nobody is told that it is to be sent.
  @Test func whatWasReceivedIsNotToBeSent() throws {
    try LibraryStory.tell { story in
      try story.sync()
      for number in 0..<20 { try story.laptop.makeFolder("\(number)") }
      try story.connect(story.laptop)
      let (library, account) = (story.desktop.library, story.desktop.account)
      while try library.step(of: account) == nil {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      }
      while try library.step(of: account) != nil {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      }
      let received = try library.replicaCounts(account)
      #expect(received.changes == 20 && received.settled == 20 && received.unsent == 0)
      try story.desktop.save("here", at: "3/new.md")
      let saved = try library.replicaCounts(account)
      #expect(saved.changes == 21 && saved.unsent == 1)
      try story.sync()
      #expect(try Self.isAtRest(story.desktop))
    }
  }

  /// A part that cannot be made with the others leaves all as it was: each is done by itself then.
  @Test func whatCannotBeMadeTogetherIsMadeAlone() throws {
    try LibraryStory.tell { story in
      try story.sync()
      for number in 0..<4 { try story.laptop.save("text \(number)", at: "\(number).md") }
      try story.connect(story.laptop)
      let (library, account) = (story.desktop.library, story.desktop.account)
      while try library.step(of: account) == nil {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      }
      // Contents that are not what the hub said.
      var asked = 0
      let made = try library.makeTogether(of: account) { _ in
        asked += 1
        return Array((asked == 3 ? "short" : "text 9").utf8)
      }
      #expect(made == 0 && asked == 4)
      #expect(try story.desktop.id("0.md") == nil)
      try story.sync()
      #expect(try story.paths.map { try story.text($0) } == (0..<4).map { "text \($0)" })
    }
  }

  /// A first reading that was cut short begins anew: what was deleted for good meanwhile is not shown.
  @Test func aFirstReadingIsCutShort() throws {
    try LibraryStory.tell { story in
      for name in ["kept", "gone"] { try story.laptop.save(name, at: name) }
      try story.connect(story.laptop)
      let desktop = story.desktop
      let items = story.hub.page(after: 0, limit: 100).items
      #expect(items.count == 2)
      #expect(try desktop.library.replica(desktop.account)?.token == nil)
      try desktop.library.noteListed(items, begins: true, of: desktop.account)
      // Nothing is planned before all of it was read.
      #expect(try desktop.library.plan(desktop.account) == .planned([]))
      #expect(try desktop.library.step(of: desktop.account) == nil)
      let left = items.filter { $0.places.first?.name == Array("kept".utf8) }
      try desktop.library.noteListed(left, begins: true, of: desktop.account)
      try desktop.library.endListing(
        token: "\(story.hub.epoch)", read: items.map(\.number).max() ?? 0, of: desktop.account)
      story.desktop.rest()
      while try desktop.step(&story.hub, losesAnswer: false) {}
      #expect(try desktop.id("kept") != nil)
      #expect(try desktop.id("gone") == nil)
    }
  }

  /// Names that something has are given last, when what had them was moved.
  @Test func namesThatAreTakenAreGivenLast() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("old", at: "trip.md")
      try story.laptop.save("kept", at: "trip (2).md")
      try story.sync()
      try story.laptop.move("trip.md", to: "former.md")
      try story.laptop.move("trip (2).md", to: "kept.md")
      for (text, path) in [("new", "trip.md"), ("other", "trip (2).md"), ("third", "free.md")] {
        try story.laptop.save(text, at: path)
      }
      try story.sync()
      #expect(story.paths == ["former.md", "free.md", "kept.md", "trip (2).md", "trip.md"])
      #expect(try story.text("trip.md") == "new" && story.text("trip (2).md") == "other")
      #expect(try story.text("former.md") == "old" && story.text("kept.md") == "kept")
    }
  }

  /// A program takes the name between the plan and its step: the document is beside it, and the hub hears of both.
  @Test func aNameThatIsTakenMeanwhile() throws {
    try LibraryStory.tell { story in
      try story.sync()
      try story.laptop.save("from the laptop", at: "trip.md")
      try story.connect(story.laptop)
      while try story.desktop.library.step(of: story.desktop.account) == nil {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      }
      try story.desktop.save("from the desktop", at: "trip.md")
      try story.sync()
      let texts = try story.paths.map { try story.text($0) }
      #expect(Set(texts) == ["from the laptop", "from the desktop"] && story.paths.count == 2)
    }
  }

  /// Kept values are those that a process which just began reads.
  @Test func keptTextsSayWhatTheFileSays() throws {
    let texts = ReplicaTexts()
    for seed in 0..<1_500 as Range<Int64> {
      var state = ItemState(
        number: seed, item: WireID(), kind: .document, isDeleted: false,
        places: [Place(parent: .root, name: [0x61, 0xFF, UInt8(1 + seed % 255)].filter { $0 != 0x2F })], mode: 0o644,
        mtime: .max - seed, target: nil, attributes: ["user.a": Data([0, 255])], version: nil, copyOf: nil)
      if seed % 2 == 0 {
        state.version = ItemVersion(
          id: WireID(), number: 1, base: nil, cause: .save, time: .min, arrived: 0, size: seed)
      }
      let text = try texts.encode(state)
      let (kept, read): (ItemState, ItemState) = (try texts.decode(text), try ReplicaTexts().decode(text))
      #expect(kept == state && read == state)
    }
    // Another type of the same text is not taken for it.
    let mark = try texts.encode(ReplicaMark.undone)
    #expect(throws: SheafError.self) { _ = try texts.decode(mark) as ItemState }
    #expect(try texts.decode(mark) as ReplicaMark == .undone)
  }

  /// A step that an older program stored, which knew nothing of who deleted something, is carried out by this one.
  @Test func stepsOfOlderProgramsAreRead() throws {
    let id = WireID()
    let (plain, texts) = (ReplicaStep.delete(id), ReplicaTexts())
    let text = try texts.encode(plain)
    #expect(!text.contains("told") && text.contains(id.description), "\(text)")
    #expect(try ReplicaTexts().decode(text) as ReplicaStep == plain)
  }

  /// The hub has the contents of a save no more: its author deleted the document meanwhile. The machine that could not
  /// show that save did nothing, and brings nothing back.
  @Test(arguments: [false, true]) func whatCouldNotBeShownIsNoChangeHere(_ isTold: Bool) throws {
    try LibraryStory.tell { story in
      let (laptop, desktop) = (story.laptop, story.desktop)
      try laptop.save("one", at: "doc")
      try story.sync()
      laptop.rest()
      try laptop.save("two", at: "doc")
      try story.connect(laptop)
      let account = desktop.account
      while try desktop.library.step(of: account) == nil { #expect(try desktop.step(&story.hub, losesAnswer: false)) }
      try laptop.remove("doc")
      try story.connect(laptop)
      func fail() throws {
        let (number, step) = try #require(try desktop.library.step(of: account))
        guard case .set = step else { throw LibraryMachine.Broken(description: "\(step)") }
        #expect(try !desktop.library.carryOut(number, step, of: account, contents: nil))
      }
      try fail()
      if !isTold {
        // It tries again before it hears of the deletion.
        _ = try desktop.library.plan(account)
        #expect(try desktop.library.sends(of: account, limit: 10).isEmpty)
        try fail()
      }
      let before = story.hub.page(after: 0, limit: .max).items
      try story.sync()
      #expect(story.paths.isEmpty)
      #expect(story.hub.page(after: 0, limit: .max).items == before)
    }
  }
}
