import Foundation
import HubKit
import SheafWire
import Testing

@testable import SheafHub

/// Each row of docs/HUB.md, "When two did something at once", and what groups may do.
@Suite struct DecisionTests {
  /// Two devices of an account and what they send.
  struct Desk {
    var zone = MemoryZone()
    private var serial: Int64 = 0

    mutating func send(_ device: String, _ group: [Send]) throws -> [Verdict] {
      let verdicts = try zone.send(
        group.map { send in
          var send = send
          serial += 1
          send.serial = serial
          return send
        }, by: MemoryZone.author(device))
      try zone.check()
      return verdicts
    }

    @discardableResult
    mutating func send(_ device: String, _ send: Send) throws -> Verdict {
      try #require(try self.send(device, [send]).first)
    }

    var paths: [String] { zone.paths.keys.sorted() }

    mutating func document(
      _ device: String, _ name: String, in parent: WireID = .root, _ text: String = "text"
    ) throws -> (item: WireID, version: WireID, number: Int64) {
      let item = WireID(), version = WireID()
      let verdict = try send(device, .document(item, at: [Place(parent: parent, name)], version: version, text))
      return (verdict.item, version, try #require(verdict.number))
    }

    mutating func folder(_ device: String, _ name: String, in parent: WireID = .root) throws -> WireID {
      try send(device, Send(serial: 0, item: WireID(), kind: .folder, places: [Place(parent: parent, name)])).item
    }

    func row(_ item: WireID) throws -> ItemRow { try #require(zone.item(item)) }
  }

  @Test func aSaveBasedOnTheEarlierIsItsNextVersion() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    let second = WireID()
    let verdict = try desk.send("b", .save(document.item, second, base: document.version, "more"))
    #expect(verdict.outcome == .done && verdict.versionNumber == 2 && verdict.version == second)
    #expect(try desk.row(document.item).version == second)
    #expect(desk.paths == ["trip.md"])
  }

  @Test func aSaveNotBasedOnTheEarlierGoesBesideItOnce() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    try desk.send("a", .save(document.item, WireID(), base: document.version, "by a"))
    var base = WireID()
    let first = try desk.send("b", .save(document.item, base, base: document.version, "by b"))
    #expect(first.outcome == .beside && first.item != document.item && first.versionNumber == 1)
    #expect(desk.paths == ["trip (alice@hub.example 2027-01-15 b).md", "trip.md"])
    for number in 2...6 {
      let next = WireID()
      let verdict = try desk.send("b", .save(document.item, next, base: base, "by b, \(number)"))
      #expect(verdict.outcome == .beside && verdict.item == first.item && verdict.versionNumber == Int64(number))
      base = next
    }
    #expect(desk.paths.count == 2)
    // A third device's is a copy of its own.
    try desk.send("c", .save(document.item, WireID(), base: document.version, "by c"))
    #expect(desk.paths.count == 3)
    #expect(try desk.row(document.item).versions == 2)
  }

  @Test func changesOfDifferentPartsOfATextAreOneVersion() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md", "1\n2\n3\n")
    try desk.send("a", .save(document.item, WireID(), base: document.version, "one\n2\n3\n"))
    let sent = WireID()
    let verdict = try desk.send("b", .save(document.item, sent, base: document.version, "1\n2\nthree\n"))
    #expect(verdict.outcome == .merged && verdict.item == document.item && verdict.versionNumber == 4)
    let merged = try #require(verdict.version.flatMap { desk.zone.version($0) })
    #expect(merged.cause == .merge && merged.size == 12 && desk.zone.version(sent)?.number == 3)
    #expect(desk.paths == ["trip.md"])
  }

  @Test func aCopyThatWasDeletedComesBackWithItsNextSave() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    try desk.send("a", .save(document.item, WireID(), base: document.version, "by a"))
    let base = WireID()
    let copy = try desk.send("b", .save(document.item, base, base: document.version, "by b"))
    try desk.send("a", .deletion(copy.item, .document, read: desk.zone.number))
    let verdict = try desk.send("b", .save(document.item, WireID(), base: base, "more by b"))
    #expect(verdict.item == copy.item && verdict.versionNumber == 2)
    #expect(desk.paths.count == 2)
  }

  @Test func bothRenamedAndTheLaterWins() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    let folder = try desk.folder("a", "plans")
    try desk.send("a", .move(document.item, .document, to: Place(parent: .root, "a.md"), base: document.number))
    let verdict = try desk.send(
      "b", .move(document.item, .document, to: Place(parent: folder, "b.md"), base: document.number))
    #expect(verdict.outcome == .done && verdict.places == nil)
    #expect(desk.paths == ["plans", "plans/b.md"])
  }

  @Test func oneNameMadeTwiceWithEqualContentsIsOneItem() throws {
    var desk = Desk()
    let mine = try desk.document("a", "trip.md", "same")
    let other = WireID(), version = WireID()
    let verdict = try desk.send("b", .document(other, at: [Place(parent: .root, "trip.md")], version: version, "same"))
    #expect(verdict.outcome == .joined && verdict.item == mine.item && verdict.version == mine.version)
    #expect(desk.paths == ["trip.md"])
    // The old ids go on: of the item, and of the version that a save is based on.
    let next = try desk.send("b", .save(other, WireID(), base: version, "more"))
    #expect(next.outcome == .done && next.item == mine.item && next.versionNumber == 2)

    let link = WireID()
    for (device, id) in [("a", link), ("b", WireID())] {
      let verdict = try desk.send(
        device,
        Send(
          serial: 0, item: id, kind: .symlink, places: [Place(parent: .root, "link")], target: Data("trip.md".utf8)))
      #expect(verdict.item == link && verdict.outcome == (device == "a" ? .done : .joined))
    }
  }

  @Test func documentsOfOneNameWithEqualContentsHaveTheVersionsOfBoth() throws {
    var desk = Desk()
    let mine = try desk.document("a", "trip.md", "by a")
    let second = WireID()
    try desk.send("a", .save(mine.item, second, base: mine.version, "same"))
    let other = WireID()
    let versions = [WireID(), WireID(), WireID()]
    let verdicts = try desk.send(
      "b",
      [
        .document(other, at: [Place(parent: .root, "trip.md")], version: versions[0], "by b"),
        .save(other, versions[1], base: versions[0], "more by b"),
        .save(other, versions[2], base: versions[1], "same"),
      ])
    #expect(verdicts.map(\.outcome) == [.joined, .joined, .joined])
    #expect(verdicts.map(\.item) == Array(repeating: mine.item, count: 3))
    #expect(verdicts.map(\.version) == versions && verdicts.map(\.versionNumber) == [3, 4, 5])
    #expect(desk.paths == ["trip.md"])
    // The last one is based on what was current and equal, so that nothing was passed over.
    let row = try desk.row(mine.item)
    #expect(row.version == versions[2] && row.versions == 5)
    #expect(desk.zone.version(versions[2])?.base == second && desk.zone.version(versions[1])?.base == versions[0])
    // A save that is based on either goes on.
    let next = WireID()
    #expect(try desk.send("b", .save(other, next, base: versions[2], "newer")).outcome == .done)
    #expect(try desk.row(mine.item).version == next)
    // Each save is told once.
    let told = desk.zone.events.filter { $0.subject == mine.item.description }.map(\.type)
    #expect(told == [.created] + Array(repeating: .edit, count: 5))
  }

  @Test func equalHistoriesAreOne() throws {
    var desk = Desk()
    let mine = try desk.document("a", "trip.md", "first")
    let second = WireID()
    try desk.send("a", .save(mine.item, second, base: mine.version, "same"))
    let (other, first, last) = (WireID(), WireID(), WireID())
    let verdicts = try desk.send(
      "b",
      [
        .document(other, at: [Place(parent: .root, "trip.md")], version: first, "first"),
        .save(other, last, base: first, "same"),
      ])
    #expect(verdicts.map(\.outcome) == [.joined, .joined] && verdicts.map(\.version) == [mine.version, second])
    #expect(try desk.row(mine.item).versions == 2)
    #expect(try desk.send("b", .save(other, WireID(), base: last, "more")).outcome == .done)
  }

  /// A copy of a library has the same saves under other ids.
  @Test func theSavesOfACopyAreKnown() throws {
    var desk = Desk()
    let item = WireID()
    func version(_ id: WireID, _ base: WireID?, _ number: Int64) -> SentVersion {
      SentVersion(id: id, base: base, cause: .save, time: number, contents: Data("text \(number)".utf8))
    }
    let (first, last) = (WireID(), WireID())
    let made = Send(
      serial: 0, item: item, kind: .document, places: [Place(parent: .root, "f")], version: version(first, nil, 1))
    var next = Send(serial: 0, item: item, kind: .document, version: version(last, first, 2))
    #expect(try desk.send("a", [made, next]).map(\.outcome) == [.done, .done])
    let (copied, second, third) = (WireID(), WireID(), WireID())
    var again = made
    again.version = version(copied, nil, 1)
    var verdict = try desk.send("b", again)
    #expect(verdict.outcome == .joined && verdict.item == item && verdict.version == first)
    next.version = version(second, copied, 2)
    verdict = try desk.send("b", next)
    #expect(verdict.outcome == .joined && verdict.version == last && verdict.versionNumber == 2)
    #expect(desk.paths == ["f"])
    #expect(try desk.row(item).versions == 2)
    // What is saved on top of it is the next version.
    next.version = version(third, second, 3)
    verdict = try desk.send("b", next)
    #expect(verdict.outcome == .done && verdict.versionNumber == 3)
  }

  @Test func documentsOfOneNameWithOtherContentsStayTwoWithAllTheirVersions() throws {
    var desk = Desk()
    let mine = try desk.document("a", "trip.md", "same")
    let (other, first, last) = (WireID(), WireID(), WireID())
    let verdicts = try desk.send(
      "b",
      [
        .document(other, at: [Place(parent: .root, "trip.md")], version: first, "same"),
        .save(other, last, base: first, "another"),
      ])
    #expect(verdicts.map(\.outcome) == [.renamed, .done] && verdicts.map(\.item) == [other, other])
    #expect(desk.paths == ["trip (2).md", "trip.md"])
    #expect(try desk.row(mine.item).versions == 1 && desk.row(other).versions == 2)
    let told = desk.zone.events.filter { $0.subject == other.description }
    #expect(told.map(\.type) == [.created, .edit])
  }

  @Test func foldersOfOneNameHaveTheContentsOfBoth() throws {
    var desk = Desk()
    let mine = try desk.folder("a", "plans")
    _ = try desk.document("a", "a.md", in: mine)
    let other = WireID(), inner = WireID()
    let verdicts = try desk.send(
      "b",
      [
        Send(serial: 0, item: other, kind: .folder, places: [Place(parent: .root, "plans")]),
        .document(WireID(), at: [Place(parent: other, "b.md")], version: WireID(), "b"),
        .document(WireID(), at: [Place(parent: other, "a.md")], version: WireID(), "another a"),
        Send(serial: 0, item: inner, kind: .folder, places: [Place(parent: other, "inner")]),
      ])
    #expect(verdicts.map(\.outcome) == [.joined, .done, .renamed, .done])
    #expect(desk.paths == ["plans", "plans/a (2).md", "plans/a.md", "plans/b.md", "plans/inner"])
    // For ever, also below what was made in it.
    _ = try desk.document("b", "c.md", in: other)
    #expect(desk.paths.contains("plans/c.md"))
    #expect(try desk.row(mine).places == [Place(parent: .root, "plans")])
  }

  @Test func anotherThingOfTheNameGetsANumber() throws {
    var desk = Desk()
    _ = try desk.document("a", "trip.md", "one")
    let verdict = try desk.send(
      "b", .document(WireID(), at: [Place(parent: .root, "trip.md")], version: WireID(), "two"))
    #expect(verdict.outcome == .renamed && verdict.places == [Place(parent: .root, "trip (2).md")])
    _ = try desk.folder("b", "trip.md")
    _ = try desk.document("b", "trip.md", "three")
    try desk.send(
      "b",
      Send(serial: 0, item: WireID(), kind: .symlink, places: [Place(parent: .root, "trip.md")], target: Data("x".utf8))
    )
    #expect(desk.paths == ["trip (2).md", "trip (3).md", "trip (4).md", "trip.md", "trip.md (2)"])
    // A document that was moved to a name is not made one with its equal.
    let moved = try desk.document("b", "other.md", "one")
    let last = try desk.send(
      "b", .move(moved.item, .document, to: Place(parent: .root, "trip.md"), base: moved.number))
    #expect(last.outcome == .renamed && last.places == [Place(parent: .root, "trip (5).md")])
  }

  @Test func whatWasSavedComesBackWithTheFoldersAboveIt() throws {
    var desk = Desk()
    let outer = try desk.folder("a", "outer")
    let inner = try desk.folder("a", "inner", in: outer)
    let document = try desk.document("a", "trip.md", in: inner)
    _ = try desk.document("a", "other.md", in: inner)
    #expect(try desk.send("a", .deletion(outer, .folder, read: desk.zone.number)).outcome == .done)
    #expect(desk.paths == [])
    let verdict = try desk.send("b", .save(document.item, WireID(), base: document.version, "more"))
    #expect(verdict.outcome == .done && verdict.versionNumber == 2)
    #expect(desk.paths == ["outer", "outer/inner", "outer/inner/trip.md"])
    // What is made in a folder that was deleted brings it back as well.
    try desk.send("a", .deletion(outer, .folder, read: desk.zone.number))
    _ = try desk.document("b", "new.md", in: inner)
    #expect(desk.paths == ["outer", "outer/inner", "outer/inner/new.md"])
  }

  @Test func whatComesBackTakesNobodysName() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md", "one")
    try desk.send("a", .deletion(document.item, .document, base: document.number))
    _ = try desk.document("a", "trip.md", "two")
    let verdict = try desk.send("b", .save(document.item, WireID(), base: document.version, "three"))
    #expect(verdict.outcome == .renamed && verdict.places == [Place(parent: .root, "trip (2).md")])
  }

  @Test func whatWasChangedIsNotDeleted() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    try desk.send("b", .save(document.item, WireID(), base: document.version, "more"))
    #expect(try desk.send("a", .deletion(document.item, .document, base: document.number)).outcome == .kept)
    #expect(desk.paths == ["trip.md"])
    // Its own newer change does not hide the one that the device has not seen.
    try desk.send("a", .move(document.item, .document, to: Place(parent: .root, "t.md"), base: document.number))
    #expect(try desk.send("a", .deletion(document.item, .document, base: document.number)).outcome == .kept)
    #expect(try desk.send("a", .deletion(document.item, .document, base: desk.zone.number)).outcome == .done)
    #expect(try desk.send("b", .deletion(document.item, .document, base: 0)).outcome == .done)
  }

  @Test func whatTakesThePlaceOfSomethingThatStaysGetsAnotherName() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    try desk.send("b", .save(document.item, WireID(), base: document.version, "more"))
    let verdicts = try desk.send(
      "a",
      [
        .document(WireID(), at: [Place(parent: .root, "trip.md")], version: WireID(), "other"),
        .deletion(document.item, .document, base: document.number),
      ])
    #expect(verdicts.map(\.outcome) == [.renamed, .kept])
    #expect(desk.paths == ["trip (2).md", "trip.md"])
  }

  @Test func aSaveThatWentBesideIsKnownThereWhoeverSendsItAgain() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    try desk.send("a", .save(document.item, WireID(), base: document.version, "by a"))
    let version = WireID()
    let first = try desk.send("b", .save(document.item, version, base: document.version, "by b"))
    let again = try desk.send("c", .save(document.item, version, base: document.version, "by b"))
    #expect(first.outcome == .beside && again.outcome == .beside && again.item == first.item)
    #expect(again.version == version && again.versionNumber == 1)
    #expect(desk.paths.count == 2)
    // In any other document it has no business.
    let other = try desk.document("a", "other.md")
    #expect(try desk.send("c", .save(other.item, version, base: nil, "by b")).reason == .invalid)
  }

  @Test func aVersionThatBecameOneWithAnotherIsNotSavedAgain() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md", "same")
    let (item, version) = (WireID(), WireID())
    let joined = try desk.send("b", .document(item, at: [Place(parent: .root, "trip.md")], version: version, "same"))
    #expect(joined.outcome == .joined && joined.item == document.item)
    let again = try desk.send("c", .document(item, at: [Place(parent: .root, "trip.md")], version: version, "same"))
    #expect(again.outcome == .done && again.item == document.item && again.version == nil)
    #expect(desk.paths == ["trip.md"])
    #expect(try desk.row(document.item).versions == 1)
  }

  @Test func ofADeletedFolderWhatChangedMeanwhileStays() throws {
    var desk = Desk()
    let folder = try desk.folder("a", "plans")
    let inner = try desk.folder("a", "inner", in: folder)
    let changed = try desk.document("a", "changed.md", in: inner)
    _ = try desk.document("a", "unchanged.md", in: inner)
    _ = try desk.folder("a", "empty", in: folder)
    let read = desk.zone.number
    try desk.send("b", .save(changed.item, WireID(), base: changed.version, "more"))
    #expect(try desk.send("a", .deletion(folder, .folder, base: read, read: read)).outcome == .kept)
    #expect(desk.paths == ["plans", "plans/inner", "plans/inner/changed.md"])
  }

  @Test func aFurtherNameElsewhereKeepsADocument() throws {
    var desk = Desk()
    let folder = try desk.folder("a", "plans")
    let item = WireID()
    try desk.send(
      "a",
      .document(item, at: [Place(parent: folder, "in.md"), Place(parent: .root, "out.md")], version: WireID(), "x"))
    try desk.send("a", .deletion(folder, .folder, read: desk.zone.number))
    #expect(desk.paths == ["out.md"])
  }

  /// What changed meanwhile stays with each of its names, and so do the folders that these are in.
  @Test func whatStaysOfADeletedFolderKeepsAllItsNames() throws {
    var desk = Desk()
    let folder = try desk.folder("a", "plans")
    let inner = try desk.folder("a", "inner", in: folder), other = try desk.folder("a", "other", in: folder)
    let deep = try desk.folder("a", "deep", in: other)
    let (item, version) = (WireID(), WireID())
    let places = [
      Place(parent: inner, "a.md"), Place(parent: deep, "b.md"), Place(parent: folder, "c.md"),
      Place(parent: .root, "d.md"),
    ]
    try desk.send("a", .document(item, at: places, version: version, "x"))
    _ = try desk.document("a", "unchanged.md", in: deep)
    let read = desk.zone.number
    try desk.send("b", .save(item, WireID(), base: version, "more"))
    #expect(try desk.send("a", .deletion(folder, .folder, base: read, read: read)).outcome == .kept)
    try desk.zone.check()
    #expect(
      desk.paths == [
        "d.md", "plans", "plans/c.md", "plans/inner", "plans/inner/a.md", "plans/other", "plans/other/deep",
        "plans/other/deep/b.md",
      ])
  }

  @Test func ofTwoFoldersInEachOtherTheSecondIsRefused() throws {
    var desk = Desk()
    let a = try desk.folder("a", "A"), b = try desk.folder("a", "B")
    let read = desk.zone.number
    #expect(try desk.send("a", .move(a, .folder, to: Place(parent: b, "A"), base: read)).outcome == .done)
    let before = desk.zone.items
    let verdict = try desk.send("b", .move(b, .folder, to: Place(parent: a, "B"), base: read))
    #expect(verdict.outcome == .refused && verdict.reason == .loop)
    #expect(desk.zone.items == before)
    #expect(try desk.send("b", .move(b, .folder, to: Place(parent: b, "B"), base: read)).reason == .loop)
  }

  @Test func aSwapIsOneGroup() throws {
    var desk = Desk()
    let one = try desk.document("a", "one.md", "1"), two = try desk.document("a", "two.md", "2")
    let read = desk.zone.number
    let verdicts = try desk.send(
      "a",
      [
        .move(one.item, .document, to: Place(parent: .root, "two.md"), base: read),
        .move(two.item, .document, to: Place(parent: .root, "one.md"), base: read),
      ])
    #expect(verdicts.allSatisfy { $0.outcome == .done && $0.places == nil })
    #expect(desk.zone.paths == ["two.md": one.item, "one.md": two.item])
    // A chain, and a rename over what is deleted by the same group.
    let chain = try desk.send(
      "a",
      [
        .move(one.item, .document, to: Place(parent: .root, "three.md"), base: desk.zone.number),
        .move(two.item, .document, to: Place(parent: .root, "two.md"), base: desk.zone.number),
        .document(WireID(), at: [Place(parent: .root, "one.md")], version: WireID(), "3"),
      ])
    #expect(chain.allSatisfy { $0.outcome == .done })
    #expect(desk.paths == ["one.md", "three.md", "two.md"])
    let over = try desk.send(
      "a",
      [
        .move(one.item, .document, to: Place(parent: .root, "two.md"), base: desk.zone.number),
        .deletion(two.item, .document, base: desk.zone.number, read: desk.zone.number),
      ])
    #expect(over.allSatisfy { $0.outcome == .done })
    #expect(desk.zone.paths["two.md"] == one.item && desk.paths.count == 2)
  }

  @Test func foldersSwapPlacesInOneGroup() throws {
    var desk = Desk()
    let outer = try desk.folder("a", "outer")
    let inner = try desk.folder("a", "inner", in: outer)
    let verdicts = try desk.send(
      "a",
      [
        .move(outer, .folder, to: Place(parent: inner, "outer"), base: desk.zone.number),
        .move(inner, .folder, to: Place(parent: .root, "inner"), base: desk.zone.number),
      ])
    #expect(verdicts.allSatisfy { $0.outcome == .done })
    #expect(desk.paths == ["inner", "inner/outer"])
  }

  @Test func aGroupIsDoneTogetherOrNotAtAll() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md")
    let before = desk.zone.items
    let verdicts = try desk.send(
      "a",
      [
        .move(document.item, .document, to: Place(parent: .root, "moved.md"), base: document.number),
        .document(WireID(), at: [Place(parent: WireID(), "lost.md")], version: WireID(), "x"),
      ])
    #expect(verdicts.map(\.outcome) == [.refused, .refused])
    #expect(verdicts.map(\.reason) == [.group, .noParent])
    #expect(desk.zone.items == before)
  }

  @Test func noItemIsChangedTwiceByAGroup() throws {
    var desk = Desk()
    let mine = try desk.folder("a", "plans")
    let other = WireID()
    try desk.send("b", Send(serial: 0, item: other, kind: .folder, places: [Place(parent: .root, "plans")]))
    // By two of its ids it would get two names.
    let verdicts = try desk.send(
      "b",
      [
        .move(mine, .folder, to: Place(parent: .root, "one"), base: desk.zone.number),
        .move(other, .folder, to: Place(parent: .root, "two"), base: desk.zone.number),
      ])
    #expect(verdicts.map(\.reason) == [.group, .invalid])
    #expect(desk.paths == ["plans"])
    // A new folder that would become one with a folder of its own group gets no second name either.
    let again = try desk.send(
      "b",
      [
        Send(serial: 0, item: WireID(), kind: .folder, places: [Place(parent: .root, "plans")]),
        .move(mine, .folder, to: Place(parent: .root, "plans"), base: desk.zone.number),
      ])
    #expect(again.map(\.outcome) == [.refused, .refused])
    // A copy beside a document is an item of the group, too.
    let document = try desk.document("a", "trip.md")
    try desk.send("a", .save(document.item, WireID(), base: document.version, "by a"))
    let base = WireID()
    let copy = try desk.send("b", .save(document.item, base, base: document.version, "by b"))
    let both = try desk.send(
      "b",
      [
        .move(copy.item, .document, to: Place(parent: .root, "mine.md"), base: desk.zone.number),
        .save(document.item, WireID(), base: base, "more"),
      ])
    #expect(both.map(\.outcome) == [.refused, .refused])
  }

  @Test func whatAGroupChangesBecomesOneWithNothingOfTheGroup() throws {
    var desk = Desk()
    let plans = try desk.folder("a", "plans")
    let inner = try desk.folder("a", "inner", in: plans)
    let other = WireID()
    let verdicts = try desk.send(
      "b",
      [
        Send(serial: 0, item: other, kind: .folder, places: [Place(parent: .root, "plans")]),
        Send(serial: 0, item: WireID(), kind: .folder, places: [Place(parent: other, "inner")]),
        Send(serial: 0, item: inner, kind: .folder, base: desk.zone.number, mode: 0o700),
      ])
    #expect(verdicts.map(\.outcome) == [.joined, .renamed, .done])
    #expect(desk.paths == ["plans", "plans/inner", "plans/inner (2)"])
  }

  @Test func whatContradictsItselfIsRefused() throws {
    var desk = Desk()
    let document = try desk.document("a", "trip.md"), folder = try desk.folder("a", "plans")
    let place = [Place(parent: .root, "x")]
    let refused: [(Send, Verdict.Reason)] = [
      (.deletion(WireID(), .document, base: 0), .unknown),
      (Send(serial: 0, item: WireID(), kind: .folder, base: 5, places: place), .unknown),
      (Send(serial: 0, item: WireID(), kind: .document, places: place), .unknown),
      (Send(serial: 0, item: WireID(), kind: .folder), .unknown),
      (Send(serial: 0, item: WireID(), kind: .symlink, places: place), .invalid),
      (Send(serial: 0, item: document.item, kind: .folder, mode: 0), .invalid),
      (.save(folder, WireID(), base: nil, "x"), .invalid),
      (Send(serial: 0, item: folder, kind: .folder, places: place + [Place(parent: .root, "y")]), .invalid),
      (Send(serial: 0, item: folder, kind: .folder, places: [Place(parent: document.item, "y")]), .noParent),
      (Send(serial: 0, item: document.item, kind: .document, places: place + place), .invalid),
      (.document(WireID(), at: place, version: document.version, "x"), .invalid),
    ]
    let before = desk.zone.items
    for (send, reason) in refused {
      let verdict = try desk.send("b", send)
      #expect(verdict.outcome == .refused && verdict.reason == reason, "\(send)")
    }
    #expect(desk.zone.items == before)
  }

  @Test func aFolderWithVeryMuchInItIsNotDeletedAtOnce() throws {
    var desk = Desk()
    let folder = try desk.folder("a", "plans")
    for start in stride(from: 0, through: Decision.deletionLimit, by: 250) {
      let group = (start..<(start + 250)).map { index in
        Send(
          serial: Int64(index) + 1, item: WireID(), kind: .folder, places: [Place(parent: folder, "\(index)")])
      }
      _ = try desk.zone.send(group, by: MemoryZone.author("a"))
    }
    let verdict = try desk.send("a", .deletion(folder, .folder, read: desk.zone.number))
    #expect(verdict.reason == .tooLarge)
  }

  @Test func namesThatTheHubMakesFit() throws {
    let author = SendAuthor(
      device: "d", deviceName: String(repeating: "ü/", count: 60), handle: String(repeating: "a", count: 250) + "@h",
      name: "", now: .init(seconds: 0))
    let stem = Array(String(repeating: "é", count: 127).utf8)
    let names: [[UInt8]] = [
      stem, [0xFF, 0xFE], Array(".hidden".utf8), Array("a.".utf8), Array("é.".utf8) + stem.prefix(250),
    ]
    for name in names {
      for made in [Names.beside(name, author: author), MarkedName.numbered(name, 1_000, isFolder: false)] {
        #expect(Place(parent: .root, name: made).isValid, "\(made)")
        #expect(made != name)
      }
    }
    #expect(MarkedName.numbered(Array("a.tar.gz".utf8), 2, isFolder: false) == Array("a.tar (2).gz".utf8))
    #expect(MarkedName.numbered(Array("a.b".utf8), 2, isFolder: true) == Array("a.b (2)".utf8))
    #expect(MarkedName.numbered(Array(".profile".utf8), 3, isFolder: false) == Array(".profile (3)".utf8))
    let marked = "Makefile (alice@hub.example 2026-11-30 desk)"
    #expect(MarkedName.numbered(Array(marked.utf8), 2, isFolder: false) == Array("\(marked) (2)".utf8))
  }
}

extension Send {
  static func document(_ item: WireID, at places: [Place], version: WireID, _ text: String) -> Send {
    Send(
      serial: 0, item: item, kind: .document, places: places,
      version: SentVersion(id: version, base: nil, cause: .save, time: 0, contents: Data(text.utf8)))
  }

  static func save(_ item: WireID, _ version: WireID, base: WireID?, _ text: String) -> Send {
    Send(
      serial: 0, item: item, kind: .document, base: 0,
      version: SentVersion(id: version, base: base, cause: .save, time: 0, contents: Data(text.utf8)))
  }

  static func move(_ item: WireID, _ kind: ItemKind, to place: Place, base: Int64) -> Send {
    Send(serial: 0, item: item, kind: kind, base: base, places: [place])
  }

  static func deletion(_ item: WireID, _ kind: ItemKind, base: Int64? = nil, read: Int64 = 0) -> Send {
    Send(serial: 0, item: item, kind: kind, base: base, read: read, isDeletion: true)
  }
}
