import Foundation
import Glibc
import SheafModel
import SheafReplica
import SheafWire
import Testing

@testable import SheafLibrary

/// What people at two machines find when both did something at once: each row of the table in docs/HUB.md, told with
/// libraries on files.
@Suite struct TwoAtOnceTests {
  private static let poem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"

  private static func poem(_ line: Int, _ text: String) -> String {
    var lines = poem.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    lines[line] = text
    return lines.joined(separator: "\n")
  }

  // MARK: - Both saved

  @Test func aSaveOnTopOfTheOtherMachinesIsItsNextVersion() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "trip.md")
      try story.sync()
      try story.desktop.save("two", at: "trip.md")
      try story.sync()
      try story.laptop.save("three", at: "trip.md")
      try story.sync()
      #expect(try story.paths == ["trip.md"] && story.text("trip.md") == "three")
      let id = try #require(try story.laptop.id("trip.md"))
      #expect(story.hub.zone.items[id]?.versions == 3)
      #expect(story.hub.texts == ["one", "two", "three"])
    }
  }

  @Test func whatTwoWroteInDifferentPlacesOfATextIsOneText() throws {
    try LibraryStory.tell { story in
      try story.laptop.save(Self.poem, at: "trip.md")
      try story.sync()
      let (first, last) = (Self.poem(0, "ONE"), Self.poem(6, "SEVEN"))
      try story.laptop.save(first, at: "trip.md")
      try story.desktop.save(last, at: "trip.md")
      try story.sync()
      #expect(story.paths == ["trip.md"])
      #expect(try story.text("trip.md") == "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n")
      #expect(story.hub.texts.isSuperset(of: [first, last]))
      #expect((story.laptop.outcomes + story.desktop.outcomes).contains { $0.outcome == .merged })
    }
  }

  /// JSON is not merged, nor what lies below a dot folder; and two changes of one line cannot be.
  @Test(arguments: ["trip.json", ".config/trip.md", "trip.md"])
  func whatCannotBeMergedIsBesideWithTheMachinesName(_ path: String) throws {
    try LibraryStory.tell { story in
      if path.contains("/") { try story.laptop.makeFolder(".config") }
      try story.laptop.save(Self.poem, at: path)
      try story.sync()
      let isSameLine = path == "trip.md"
      let (mine, yours) = (Self.poem(0, "mine"), Self.poem(isSameLine ? 0 : 6, "yours"))
      try story.laptop.save(mine, at: path)
      try story.connect(story.laptop)
      try story.desktop.save(yours, at: path)
      try story.sync()
      let stem = path.split(separator: ".", omittingEmptySubsequences: false).dropLast().joined(separator: ".")
      let copy = "\(stem) (alice@hub.example 2027-01-15 desktop).\(path.split(separator: ".").last!)"
      #expect(try story.text(path) == mine && story.text(copy) == yours, "\(story.paths)")
      // Whoever saves on top of it saves the copy, and there is no other one.
      try story.desktop.save("more", at: copy)
      try story.sync()
      #expect(try story.text(copy) == "more" && story.paths.count(where: { $0.contains("trip") }) == 2)
      #expect(story.desktop.notices.contains { if case .beside = $0.kind { true } else { false } })
    }
  }

  /// What went beside is a conflict on both machines until it has a name of a person's own, or is gone. A name alone is
  /// none, and what is beside it is told for as long as it is there.
  @Test func whatWentBesideIsAConflictUntilSomebodyDecides() throws {
    try LibraryStory.tell { story in
      for name in ["trip", "plan"] { try story.laptop.save("one", at: "\(name).json") }
      try story.laptop.save("x", at: "mine (alice@hub.example 2027-01-15 desktop).json")
      try story.sync()
      for name in ["trip", "plan"] {
        try story.laptop.save("mine", at: "\(name).json")
        try story.connect(story.laptop)
        try story.desktop.save("yours", at: "\(name).json")
        try story.sync()
      }
      let alice = try AccountHandle("alice@hub.example")
      func copy(_ name: String) -> String { "\(name) (alice@hub.example 2027-01-15 desktop).json" }
      func found(_ machine: LibraryMachine) throws -> [String: String?] {
        let items = try machine.library.find(alice, in: nil, FindRequest(conflicts: true)) { _ in }.items
        #expect(try machine.library.counts().conflicts == items.count)
        return Dictionary(uniqueKeysWithValues: items.map { ($0.path, $0.beside?.path) })
      }
      func expect(_ expected: [String: String?], location: SourceLocation = #_sourceLocation) throws {
        for machine in [story.laptop, story.desktop] {
          let items = try found(machine)
          #expect(items == expected, sourceLocation: location)
        }
      }
      let (trip, plan) = ("Documents/\(copy("trip"))", "Documents/\(copy("plan"))")
      try expect([trip: "Documents/trip.json", plan: "Documents/plan.json"])
      let path = try ItemPath(account: alice, trip)
      #expect(try story.laptop.library.itemStatus(path).beside == HubCopy(path: "Documents/trip.json"))
      #expect { try story.laptop.library.resolveConflict(path) } throws: { ($0 as? SheafError)?.kind == .invalid }
      // What is saved on top decides nothing.
      try story.desktop.save("more", at: copy("trip"))
      try story.sync()
      try expect([trip: "Documents/trip.json", plan: "Documents/plan.json"])
      try story.laptop.move("trip.json", to: "journey.json")
      try story.laptop.move(copy("plan"), to: "other plan.json")
      try story.sync()
      try expect([trip: "Documents/journey.json"])
      #expect(try story.laptop.library.itemStatus(ItemPath(account: alice, "Documents/other plan.json")).beside == nil)
      try story.desktop.remove("journey.json")
      try story.sync()
      try expect([trip: nil])
      try story.desktop.remove(copy("trip"))
      try story.sync()
      try expect([:])
    }
  }

  /// The program goes on from what went beside, also once its machine has all versions with the hub's numbers.
  @Test func whoSavedWhatWentBesideStillSavesOnTopOfThat() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "trip.json", by: story.laptop.program)
      try story.sync()
      for text in ["two", "three"] { try story.desktop.save(text, at: "trip.json") }
      try story.connect(story.desktop)
      try story.laptop.save("mine", at: "trip.json", by: story.laptop.program)
      try story.sync()
      let id = try #require(try story.laptop.id("trip.json"))
      #expect(try story.laptop.history(of: id).mapValues(\.number).values.sorted() == [1, 2, 3])
      try story.laptop.save("mine, too", at: "trip.json", by: story.laptop.program)
      try story.sync()
      let copy = "trip (alice@hub.example 2027-01-15 laptop).json"
      #expect(try story.text("trip.json") == "three" && story.text(copy) == "mine, too", "\(story.paths)")
      #expect(story.paths.count == 2)
    }
  }

  @Test func aWeekOfSavesOnATrainIsOneDocumentBesideTheOthers() throws {
    try LibraryStory.tell { story in
      try story.laptop.save(Self.poem, at: "trip.md")
      try story.sync()
      try story.laptop.save(Self.poem(0, "mine"), at: "trip.md")
      try story.connect(story.laptop)
      let week = (1...7).map { Self.poem(0, "day \($0)") }
      for day in week {
        try story.desktop.save(day, at: "trip.md")
        story.desktop.rest()
      }
      try story.sync()
      let copy = "trip (alice@hub.example 2027-01-15 desktop).md"
      #expect(story.paths == [copy, "trip.md"])
      #expect(try story.text(copy) == week.last && story.hub.texts.isSuperset(of: week))
      let id = try #require(try story.laptop.id(copy))
      #expect(story.hub.zone.items[id]?.versions == 7)
    }
  }

  /// The desktop saved beside, and has not heard of it. It gives its document the name that the laptop gives to the one
  /// beside it, and saves again.
  @Test func whatIsSavedBesideAndNamedAsTheOneBesideItIsTakenByTheHub() throws {
    try LibraryStory.tell { story in
      try story.laptop.save(Self.poem, at: "trip.md")
      try story.sync()
      try story.laptop.save(Self.poem(0, "mine"), at: "trip.md")
      try story.connect(story.laptop)
      try story.desktop.save(Self.poem(0, "yours"), at: "trip.md")
      story.desktop.rest()
      while try story.desktop.library.sends(of: story.desktop.account, limit: 1).isEmpty {
        _ = try story.desktop.step(&story.hub, losesAnswer: false)
      }
      _ = try story.desktop.step(&story.hub, losesAnswer: true)
      try story.connect(story.laptop)
      try story.laptop.move("trip (alice@hub.example 2027-01-15 desktop).md", to: "other.md")
      try story.connect(story.laptop)
      try story.desktop.move("trip.md", to: "other.md")
      try story.desktop.save("more", at: "other.md")
      try story.sync()
      #expect(story.paths == ["other (2).md", "other.md"])
      #expect(try story.text("other.md") == "more" && story.text("other (2).md") == Self.poem(0, "mine"))
      #expect(!(story.laptop.outcomes + story.desktop.outcomes).contains { $0.outcome == .refused })
    }
  }

  // MARK: - Names

  @Test func ofTwoNewNamesTheOneThatArrivesLastStays() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("plans")
      try story.laptop.save("one", at: "trip.md")
      try story.sync()
      try story.laptop.move("trip.md", to: "italy.md")
      try story.desktop.move("trip.md", to: "plans/rome.md")
      try story.connect(story.desktop)
      try story.sync()
      #expect(story.paths == ["italy.md", "plans"])
      #expect(try story.text("italy.md") == "one")
    }
  }

  @Test func equalThingsOfOneNameAreOne() throws {
    try LibraryStory.tell { story in
      for machine in [story.laptop, story.desktop] {
        try machine.makeFolder("plans")
        try machine.save("same", at: "plans/trip.md")
        try machine.save(machine.name, at: "plans/\(machine.name).md")
        try machine.makeLink("there", to: "plans/trip.md")
      }
      try story.sync()
      #expect(story.paths == ["plans", "plans/desktop.md", "plans/laptop.md", "plans/trip.md", "there"])
      #expect(try story.text("plans/desktop.md") == "desktop")
      for path in ["plans", "plans/trip.md", "there"] {
        #expect(try story.laptop.id(path) == story.desktop.id(path), "\(path)")
      }
    }
  }

  @Test func differentThingsOfOneNameBothStay() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("mine", at: "trip.md")
      try story.laptop.makeFolder("plans")
      try story.laptop.makeLink("link", to: "here")
      try story.connect(story.laptop)
      try story.desktop.save("yours", at: "trip.md")
      try story.desktop.save("a document", at: "plans")
      try story.desktop.makeLink("link", to: "there")
      try story.sync()
      #expect(story.paths == ["link", "link (2)", "plans", "plans (2)", "trip (2).md", "trip.md"])
      #expect(try story.text("trip.md") == "mine" && story.text("trip (2).md") == "yours")
      #expect(try story.text("plans (2)") == "a document")
      #expect(story.desktop.notices.count { $0.kind == .renamed } == 3)
    }
  }

  /// The name to which another machine moved something is taken in the moment before it is moved here.
  @Test(arguments: [false, true])
  func whatWasMovedElsewhereIsNotMovedBackForSomethingNew(_ wasNumbered: Bool) throws {
    try LibraryStory.tell { story in
      try story.laptop.save("text", at: wasNumbered ? "list (2).md" : "trip.md")
      try story.sync()
      try story.laptop.move(wasNumbered ? "list (2).md" : "trip.md", to: "list.md")
      try story.connect(story.laptop)
      repeat {
        #expect(try story.desktop.step(&story.hub, losesAnswer: false))
      } while !(story.desktop.stages.last ?? "").hasPrefix("planned [SheafWire")
      try story.desktop.makeLink("list.md", to: "somewhere")
      try story.sync()
      #expect(story.paths == ["list (2).md", "list.md"])
      #expect(try story.text("list (2).md") == "text" || story.text("list.md") == "text")
    }
  }

  @Test func foldersThatWereMovedIntoEachOtherStayWhereTheFirstPutThem() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("a")
      try story.laptop.makeFolder("b")
      try story.laptop.save("x", at: "b/x")
      try story.sync()
      try story.laptop.move("a", to: "b/a")
      try story.connect(story.laptop)
      try story.desktop.move("b", to: "a/b")
      try story.sync()
      #expect(story.paths == ["b", "b/a", "b/x"])
      let b = try #require(try story.desktop.id("b"))
      #expect(story.desktop.notices.map(\.item) == [b] && story.desktop.notices.map(\.kind) == [.refused(.loop)])
    }
  }

  /// One folder is put out of the other again and takes a name whose folder was deleted just now, of which the hub is
  /// not to hear yet. The other one waits for that, too.
  @Test func aFolderThatWaitsForItsNameKeepsWhatGoesIntoItWaiting() throws {
    try LibraryStory.tell { story in
      let laptop = story.laptop
      try laptop.makeFolder("o")
      try laptop.makeFolder("o/i")
      try laptop.save("one", at: "o/i/f")
      try story.sync()
      try laptop.move("o/i", to: "i2")
      try laptop.move("o", to: "i2/o")
      try laptop.makeFolder("o")
      try laptop.save("new", at: "o/f")
      try story.sync()
      try laptop.remove("o")
      try laptop.move("i2/o", to: "o")
      try laptop.move("i2", to: "o/i")
      while try laptop.step(&story.hub, losesAnswer: false) {}
      try story.sync()
      #expect(story.paths == ["o", "o/i", "o/i/f"])
      #expect(!laptop.outcomes.contains { $0.outcome == .refused } && laptop.notices.isEmpty)
    }
  }

  @Test func aSwapAndAChainOfRenamesAreDoneAtOnce() throws {
    try LibraryStory.tell { story in
      for name in ["a", "b", "c", "d", "e"] { try story.laptop.save("of \(name)", at: name) }
      try story.sync()
      try story.laptop.move("a", to: "b", .exchange)
      try story.laptop.move("e", to: "f")
      try story.laptop.move("d", to: "e")
      try story.laptop.move("c", to: "d")
      story.laptop.rest()
      // They leave in one request, of which the hub does each group wholly or not at all.
      _ = try story.laptop.step(&story.hub, losesAnswer: false)
      let sends = try story.laptop.library.sends(of: story.laptop.account, limit: 100)
      #expect(Set(sends.map(\.first)).count == 2, "\(sends.map(\.first))")
      try story.sync()
      #expect(story.paths == ["a", "b", "d", "e", "f"])
      for (name, text) in [("a", "b"), ("b", "a"), ("d", "c"), ("e", "d"), ("f", "e")] {
        #expect(try story.text(name) == "of \(text)", "\(name)")
      }
    }
  }

  // MARK: - Saved here, deleted there

  @Test func whatWasSavedHereAndDeletedThereComesBackWithItsFolders() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("plans")
      try story.laptop.makeFolder("plans/italy")
      try story.laptop.save("one", at: "plans/italy/trip.md")
      try story.sync()
      let id = try story.laptop.id("plans/italy/trip.md")
      try story.laptop.remove("plans")
      try story.connect(story.laptop)
      try story.desktop.save("two", at: "plans/italy/trip.md")
      try story.sync()
      #expect(story.paths == ["plans", "plans/italy", "plans/italy/trip.md"])
      #expect(try story.text("plans/italy/trip.md") == "two" && story.laptop.id("plans/italy/trip.md") == id)
    }
  }

  /// The folder that the hub keeps does not bring back what was deleted with it and nobody touched.
  @Test func ofADeletedFolderOnlyWhatOthersChangedStays() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("plans")
      try story.laptop.makeFolder("plans/old")
      for name in ["plans/a", "plans/b", "plans/old/c"] { try story.laptop.save("of \(name)", at: name) }
      try story.sync()
      try story.desktop.save("changed", at: "plans/b")
      try story.desktop.save("new", at: "plans/new")
      try story.connect(story.desktop)
      try story.laptop.remove("plans")
      try story.sync()
      #expect(story.paths == ["plans", "plans/b", "plans/new"])
      #expect(try story.text("plans/b") == "changed" && story.text("plans/new") == "new")
      #expect(story.laptop.notices.contains { $0.kind == .kept })
    }
  }

  // MARK: - Refused

  /// As where the right to write was lost. The other documents go on, and the hub is not asked again and again.
  @Test func whatTheHubRefusesStaysWhereItWasSavedUntilItChanges() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "trip.md")
      try story.laptop.save("list", at: "list.md")
      try story.sync()
      let trip = try #require(try story.laptop.id("trip.md"))
      story.hub.refusal = { $0.item == trip && $0.version != nil ? .denied : nil }
      try story.laptop.save("two", at: "trip.md")
      try story.laptop.save("more", at: "list.md")
      try story.connect(story.laptop)
      let asked = story.laptop.outcomes.count
      for _ in 0..<5 { try story.connect(story.laptop) }
      #expect(story.laptop.outcomes.count == asked)
      #expect(story.laptop.notices.map(\.item) == [trip] && story.laptop.notices.map(\.kind) == [.refused(.denied)])
      try story.connect(story.desktop)
      let ino = try #require(try story.laptop.inode("trip.md"))
      #expect(try story.laptop.text(ino) == "two" && story.text("list.md") == "more")
      // It has the right again, and saves.
      story.hub.refusal = { _ in nil }
      try story.laptop.save("three", at: "trip.md")
      try story.sync()
      #expect(try story.text("trip.md") == "three" && story.hub.texts.contains("two"))
    }
  }

  @Test func whatIsInAFolderThatTheHubRefusesIsNotSent() throws {
    try LibraryStory.tell { story in
      try story.sync()
      story.hub.refusal = { $0.places?.contains { $0.name == Array("plans".utf8) } ?? false ? .denied : nil }
      try story.laptop.makeFolder("plans")
      try story.laptop.makeFolder("plans/inner")
      try story.laptop.save("text", at: "plans/inner/trip.md")
      try story.laptop.save("list", at: "list.md")
      try story.connect(story.laptop)
      let asked = story.laptop.outcomes.count
      for _ in 0..<5 { try story.connect(story.laptop) }
      #expect(story.laptop.outcomes.count == asked && story.paths == ["list.md"])
      let ino = try #require(try story.laptop.inode("plans/inner/trip.md"))
      #expect(try story.laptop.text(ino) == "text")
      story.hub.refusal = { _ in nil }
      try story.laptop.move("plans", to: "plan")
      try story.sync()
      #expect(story.paths == ["list.md", "plan", "plan/inner", "plan/inner/trip.md"])
    }
  }

  @Test func aNameThatTheHubRefusesIsUndone() throws {
    try LibraryStory.tell { story in
      try story.laptop.save("one", at: "trip.md")
      try story.sync()
      story.hub.refusal = { $0.places != nil && $0.base != nil ? .denied : nil }
      try story.laptop.move("trip.md", to: "elsewhere.md")
      try story.sync()
      #expect(story.paths == ["trip.md"])
    }
  }

  // MARK: - Programs that live on

  /// A program deletes a document and another one makes it anew, two documents change names, three renames swap two
  /// more, and a dot folder is among them: both machines show the same, and nothing has a second name.
  @Test func whatLivingProgramsDoWithNamesEndsAlikeWithoutSecondNames() throws {
    try LibraryStory.tell { story in
      for folder in ["", ".config/"] {
        if !folder.isEmpty { try story.laptop.makeFolder(".config") }
        for name in ["a", "b", "c", "d", "e"] { try story.laptop.save("of \(name)", at: folder + name) }
      }
      try story.sync()
      for folder in ["", ".config/"] {
        try story.laptop.remove(folder + "a", by: story.laptop.program)
        // The first part travels before the second one is done.
        try story.connect(story.laptop)
        try story.laptop.save("new \(folder)", at: folder + "a")
        try story.laptop.move(folder + "b", to: folder + "c", .exchange)
        try story.desktop.move(folder + "d", to: folder + "x", by: story.desktop.program)
        try story.desktop.move(folder + "e", to: folder + "d", by: story.desktop.program)
        try story.connect(story.desktop)
        try story.desktop.move(folder + "x", to: folder + "e", by: story.desktop.program)
      }
      try story.sync()
      let names = ["a", "b", "c", "d", "e"]
      #expect(story.paths == [".config"] + names.map { ".config/" + $0 } + names)
      for folder in ["", ".config/"] {
        for (name, text) in [("a", "new \(folder)"), ("b", "of c"), ("c", "of b"), ("d", "of e"), ("e", "of d")] {
          #expect(try story.text(folder + name) == text, "\(folder)\(name)")
        }
      }
    }
  }

  /// An older hub takes the place of one that is lost: what it had acknowledged comes back to it, and no document has
  /// a second copy unseen.
  @Test func whatAHubLostComesBackToItFromBothMachines() throws {
    try LibraryStory.tell { story in
      try story.laptop.save(Self.poem, at: "trip.md")
      try story.laptop.save("old", at: "list.md")
      try story.sync()
      let yesterday = story.hub
      try story.laptop.save(Self.poem(0, "mine"), at: "trip.md")
      try story.laptop.save("today", at: "today.md")
      try story.sync()
      try story.desktop.remove("list.md")
      try story.desktop.save(Self.poem(0, "yours"), at: "trip.md")
      try story.sync()
      story.hub.restore(yesterday)
      // Only one of both is there at first.
      try story.connect(story.desktop)
      #expect(story.hub.texts.isSuperset(of: [Self.poem(0, "mine"), Self.poem(0, "yours"), "today"]))
      try story.sync()
      // The deletion was lost with the hub: nothing is deleted twice, and nothing unseen.
      #expect(Set(story.paths).isSuperset(of: ["today.md", "trip.md"]) && !story.paths.contains { $0.contains("(") })
      #expect(try story.text("trip.md") == Self.poem(0, "yours"))
    }
  }

  /// A hub goes back, and a machine has what the hub lost only by name, since it keeps few contents. It goes on with all
  /// else, and the machine that has the contents sends them.
  @Test func whatAHubLostAndAMachineHasByNameAloneComesFromTheOther() throws {
    try LibraryStory.tell { story in
      story.desktop.source = { [unowned story] in story.hub.text($0) }
      try story.desktop.limit()
      for name in ["old.md", "changed.md"] { try story.laptop.save("old", at: name) }
      try story.sync()
      let yesterday = story.hub
      try story.laptop.save("new", at: "new.md")
      try story.laptop.save("changed", at: "changed.md")
      for text in ["1", "2"] {
        try story.laptop.save(text, at: "twice.md")
        try story.sync()
      }
      let ids = try ["new.md", "changed.md", "twice.md"].map { try #require(try story.desktop.id($0)) }
      #expect(try story.desktop.free(waits: true).documents == 4)
      // Of one, it has what is current, and not what was before.
      _ = try story.desktop.whenHere { try story.desktop.text(#require(try story.desktop.inode("twice.md"))) }
      story.hub.restore(yesterday)
      try story.desktop.save("mine", at: "mine.md")
      try story.connect(story.desktop)
      #expect(story.hub.texts.isSuperset(of: ["old", "mine", "2"]) && !story.hub.texts.contains("new"))
      #expect(try ["new.md", "changed.md", "twice.md"].map { try story.desktop.id($0) } == ids)
      try story.sync()
      #expect(story.paths == ["changed.md", "mine.md", "new.md", "old.md", "twice.md"])
      for (path, text) in [("new.md", "new"), ("changed.md", "changed"), ("twice.md", "2"), ("mine.md", "mine")] {
        #expect(try story.text(path) == text)
      }
      // The hub had the second version before this one could come, which stays where it is.
      #expect(try story.hub.texts.contains("old") && story.laptop.texts().contains("1"))
    }
  }

  /// Forty editors have read the fifth version of a document each when the sixth one comes. Half of them changed the
  /// line that was changed elsewhere.
  @Test func fortyEditorsSaveOnTopOfWhatTheyReadWhileANewerVersionComes() throws {
    try LibraryStory.tell { story in
      let names = (0..<40).map { "doc\($0).md" }
      for number in 1...5 {
        for name in names { try story.laptop.save(Self.poem(3, "version \(number)"), at: name) }
        story.laptop.rest()
      }
      try story.sync()
      let editor = story.laptop.program
      for name in names {
        let ino = try #require(try story.laptop.inode(name))
        let handle = try story.laptop.library.open(ino, flags: O_RDONLY, editor)
        var bytes = [UInt8](repeating: 0, count: 1000)
        _ = try bytes.withUnsafeMutableBytes { try story.laptop.library.read(handle, at: 0, into: $0) }
        try story.laptop.library.release(handle)
      }
      for name in names { try story.desktop.save(Self.poem(0, "six").replacing("four", with: "version 5"), at: name) }
      try story.sync()
      for round in 1...3 {
        for (index, name) in names.enumerated() {
          let line = index.isMultiple(of: 2) ? 0 : 6
          let text = Self.poem(line, "edited \(round)").replacing("four", with: "version 5")
          try story.laptop.save(text, at: name, by: editor)
        }
        try story.sync()
      }
      let copies = story.paths.filter { $0.contains("(") }
      #expect(copies.count == 20 && story.paths.count == 60, "\(story.paths)")
      for (index, name) in names.enumerated() {
        let text = try story.text(name) ?? ""
        #expect(text.hasPrefix("six\n"), "\(name): \(text)")
        if !index.isMultiple(of: 2) { #expect(text.hasSuffix("edited 3\n"), "\(name): \(text)") }
      }
      for copy in copies { #expect(try story.text(copy)?.hasPrefix("edited 3\n") ?? false, "\(copy)") }
    }
  }

  /// The answers of the hub are lost, and what it refused comes a second time.
  @Test func requestsThatComeTwiceAfterARefusalChangeNothing() throws {
    try LibraryStory.tell { story in
      try story.laptop.makeFolder("a")
      try story.laptop.makeFolder("b")
      try story.laptop.save("one", at: "trip.md")
      try story.sync()
      try story.laptop.move("a", to: "b/a")
      try story.connect(story.laptop)
      try story.desktop.move("b", to: "a/b")
      try story.desktop.save("two", at: "trip.md")
      story.desktop.rest()
      while try story.desktop.library.sends(of: story.desktop.account, limit: 1).isEmpty {
        _ = try story.desktop.step(&story.hub, losesAnswer: false)
      }
      for _ in 0..<4 { _ = try story.desktop.step(&story.hub, losesAnswer: true, doubles: true) }
      let shown = story.hub.shown()
      try story.sync()
      #expect(story.hub.shown() == shown && story.paths == ["b", "b/a", "trip.md"])
      #expect(try story.text("trip.md") == "two")
      let id = try #require(try story.laptop.id("trip.md"))
      #expect(story.hub.zone.items[id]?.versions == 2)
    }
  }

  /// If a folder were shared before its youngest document is sent, people would see what that was before.
  @Test func whatIsTooYoungToBeSentIsWaitedFor() throws {
    try LibraryStory.tell { story in
      let laptop = story.laptop
      try laptop.makeFolder("plans")
      try story.sync()
      let plans = try #require(try laptop.id("plans"))
      func isWaitedFor() throws -> Bool {
        try laptop.library.hasUnsent(below: plans, savedBy: Timestamp(seconds: 9_000_000_000), of: laptop.account)
      }
      #expect(try !isWaitedFor())
      for text in ["secret", "open"] { try laptop.save(text, at: "plans/x") }
      #expect(try isWaitedFor())
      try story.sync()
      #expect(try !isWaitedFor())
    }
  }

  /// The hub destroys no current version. So what was purged is deleted there first, then the item is destroyed, and the
  /// versions only where the hub keeps it.
  @Test func anItemIsDestroyedBeforeItsVersions() throws {
    try LibraryStory.tell { story in
      let laptop = story.laptop
      for text in ["1", "2"] {
        try laptop.save(text, at: "data.json")
        try story.sync()
      }
      let path = try ItemPath(account: AccountHandle("alice@hub.example"), "Documents/data.json")
      try laptop.library.purge(path, version: nil)
      for restarts in [false, true] {
        if restarts { try laptop.restart() }
        #expect(try laptop.library.replicaRequests(of: laptop.account, limit: 9).isEmpty)
      }
      try story.connect(laptop)
      let requests = try laptop.library.replicaRequests(of: laptop.account, limit: 9).map(\.kind)
      #expect(requests.first == .purge && requests.count == 3, "\(requests)")
    }
  }
}
