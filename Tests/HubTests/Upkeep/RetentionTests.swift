import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// For how long versions and deleted items are kept, by the hub's clock.
@Suite struct RetentionTests {
  private static let second: Int64 = 1_000_000_000
  private static let hour = 3_600 * second
  private static let day = 24 * hour
  private static let now = 20_000 * day

  /// The numbers of the versions that go, of some that were made so long ago.
  static func gone(_ versions: [(time: Int64, arrived: Int64)], days: Int64? = 365) -> [Int64] {
    var surplus = Retention.Surplus(now: now, span: days.map { $0 * day })
    let item = WireID()
    var ids: [WireID: Int64] = [:]
    for (index, version) in versions.enumerated() {
      let id = WireID()
      ids[id] = Int64(index) + 1
      surplus.add(
        VersionRow(
          id: id, item: item, number: Int64(index) + 1, base: nil, cause: .save, time: now - version.time,
          arrived: now - version.arrived, size: 1, digest: [1]))
    }
    return surplus.take().compactMap { ids[$0] }.sorted()
  }

  static func gone(_ ages: [Int64], days: Int64? = 365) -> [Int64] { gone(ages.map { ($0, $0) }, days: days) }

  @Test func theNewestOfEachTimeIsKept() {
    // All of a day.
    #expect(Self.gone((0..<50).map { Self.hour * 23 - $0 * Self.second }) == [])
    // Of a week one an hour, of a month one a day, of a year one a week.
    #expect(Self.gone([3 * Self.day, 3 * Self.day - 60 * Self.second, 3 * Self.day - 2 * Self.hour]) == [1])
    #expect(Self.gone([20 * Self.day, 20 * Self.day - Self.hour, 20 * Self.day - 2 * Self.hour]) == [1, 2])
    #expect(Self.gone([20 * Self.day, 19 * Self.day, 18 * Self.day]) == [])
    #expect(Self.gone((0..<21).map { 300 * Self.day - $0 * Self.day }).count == 17)
    #expect(Self.gone([400 * Self.day, 366 * Self.day, 364 * Self.day, 0]) == [1, 2])
    #expect(Self.gone([400 * Self.day, 366 * Self.day, 364 * Self.day, 0], days: nil) == [])
    #expect(Self.gone([5 * Self.day, 2 * Self.day, 0], days: 4) == [1])
  }

  /// The earlier of the author's time and the arrival counts, and never one before that of the version before.
  @Test func noClockMakesAVersionOlderThanTheOneBefore() {
    // Long ago by its author, and after one of today.
    #expect(Self.gone([(0, 0), (400 * Self.day, 0)]) == [])
    #expect(Self.gone([(400 * Self.day, 0), (0, 0)]) == [1])
    // A clock ahead does not make it newer than its arrival.
    #expect(Self.gone([(-400 * Self.day, 400 * Self.day), (0, 0)]) == [1])
    // No number traps.
    #expect(Self.gone([(Self.now - Int64.max, 0), (Self.now, Self.now)]) == [])
  }

  @Test(arguments: StoreEngine.available)
  func versionsAreThinned(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let desk = try await SaveEachDay(place, days: 60)
      let (hub, zone) = (place.hub, place.zone)
      let before = try await hub.contents.versions(of: desk.item, after: 0, limit: 500, in: zone).versions
      #expect(before.count == 120)
      try await hub.upkeep()
      let list = try await hub.contents.versions(of: desk.item, after: 0, limit: 500, in: zone).versions
      #expect((30..<70).contains(list.count) && list.last == before.last)
      // Each is based on one that is there, so what is saved on an older one can still be merged.
      #expect(list.dropFirst().map(\.base) == list.dropLast().map(\.id))
      let old = list[list.count - 3]
      let merged = try await place.send(
        .save(desk.item, WireID(), base: old.id, SaveEachDay.text(old.number, last: "by b")), serial: 1, by: "b")
      #expect(merged.outcome == .merged)
      // Once more changes nothing; a shorter time leaves the current one.
      #expect(try await hub.retention.thin(zone, by: RetentionRules()) == 0)
      place.test.clock.advance(seconds: 5 * 86_400)
      try await hub.retention.thin(zone, by: RetentionRules(versionDays: 1))
      let last = try await hub.contents.versions(of: desk.item, after: 0, limit: 500, in: zone).versions
      #expect(last.map(\.id) == [merged.version].compactMap { $0 })
      try await place.hub.contents.collect(in: zone)
      #expect(try await PurgeTests.chunks(place.database).count == 1)
      #expect(try await hub.check() == [])
    }
  }

  /// A document that is saved twice a day.
  struct SaveEachDay {
    let item = WireID()

    static func text(_ number: Int64, last: String = "end") -> String { "version \(number)\n\n\n\n\(last)\n" }

    init(_ place: ZoneTests.Place, days: Int64) async throws {
      var base: WireID?
      for number in 1...(days * 2) {
        let id = WireID()
        var send = Send.document(item, at: [.init(parent: .root, "plan")], version: id, Self.text(number))
        if base != nil { send = .save(item, id, base: base, Self.text(number)) }
        send.version?.time = place.hub.clock.now.nanoseconds
        #expect(try await place.send(send, serial: number).outcome == .done)
        base = id
        place.test.clock.advance(seconds: 43_200)
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func deletedItemsExpire(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let (hub, zone) = (place.hub, place.zone)
      let desk = try await SaveEachDay(place, days: 100)
      let other = ZoneTests.document("other", "other")
      _ = try await place.send(other, serial: 1_000)
      #expect(try await place.send(.deletion(desk.item, .document, base: 1 << 40), serial: 1_001).outcome == .done)
      place.test.clock.advance(seconds: 29 * 86_400)
      try await hub.upkeep()
      #expect(try await hub.feeds.item(desk.item, in: zone)?.version != nil)
      place.test.clock.advance(seconds: 2 * 86_400)
      try await hub.retention.set(RetentionRules(deletedDays: nil))
      try await hub.upkeep()
      #expect(try await hub.feeds.item(desk.item, in: zone)?.version != nil)
      try await hub.retention.set(RetentionRules())
      try await hub.upkeep()
      try await hub.contents.collect(in: zone)
      #expect(try await PurgeTests.chunks(place.database) == ["other"])
      let state = try #require(try await hub.feeds.item(desk.item, in: zone))
      #expect(state.isDeleted && !state.isPurged && state.version == nil)
      #expect(try await hub.contents.versions(of: desk.item, after: 0, limit: 9, in: zone) == VersionList(versions: []))
      #expect(try await hub.check() == [])
      // Without contents it does not come back, and with them it does.
      let move = Send.move(desk.item, .document, to: .init(parent: .root, "x"), base: 1 << 40)
      #expect(try await place.send(move, serial: 1_002).reason == .purged)
      let save = Send.save(desk.item, WireID(), base: nil, "what was changed meanwhile")
      #expect(try await place.send(save, serial: 1_003).outcome == .done)
      #expect(try await hub.check() == [])
      // Once the tombstone is forgotten, who sends the id makes a new item of it.
      #expect(try await place.send(.deletion(desk.item, .document, base: 1 << 40), serial: 1_004).outcome == .done)
      place.test.clock.advance(seconds: 181 * 86_400)
      try await hub.upkeep()
      #expect(try await hub.feeds.item(desk.item, in: zone) == nil)
      let again = Send.document(desk.item, at: [.init(parent: .root, "again")], version: WireID(), "again")
      #expect(try await place.send(again, serial: 1_005).versionNumber == 1)
      #expect(try await hub.check() == [])
    }
  }

  /// What members see of a document does not reach further back because versions are gone.
  @Test(arguments: StoreEngine.available)
  func membersSeeNothingOlder(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let plan = WireID()
      var base: WireID?
      func save(_ texts: String...) async throws {
        for text in texts {
          let id = WireID()
          var send = Send.document(plan, at: [Place(parent: trip, name: Array("plan".utf8))], version: id, text)
          if base != nil { send = .save(plan, id, base: base, text) }
          send.version?.time = story.hub.clock.now.nanoseconds
          #expect(try await story.send(send).map(\.outcome) == [.done])
          base = id
        }
      }
      try await save("1")
      story.test.clock.advance(seconds: 8 * 86_400)
      try await save("2", "3")
      let share = try await story.share(trip, with: [story.bob])
      try await save("4", "5")
      // What was current when it entered stays for those who are in it, though it is one of many of its day.
      story.test.clock.advance(seconds: 10 * 86_400)
      try await story.hub.upkeep()
      #expect(try await story.texts(plan, share, story.bob) == ["3", "5"])
      // Without it they see nothing older either.
      let versions = try await story.hub.contents.versions(of: plan, after: 0, limit: 9, in: story.alice.zone).versions
      #expect(versions.map(\.number) == [1, 3, 5])
      try await story.hub.purging.purge(versions[1].id, of: plan, in: story.alice.zone, by: "a")
      #expect(try await story.texts(plan, share, story.bob) == ["5"])
      #expect(try await story.hub.check() == [])
    }
  }

  @Test func rulesAreTheHubs() async throws {
    try await ZoneTests.with(.sqlite) { place in
      let retention = place.hub.retention
      #expect(try await retention.rules() == RetentionRules(versionDays: 365, deletedDays: 30))
      for days in [0, -1, 36_501, .min, .max] as [Int64] {
        for rules in [RetentionRules(versionDays: days), RetentionRules(deletedDays: days)] {
          #expect(try await problem { try await retention.set(rules) } == .invalid)
        }
      }
      let rules = RetentionRules(versionDays: nil, deletedDays: 7)
      try await retention.set(rules)
      #expect(try await TestHub(place.database).hub.retention.rules() == rules)
    }
  }
}
