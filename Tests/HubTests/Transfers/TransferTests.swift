import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHub

/// Items that go from one account of a hub to another.
@Suite struct TransferTests {
  /// Bob's zone, as its feed tells it.
  private struct Zone {
    let hub: Hub
    let zone: String

    func items() async throws -> [ItemState] {
      try await hub.feeds.page(after: nil, limit: 500, of: zone).items.filter { !$0.isPurged }
    }

    /// Paths of what is there, and in brackets of what was deleted.
    func paths() async throws -> [String] {
      let items = Dictionary(try await items().map { ($0.item, $0) }) { $1 }
      return items.values.map { item in
        var (words, next): ([String], ItemState?) = ([], item)
        while let state = next {
          words.append(String(decoding: state.places.first?.name ?? [], as: UTF8.self))
          next = (state.places.first?.parent).flatMap { items[$0] }
        }
        let path = words.reversed().joined(separator: "/")
        return item.isDeleted ? "(\(path))" : path
      }.sorted()
    }

    func item(_ name: String) async throws -> ItemState {
      try #require(
        try await items().first { $0.places.first.map { String(decoding: $0.name, as: UTF8.self) } == name })
    }

    /// The texts of an item's versions with author and label, the oldest first.
    func versions(_ item: WireID) async throws -> [String] {
      var lines: [String] = []
      for version in try await hub.contents.versions(of: item, after: 0, limit: 100, in: zone).versions {
        let (facts, manifest) = try await hub.contents.version(version.id, of: item, in: zone)
        var reader = ContentReader(hub.contents, manifest, 0..<facts.size, of: version.id, item, in: zone)
        var bytes: [UInt8] = []
        while let piece = try await reader.next() { bytes += piece }
        lines.append(
          [
            "\(version.number)", String(decoding: bytes, as: UTF8.self), version.author ?? "-",
            version.label ?? "-", "\(version.time)",
          ].joined(separator: " "))
      }
      return lines
    }

    func log() async throws -> [Event] {
      try await hub.events.page(after: .number(0), limit: 1_000, of: zone).events
    }

    func used() async throws -> Int64 {
      let zone = zone
      return try await hub.database.read { try SheafHub.Zone.space(of: zone, in: &$0).used }
    }
  }

  private static var later: ContinuousClock.Instant { .now + .seconds(60) }

  private static func accept(_ story: SharedStory, _ offer: TransferFacts, by person: Person? = nil) async throws
    -> WireID
  {
    let progress = try await story.hub.transfers.accept(
      offer.transfer, by: person ?? story.bob, until: Self.later)
    #expect(progress.isDone)
    return try #require(progress.item)
  }

  private static func expectSound(_ story: SharedStory) async throws {
    let findings = try await story.hub.check()
    #expect(findings == [])
  }

  private static func kind(_ body: () async throws -> Void) async throws -> Problem.Kind? {
    do {
      try await body()
      return nil
    } catch let error as HubError {
      return error.kind
    }
  }

  /// A folder with a document of three versions, another one that Bob wrote in while it was shared, and a deleted one.
  private static func plans(_ story: SharedStory) async throws -> WireID {
    let plans = try await story.folder("plans")
    let inner = try await story.folder("inner", in: plans)
    let doc = try await story.document("doc", "one", in: plans)
    let second = try await story.save(doc, "two")
    _ = try await story.save(doc, "three")
    let version = try #require(
      try await story.hub.contents.versions(of: doc, after: 1, limit: 1, in: story.alice.zone).versions.first?.id)
    #expect(second.outcome == .done)
    try await story.hub.labels.label(version, of: doc, as: "best", in: story.alice.zone, by: "a")
    let both = try await story.document("both", "alice's", in: inner)
    let share = try await story.share(inner, with: [story.bob])
    let base = try await story.hub.feeds.item(both, in: story.alice.zone)?.version?.id
    #expect(
      try await story.send(.save(both, WireID(), base: base, "bob's"), to: share, by: story.bob).map(\.outcome)
        == [.done])
    let owner = story.alice
    try await story.hub.sharing.change(share.id, by: owner) { try $0.stop(by: owner.zone) }
    let gone = try await story.document("gone", "secret of long ago", in: inner)
    try await story.delete(gone)
    return plans
  }

  /// How many items are copied as a whole that bob accepts.
  private static func copied(_ story: SharedStory) async throws -> Int64 {
    let zone = story.bob.zone
    return try await story.hub.database.read { connection in
      try connection.query("SELECT COUNT(*) FROM arrivals WHERE zone = $1 AND copied > 0", [.text(zone)]).first?
        .integer(0) ?? 0
    }
  }

  private static let paths = ["(plans/inner/gone)", "plans", "plans/doc", "plans/inner", "plans/inner/both"]

  @Test(arguments: StoreEngine.available)
  func aFolderGoesWithItsHistory(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (mine, theirs) = (
        Zone(hub: story.hub, zone: story.alice.zone), Zone(hub: story.hub, zone: story.bob.zone)
      )
      let plans = try await Self.plans(story)
      let kept = try await story.document("kept", "stays")
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      #expect(offer.item == plans && offer.name == "plans" && offer.kind == .folder)
      let again = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      #expect(again == offer)
      let lists = try await story.hub.transfers.lists(for: story.bob)
      #expect(lists.byMe.isEmpty && lists.toMe.map(\.transfer) == [offer.transfer] && lists.toMe[0].item == nil)
      let former = try await (story.hub.check(), mine.versions(mine.item("doc").item))
      #expect(former.0 == [])

      let item = try await Self.accept(story, offer)
      #expect(try await theirs.paths() == Self.paths)
      #expect(try await mine.paths() == ["kept"])
      #expect(try await theirs.item("plans").item == item)
      #expect(item != plans)
      // Who saved what stays, seen from the other side.
      let doc = try await theirs.versions(theirs.item("doc").item)
      #expect(doc == former.1.map { $0.replacing(" - ", with: " alice@hub.example ", maxReplacements: 1) })
      #expect(doc.map { $0.split(separator: " ")[3] } == ["-", "best", "-"])
      let both = try await theirs.versions(theirs.item("both").item).map { $0.split(separator: " ").map(String.init) }
      #expect(both.map { $0[2] } == ["alice@hub.example", "-"] && both.map { $0[1] } == ["alice's", "bob's"])
      #expect(try await theirs.versions(theirs.item("gone").item).count == 1)
      // Nothing of it is left, but what else there is.
      try await Self.expectSound(story)
      try await story.hub.upkeep()
      try await Self.expectSound(story)
      let left = try await database.read { connection in
        try connection.query("SELECT bytes FROM chunk_bytes WHERE zone = $1", [.text(story.alice.zone)]).map {
          String(decoding: try $0.blob(0), as: UTF8.self)
        }
      }
      #expect(left == ["stays"])
      #expect(try await mine.item("kept").item == kept)
      // An answer that was lost is given again.
      #expect(try await Self.accept(story, offer) == item)
      #expect(try await story.hub.transfers.lists(for: story.alice) == TransferLists(byMe: [], toMe: []))
      #expect(try await story.hub.transfers.lists(for: story.bob) == TransferLists(byMe: [], toMe: []))
    }
  }

  @Test(arguments: StoreEngine.available)
  func bothLogsTellOfIt(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let plans = try await Self.plans(story)
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      let item = try await Self.accept(story, offer)
      let mine = try await Zone(hub: story.hub, zone: story.alice.zone).log().suffix(2)
      #expect(mine.map(\.type) == [.shareUpdated, .deleted])
      #expect(mine.map { $0.data.actor.handle.description } == [story.alice.handle, story.bob.handle])
      #expect(mine.map { $0.data.participant?.acceptance } == ["pending", "accepted"])
      #expect(mine.last?.data.contentCount == 3)
      #expect(mine.last?.data.contents?.map(\.name).sorted() == ["both", "doc", "inner"])
      let theirs = try await Zone(hub: story.hub, zone: story.bob.zone).log().suffix(2)
      #expect(theirs.map(\.type) == [.shareUpdated, .created])
      #expect(theirs.map(\.subject) == [offer.transfer.description, item.description])
      #expect(theirs.allSatisfy { $0.data.item.path == "plans" && $0.data.participant?.role == "owner" })
    }
  }

  @Test(arguments: StoreEngine.available)
  func offersEnd(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let transfers = story.hub.transfers
      let doc = try await story.document("doc", "one")
      let first = try await transfers.offer(doc, to: story.bob.handle, by: story.alice)
      // Nobody else has anything of it.
      for person in [story.alice, story.carol] {
        #expect(try await Self.kind { _ = try await Self.accept(story, first, by: person) } == .notFound)
        #expect(try await Self.kind { try await transfers.decline(first.transfer, by: person) } == .notFound)
      }
      #expect(try await Self.kind { try await transfers.withdraw(doc, by: story.bob) } == .notFound)
      let second = try await transfers.offer(doc, to: story.carol.handle, by: story.alice)
      #expect(try await Self.kind { _ = try await Self.accept(story, first) } == .notFound)
      #expect(try await transfers.lists(for: story.bob).toMe.isEmpty)
      try await transfers.decline(second.transfer, by: story.carol)
      #expect(try await transfers.lists(for: story.alice).byMe.isEmpty)
      #expect(try await Self.kind { try await transfers.decline(second.transfer, by: story.carol) } == .notFound)
      let third = try await transfers.offer(doc, to: story.bob.handle, by: story.alice)
      try await transfers.withdraw(doc, by: story.alice)
      #expect(try await Self.kind { try await transfers.withdraw(doc, by: story.alice) } == .notFound)
      #expect(try await Self.kind { _ = try await Self.accept(story, third) } == .notFound)
      let told = try await Zone(hub: story.hub, zone: story.bob.zone).log().map { $0.data.participant?.acceptance }
      #expect(told == ["pending", "removed", "pending", "removed"])
      let mine = try await Zone(hub: story.hub, zone: story.alice.zone).log().dropFirst().map {
        [$0.data.participant?.handle, $0.data.participant?.acceptance].compactMap { $0 }.joined(separator: " ")
      }
      #expect(
        mine == [
          "bob@hub.example pending", "bob@hub.example removed", "carol@hub.example pending",
          "carol@hub.example removed", "bob@hub.example pending", "bob@hub.example removed",
        ])
      try await Self.expectSound(story)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatCannotGoIsRefused(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let transfers = story.hub.transfers
      func refusal(_ item: WireID, _ handle: String? = nil) async throws -> Problem.Kind? {
        try await Self.kind { _ = try await transfers.offer(item, to: handle ?? story.bob.handle, by: story.alice) }
      }
      let outer = try await story.folder("outer")
      let shared = try await story.folder("shared", in: outer)
      let inner = try await story.document("inner", "one", in: shared)
      let doc = try await story.document("doc", "one")
      let gone = try await story.document("gone", "one")
      try await story.delete(gone)
      let share = try await story.share(shared, with: [story.bob])
      for item in [outer, shared, inner] { #expect(try await refusal(item) == .conflict) }
      #expect(try await refusal(gone) == .notFound)
      #expect(try await refusal(WireID()) == .notFound)
      #expect(try await refusal(.root) == .invalid)
      #expect(try await refusal(doc, "nobody@hub.example") == .notFound)
      #expect(try await refusal(doc, story.alice.handle) == .invalid)
      #expect(try await refusal(doc, "no handle") == .invalid)
      // What became so after the offer.
      let owner = story.alice
      try await story.hub.sharing.change(share.id, by: owner) { try $0.stop(by: owner.zone) }
      let offer = try await transfers.offer(outer, to: story.bob.handle, by: story.alice)
      try await story.share(shared, with: [story.carol])
      #expect(try await Self.kind { _ = try await Self.accept(story, offer) } == .conflict)
      let theirs = Zone(hub: story.hub, zone: story.bob.zone)
      #expect(try await theirs.items().isEmpty)
      try await Self.expectSound(story)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatIsSavedMeanwhileGoesAlong(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let plans = try await Self.plans(story)
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      let past = ContinuousClock.now
      let first = try await story.hub.transfers.accept(offer.transfer, by: story.bob, until: past)
      #expect(first == TransferProgress(isDone: false))
      let (mine, theirs) = (
        Zone(hub: story.hub, zone: story.alice.zone), Zone(hub: story.hub, zone: story.bob.zone)
      )
      #expect(try await theirs.items().isEmpty)
      #expect(try await mine.paths() == Self.paths)
      try await Self.expectSound(story)
      let doc = try await mine.item("doc").item
      _ = try await story.save(doc, "four")
      let version = try #require(
        try await story.hub.contents.versions(of: doc, after: 0, limit: 1, in: story.alice.zone).versions.first?.id)
      try await story.hub.purging.purge(version, of: doc, in: story.alice.zone, by: "a")
      _ = try await story.document("new", "new", in: plans)
      try await story.delete(try await mine.item("inner").item, .folder)
      var progress = first
      for _ in 0..<20 where !progress.isDone {
        progress = try await story.hub.transfers.accept(offer.transfer, by: story.bob, until: past)
      }
      #expect(progress.isDone)
      #expect(
        try await theirs.paths() == [
          "(plans/inner)", "(plans/inner/both)", "(plans/inner/gone)", "plans", "plans/doc", "plans/new",
        ])
      let texts = try await theirs.versions(theirs.item("doc").item).map { $0.split(separator: " ")[1] }
      #expect(texts == ["two", "three", "four"])
      try await Self.expectSound(story)
      #expect(try await mine.items().isEmpty)
      // A machine that does not know yet.
      let late = try await story.send(.save(doc, WireID(), base: nil, "late"))
      #expect(late.map(\.reason) == [.purged])
    }
  }

  @Test(arguments: StoreEngine.available)
  func withoutRoomNothingIsLeft(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let plans = try await Self.plans(story)
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      let theirs = Zone(hub: story.hub, zone: story.bob.zone)
      let used = try await theirs.used()
      let zone = story.bob.zone
      func quota(_ bytes: Int64?) async throws {
        try await database.write { try SheafHub.Zone.setQuota(bytes, of: zone, in: &$0) }
      }
      for room in stride(from: Int64(0), to: 3_000, by: 300) {
        try await quota(used + room)
        #expect(try await Self.kind { _ = try await Self.accept(story, offer) } == .quota, "\(room)")
        try await story.hub.contents.collect(in: zone)
        story.test.clock.advance(seconds: 2 * 86_400)
        try await story.hub.contents.collect(in: zone)
        #expect(try await theirs.used() == used)
        try await Self.expectSound(story)
      }
      try await quota(nil)
      _ = try await Self.accept(story, offer)
      #expect(try await theirs.paths() == Self.paths)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aNameThatIsTakenGetsANumber(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let theirs = Zone(hub: story.hub, zone: story.bob.zone)
      for name in ["doc.txt", "doc.txt", "doc.txt"] {
        let doc = try await story.document(name, "one")
        let offer = try await story.hub.transfers.offer(doc, to: story.bob.handle, by: story.alice)
        _ = try await Self.accept(story, offer)
      }
      #expect(try await theirs.paths() == ["doc (2).txt", "doc (3).txt", "doc.txt"])
      // And back again, with who wrote it.
      let item = try await theirs.item("doc (2).txt").item
      let offer = try await story.hub.transfers.offer(item, to: story.alice.handle, by: story.bob)
      let back = try await Self.accept(story, offer, by: story.alice)
      let mine = Zone(hub: story.hub, zone: story.alice.zone)
      #expect(try await mine.paths() == ["doc (2).txt"])
      #expect(try await mine.versions(back).map { $0.split(separator: " ")[2] } == ["-"])
      try await Self.expectSound(story)
    }
  }

  /// What went from the tree after it was copied does not come along, and nobody's thinning, expiry or purge loses what
  /// stays.
  @Test(arguments: StoreEngine.available)
  func whatLeavesTheTreeMeanwhileStays(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (mine, theirs) = (
        Zone(hub: story.hub, zone: story.alice.zone), Zone(hub: story.hub, zone: story.bob.zone)
      )
      let plans = try await Self.plans(story)
      let secret = try await story.document("secret", "secret", in: plans)
      let moved = try await story.document("moved", "moved", in: plans)
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      let past = ContinuousClock.now
      // All of it is copied, but has not left.
      while try await Self.copied(story) < Self.paths.count + 2 {
        #expect(try await !story.hub.transfers.accept(offer.transfer, by: story.bob, until: past).isDone)
      }
      try await story.delete(secret)
      try await story.hub.purging.purge(secret, in: story.alice.zone, by: "a")
      #expect(try await story.move(moved, .document, to: .root, "moved").outcome == .done)
      _ = try await story.document("moved", "another", in: plans)
      story.test.clock.advance(seconds: 400 * 86_400)
      try await story.hub.retention.thin(story.alice.zone, by: RetentionRules(versionDays: 1, deletedDays: 1))
      try await story.hub.retention.expire(story.alice.zone, by: RetentionRules(versionDays: 1, deletedDays: 1))
      _ = try await Self.accept(story, offer)
      #expect(try await theirs.paths() == (Self.paths + ["plans/moved"]).sorted())
      #expect(try await mine.paths() == ["moved"])
      let texts = try await theirs.versions(theirs.item("doc").item).map { $0.split(separator: " ")[1] }
      #expect(texts.suffix(2) == ["two", "three"])
      try await Self.expectSound(story)
      try await story.hub.upkeep()
      try await Self.expectSound(story)
    }
  }

  /// Two machines of bob's accept at once, and alice takes it back meanwhile, again and again.
  @Test(arguments: StoreEngine.available)
  func ofSeveralAcceptancesOneDoesIt(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (mine, theirs) = (
        Zone(hub: story.hub, zone: story.alice.zone), Zone(hub: story.hub, zone: story.bob.zone)
      )
      let transfers = story.hub.transfers
      for round in 0..<6 {
        let plans = try await Self.plans(story)
        let offer = try await transfers.offer(plans, to: story.bob.handle, by: story.alice)
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<3 {
            group.addTask {
              let deadline = ContinuousClock.now + .milliseconds(number * 5)
              for _ in 0..<100 {
                do {
                  if try await transfers.accept(offer.transfer, by: story.bob, until: deadline).isDone { return }
                } catch let error as HubError where error.kind == .notFound {
                  return
                }
              }
            }
          }
          if round % 2 == 0 {
            group.addTask {
              do {
                try await transfers.withdraw(plans, by: story.alice)
              } catch let error as HubError where error.kind == .notFound {}
            }
          }
          try await group.waitForAll()
        }
        let sides = try await (mine.paths(), theirs.paths())
        #expect(
          [sides.0, sides.1].sorted { $0.count < $1.count } == [[], Self.paths], "\(round): \(sides)")
        try await Self.expectSound(story)
        for (zone, person) in [(theirs, story.bob), (mine, story.alice)] {
          for item in try await zone.items() { try await story.hub.zones.clear(item, of: person) }
        }
        try await story.hub.upkeep()
        try await Self.expectSound(story)
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatAnAccountWasGivenGoesWithIt(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let theirs = Zone(hub: story.hub, zone: story.bob.zone)
      let plans = try await Self.plans(story)
      let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
      for _ in 0..<40 where try await Self.copied(story) < Self.paths.count {
        _ = try await story.hub.transfers.accept(offer.transfer, by: story.bob, until: .now)
      }
      // Once all is copied, it leaves alice's zone with the fifth transaction, and comes to bob's with the next.
      let failing = FailingDatabase(database, after: 4, isDone: true)
      let hub = try await TestHub(failing, clock: story.test.clock).hub
      failing.begin()
      await #expect(throws: HubStoreError.self) {
        _ = try await hub.transfers.accept(offer.transfer, by: story.bob, until: Self.later)
      }
      #expect(try await Zone(hub: story.hub, zone: story.alice.zone).paths() == [])
      #expect(try await theirs.paths() == [])
      try await story.hub.removeAccount(zone: story.alice.zone)
      #expect(try await theirs.paths() == Self.paths)
      try await Self.expectSound(story)
    }
  }

  /// The process ends at each of the transactions, before it or after it.
  @Test(arguments: StoreEngine.available, [false, true])
  func afterAnInterruptionAllOfItIsOnOneSide(_ engine: StoreEngine, isDone: Bool) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let theirs = Zone(hub: story.hub, zone: story.bob.zone)
      let mine = Zone(hub: story.hub, zone: story.alice.zone)
      var writes = 0
      while true {
        let plans = try await Self.plans(story)
        let offer = try await story.hub.transfers.offer(plans, to: story.bob.handle, by: story.alice)
        let failing = FailingDatabase(database, after: writes, isDone: isDone)
        let hub = try await TestHub(failing, clock: story.test.clock).hub
        failing.begin()
        var isInterrupted = true
        do {
          isInterrupted = try await !hub.transfers.accept(offer.transfer, by: story.bob, until: Self.later).isDone
        } catch HubStoreError.unavailable {}
        let between = try await (mine.paths(), theirs.paths())
        #expect(between.0.isEmpty || between.1.isEmpty, "after \(writes)")
        try await Self.expectSound(story)
        if between.0.isEmpty {
          // All of it is on its way, and comes by itself.
          try await story.hub.transfers.finishAll()
        } else {
          _ = try await Self.accept(story, offer)
        }
        #expect(try await theirs.paths() == Self.paths, "after \(writes)")
        #expect(try await mine.paths() == [], "after \(writes)")
        try await story.hub.upkeep()
        try await Self.expectSound(story)
        #expect(try await story.hub.transfers.lists(for: story.bob).toMe.isEmpty)
        for item in try await theirs.items() {
          try await story.hub.zones.clear(item, of: story.bob)
        }
        if !isInterrupted { break }
        writes += 1
        story.test.clock.advance(seconds: 2 * 86_400)
        try await story.hub.upkeep()
      }
      #expect(writes > 15)
    }
  }
}

extension Zones {
  /// Destroys an item of somebody's.
  fileprivate func clear(_ item: ItemState, of person: Person) async throws {
    let author = SendAuthor(
      device: UUID().uuidString, deviceName: "phone", handle: person.handle, name: person.handle, now: clock.now)
    var deletion = Send.deletion(item.item, item.kind, base: 1 << 40, read: 1 << 40)
    deletion.serial = 1
    if !item.isDeleted { _ = try await send(SendRequest(groups: [[deletion]]), to: person.zone, by: author) }
    try? await Purging(database: database).purge(item.item, in: person.zone, by: author.device)
  }
}

/// A store that is away after some transactions.
private final class FailingDatabase: Database {
  private let database: any Database
  private let limit: Int
  private let isDone: Bool
  /// Transactions so far; nil before they count.
  private let count = Mutex<Int?>(nil)

  /// - Parameters:
  ///   - limit: How many are done before one fails.
  ///   - isDone: Whether the one that fails was done, and only its answer is lost.
  init(_ database: any Database, after limit: Int, isDone: Bool) {
    (self.database, self.limit, self.isDone) = (database, limit, isDone)
  }

  func begin() { count.withLock { $0 = 0 } }

  func write<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
    let number = count.withLock { count -> Int? in
      defer { count = count.map { $0 + 1 } }
      return count
    }
    guard let number, number >= limit else { return try await database.write(body) }
    if number == limit, isDone { _ = try await database.write(body) }
    throw HubStoreError.unavailable("it is away")
  }

  func read<T: Sendable>(_ body: @escaping @Sendable (inout any SQLConnection) throws -> T) async throws -> T {
    try await database.read(body)
  }

  func close() async {}
}
