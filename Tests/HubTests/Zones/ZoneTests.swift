import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Zones in the store: sends that are done once, feeds, events, contents, and what the check finds.
@Suite struct ZoneTests {
  /// A hub with one account.
  struct Place {
    let test: TestHub
    let zone: String
    let database: any Database

    var hub: Hub { test.hub }

    func send(_ request: SendRequest, by device: String = "a") async throws -> SendAnswer {
      try await hub.zones.send(request, to: zone, by: MemoryZone.author(device, at: hub.clock.now))
    }

    /// Sends one thing, as the device's next.
    func send(_ send: Send, serial: Int64, by device: String = "a") async throws -> Verdict {
      var send = send
      send.serial = serial
      return try #require(try await self.send(SendRequest(groups: [[send]]), by: device).verdicts.first)
    }

    func count(_ sql: StaticString) async throws -> Int64 {
      try await database.read { try $0.query(sql).first?.integer(0) ?? 0 }
    }

    func change(_ sql: StaticString) async throws {
      _ = try await database.write { try $0.execute(sql) }
    }
  }

  static func with(_ engine: StoreEngine, _ body: (Place) async throws -> Void) async throws {
    try await engine.withDatabase { database in
      let test = try await TestHub(database)
      try await body(Place(test: test, zone: try await test.account(), database: database))
    }
  }

  static let root = WireID.root

  static func document(_ name: String, _ text: String = "text") -> Send {
    .document(WireID(), at: [.init(parent: .root, name)], version: WireID(), text)
  }

  // MARK: - Sends

  @Test(arguments: StoreEngine.available)
  func aSendIsDoneOnce(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      var first = Self.document("a"), refused = Send.deletion(WireID(), .document)
      (first.serial, refused.serial) = (1, 2)
      let request = SendRequest(groups: [[first], [refused]])
      let answer = try await place.send(request)
      #expect(answer.verdicts.map(\.outcome) == [.done, .refused])
      #expect(answer.number == 1)
      for _ in 0..<3 { #expect(try await place.send(request) == answer) }
      // What another device changed since does not change the verdict.
      _ = try await place.send(.move(first.item, .document, to: .init(parent: .root, "b"), base: 1), serial: 1, by: "b")
      #expect(try await place.send(request).verdicts == answer.verdicts)
      // Confirmed verdicts are forgotten, and what they were about is not done again.
      let confirming = SendRequest(groups: request.groups, confirmed: 2)
      #expect(try await place.send(confirming).verdicts.map(\.reason) == [.confirmed, .confirmed])
      #expect(try await place.count("SELECT COUNT(*) FROM verdicts WHERE device = 'a'") == 0)
      #expect(try await place.send(request).verdicts.map(\.reason) == [.confirmed, .confirmed])
      #expect(try await place.count("SELECT COUNT(*) FROM items") == 1)
    }
  }

  @Test(arguments: StoreEngine.available)
  func twoThatSendTheSameAtOnceGetOneVerdict(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      for serial in 1...10 as ClosedRange<Int64> {
        var send = Self.document("d\(serial)")
        send.serial = serial
        let request = SendRequest(groups: [[send]])
        async let one = place.send(request)
        async let other = place.send(request)
        let (first, second) = try await (one, other)
        #expect(first == second && first.number == serial)
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func contentsThatAreMissingComeFirst(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let chunk = Chunk([UInt8](repeating: 7, count: 100_000))
      var send = Self.document("large")
      send.serial = 1
      send.version?.contents = nil
      send.version?.extents = [
        Extent(hash: chunk.hash, length: 100_000), Extent(hash: nil, length: 50),
        Extent(hash: chunk.hash, length: 100_000),
      ]
      let request = SendRequest(groups: [[send]])
      let later = try await place.send(request)
      #expect(later.verdicts == [] && later.later == [Deferral(serial: 1, missing: [chunk.hash])])
      #expect(later.number == 0)
      try await place.hub.contents.upload(chunk.bytes, hash: chunk.hash, to: place.zone)
      let answer = try await place.send(request)
      #expect(answer.verdicts.map(\.outcome) == [.done])
      send.serial = 2
      send.version?.extents[0].length = 99_999
      let wrong = SendRequest(groups: [[send]])
      #expect(try await problem { _ = try await place.send(wrong) } == .invalid)
      #expect(try await place.hub.check() == [])
    }
  }

  @Test func verdictsThatNobodyConfirmsHaveALimit() async throws {
    try await Self.with(.sqlite) { place in
      var serial: Int64 = 0
      func request(_ count: Int) -> SendRequest {
        SendRequest(
          groups: (0..<count).map { _ in
            serial += 1
            var send = Send.deletion(WireID(), .document)
            send.serial = serial
            return [send]
          })
      }
      while serial < Zones.openVerdicts {
        let count = min(256, Int(Zones.openVerdicts - serial))
        #expect(try await place.send(request(count)).later == [])
      }
      var more = request(1)
      let later = try await place.send(more)
      more.confirmed = 1
      let done = try await place.send(more)
      #expect(later.later.map(\.serial) == [serial] && later.verdicts == [])
      #expect(done.later == [] && done.verdicts.map(\.serial) == [serial])
    }
  }

  @Test func whatIsOutOfBoundsIsRefusedAsAWhole() async throws {
    try await Self.with(.sqlite) { place in
      func request(_ change: (inout Send) -> Void) -> SendRequest {
        var send = Self.document("a")
        send.serial = 1
        change(&send)
        return SendRequest(groups: [[send]])
      }
      let hash = Chunk([1]).hash
      let requests: [SendRequest] =
        [
          SendRequest(groups: []), SendRequest(groups: [[]]), SendRequest(groups: [[], [Self.document("a")]]),
          SendRequest(groups: request { _ in }.groups, confirmed: -1),
          SendRequest(groups: request { _ in }.groups + request { _ in }.groups),
          request { $0.serial = 0 }, request { $0.serial = .min }, request { $0.item = .root },
          request { $0.base = -1 }, request { $0.read = .min }, request { $0.places = [] },
          request { $0.places = [.init(parent: .root, "..")] }, request { $0.places = [.init(parent: .root, "a/b")] },
          request { $0.places = [.init(parent: .root, String(repeating: "a", count: 256))] },
          request { $0.places = (0..<257).map { .init(parent: .root, "\($0)") } },
          request { $0.mode = -1 }, request { $0.mode = .max }, request { $0.target = Data() },
          request { $0.target = Data([0]) }, request { $0.target = Data(repeating: 1, count: 4_096) },
          request { $0.attributes = ["security.a": Data()] }, request { $0.attributes = ["user.": Data()] },
          request { $0.attributes = ["user.a\0": Data()] },
          // What is computed, also behind a letter that combines with the dot before it.
          request { $0.attributes = ["user.sheaf.id": Data()] },
          request { $0.attributes = ["user.sheaf.\u{301}": Data()] }, request { $0.attributes = ["trusted.a": Data()] },
          request { $0.places = [.init(parent: .root, ".versions")] },
          request { $0.places = [.init(parent: .root, "a"), .init(parent: WireID(), ".deleted")] },
          request { $0.places = [.init(parent: .root, ".")] }, request { $0.places = [.init(parent: .root, "a\0")] },
          request { $0.attributes = ["user.a": Data(repeating: 1, count: 65_536)] },
          request { $0.version?.extents = [Extent(hash: hash, length: 1)] },
          request { $0.version?.contents = Data(repeating: 1, count: WireLimits.inlineBytes + 1) },
          request { $0.isDeletion = true },
        ]
        + [.min, -1, 0, Int64(WireLimits.chunkBytes) + 1, .max].map { length in
          request {
            $0.version?.contents = nil
            $0.version?.extents = [Extent(hash: hash, length: length)]
          }
        }
        + [[.max, .max], [Manifest.sizeLimit, 1], [0]].map { (lengths: [Int64]) in
          request {
            $0.version?.contents = nil
            $0.version?.extents = lengths.map { Extent(hash: nil, length: $0) }
          }
        }
      for (index, request) in requests.enumerated() {
        let kind = try await problem { _ = try await place.send(request) }
        #expect(kind == .invalid || kind == .tooLarge, "request \(index)")
      }
      let many = SendRequest(
        groups: (1...257).map { serial in
          var send = Self.document("\(serial)")
          send.serial = Int64(serial)
          return [send]
        })
      #expect(try await problem { _ = try await place.send(many) } == .invalid)
      #expect(try await place.count("SELECT COUNT(*) FROM items") == 0)
      #expect(try await place.count("SELECT COUNT(*) FROM verdicts") == 0)
    }
  }

  // MARK: - Feeds and events

  @Test(arguments: StoreEngine.available)
  func aReaderFollowsByTokens(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      var documents: [Send] = []
      for serial in 1...10 as ClosedRange<Int64> {
        let send = Self.document("d\(serial)")
        _ = try await place.send(send, serial: serial)
        documents.append(send)
      }
      let first = try await place.hub.feeds.page(after: nil, limit: 4, of: place.zone)
      #expect(first.items.map(\.number) == [1, 2, 3, 4] && first.hasMore)
      // What changes meanwhile is told once, as it is now.
      _ = try await place.send(.deletion(documents[0].item, .document, base: 1), serial: 11)
      let second = try await place.hub.feeds.page(after: FeedToken(first.token), limit: 100, of: place.zone)
      #expect(second.items.map(\.number) == [5, 6, 7, 8, 9, 10, 11] && !second.hasMore)
      #expect(second.items.last?.isDeleted == true && second.items.last?.item == documents[0].item)
      let third = try await place.hub.feeds.page(after: FeedToken(second.token), limit: 100, of: place.zone)
      #expect(third.items == [] && third.token == second.token)
      #expect(try await place.hub.feeds.numbers(of: [place.zone, "none"]) == [place.zone: 11])
      let state = try #require(try await place.hub.feeds.item(documents[3].item, in: place.zone))
      #expect(state == first.items[3])
      #expect(try await place.hub.feeds.item(WireID(), in: place.zone) == nil)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aTokenOfAnotherTimeIsGone(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let document = Self.document("a")
      _ = try await place.send(document, serial: 1)
      let token = try FeedToken(
        try await place.hub.feeds.page(after: nil, limit: 1, of: place.zone).token)
      func isGone(_ token: FeedToken) async throws -> Bool {
        try await problem { _ = try await place.hub.feeds.page(after: token, limit: 1, of: place.zone) } == .gone
      }
      #expect(try await !isGone(token))
      #expect(try await isGone(FeedToken(number: 2, epoch: token.epoch, change: token.change)))
      // Deletions that are forgotten cannot be told to those who have not read them.
      _ = try await place.send(.deletion(document.item, .document, base: 1), serial: 2)
      _ = try await place.send(Self.document("b"), serial: 3)
      try await place.hub.feeds.forgetDeletions(in: place.zone)
      #expect(try await !isGone(token))
      place.test.clock.advance(seconds: 181 * 86_400)
      // What could come back is told on, however old it is.
      try await place.hub.feeds.forgetDeletions(in: place.zone)
      #expect(try await !isGone(token))
      try await place.hub.retention.expire(place.zone, by: RetentionRules())
      try await place.hub.feeds.forgetDeletions(in: place.zone)
      #expect(try await isGone(token))
      let fresh = try await place.hub.feeds.page(after: nil, limit: 9, of: place.zone)
      #expect(fresh.items.map(\.number) == [3])
      let last = try FeedToken(fresh.token)
      #expect(try await !isGone(last))
      try await place.database.write { try Zone.beginEpochs(in: &$0) }
      #expect(try await isGone(last))
      for text in ["", "x", String(repeating: "g", count: 64), String(repeating: "f", count: 64), token.text + "0"] {
        #expect(throws: HubError.self) { try FeedToken(text) }
      }
    }
  }

  @Test(arguments: StoreEngine.available)
  func eventsTellWhatChanged(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let folder = Send(serial: 0, item: WireID(), kind: .folder, places: [.init(parent: .root, "plans")])
      _ = try await place.send(folder, serial: 1)
      let document = Send.document(
        WireID(), at: [.init(parent: folder.item, "trip.md")], version: WireID(), "text")
      _ = try await place.send(document, serial: 2)
      _ = try await place.send(.save(document.item, WireID(), base: document.version?.id, "more"), serial: 3)
      _ = try await place.send(
        .move(document.item, .document, to: .init(parent: folder.item, "t.md"), base: 3), serial: 4)
      _ = try await place.send(.move(document.item, .document, to: .init(parent: .root, "t.md"), base: 4), serial: 5)
      _ = try await place.send(
        .move(document.item, .document, to: .init(parent: folder.item, "t.md"), base: 5), serial: 6)
      _ = try await place.send(.deletion(folder.item, .folder, base: 1, read: 6), serial: 7)
      _ = try await place.send(Send(serial: 0, item: document.item, kind: .document, mode: 0o600), serial: 8)
      _ = try await place.send(Send(serial: 0, item: document.item, kind: .document, mode: 0o644), serial: 9)
      let page = try await place.hub.events.page(after: .number(0), limit: 100, of: place.zone)
      #expect(page.events.map(\.sequence) == Array(1...9) && page.last == 9)
      #expect(
        page.events.map(\.type) == [
          .created, .created, .edit, .renamed, .moved, .moved, .deleted, .created, .created,
        ])
      #expect(
        page.events.map(\.data.item.path) == [
          "plans", "plans/trip.md", "plans/trip.md", "plans/t.md", "t.md", "plans/t.md", "plans", "plans", "plans/t.md",
        ])
      #expect(page.events[2].data.version?.number == 2 && page.events[2].data.version?.base == 1)
      #expect(page.events[3].data.previousPath == "plans/trip.md")
      #expect(page.events[6].data.contentCount == 1 && page.events[6].data.contents?.first?.path == "plans/t.md")
      #expect(page.events.allSatisfy { $0.source == "sheaf://\(place.zone)" && $0.data.share == nil })
      #expect(Set(page.events.map(\.id)).count == 9)
      let rest = try await place.hub.events.page(after: .number(7), limit: 1, of: place.zone)
      #expect(rest.events == [page.events[7]] && rest.next == 8)
    }
  }

  // MARK: - Contents

  @Test(arguments: StoreEngine.available)
  func contentsAreReadAsTheyWereWritten(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let chunks = [Chunk(Array(0...199)), Chunk([UInt8](repeating: 9, count: 1_000))]
      for chunk in chunks { try await place.hub.contents.upload(chunk.bytes, hash: chunk.hash, to: place.zone) }
      var send = Self.document("a")
      let extents = [
        Extent(hash: chunks[0].hash, length: 200), Extent(hash: nil, length: 1_500_000),
        Extent(hash: chunks[1].hash, length: 1_000), Extent(hash: chunks[0].hash, length: 200),
      ]
      send.version?.contents = nil
      send.version?.extents = extents
      #expect(try await place.send(send, serial: 1).outcome == .done)
      let whole = chunks[0].bytes + [UInt8](repeating: 0, count: 1_500_000) + chunks[1].bytes + chunks[0].bytes
      let version = try #require(send.version?.id)
      let (facts, manifest) = try await place.hub.contents.version(version, of: send.item, in: place.zone)
      #expect(facts.size == Int64(whole.count) && facts.number == 1 && manifest.extents == extents)
      for range in [0..<whole.count, 0..<1, 199..<201, 1_500_100..<1_500_300, whole.count - 1..<whole.count, 5..<5] {
        var reader = ContentReader(
          place.hub.contents, manifest, Int64(range.lowerBound)..<Int64(range.upperBound), of: version, send.item,
          in: place.zone)
        var bytes: [UInt8] = []
        while let piece = try await reader.next() { bytes += piece }
        #expect(bytes == Array(whole[range]), "\(range)")
      }
      #expect(
        try await place.hub.contents.versions(of: send.item, after: 0, limit: 9, in: place.zone).versions == [facts])
      // A version is told as one of its item alone, and in its zone.
      let other = try await place.test.account("bob@hub.example")
      for (item, zone) in [(WireID(), place.zone), (send.item, other)] {
        let kind = try await problem {
          _ = try await place.hub.contents.version(version, of: item, in: zone)
        }
        #expect(kind == .notFound)
      }
      // Another account's chunks are missing there, so it learns nothing of them.
      #expect(try await place.hub.contents.missing([chunks[0].hash], in: other) == [chunks[0].hash])
      #expect(
        try await place.hub.contents.missing([chunks[0].hash, Chunk([1]).hash], in: place.zone) == [Chunk([1]).hash])
    }
  }

  @Test(arguments: StoreEngine.available)
  func contentsHaveLimits(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let contents = place.hub.contents, zone = place.zone
      let chunk = Chunk([UInt8](repeating: 1, count: 600))
      #expect(try await problem { try await contents.upload([1, 2], hash: chunk.hash, to: zone) } == .invalid)
      #expect(try await problem { try await contents.upload([], hash: chunk.hash, to: zone) } == .invalid)
      let large = [UInt8](repeating: 0, count: WireLimits.chunkBytes + 1)
      #expect(try await problem { try await contents.upload(large, hash: chunk.hash, to: zone) } == .tooLarge)
      #expect(try await problem { try await contents.checkRoom(for: Int64(large.count), in: zone) } == .tooLarge)
      try await place.test.accounts.setQuota(1_000, of: zone)
      try await contents.upload(chunk.bytes, hash: chunk.hash, to: zone)
      // Once more costs nothing.
      try await contents.upload(chunk.bytes, hash: chunk.hash, to: zone)
      #expect(try await problem { try await contents.checkRoom(for: 401, in: zone) } == .quota)
      try await contents.checkRoom(for: 400, in: zone)
      #expect(try await contents.missing([chunk.hash], bytes: 400, in: zone) == [])
      #expect(try await problem { _ = try await contents.missing([chunk.hash], bytes: 401, in: zone) } == .quota)
      for bytes in [-1, .min, .max, WireLimits.documentBytes + 1] {
        let kind = try await problem { _ = try await contents.missing([], bytes: bytes, in: zone) }
        #expect(kind == .invalid, "\(bytes)")
      }
      let other = Chunk([UInt8](repeating: 2, count: 401))
      #expect(try await problem { try await contents.upload(other.bytes, hash: other.hash, to: zone) } == .quota)
      let send = Self.document("a", String(repeating: "x", count: 401))
      #expect(try await problem { _ = try await place.send(send, serial: 1) } == .quota)
      #expect(try await place.count("SELECT COUNT(*) FROM verdicts") == 0)
      #expect(try await place.hub.check() == [])
    }
  }

  @Test(arguments: StoreEngine.available)
  func chunksThatNobodyWantsAreFreedAfterADay(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let contents = place.hub.contents
      let kept = Self.document("a", "kept"), leased = Chunk([1]), left = Chunk([2])
      _ = try await place.send(kept, serial: 1)
      let used = try await place.count("SELECT used FROM zones")
      for chunk in [leased, left] { try await contents.upload(chunk.bytes, hash: chunk.hash, to: place.zone) }
      #expect(try await contents.collect(in: place.zone) == 0)
      place.test.clock.advance(seconds: 86_399)
      #expect(try await contents.missing([leased.hash], in: place.zone) == [])
      place.test.clock.advance(seconds: 2)
      #expect(try await contents.collect(in: place.zone) == 1)
      #expect(try await contents.missing([left.hash, leased.hash], in: place.zone) == [left.hash])
      place.test.clock.advance(seconds: 10 * 86_400)
      #expect(try await contents.collect(in: place.zone) == 1)
      #expect(try await place.count("SELECT COUNT(*) FROM chunks") == 1)
      #expect(try await place.count("SELECT COUNT(*) FROM chunk_bytes") == 1)
      #expect(try await place.count("SELECT used FROM zones") == used)
      #expect(try await place.hub.check() == [])
    }
  }

  // MARK: - The whole

  @Test(arguments: StoreEngine.available)
  func anAccountThatIsRemovedLeavesNothing(_ engine: StoreEngine) async throws {
    try await Self.with(engine) { place in
      let other = try await place.test.account("bob@hub.example")
      let first = Self.document("a")
      _ = try await place.send(first, serial: 1)
      _ = try await place.send(Self.document("a"), serial: 1, by: "b")
      var confirming = SendRequest(groups: [[Self.document("z")]], confirmed: 1)
      confirming.groups[0][0].serial = 2
      _ = try await place.send(confirming)
      try await place.test.accounts.remove(zone: place.zone)
      let left = [
        try await place.count("SELECT COUNT(*) FROM zones"), try await place.count("SELECT COUNT(*) FROM items"),
        try await place.count("SELECT COUNT(*) FROM names"), try await place.count("SELECT COUNT(*) FROM aliases"),
        try await place.count("SELECT COUNT(*) FROM versions"), try await place.count("SELECT COUNT(*) FROM verdicts"),
        try await place.count("SELECT COUNT(*) FROM watermarks"), try await place.count("SELECT COUNT(*) FROM events"),
        try await place.count("SELECT COUNT(*) FROM chunks"), try await place.count("SELECT COUNT(*) FROM chunk_bytes"),
      ]
      #expect(left == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      #expect(try await problem { _ = try await place.send(first, serial: 9) } == .notFound)
      #expect(try await place.hub.feeds.numbers(of: [other]) == [other: 0])
    }
  }

  static let damages: [StaticString] = [
    "DELETE FROM names WHERE zone IS NOT NULL",
    "UPDATE items SET others = number",
    "UPDATE items SET version = NULL WHERE kind = 'document'",
    "UPDATE items SET versions = versions + 1 WHERE kind = 'document'",
    "UPDATE items SET places = '[]' WHERE kind = 'document'",
    "DELETE FROM items WHERE kind = 'folder'",
    "UPDATE items SET deleted = 1 WHERE kind = 'folder'",
    "UPDATE zones SET number = 1",
    "UPDATE zones SET events = events + 1",
    "UPDATE zones SET used = used + 1",
    "UPDATE items SET attributes = '{\"user.a\":\"AA==\"}'",
    "INSERT INTO linked_items SELECT zone, item FROM items",
    "UPDATE events SET sequence = 100 WHERE sequence = 1",
    "UPDATE versions SET size = size + 1",
    "UPDATE versions SET number = number + 1",
    "UPDATE versions SET digest = manifest",
    "UPDATE versions SET digest = zeroblob(0)",
    "UPDATE chunk_bytes SET bytes = hash",
    "DELETE FROM chunk_bytes WHERE zone IS NOT NULL",
    "INSERT INTO chunk_bytes SELECT zone, zeroblob(32), bytes FROM chunk_bytes LIMIT 1",
    "UPDATE chunks SET uses = uses + 1",
    "DELETE FROM chunks WHERE zone IS NOT NULL",
    "UPDATE aliases SET item = alias",
  ]

  @Test(arguments: damages.indices)
  func theCheckFindsWhatIsDamaged(_ index: Int) async throws {
    try await Self.with(.sqlite) { place in
      let folder = WireID()
      for (serial, item) in [(1, folder), (2, WireID())] as [(Int64, WireID)] {
        _ = try await place.send(
          Send(serial: 0, item: item, kind: .folder, places: [.init(parent: .root, "plans")]), serial: serial)
      }
      _ = try await place.send(
        .document(WireID(), at: [.init(parent: folder, "a")], version: WireID(), "text"), serial: 3)
      #expect(try await place.hub.check() == [])
      try await place.change(Self.damages[index])
      #expect(try await place.hub.check() != [], "\(Self.damages[index])")
    }
  }
}
