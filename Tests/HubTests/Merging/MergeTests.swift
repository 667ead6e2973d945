import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// Nine lines, of which some say something else.
private func lines(_ changes: [Int: String] = [:]) -> String {
  (0..<9).map { changes[$0] ?? "line \($0)" }.joined(separator: "\n") + "\n"
}

/// Saves that are not based on each other, in the store: what is merged, what goes beside, and what nobody may learn by
/// it.
@Suite struct MergeTests {
  static func texts(_ item: WireID, _ hub: Hub, _ zone: String) async throws -> [String] {
    var texts: [String] = []
    for version in try await hub.contents.versions(of: item, after: 0, limit: 100, in: zone).versions {
      let (facts, manifest) = try await hub.contents.version(version.id, of: item, in: zone)
      var reader = ContentReader(hub.contents, manifest, 0..<facts.size, of: version.id, item, in: zone)
      var bytes: [UInt8] = []
      while let piece = try await reader.next() { bytes += piece }
      texts.append(String(decoding: bytes, as: UTF8.self))
    }
    return texts
  }

  /// A document that device `a` made and saved again.
  final class Desk: Sendable {
    let place: ZoneTests.Place
    let item = WireID()
    let first = WireID()
    let second = WireID()
    /// Of each device of each zone.
    private static let serials = Mutex<[String: Int64]>([:])

    init(
      _ place: ZoneTests.Place, in parent: WireID = .root, name: String = "plan.md", _ base: String = lines(),
      _ next: String = lines([0: "by a"])
    ) async throws {
      self.place = place
      let made = Send.document(item, at: [Place(parent: parent, name)], version: first, base)
      #expect(try await send(made, by: "a").outcome == .done)
      #expect(try await send(.save(item, second, base: first, next), by: "a").outcome == .done)
    }

    func request(_ sends: [Send], by device: String) -> SendRequest {
      SendRequest(
        groups: sends.map { send in
          var send = send
          send.serial = Self.serials.withLock { serials in
            serials["\(place.zone) \(device)", default: 100] += 1
            return serials["\(place.zone) \(device)"] ?? 0
          }
          return [send]
        })
    }

    func send(_ send: Send, by device: String) async throws -> Verdict {
      try #require(try await place.send(request([send], by: device), by: device).verdicts.first)
    }

    func save(_ text: String, base: WireID?, by device: String = "b") async throws -> Verdict {
      try await send(.save(item, WireID(), base: base, text), by: device)
    }

    func texts() async throws -> [String] { try await MergeTests.texts(item, place.hub, place.zone) }
  }

  @Test(arguments: StoreEngine.available)
  func changesOfBothBecomeOneVersion(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let desk = try await Desk(place)
      let mine = WireID()
      let request = desk.request([.save(desk.item, mine, base: desk.first, lines([4: "by b"]))], by: "b")
      let answer = try await place.send(request, by: "b")
      let verdict = try #require(answer.verdicts.first)
      #expect(verdict.outcome == .merged && verdict.item == desk.item && verdict.versionNumber == 4)
      let both = lines([0: "by a", 4: "by b"])
      #expect(try await desk.texts() == [lines(), lines([0: "by a"]), lines([4: "by b"]), both])
      let versions = try await place.hub.contents.versions(of: desk.item, after: 0, limit: 9, in: place.zone).versions
      #expect(versions.map(\.cause) == [.save, .save, .save, .merge])
      #expect(versions.map(\.base) == [nil, desk.first, desk.first, desk.second])
      let state = try #require(try await place.hub.feeds.item(desk.item, in: place.zone))
      #expect(state.version == versions.last && state.number == verdict.number && verdict.version == versions.last?.id)
      #expect(state.mtime == place.hub.clock.now.nanoseconds)
      let events = try await place.hub.events.page(after: .number(0), limit: 9, of: place.zone).events
      #expect(events.map(\.type) == [.created, .edit, .edit])
      #expect(events.last?.data.version?.cause == "merge" && events.last?.data.version?.number == 4)
      #expect(events.last?.data.version?.base == 2)
      // Once more is the same, and makes nothing.
      #expect(try await place.send(request, by: "b") == answer)
      // Who goes on with what they saved has what the other did, too.
      let next = try await desk.save(lines([3: "more", 4: "by b"]), base: mine)
      #expect(next.outcome == .merged)
      #expect(try await desk.texts().last == lines([0: "by a", 3: "more", 4: "by b"]))
      // So has the other one, who goes on with theirs.
      let other = try await desk.save(lines([0: "by a", 1: "more"]), base: desk.second, by: "a")
      #expect(other.outcome == .merged)
      #expect(try await desk.texts().last == lines([0: "by a", 1: "more", 3: "more", 4: "by b"]))
      #expect(try await place.count("SELECT COUNT(*) FROM items") == 1)
      #expect(try await place.hub.check() == [])
    }
  }

  /// What was saved several times without a network comes in order, in one request.
  @Test(arguments: StoreEngine.available)
  func savesThatBuildOnEachOtherAreMergedOneByOne(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let desk = try await Desk(place)
      let ids = (0..<5).map { _ in WireID() }
      let sends = ids.enumerated().map { index, id in
        Send.save(desk.item, id, base: index == 0 ? desk.first : ids[index - 1], lines([4: "by b, \(index)"]))
      }
      let request = desk.request(sends, by: "b")
      let answer = try await place.send(request, by: "b")
      #expect(answer.verdicts.map(\.outcome) == Array(repeating: .merged, count: 5) && answer.later == [])
      #expect(try await desk.texts().last == lines([0: "by a", 4: "by b, 4"]))
      #expect(try await place.send(request, by: "b") == answer)
      #expect(try await place.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatCannotBeMergedGoesBeside(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      func outcome(_ desk: Desk, _ text: String = lines([4: "by b"]), base: WireID?) async throws -> Verdict.Outcome {
        try await desk.save(text, base: base).outcome
      }
      let plain = try await Desk(place)
      // The same lines, no base that both have, and no text.
      #expect(try await outcome(plain, lines([0: "by b"]), base: plain.first) == .beside)
      #expect(try await outcome(plain, base: nil) == .beside)
      #expect(try await outcome(plain, base: WireID()) == .beside)
      let other = try await Desk(place, name: "other")
      #expect(try await outcome(plain, base: other.first) == .beside)
      #expect(try await outcome(plain, lines([4: "\0"]), base: plain.first) == .beside)
      var holes = Send.save(plain.item, WireID(), base: plain.first, "")
      holes.version?.contents = nil
      holes.version?.extents = [Extent(hash: nil, length: 9)]
      #expect(try await plain.send(holes, by: "b").outcome == .beside)
      // By what a document is called, and where it is.
      for (index, name) in ["data.json", "data.xml"].enumerated() {
        let desk = try await Desk(place, name: "\(index) \(name)")
        #expect(try await outcome(desk, base: desk.first) == .beside)
      }
      let (hidden, inner) = (WireID(), WireID())
      for (folder, parent, name) in [(hidden, WireID.root, ".git"), (inner, hidden, "hooks")] {
        let made = Send(serial: 0, item: folder, kind: .folder, places: [Place(parent: parent, name)])
        #expect(try await plain.send(made, by: "a").outcome == .done)
      }
      let deep = try await Desk(place, in: inner)
      #expect(try await outcome(deep, base: deep.first) == .beside)
      // What came back is not based on what was deleted, so a part of it that is missing was not taken out.
      let gone = try await Desk(place, name: "gone")
      #expect(try await gone.send(.deletion(gone.item, .document, read: 1 << 40), by: "a").outcome == .done)
      let back = try await gone.save(lines([4: "by b"]), base: gone.first)
      #expect(back.outcome == .done, "\(back)")
      #expect(try await gone.save(lines([0: "by a", 2: "more"]), base: gone.second, by: "a").outcome == .beside)
      // Up to 1 MiB.
      for (length, expected) in [(1 << 20 - 200, Verdict.Outcome.merged), (1 << 20, .beside)] {
        let chunk = Chunk(Array((lines() + String(repeating: "x", count: length)).utf8))
        try await place.hub.contents.upload(chunk.bytes, hash: chunk.hash, to: place.zone)
        let desk = try await Desk(place, name: "long \(length)")
        var send = Send.save(desk.item, WireID(), base: desk.first, "")
        send.version?.contents = nil
        send.version?.extents = [Extent(hash: chunk.hash, length: Int64(chunk.bytes.count))]
        let long = try await desk.send(send, by: "b")
        #expect(long.outcome == expected, "\(long)")
      }
      #expect(try await place.hub.check() == [])
    }
  }

  /// A store that does something else after each of some reads.
  final class InterruptedDatabase: Database {
    private let interruption = Mutex<(@Sendable () async throws -> Void)?>(nil)
    private let base: any Database

    init(base: any Database) { self.base = base }

    /// From now on `interruption` runs after each read, but for those that it makes itself.
    func interrupt(with interruption: (@Sendable () async throws -> Void)?) {
      self.interruption.withLock { $0 = interruption }
    }

    func write<T: Sendable>(
      _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
    ) async throws -> T { try await base.write(body) }

    func read<T: Sendable>(
      _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
    ) async throws -> T {
      let value = try await base.read(body)
      let taken = interruption.withLock { interruption in
        let taken = interruption
        interruption = nil
        return taken
      }
      if let taken {
        try await taken()
        interrupt(with: taken)
      }
      return value
    }

    func close() async { await base.close() }
  }

  /// What was merged counts only with the version that it was merged with.
  @Test(arguments: StoreEngine.available, [1, 2, 3])
  func whoComesInBetweenIsMergedToo(_ engine: StoreEngine, _ times: Int) async throws {
    try await engine.withDatabase { store in
      let database = InterruptedDatabase(base: store)
      let test = try await TestHub(database)
      let place = ZoneTests.Place(test: test, zone: try await test.account(), database: database)
      let desk = try await Desk(place)
      let left = Counter()
      left.set(times)
      database.interrupt {
        guard left.value > 0 else { return }
        left.set(left.value - 1)
        let current = try await place.hub.feeds.item(desk.item, in: place.zone)?.version?.id
        _ = try await desk.save(lines([0: "by a", 2: "\(left.value)"]), base: current, by: "a")
      }
      let verdict = try await desk.save(lines([4: "by b"]), base: desk.first)
      database.interrupt(with: nil)
      #expect(left.value == 0)
      if times < 3 {
        #expect(verdict.outcome == .merged)
        #expect(try await desk.texts().last == lines([0: "by a", 2: "0", 4: "by b"]))
      } else {
        #expect(verdict.outcome == .beside)
        #expect(try await desk.texts().last == lines([0: "by a", 2: "0"]))
      }
      #expect(try await place.hub.check() == [])
    }
  }

  /// Two who save at once, again and again, end with what both did, and with a merge for each save at most.
  @Test(arguments: StoreEngine.available)
  func twoWhoSaveAtOnceDoNotChaseEachOther(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let desk = try await Desk(place, lines(), lines([2: "begun"]))
      /// Saves on what the device saved before.
      @Sendable func save(_ device: String, _ line: Int, _ round: Int, _ base: WireID) async throws -> WireID {
        let id = WireID()
        let text = lines([2: "begun", line: "\(device) \(round)"])
        let verdict = try await desk.send(.save(desk.item, id, base: base, text), by: device)
        #expect([.done, .merged].contains(verdict.outcome))
        return id
      }
      var (mine, theirs) = (desk.second, desk.second)
      for round in 0..<10 {
        let bases = (mine, theirs)
        async let one = save("a", 0, round, bases.0)
        async let other = save("b", 4, round, bases.1)
        (mine, theirs) = try await (one, other)
      }
      let texts = try await desk.texts()
      #expect(texts.last == lines([0: "a 9", 2: "begun", 4: "b 9"]))
      // Of the first of two nothing needs merging; of the second everything does.
      #expect(texts.count > 30 && texts.count < 43, "\(texts.count) versions")
      #expect(try await place.hub.check() == [])
    }
  }

  /// Where the quota has no room for what is merged, the save goes beside, which needs no more than it has.
  @Test(arguments: StoreEngine.available)
  func aFullQuotaKeepsTheSave(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let desk = try await Desk(place)
      let text = lines([4: "by b" + String(repeating: "b", count: 5_000)])
      let used = try await place.count("SELECT used FROM zones")
      // With the rows of a document.
      try await place.hub.accounts.setQuota(used + Int64(text.utf8.count) + 1_000, of: place.zone)
      #expect(try await desk.save(text, base: desk.first).outcome == .beside)
      #expect(try await place.hub.check() == [])
    }
  }

  /// More merges than a request may have wait, with all that may build on them.
  @Test func aRequestHasSoManyMerges() async throws {
    try await ZoneTests.with(.sqlite) { place in
      let desk = try await Desk(place)
      let ids = (0..<40).map { _ in WireID() }
      let sends = ids.enumerated().map { index, id in
        Send.save(desk.item, id, base: index == 0 ? desk.first : ids[index - 1], lines([4: "by b, \(index)"]))
      }
      let request = desk.request(sends, by: "b")
      let first = try await place.send(request, by: "b")
      #expect(first.verdicts.count == 32 && first.later.map(\.serial) == (133...140).map { Int64($0) })
      let second = try await place.send(request, by: "b")
      #expect(second.verdicts.map(\.outcome) == Array(repeating: .merged, count: 40) && second.later == [])
      #expect(Array(second.verdicts.prefix(32)) == first.verdicts)
      #expect(try await desk.texts().count == 82)
    }
  }

  // MARK: - In shares

  /// Members merge by their rights, and what they may not read is merged with nothing.
  @Test(arguments: StoreEngine.available)
  func membersMergeWhatTheyMayRead(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", lines([1: "secret"]), in: trip)
      func current() async throws -> WireID? {
        try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.id
      }
      let hidden = try await current()
      try await story.save(plan, lines())
      let share = try await story.share(trip, with: [story.bob])
      try await story.invite(story.carol, to: share, .readOnly)
      let seen = try await current()
      try await story.save(plan, lines([0: "by alice"]))
      func save(_ text: String, base: WireID?, by person: Person) async throws -> Verdict? {
        try await story.send(.save(plan, WireID(), base: base, text), to: share, by: person).first
      }
      #expect(try await save(lines([4: "by carol"]), base: seen, by: story.carol)?.reason == .denied)
      let merged = try await save(lines([4: "by bob"]), base: seen, by: story.bob)
      #expect(merged?.outcome == .merged && merged?.item == plan)
      let both = lines([0: "by alice", 4: "by bob"])
      #expect(
        try await story.texts(plan, share, story.carol) == [
          lines(), lines([0: "by alice"]), lines([4: "by bob"]), both,
        ])
      // Whether a guess at what was before would be merged tells what was before.
      let guess = try await save(lines([1: "secret", 7: "guess"]), base: hidden, by: story.bob)
      #expect(guess?.outcome == .beside && guess?.item != plan)
      #expect(try await story.texts(plan, share, story.carol)?.last == both)
      // The owner may read it.
      let owner = try await story.send(.save(plan, WireID(), base: hidden, lines([1: "secret", 6: "by alice"]))).first
      #expect(owner?.outcome == .merged)
      #expect(
        try await story.texts(plan, share, story.bob)?.last == lines([0: "by alice", 4: "by bob", 6: "by alice"]))
      #expect(try await story.hub.check() == [])
    }
  }

  /// Where its owner keeps what is shared makes no difference to members; what is below it does.
  @Test(arguments: StoreEngine.available)
  func dotFoldersAroundAShareAreTheOwners(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let hidden = try await story.folder(".hidden")
      let trip = try await story.folder("trip", in: hidden)
      let inner = try await story.folder(".inner", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      for (folder, expected) in [(trip, Verdict.Outcome.merged), (inner, .beside)] {
        let plan = try await story.document("plan", lines(), in: folder)
        let base = try await story.hub.feeds.item(plan, in: story.alice.zone)?.version?.id
        try await story.save(plan, lines([0: "by alice"]))
        let send = Send.save(plan, WireID(), base: base, lines([4: "by bob"]))
        #expect(try await story.send(send, to: share, by: story.bob).map(\.outcome) == [expected])
      }
    }
  }
}
