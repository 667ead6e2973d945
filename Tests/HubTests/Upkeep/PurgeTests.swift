import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Contents that are destroyed for good: nobody sees them again, by any door.
@Suite struct PurgeTests {
  static func text(_ version: WireID, _ item: WireID, _ place: ZoneTests.Place) async throws -> String {
    let (facts, manifest) = try await place.hub.contents.version(version, of: item, in: place.zone)
    var reader = ContentReader(place.hub.contents, manifest, 0..<facts.size, of: version, item, in: place.zone)
    var bytes: [UInt8] = []
    while let piece = try await reader.next() { bytes += piece }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The bytes of every chunk of the store.
  static func chunks(_ database: any Database) async throws -> [String] {
    try await database.read { connection in
      try connection.query("SELECT bytes FROM chunk_bytes WHERE zone IS NOT NULL").map {
        String(decoding: try $0.blob(0), as: UTF8.self)
      }.sorted()
    }
  }

  /// Nor in SQLite's log beside the file.
  @Test func whatIsDestroyedIsInNoFile() async throws {
    try await StoreEngine.sqlite.withPlace { files in
      let database = try files.open()
      let test = try await TestHub(database)
      let place = ZoneTests.Place(test: test, zone: try await test.account(), database: database)
      func holds(_ text: String) throws -> Bool {
        try ["", "-wal"].map { files.location + $0 }.filter { FileManager.default.fileExists(atPath: $0) }.contains {
          try Data(contentsOf: URL(fileURLWithPath: $0)).range(of: Data(text.utf8)) != nil
        }
      }
      let (item, versions) = (WireID(), [WireID(), WireID()])
      let made = Send.document(item, at: [.init(parent: .root, "plan")], version: versions[0], "an earlier secret")
      _ = try await place.send(made, serial: 1)
      _ = try await place.send(.save(item, versions[1], base: versions[0], "a later secret"), serial: 2)
      #expect(try holds("an earlier secret") && holds("a later secret"))
      try await place.hub.purging.purge(versions[0], of: item, in: place.zone, by: "a")
      #expect(try !holds("an earlier secret") && holds("a later secret"))
      try await place.hub.accounts.remove(zone: place.zone)
      #expect(try !holds("a later secret"))
      await database.close()
      #expect(try !holds("an earlier secret") && !holds("a later secret"))
    }
  }

  @Test(arguments: StoreEngine.available)
  func aPurgedVersionIsNotThere(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let (item, hub, zone) = (WireID(), place.hub, place.zone)
      let ids = (0..<4).map { _ in WireID() }
      let texts = ["first", "secret", "third", "first"]
      let made = Send.document(item, at: [.init(parent: .root, "plan")], version: ids[0], texts[0])
      _ = try await place.send(made, serial: 1)
      for index in 1...3 {
        let save = Send.save(item, ids[index], base: ids[index - 1], texts[index])
        #expect(try await place.send(save, serial: Int64(index + 1)).outcome == .done)
      }
      // Somebody is reading it.
      let (facts, manifest) = try await hub.contents.version(ids[1], of: item, in: zone)
      var reader = ContentReader(hub.contents, manifest, 0..<facts.size, of: ids[1], item, in: zone)
      let before = try FeedToken(try await hub.feeds.page(after: nil, limit: 9, of: zone).token)
      try await hub.purging.purge(ids[1], of: item, in: zone, by: "a")
      try await hub.purging.purge(ids[1], of: item, in: zone, by: "a")

      #expect(try await problem { _ = try await reader.next() } == .notFound)
      #expect(try await problem { _ = try await hub.contents.version(ids[1], of: item, in: zone) } == .notFound)
      let list = try await hub.contents.versions(of: item, after: 0, limit: 9, in: zone)
      #expect(list.versions.map(\.number) == [1, 3, 4] && list.purged == [ids[1]])
      // What was based on it is based on what it was based on.
      #expect(list.versions.map(\.base) == [nil, ids[0], ids[2]])
      #expect(try await Self.chunks(place.database) == ["first", "third"])
      // Devices hear of it.
      let page = try await hub.feeds.page(after: before, limit: 9, of: zone)
      #expect(
        page.items.map(\.item) == [item] && page.items.map(\.purges) == [1] && page.items[0].version?.id == ids[3])
      // Nothing is made of it again: neither the version, nor by its hash, nor as a base.
      #expect(try await place.send(.save(item, ids[1], base: ids[3], "secret"), serial: 5).reason == .purged)
      let chunk = Chunk(Array("secret".utf8))
      var named = Send.save(item, WireID(), base: ids[3], "")
      named.serial = 6
      named.version?.contents = nil
      named.version?.extents = [Extent(hash: chunk.hash, length: Int64(chunk.bytes.count))]
      let later = try await place.send(SendRequest(groups: [[named]]))
      #expect(later.verdicts == [] && later.later.map(\.missing) == [[chunk.hash]])
      #expect(try await hub.contents.missing([chunk.hash], in: zone) == [chunk.hash])
      let based = try await place.send(.save(item, WireID(), base: ids[1], "secret, more"), serial: 7, by: "b")
      #expect(based.outcome == .beside)
      // What another version has stays.
      try await hub.purging.purge(ids[0], of: item, in: zone, by: "a")
      #expect(try await Self.text(ids[3], item, place) == "first")
      // The current version, another one's, and none.
      #expect(try await problem { try await hub.purging.purge(ids[3], of: item, in: zone, by: "a") } == .conflict)
      for (version, item) in [(WireID(), item), (ids[3], based.item), (ids[3], WireID())] {
        #expect(try await problem { try await hub.purging.purge(version, of: item, in: zone, by: "a") } == .notFound)
      }
      #expect(try await hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aPurgedItemIsATombstoneForEver(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let (item, hub, zone) = (WireID(), place.hub, place.zone)
      let link = Send(
        serial: 0, item: WireID(), kind: .symlink, places: [.init(parent: .root, "link")], target: Data("away".utf8))
      _ = try await place.send(link, serial: 1)
      var base = WireID()
      let made = Send.document(item, at: [.init(parent: .root, "secret name")], version: base, "secret 0")
      _ = try await place.send(made, serial: 2)
      let first = base
      for number in 1...200 as ClosedRange<Int64> {
        let next = WireID()
        _ = try await place.send(.save(item, next, base: base, "secret \(number)"), serial: number + 2)
        base = next
      }
      // What is there is not purged.
      #expect(try await problem { try await hub.purging.purge(item, in: zone, by: "a") } == .conflict)
      for (serial, send) in [(300, made), (301, link)] as [(Int64, Send)] {
        let deletion = Send.deletion(send.item, send.kind, base: 1 << 40)
        #expect(try await place.send(deletion, serial: serial).outcome == .done)
        try await hub.purging.purge(send.item, in: zone, by: "a")
        try await hub.purging.purge(send.item, in: zone, by: "a")
      }
      #expect(try await problem { try await hub.purging.purge(WireID(), in: zone, by: "a") } == .notFound)
      #expect(try await Self.chunks(place.database) == [])
      // The rows stay that say that there was something: of two items, and of 201 versions.
      #expect(try await place.count("SELECT used FROM zones") == 203 * 256)
      for version in [first, base] {
        #expect(try await problem { _ = try await hub.contents.version(version, of: item, in: zone) } == .notFound)
      }
      let list = try await hub.contents.versions(of: item, after: 0, limit: 300, in: zone)
      #expect(list.versions == [] && list.purged.count == 201)
      // It stays so for ever.
      place.test.clock.advance(seconds: 1_000 * 86_400)
      try await hub.upkeep()
      let page = try await hub.feeds.page(after: nil, limit: 9, of: zone)
      #expect(page.items.map(\.item) == [item, link.item])
      for state in page.items {
        #expect(state.isPurged && state.isDeleted && state.places == [] && state.version == nil && state.target == nil)
      }
      for send in [
        made, .save(item, WireID(), base: base, "more"), .save(item, WireID(), base: nil, "more"),
        .move(item, .document, to: .init(parent: .root, "x"), base: 1 << 40), .deletion(item, .document, base: 1 << 40),
        link,
      ] {
        #expect(try await place.send(send, serial: Int64.random(in: 1_000...(1 << 40)), by: "c").reason == .purged)
      }
      // Its author makes a new one of what the hub never had.
      #expect(
        try await place.send(ZoneTests.document("secret name", "mine"), serial: 1 << 41, by: "c").outcome == .done)
      #expect(try await hub.check() == [])
    }
  }

  /// A purge that was interrupted goes on with the upkeep.
  @Test(arguments: StoreEngine.available)
  func theUpkeepFinishesAPurge(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      let document = ZoneTests.document("a", "secret")
      _ = try await place.send(document, serial: 1)
      _ = try await place.send(.deletion(document.item, .document, base: 1), serial: 2)
      // As after the first transaction of a long history.
      try await place.change("UPDATE items SET places = '[]', version = NULL WHERE kind = 'document'")
      try await place.change("DELETE FROM placements")
      try await place.change("UPDATE zones SET used = used - 17")
      try await place.hub.upkeep()
      #expect(try await Self.chunks(place.database) == [])
      #expect(try await place.hub.check() == [])
    }
  }

  /// Members are told what they could see, and have no way to purge.
  @Test(arguments: StoreEngine.available)
  func membersSeeItNoMore(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let (zone, feeds) = (story.alice.zone, story.hub.sharedFeeds)
      let trip = try await story.folder("trip")
      let plan = try await story.document("plan", "before", in: trip)
      for text in ["hidden", "current"] { try await story.save(plan, text) }
      let share = try await story.share(trip, with: [story.bob])
      for text in ["secret", "newest"] { try await story.save(plan, text) }
      let place = story.place(share, story.bob)
      let ids = try await story.hub.contents.versions(of: plan, after: 0, limit: 9, in: zone).versions.map(\.id)
      var bob = SharedStory.Follower(place)
      try await bob.follow(story.hub)
      let chunk = Chunk(Array("secret".utf8))
      try await feeds.upload(chunk.bytes, hash: chunk.hash, of: place)
      // What they never saw goes without a word.
      try await story.hub.purging.purge(ids[1], of: plan, in: zone, by: "a")
      try await bob.follow(story.hub)
      #expect(bob.changes == [])
      try await story.hub.purging.purge(ids[3], of: plan, in: zone, by: "a")
      try await bob.follow(story.hub)
      #expect(bob.changes.map(\.item) == [plan] && bob.changes[0].state?.purges == 1)
      #expect(try await story.texts(plan, share, story.bob) == ["current", "newest"])
      let list = try await feeds.versions(of: plan, after: 0, limit: 9, of: place)
      #expect(list.versions.map(\.number) == [3, 5] && list.purged == [ids[3]])
      for version in [ids[1], ids[3]] {
        #expect(try await problem { _ = try await feeds.version(version, of: plan, of: place) } == .notFound)
      }
      // What they uploaded before is missing, too.
      #expect(try await feeds.missing([chunk.hash], of: place) == [chunk.hash])
      #expect(try await !PurgeTests.chunks(database).contains("secret"))

      // Items: one that was deleted from the share, and one that was taken out before.
      let moved = try await story.document("moved", "moved", in: trip)
      try await bob.follow(story.hub)
      try await story.move(moved, .document, to: .root, "moved")
      for item in [plan, moved] { try await story.delete(item) }
      for item in [plan, moved] { try await story.hub.purging.purge(item, in: zone, by: "a") }
      try await bob.follow(story.hub)
      #expect(Set(bob.changes.map(\.item)) == [plan, moved] && bob.changes.allSatisfy { $0.change == .left })
      #expect(bob.changes.filter(\.isPurged).map(\.item) == [plan])
      #expect(try await story.texts(plan, share, story.bob) == nil)
      let back = Send(serial: 0, item: plan, kind: .document, mode: 0o600)
      #expect(try await story.send(back, to: share, by: story.bob).map(\.reason) == [.unknown])
      #expect(try await story.hub.check() == [])
    }
  }
}
