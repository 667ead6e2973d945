import Foundation
import HubKit
import SheafReplica
import SheafWire
import Testing

/// What people at two machines see when two did something at once: the rows of docs/HUB.md, from the other side.
@Suite struct StoryTests {
  /// Two machines of one person, and their hub.
  struct Story {
    var hub = SimulatedHub()
    var laptop = SimulatedReplica("laptop", seed: 1)
    var desktop = SimulatedReplica("desktop", seed: 2)
    private var count = 0

    /// Both machines are connected until nothing is left to do.
    mutating func sync() throws {
      var isBusy = true
      var rounds = 0
      while isBusy {
        let first = try laptop.step(&hub, losesAnswer: false)
        let second = try desktop.step(&hub, losesAnswer: false)
        isBusy = first || second
        rounds += 1
        try #require(rounds < 100, "the machines do not come to rest")
      }
      try hub.zone.check()
      #expect(laptop.tree.shown() == hub.shown() && desktop.tree.shown() == hub.shown())
    }

    @discardableResult
    mutating func make(
      _ kind: ItemKind, _ name: String, in parent: WireID = .root, _ text: String = "text",
      readiness: LocalItem.Readiness = .ready, at machine: WritableKeyPath<Story, SimulatedReplica>
    ) -> WireID {
      let id = self[keyPath: machine].newID()
      self[keyPath: machine].tree.put(
        LocalItem(
          item: id, kind: kind, places: [Place(parent: parent, name)], mode: 0o644, mtime: 1, readiness: readiness))
      if kind == .document { save(id, text, at: machine) }
      return id
    }

    mutating func save(_ id: WireID, _ text: String, at machine: WritableKeyPath<Story, SimulatedReplica>) {
      count += 1
      let base = self[keyPath: machine].tree.items[id]?.version
      let version = LocalVersion(id: self[keyPath: machine].newID(), base: base, cause: .save, time: Int64(count))
      self[keyPath: machine].tree.save(version, text, of: id)
    }

    mutating func move(
      _ id: WireID, _ name: String, in parent: WireID = .root, at machine: WritableKeyPath<Story, SimulatedReplica>
    ) {
      guard var item = self[keyPath: machine].tree.items[id] else { return }
      item.places = [Place(parent: parent, name)]
      self[keyPath: machine].tree.put(item)
    }

    mutating func remove(_ ids: WireID..., at machine: WritableKeyPath<Story, SimulatedReplica>) {
      for id in ids { self[keyPath: machine].tree.remove(id) }
    }

    var paths: [String] { hub.shown().keys.sorted() }

    func text(_ path: String, at machine: KeyPath<Story, SimulatedReplica>) -> String? {
      let tree = self[keyPath: machine].tree
      return tree.names.first { tree.path($0.key) == path }.flatMap { tree.items[$0.value]?.version }
        .flatMap { tree.texts[$0] }
    }
  }

  /// A hub may answer that a new document became itself, or is beside a folder or the account's own one. Nothing here
  /// becomes what it is not, and it is sent again.
  @Test(arguments: [Verdict.Outcome.joined, .beside, .done], ["itself", "a folder", "a document twice"])
  func aVerdictThatCannotBeHarmsNothing(_ outcome: Verdict.Outcome, _ answer: String) throws {
    var story = Story()
    let folder = story.make(.folder, "folder", at: \.laptop)
    let other = story.make(.document, "other", "other text", at: \.laptop)
    try story.sync()
    let document = story.make(.document, "new", "new text", at: \.laptop)
    for _ in 0..<(answer == "a document twice" ? 2 : 1) {
      while story.laptop.outbox.isEmpty {
        guard try story.laptop.step(&story.hub, losesAnswer: false) else { break }
      }
      guard let send = story.laptop.outbox.first?.first else { break }
      let item = ["itself": send.item, "a folder": folder, "a document twice": other][answer]
      try story.laptop.settle(
        [
          Verdict(
            serial: send.serial, outcome: outcome, item: try #require(item), number: 9,
            version: outcome == .beside ? nil : send.version?.id)
        ], story.hub)
      #expect(story.laptop.tree.items[folder]?.kind == .folder)
    }
    if answer != "a document twice" {
      #expect(story.text("new", at: \.laptop) == "new text")
      #expect(story.text("other", at: \.laptop) == "other text")
    }
    // It comes to an end, whatever is left of it.
    for _ in 0..<20 { guard try story.laptop.step(&story.hub, losesAnswer: false) else { break } }
    #expect(story.laptop.tree.items.values.contains { $0.item == document || $0.item == other })
  }

  @Test func whatIsMadeOnATrainIsOnTheOtherMachineLater() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    let inner = story.make(.folder, "inner", in: plans, at: \.laptop)
    let trip = story.make(.document, "trip.md", in: inner, "one", at: \.laptop)
    for number in 2...5 { story.save(trip, "text \(number)", at: \.laptop) }
    try story.sync()
    #expect(story.text("plans/inner/trip.md", at: \.desktop) == "text 5")
    // Every save is a version, in order.
    #expect(story.hub.zone.items[trip]?.versions == 5)
  }

  @Test func whatIsInAFolderWaitsForTheFolder() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", readiness: .waiting, at: \.laptop)
    story.make(.document, "trip.md", in: plans, at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.isEmpty)
  }

  @Test func aSwapIsDoneAtOnce() throws {
    var story = Story()
    let a = story.make(.document, "a", "a", at: \.laptop), b = story.make(.document, "b", "b", at: \.laptop)
    let c = story.make(.document, "c", "c", at: \.laptop)
    try story.sync()
    story.move(a, "b", at: \.laptop)
    story.move(b, "c", at: \.laptop)
    story.move(c, "a", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.map(\.count) == [3])
    try story.sync()
    #expect(story.paths == ["a", "b", "c"])
    #expect(story.text("a", at: \.desktop) == "c" && story.text("b", at: \.desktop) == "a")
  }

  @Test func whatTakesAnothersPlaceIsOneGroupWithItsEnd() throws {
    var story = Story()
    let old = story.make(.document, "trip.md", "old", at: \.laptop)
    try story.sync()
    story.remove(old, at: \.laptop)
    story.make(.document, "trip.md", "new", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.map(\.count) == [2])
    try story.sync()
    #expect(story.paths == ["trip.md"] && story.text("trip.md", at: \.desktop) == "new")
  }

  @Test func nothingIsToldOfADeletionThatMayNotLast() throws {
    var story = Story()
    let old = story.make(.document, "trip.md", "old", at: \.laptop)
    try story.sync()
    story.laptop.unsettled = [old]
    story.remove(old, at: \.laptop)
    story.make(.document, "trip.md", "new", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.isEmpty)
    story.laptop.unsettled = []
    try story.sync()
    #expect(story.paths == ["trip.md"] && story.text("trip.md", at: \.desktop) == "new")
  }

  /// The desktop's folder became the laptop's at the hub, and the step that was to carry that out was not possible.
  @Test func whatBecameAnotherItemInVainBecomesThatLater() throws {
    var story = Story()
    let first = story.make(.folder, "plans", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    let second = story.make(.folder, "plans", at: \.desktop)
    try story.sync()
    #expect(story.desktop.aliases[second] == first && story.desktop.tree.items[first] != nil)
    story.remove(first, at: \.desktop)
    story.desktop.tree.put(
      LocalItem(
        item: second, kind: .folder, places: [Place(parent: .root, "plans")], mode: 0o644, mtime: 1, readiness: .ready))
    let trip = story.make(.document, "trip.md", in: second, at: \.desktop)
    try story.sync()
    #expect(story.paths == ["plans", "plans/trip.md"], "\(story.desktop.outcomes)")
    #expect(story.desktop.tree.items[trip]?.places.first?.parent == first)
  }

  /// The desktop was put back to an earlier state, and sends again what went beside a document. What that became was
  /// deleted since.
  @Test func whatIsBesideAndDeletedStaysDeleted() throws {
    var story = Story()
    let trip = story.make(.document, "trip.json", "one", at: \.laptop)
    try story.sync()
    story.save(trip, "mine", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    story.save(trip, "yours", at: \.desktop)
    var former = story.desktop
    former.serial += 1_000
    try story.sync()
    let copy = try #require(story.hub.zone.items.values.first { $0.copyOf == trip })
    #expect(!copy.isDeleted && story.paths.count == 2)
    story.remove(copy.item, at: \.laptop)
    try story.sync()
    #expect(story.paths == ["trip.json"])
    story.desktop = former
    try story.sync()
    #expect(story.paths == ["trip.json"] && story.text("trip.json", at: \.desktop) == "mine")
    #expect(story.hub.zone.items[copy.item]?.isDeleted == true)
    #expect(story.desktop.base[copy.item] == nil, "\(story.desktop.base)")
  }

  @Test func editsOfDifferentPartsAreMergedOnBothMachines() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", "one\ntwo\nthree\nfour\n", at: \.laptop)
    try story.sync()
    story.save(trip, "ONE\ntwo\nthree\nfour\n", at: \.laptop)
    story.save(trip, "one\ntwo\nthree\nFOUR\n", at: \.desktop)
    try story.sync()
    #expect(story.paths == ["trip.md"])
    for machine in [\Story.laptop, \.desktop] {
      #expect(story.text("trip.md", at: machine) == "ONE\ntwo\nthree\nFOUR\n")
    }
  }

  @Test func editsOfTheSamePartGoBesideOnceHoweverOftenTheyAreSaved() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", "one\n", at: \.laptop)
    try story.sync()
    story.save(trip, "by the laptop\n", at: \.laptop)
    while try story.laptop.step(&story.hub, losesAnswer: false) {}
    for number in 1...5 { story.save(trip, "by the desktop, \(number)\n", at: \.desktop) }
    // Until the hub has decided, a machine shows what was saved on it.
    _ = try story.desktop.step(&story.hub, losesAnswer: false)
    #expect(story.text("trip.md", at: \.desktop) == "by the desktop, 5\n")
    try story.sync()
    let copy = "trip (alice@hub.example 2027-01-15 desktop).md"
    #expect(story.paths == [copy, "trip.md"])
    for machine in [\Story.laptop, \.desktop] {
      #expect(story.text("trip.md", at: machine) == "by the laptop\n")
      #expect(story.text(copy, at: machine) == "by the desktop, 5\n")
    }
    #expect(story.desktop.notices.contains { $0.item == trip && $0.kind != .renamed })
    let document = try #require(story.hub.zone.items.values.first { $0.copyOf == trip })
    #expect(document.versions == 5)
  }

  @Test func equalFoldersAndDocumentsBecomeOne() throws {
    var story = Story()
    for machine in [\Story.laptop, \.desktop] {
      let plans = story.make(.folder, "plans", at: machine)
      story.make(.document, "same.md", in: plans, "same", at: machine)
      story.make(.document, "\(machine == \.laptop ? "mine" : "yours").md", in: plans, "x", at: machine)
    }
    try story.sync()
    #expect(story.paths == ["plans", "plans/mine.md", "plans/same.md", "plans/yours.md"])
    // What was in the folder is where it was, so nothing more is sent.
    #expect(story.laptop.outcomes.count == 3 && story.desktop.outcomes.count == 3)
  }

  @Test func whatWasSavedWhileADocumentBecameOneWithAnotherIsItsNewestVersion() throws {
    var story = Story()
    let yours = story.make(.document, "c", "same", at: \.desktop)
    try story.sync()
    let mine = story.make(.document, "b", "same", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    story.move(yours, "b", at: \.desktop)
    for _ in 0..<2 { _ = try story.desktop.step(&story.hub, losesAnswer: false) }
    story.save(mine, "newer", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outcomes.last?.outcome == .joined && story.laptop.tree.items[mine] == nil)
    #expect(story.laptop.tree.items[yours]?.version.flatMap { story.laptop.tree.texts[$0] } == "newer")
    try story.sync()
    #expect(story.paths == ["b"] && story.text("b", at: \.desktop) == "newer")
  }

  @Test func aFolderThatBecomesOneWithWhatWasMovedIntoItTakesItsPlace() throws {
    var story = Story()
    let yours = story.make(.folder, "c", at: \.desktop)
    try story.sync()
    let mine = story.make(.folder, "b", at: \.laptop)
    story.make(.document, "x", in: mine, "x", at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    // While that is sent, the other folder gets the name at the hub, and is moved into the new one here.
    story.move(yours, "b", at: \.desktop)
    for _ in 0..<2 { _ = try story.desktop.step(&story.hub, losesAnswer: false) }
    story.move(yours, "inner", in: mine, at: \.laptop)
    try story.sync()
    #expect(story.paths == ["b", "b/x"])
  }

  @Test func otherContentsOfOneNameGetAnother() throws {
    var story = Story()
    let mine = story.make(.document, "trip.md", "mine", at: \.laptop)
    let yours = story.make(.document, "trip.md", "yours", at: \.desktop)
    try story.sync()
    #expect(story.paths == ["trip (2).md", "trip.md"])
    #expect(story.text("trip.md", at: \.desktop) == "mine" && story.text("trip (2).md", at: \.laptop) == "yours")
    #expect(story.desktop.tree.items[yours] != nil && story.desktop.tree.items[mine] != nil)
  }

  @Test func whatWasSavedHereAndDeletedThereComesBackWithItsFolders() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    let trip = story.make(.document, "trip.md", in: plans, at: \.laptop)
    try story.sync()
    story.remove(trip, plans, at: \.laptop)
    story.save(trip, "more", at: \.desktop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    try story.sync()
    #expect(story.paths == ["plans", "plans/trip.md"] && story.text("plans/trip.md", at: \.laptop) == "more")
  }

  @Test func whatWasDeletedHereAndSavedThereComesBack() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", at: \.laptop)
    let list = story.make(.document, "list.md", at: \.laptop)
    try story.sync()
    story.save(trip, "more", at: \.desktop)
    while try story.desktop.step(&story.hub, losesAnswer: false) {}
    story.remove(trip, list, at: \.laptop)
    try story.sync()
    #expect(story.paths == ["trip.md"] && story.text("trip.md", at: \.laptop) == "more")
  }

  @Test func ofADeletedFolderWhatWasMadeElsewhereStays() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    let inner = story.make(.folder, "inner", in: plans, at: \.laptop)
    let old = story.make(.document, "old.md", in: inner, at: \.laptop)
    try story.sync()
    story.make(.document, "new.md", in: inner, "new", at: \.desktop)
    while try story.desktop.step(&story.hub, losesAnswer: false) {}
    story.remove(old, inner, plans, at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.joined().map(\.item) == [plans])
    while try story.laptop.step(&story.hub, losesAnswer: false) {
      // All that stays comes back at once: nothing of it is deleted anew.
      if !story.laptop.notices.isEmpty { #expect(story.laptop.outbox.isEmpty) }
    }
    try story.sync()
    #expect(story.paths == ["plans", "plans/inner", "plans/inner/new.md"])
    #expect(story.text("plans/inner/new.md", at: \.laptop) == "new")
    #expect(story.laptop.notices.contains { $0.kind == .kept })
  }

  @Test func aFolderIsNotMovedIntoItself() throws {
    var story = Story()
    let a = story.make(.folder, "a", at: \.laptop), b = story.make(.folder, "b", at: \.laptop)
    try story.sync()
    story.move(a, "a", in: b, at: \.laptop)
    story.move(b, "b", in: a, at: \.desktop)
    try story.sync()
    #expect(story.paths == ["b", "b/a"])
    #expect(story.desktop.notices.map(\.item) == [b] && story.desktop.notices.map(\.kind) == [.refused(.loop)])
  }

  @Test func newsThatWouldPutAFolderIntoItselfWaitForTheHubsWord() throws {
    var story = Story()
    let a = story.make(.folder, "a", at: \.laptop), b = story.make(.folder, "b", at: \.laptop)
    try story.sync()
    story.move(a, "a", in: b, at: \.laptop)
    while try story.laptop.step(&story.hub, losesAnswer: false) {}
    story.move(b, "b", in: a, at: \.desktop)
    _ = try story.desktop.step(&story.hub, losesAnswer: false)
    #expect(story.desktop.tree.items[b]?.places == [Place(parent: a, "b")])
    try story.sync()
    #expect(story.paths == ["b", "b/a"])
  }

  @Test func foldersThatChangePlacesAreSentInAnOrderThatTheHubCanDo() throws {
    var story = Story()
    let a = story.make(.folder, "a", at: \.laptop)
    let b = story.make(.folder, "b", in: a, at: \.laptop)
    let c = story.make(.folder, "c", in: b, at: \.laptop)
    try story.sync()
    // What was innermost is outermost.
    story.move(c, "c", at: \.laptop)
    story.move(b, "b", in: c, at: \.laptop)
    story.move(a, "a", in: b, at: \.laptop)
    try story.sync()
    #expect(story.paths == ["c", "c/b", "c/b/a"])
    #expect(story.laptop.notices.isEmpty)
  }

  @Test func whatIsMovedOutOfADeletedFolderIsSaved() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    let documents = (0..<8).map { story.make(.document, "\($0)", in: plans, at: \.laptop) }
    try story.sync()
    for (number, document) in documents.enumerated() { story.move(document, "\(number)", at: \.laptop) }
    story.remove(plans, at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    let sent = story.laptop.outbox.joined().map(\.item)
    #expect(sent.last == plans && sent.count == 9)
    try story.sync()
    #expect(story.paths == (0..<8).map { "\($0)" })
  }

  @Test func temporaryFilesStayHereAndMakeWay() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    try story.sync()
    let swap = story.make(.document, "trip.md", "swap", readiness: .never, at: \.laptop)
    story.make(.document, ".x.swp", in: plans, "swap", readiness: .never, at: \.laptop)
    story.make(.document, "trip.md", "text", at: \.desktop)
    story.remove(plans, at: \.desktop)
    try story.sync()
    #expect(story.paths == ["trip.md"])
    #expect(story.text("trip.md", at: \.laptop) == "text")
    #expect(story.laptop.tree.items[swap]?.places == [Place(parent: .root, "trip (2).md")])
    #expect(story.laptop.tree.trash.count == 2)
  }

  @Test func aLongChainOfRenamesIsSentInParts() throws {
    var story = Story()
    let ids = (0..<600).map { story.make(.document, "\($0)", "\($0)", at: \.laptop) }
    try story.sync()
    for (index, id) in ids.enumerated().reversed() { story.move(id, "\(index + 1)", at: \.laptop) }
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.allSatisfy { $0.count <= WireLimits.sendsPerRequest })
    try story.sync()
    #expect(story.paths.count == 600 && !story.paths.contains("0"))
    #expect(story.text("600", at: \.desktop) == "599" && story.text("1", at: \.desktop) == "0")
    #expect(story.laptop.notices.isEmpty)
  }

  @Test func aFolderWithVeryMuchInItIsDeletedFromTheInside() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    let inner = story.make(.folder, "inner", in: plans, at: \.laptop)
    try story.sync()
    story.remove(inner, plans, at: \.laptop)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    let sent = try #require(story.laptop.outbox.first?.first)
    #expect(sent.item == plans && story.laptop.outbox.count == 1)
    try story.laptop.settle(
      [Verdict(serial: sent.serial, outcome: .refused, reason: .tooLarge, item: plans)], story.hub)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.joined().map(\.item) == [inner])
    try story.sync()
    #expect(story.paths.isEmpty)
  }

  @Test func whatTheHubDestroyedAndWasSavedHereIsANewDocument() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", "one", at: \.laptop)
    try story.sync()
    var row = try #require(story.hub.zone.state(trip))
    (row.isDeleted, row.isPurged, row.places, row.number) = (true, true, [], row.number + 1)
    story.save(trip, "two", at: \.laptop)
    story.laptop.tell(row)
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.tree.items[trip] == nil)
    #expect(story.text("trip.md", at: \.laptop) == "two")
    _ = try story.laptop.step(&story.hub, losesAnswer: false)
    #expect(story.laptop.outbox.joined().contains { $0.places == [Place(parent: .root, "trip.md")] && $0.base == nil })
    // Where nothing was saved, nothing is left.
    story.desktop.tell(row)
    _ = try story.desktop.step(&story.hub, losesAnswer: false)
    #expect(story.desktop.tree.items.isEmpty && story.desktop.tree.trash.isEmpty)
  }

  @Test func whatAHubLostIsSentAgainAndNothingIsDeleted() throws {
    var story = Story()
    let plans = story.make(.folder, "plans", at: \.laptop)
    try story.sync()
    let before = story.hub
    let trip = story.make(.document, "trip.md", in: plans, "one", at: \.laptop)
    story.make(.document, "list.md", "list", at: \.desktop)
    try story.sync()
    story.hub.restore(before)
    story.save(trip, "two", at: \.laptop)
    try story.sync()
    #expect(story.paths == ["list.md", "plans", "plans/trip.md"])
    #expect(story.text("plans/trip.md", at: \.desktop) == "two")
    #expect(story.hub.zone.items[trip]?.versions == 2)
  }

  @Test func whatAHubLostIsSentAgainThoughItsNumbersWereGivenAnew() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", "one\n", at: \.laptop)
    try story.sync()
    let before = story.hub
    story.save(trip, "by the laptop\n", at: \.laptop)
    while try story.laptop.step(&story.hub, losesAnswer: false) {}
    story.hub.restore(before)
    for number in 1...3 { story.save(trip, "by the desktop, \(number)\n", at: \.desktop) }
    while try story.desktop.step(&story.hub, losesAnswer: false) {}
    try story.sync()
    #expect(story.hub.texts.contains("by the laptop\n"))
    #expect(story.text("trip.md", at: \.laptop) == "by the desktop, 3\n")
  }

  @Test func whatAHubBroughtBackAndLostIsNotDeleted() throws {
    var story = Story()
    let trip = story.make(.document, "trip.md", "one", at: \.laptop)
    try story.sync()
    story.save(trip, "two", at: \.laptop)
    story.remove(trip, at: \.desktop)
    while try story.desktop.step(&story.hub, losesAnswer: false) {}
    let before = story.hub
    // The save brings it back; then the hub forgets that.
    try story.sync()
    #expect(story.paths == ["trip.md"])
    story.hub.restore(before)
    try story.sync()
    #expect(story.paths == ["trip.md"] && story.text("trip.md", at: \.desktop) == "two")
  }

  @Test func whatWasToComeBackAtAHubThatForgotItIsSentWhole() throws {
    var story = Story()
    let before = story.hub
    let trip = story.make(.document, "trip.md", "one", at: \.laptop)
    try story.sync()
    story.remove(trip, at: \.laptop)
    while try story.laptop.step(&story.hub, losesAnswer: false) {}
    guard var item = story.desktop.tree.items[trip] else { return }
    item.mode = 0o600
    story.desktop.tree.put(item)
    // The hub knows the contents, so they are not sent; then it knows them no more.
    _ = try story.desktop.step(&story.hub, losesAnswer: false)
    story.hub.restore(before)
    try story.sync()
    #expect(story.paths == ["trip.md"] && story.text("trip.md", at: \.laptop) == "one")
  }

  /// The hub makes one of two documents the other one, goes back, and then decides the other way round.
  @Test func whichOfTwoDocumentsStaysMayChangeWithAHubThatGoesBack() throws {
    var story = Story()
    let before = story.hub
    let mine = story.make(.document, "trip.md", "same", at: \.laptop)
    while try story.laptop.step(&story.hub, losesAnswer: false) {}
    let yours = story.make(.document, "trip.md", "same", at: \.desktop)
    try story.sync()
    #expect(story.desktop.aliases[yours] == mine)
    story.hub.restore(before)
    // Another machine's document has that name at the hub by the time at which this one sends what the hub lost.
    var other = SimulatedReplica("other", seed: 3)
    other.tree.put(
      LocalItem(item: yours, kind: .document, places: [Place(parent: .root, "trip.md")], mode: 0o644, mtime: 1))
    other.tree.save(LocalVersion(id: other.newID(), base: nil, cause: .save, time: 1), "same", of: yours)
    while try other.step(&story.hub, losesAnswer: false) {}
    try story.sync()
    #expect(story.paths == ["trip.md"])
    #expect(story.desktop.aliases[yours] == nil && story.desktop.tree.items[yours] != nil)
    story.save(yours, "more", at: \.desktop)
    try story.sync()
    #expect(story.text("trip.md", at: \.laptop) == "more")
  }
}
