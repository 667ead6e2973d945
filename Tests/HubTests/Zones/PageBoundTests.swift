import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// What is in rows does not decide how long an answer is, and it counts towards the quota.
@Suite struct PageBoundTests {
  /// Bytes that a page may have in JSON: a mebibyte and a row.
  private static let limit = PageRoom.bytes + 100_000

  private static func bytes(_ value: some Encodable) throws -> Int { try StoredZone.encoded(value).utf8.count }

  /// Attributes of the most bytes that an item may have.
  private static func attributes() -> [String: Data] {
    ["user.a": Data(repeating: 0xFF, count: SendCheck.attributeBytes - 6)]
  }

  @Test(arguments: StoreEngine.available)
  func pagesAreCutAtAMebibyte(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let inner = try await story.folder("inner", in: trip)
      let share = try await story.share(trip, with: [story.bob])
      let place = story.place(share, story.bob)
      var bob = SharedStory.Follower(place)
      try await bob.follow(story.hub)
      let start = try #require(bob.token)
      let count = 40
      for number in 0..<count {
        try await story.send(
          Send(
            serial: 0, item: WireID(), kind: .folder, places: [Place(parent: inner, "f\(number)")],
            attributes: Self.attributes()))
      }
      // The zone's feed, the share's, and a folder: each page is short, and together they have everything.
      var (pages, items): (Int, [WireID]) = (0, [])
      var token: FeedToken?
      while true {
        let page = try await story.hub.feeds.page(after: token, limit: 1_000, of: story.alice.zone)
        #expect(try Self.bytes(page) < Self.limit)
        (pages, token) = (pages + 1, try FeedToken(page.token))
        items += page.items.map(\.item)
        if !page.hasMore { break }
      }
      #expect(pages > 3 && items.count == count + 2 && Set(items).count == items.count)
      var (changes, position): ([WireID], SharedToken) = ([], start)
      pages = 0
      while true {
        let page = try await story.hub.sharedFeeds.page(after: position, limit: 1_000, of: place)
        #expect(try Self.bytes(page) < Self.limit)
        (pages, position) = (pages + 1, try SharedToken(page.token))
        changes += page.changes.map(\.item)
        if !page.hasMore { break }
      }
      #expect(pages > 3 && changes.count == count && Set(changes).count == count)
      var (children, after): ([WireID], [UInt8]) = ([], [])
      pages = 0
      while true {
        let page = try await story.hub.sharedFeeds.children(of: inner, after: after, limit: 1_000, of: place)
        #expect(try Self.bytes(page) < Self.limit)
        pages += 1
        children += page.items.map(\.item)
        guard let next = page.next.flatMap({ Hexadecimal.bytes(of: $0) }) else { break }
        after = next
      }
      #expect(pages > 3 && Set(children) == Set(changes) && children.count == count)
      // Names with bytes that are longest in JSON.
      let name = [UInt8](repeating: 1, count: WireLimits.nameBytes - 8)
      for number in 0..<8 {
        let places = (0..<200).map { Place(parent: inner, name: name + Array("\(number)-\($0)".utf8)) }
        try await story.send(.document(WireID(), at: places, version: WireID(), ""))
      }
      let page = try await story.hub.sharedFeeds.page(after: position, limit: 1_000, of: place)
      #expect(try Self.bytes(page) < PageRoom.bytes + 400_000 && page.hasMore)
      #expect(try await story.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func pagesOfEventsAreCutToo(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let story = try await SharedStory(database)
      let trip = try await story.folder("trip")
      let share = try await story.share(trip, with: [story.bob])
      var folder = trip
      let name = String(repeating: "x", count: 250)
      for _ in 0..<12 { folder = try await story.folder(name, in: folder) }
      for round in 0..<4 {
        let doomed = try await story.folder("doomed \(round)", in: folder)
        for number in 0..<100 {
          try await story.send(
            Send(serial: 0, item: WireID(), kind: .folder, places: [Place(parent: doomed, "\(number)")]))
        }
        #expect(try await story.delete(doomed, .folder).outcome == .done)
      }
      func read(_ page: (Int64) async throws -> LogPage<Event>) async throws -> (pages: Int, events: [Int64]) {
        var (pages, events): (Int, [Int64]) = (0, [])
        var next: Int64 = 0
        while true {
          let page = try await page(next)
          #expect(try Self.bytes(page) < PageRoom.bytes + 500_000)
          (pages, next) = (pages + 1, page.next)
          events += page.events.map(\.sequence)
          if page.next >= page.last { return (pages, events) }
        }
      }
      let own = try await read { number in
        try await story.hub.events.page(after: .number(number), limit: 1_000, of: story.alice.zone)
      }
      let shared = try await read { number in
        try await story.hub.sharedEvents.page(after: .number(number), limit: 1_000, of: story.place(share, story.bob))
      }
      #expect(own.pages > 2 && own.events == Array(1...Int64(own.events.count)))
      #expect(shared.pages > 2 && shared.events.count > 400)
    }
  }

  /// The bytes that the zone has, by its row, and by all that is in it.
  @Test(arguments: StoreEngine.available)
  func everythingThatIsStoredCounts(_ engine: StoreEngine) async throws {
    try await ZoneTests.with(engine) { place in
      func used() async throws -> Int64 { try await place.count("SELECT used FROM zones") }
      let item = WireID()
      var serial: Int64 = 0
      func send(_ send: Send) async throws -> Problem.Kind? {
        serial += 1
        return try await problem {
          let outcome = try await place.send(send, serial: serial).outcome
          #expect(outcome == .done)
        }
      }
      let name = String(repeating: "n", count: 200)
      var made = Send.document(item, at: [.init(parent: .root, name)], version: WireID(), "text")
      #expect(try await send(made) == nil)
      let small = try await used()
      #expect(small > 204)
      // Attributes, further names, holes, and versions that have the same contents.
      #expect(
        try await send(
          Send(serial: 0, item: item, kind: .document, base: 1 << 40, attributes: Self.attributes())) == nil)
      #expect(try await used() == small + Int64(SendCheck.attributeBytes))
      #expect(
        try await send(
          Send(
            serial: 0, item: item, kind: .document, base: 1 << 40,
            places: [.init(parent: .root, name), .init(parent: .root, name + "2")])) == nil)
      let linked = try await used()
      #expect(linked > small + Int64(SendCheck.attributeBytes) + 200)
      made = Send.save(item, WireID(), base: try await place.hub.feeds.item(item, in: place.zone)?.version?.id, "")
      made.version?.contents = nil
      made.version?.extents = (0..<1_000).map { Extent(hash: nil, length: $0 + 1) }
      #expect(try await send(made) == nil)
      let holes = try await used()
      #expect(holes >= linked + 40_000)
      #expect(try await place.hub.check() == [])
      // Each is refused where the quota has no room for it, and what takes nothing is not.
      try await place.test.accounts.setQuota(holes + 300, of: place.zone)
      for refused in [
        Send(serial: 0, item: WireID(), kind: .folder, places: [.init(parent: .root, name)]),
        Send(
          serial: 0, item: item, kind: .document, base: 1 << 40,
          places: (0..<6).map { .init(parent: .root, name + "\($0)") }),
        .save(item, WireID(), base: made.version?.id, "text that no other version has"),
        Send(
          serial: 0, item: WireID(), kind: .symlink, places: [.init(parent: .root, "l")],
          target: Data(repeating: 1, count: 4_000)),
      ] {
        #expect(try await send(refused) == .quota, "\(refused)")
      }
      try await place.test.accounts.setQuota(1, of: place.zone)
      for allowed in [
        Send(serial: 0, item: item, kind: .document, base: 1 << 40, mode: 0o600),
        Send(serial: 0, item: item, kind: .document, base: 1 << 40, places: [.init(parent: .root, "short")]),
        Send(serial: 0, item: item, kind: .document, base: 1 << 40, attributes: [:]),
        .deletion(item, .document, base: 1 << 40),
      ] {
        #expect(try await send(allowed) == nil, "\(allowed)")
      }
      // What is gone counts no more.
      try await place.hub.purging.purge(item, in: place.zone, by: "a")
      #expect(try await used() < small)
      #expect(try await place.hub.check() == [])
    }
  }
}
