import AsyncHTTPClient
import Foundation
import HubKit
import NIOCore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// What members do over HTTP, and that all of it ends with their right, whatever was waiting.
@Suite struct SharedRouteTests {
  /// A served hub on which Alice shares a folder with Bob.
  struct Place {
    let running: RunningHub
    let alice: (token: String, other: String)
    let bob: (token: String, other: String)
    let (owner, member): (String, EnrolledDevice)
    let bobs: String
    let trip = WireID()
    let plan = WireID()
    let share: ShareState
    var client: HubClient { running.client }
    var path: String { "/v1/shares/\(share.share)" }

    init(_ running: RunningHub) async throws {
      self.running = running
      owner = try await running.hub.account()
      let first = try await running.member(of: owner)
      alice = (first.token, try await running.member(of: owner).token)
      bobs = try await running.hub.account("bob@hub.example")
      let second = try await running.member(of: bobs)
      member = second.device
      bob = (second.token, try await running.member(of: bobs).token)
      var inside = Send.document("plan", "Monday", serial: 2, item: plan)
      inside.places = [SheafWire.Place(parent: trip, "plan")]
      let folder = Send(serial: 1, item: trip, kind: .folder, places: [SheafWire.Place(parent: .root, "trip")])
      let client = running.client
      _ = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[folder], [inside]]), token: alice.token)
      share = try await client.send(
        "PUT", "/v1/items/\(trip)/share", json: ShareSettings(), token: alice.token
      ).decode()
      try await invite()
    }

    func invite(_ permission: WirePermission = .readWrite) async throws {
      _ = try await client.send(
        "PUT", "\(path)/participants/bob%40hub.example", json: ParticipantSettings(permission: permission),
        token: alice.token)
      _ = try await client.send("POST", "/v1/acceptances", json: ShareLink(url: share.url), token: bob.token)
    }

    /// Alice saves a document in what is shared.
    func save(_ serial: Int64) async throws {
      var send = Send.document("later \(serial)", "x", serial: serial)
      send.places = [SheafWire.Place(parent: trip, "later \(serial)")]
      let answer: SendAnswer = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[send]]), token: alice.token
      ).decode()
      #expect(answer.verdicts.map(\.outcome) == [.done])
    }
  }

  @Test(arguments: StoreEngine.available)
  func aMemberReadsAndSends(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let place = try await Place(running)
      let (client, path, bob) = (place.client, place.path, place.bob.token)
      let first: SharedFeedPage = try await client.send("GET", "\(path)/feed", token: bob).decode()
      #expect(first.changes.map(\.item) == [place.trip])
      let listed: SharedFolderPage = try await client.send(
        "GET", "\(path)/items/\(place.trip)/children", token: bob
      ).decode()
      #expect(listed.items.map(\.item) == [place.plan] && listed.next == nil)
      let versions: VersionList = try await client.send(
        "GET", "\(path)/items/\(place.plan)/versions", token: bob
      ).decode()
      let version = try #require(versions.versions.first?.id)
      let content = "\(path)/items/\(place.plan)/versions/\(version)/content"
      #expect(String(decoding: try await client.send("GET", content, token: bob).body, as: UTF8.self) == "Monday")
      let part = try await client.send("GET", content, token: bob, headers: [("Range", "bytes=3-")])
      #expect(part.status == 206 && String(decoding: part.body, as: UTF8.self) == "day")
      let copies: ContentCopies = try await client.send(
        "GET", "\(path)/items/\(place.plan)/versions/\(version)/copies?from=\(version)", token: bob
      ).decode()
      #expect(copies.copies == [.init(offset: 0, source: 0, length: 6)])
      #expect(
        try await client.send(
          "GET", "\(path)/items/\(place.plan)/versions/\(version)/copies?from=\(WireID())", token: bob
        ).problem == .notFound)
      // Another member's share is nobody's way to one's own zone.
      #expect(
        try await client.send("GET", "/v1/items/\(place.plan)/versions/\(version)/content", token: bob).status == 404)
      // A chunk, and a send that names it; the owner hears of it.
      let chunk = Chunk(Array("Tuesday".utf8))
      let asked: ChunkHashes = try await client.send(
        "POST", "\(path)/chunks/missing", json: ChunkHashes(hashes: [chunk.hash]), token: bob
      ).decode()
      #expect(asked.hashes == [chunk.hash])
      let put = try await client.send(
        "PUT", "\(path)/chunks/\(chunk.hash)", body: Data(chunk.bytes), type: "application/octet-stream", token: bob)
      #expect(put.status == 204)
      let feed: FeedPage = try await client.send("GET", "/v1/feed", token: place.alice.token).decode()
      async let heard = client.send("GET", "/v1/feed?wait=60&token=\(feed.token)", token: place.alice.token)
      async let waited = client.send("GET", "\(path)/feed?wait=60&token=\(first.token)", token: place.bob.other)
      let save = Send(
        serial: 1, item: place.plan, kind: .document,
        version: SentVersion(
          id: WireID(), base: version, cause: .save, time: 0, extents: [Extent(hash: chunk.hash, length: 7)]))
      let sent: SendAnswer = try await client.send(
        "POST", "\(path)/sends", json: SendRequest(groups: [[save]]), token: bob
      ).decode()
      #expect(sent.verdicts.map(\.outcome) == [.done])
      #expect(try await heard.decode(FeedPage.self).items.map(\.item) == [place.plan])
      #expect(try await waited.decode(SharedFeedPage.self).changes.map(\.item) == [place.plan])
      // Events have the URL of the share.
      let log = try await client.send("GET", "\(path)/events", token: bob)
      let told = try log.decode(EventPage.self)
      #expect(told.events.map(\.type) == [.memberAdded, .edit])
      #expect(told.events.allSatisfy { $0.data.share?.url == place.share.url })
      for after in ["", "x", "0", "FF"] {
        let page = "\(path)/items/\(place.trip)/children?after=\(after)"
        #expect(try await client.send("GET", page, token: bob).problem == .invalid)
      }
      #expect(try await client.send("GET", "\(path)/feed?token=x", token: bob).problem == .invalid)
      #expect(try await client.send("GET", "/v1/shares/\(WireID())/feed", token: bob).problem == .notFound)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aMemberLabelsAVersionAndTheOthersHearOfIt(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let place = try await Place(running)
      let (client, path, bob) = (place.client, place.path, place.bob.token)
      let versions: VersionList = try await client.send(
        "GET", "\(path)/items/\(place.plan)/versions", token: bob
      ).decode()
      let version = try #require(versions.versions.first?.id)
      let label = "\(path)/items/\(place.plan)/versions/\(version)/label"
      let feed: FeedPage = try await client.send("GET", "/v1/feed", token: place.alice.token).decode()
      let first: SharedFeedPage = try await client.send("GET", "\(path)/feed", token: bob).decode()
      async let heard = client.send("GET", "/v1/feed?wait=60&token=\(feed.token)", token: place.alice.token)
      async let waited = client.send("GET", "\(path)/feed?wait=60&token=\(first.token)", token: place.bob.other)
      #expect(try await client.send("PUT", label, json: SentLabel(label: "final"), token: bob).status == 204)
      #expect(try await heard.decode(FeedPage.self).items.map(\.item) == [place.plan])
      #expect(try await waited.decode(SharedFeedPage.self).changes.map(\.item) == [place.plan])
      let told: VersionList = try await client.send(
        "GET", "/v1/items/\(place.plan)/versions", token: place.alice.token
      ).decode()
      #expect(told.versions.map(\.label) == ["final"])
      #expect(try await client.send("PUT", label, json: SentLabel(label: ""), token: bob).problem == .invalid)
      // The way of the owner's devices is none for members.
      let owners = "/v1/items/\(place.plan)/versions/\(version)/label"
      #expect(try await client.send("PUT", owners, json: SentLabel(label: "x"), token: bob).problem == .notFound)
      try await place.invite(.readOnly)
      #expect(try await client.send("PUT", label, json: SentLabel(label: "x"), token: bob).problem == .forbidden)
    }
  }

  /// How somebody's right ends.
  enum End: CaseIterable, Sendable {
    case removed, removedElsewhere, left, leftElsewhere, stopped, movedDevice
  }

  @Test(arguments: StoreEngine.available, End.allCases)
  func streamsAndWaitingRequestsEndWithTheRight(_ engine: StoreEngine, _ end: End) async throws {
    try await RunningHub.with(engine) { running in
      let place = try await Place(running)
      let (client, path, bob) = (place.client, place.path, place.bob.token)
      let first: SharedFeedPage = try await client.send("GET", "\(path)/feed", token: bob).decode()
      let stream = try await client.start("GET", "\(path)/stream", token: bob)
      var parts = stream.body.makeAsyncIterator()
      let beginning = try await parts.next().map { String(buffer: $0) }
      #expect(beginning?.contains("data: {\"number\":1}") ?? false)
      async let waiting = client.send("GET", "\(path)/feed?wait=60&token=\(first.token)", token: bob)
      // Their own streams have nothing to do with it.
      let own = try await client.start("GET", "/v1/stream", token: place.bob.other)
      var ownParts = own.body.makeAsyncIterator()
      #expect(try await ownParts.next() != nil)
      let sharing = running.hub.hub.sharing
      let (share, owner, bobs) = (place.share.share, place.owner, place.bobs)
      let alice = Person(zone: owner, handle: "alice@hub.example", name: nil)
      let person = Person(zone: bobs, handle: "bob@hub.example", name: nil)
      let participant = "\(path)/participants/bob%40hub.example"
      switch end {
      case .removed: #expect(try await client.send("DELETE", participant, token: place.alice.token).status == 204)
      case .removedElsewhere:
        try await sharing.change(share, by: alice) {
          try $0.remove("bob@hub.example", by: owner, at: Timestamp(seconds: 1_800_000_000))
        }
      case .left: #expect(try await client.send("DELETE", participant, token: place.bob.other).status == 204)
      case .leftElsewhere: try await sharing.change(share, by: person) { try $0.leave(bobs) }
      case .stopped: #expect(try await client.send("DELETE", path, token: place.alice.token).status == 204)
      case .movedDevice:
        #expect(
          try await client.send("DELETE", "/v1/devices/\(place.member.device)", token: place.bob.other).status == 204)
      }
      // What comes after is told to nobody there; and where nothing comes, they end all the same.
      if end == .removed || end == .removedElsewhere { try await place.save(3) }
      var heard = ""
      while let part = try await parts.next() { heard += String(buffer: part) }
      #expect(!heard.contains("data:"), "\(heard)")
      #expect(try await waiting.problem == (end == .movedDevice ? .unauthorized : .notFound))
      let token = end == .movedDevice ? place.bob.other : bob
      let expected = end == .movedDevice ? 200 : 404
      #expect(try await client.send("GET", "\(path)/feed", token: token).status == expected)
      if end != .movedDevice { #expect(try await client.send("GET", "\(path)/stream", token: token).status == 404) }
      // The others hear on.
      if end != .stopped {
        let page: SharedFeedPage = try await client.send("GET", "\(path)/feed", token: place.alice.token).decode()
        #expect(!page.token.isEmpty)
      }
    }
  }
}
