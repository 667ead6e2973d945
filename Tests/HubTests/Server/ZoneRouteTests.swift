import Crypto
import Foundation
import HubKit
import SheafHubStore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Sends, feeds, events and contents over HTTP. What they mean has tests of its own.
@Suite struct ZoneRouteTests {
  @Test(arguments: StoreEngine.available)
  func versionsAndDeletedItemsArePurged(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, alice) = try await running.member()
      let (_, bob) = try await running.member("bob@hub.example")
      let document = Send.document("plan.md", "secret", serial: 1)
      var save = Send.document("plan.md", "Tuesday", serial: 2, item: document.item)
      save.version?.base = document.version?.id
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[document], [save]]), token: alice)
      let item = "/v1/items/\(document.item)"
      let (old, current) = (try #require(document.version?.id), try #require(save.version?.id))
      // Another account's are not there.
      for path in [item, "\(item)/versions/\(old)"] {
        #expect(try await client.send("DELETE", path, token: bob).problem == .notFound)
        #expect(try await client.send("DELETE", path).problem == .unauthorized)
        #expect(try await client.send("POST", path, token: alice).problem == .method)
      }
      #expect(try await client.send("DELETE", item, token: alice).problem == .conflict)
      #expect(try await client.send("DELETE", "\(item)/versions/\(current)", token: alice).problem == .conflict)
      let feed: FeedPage = try await client.send("GET", "/v1/feed", token: alice).decode()
      async let heard = client.send("GET", "/v1/feed?wait=60&token=\(feed.token)", token: alice)
      #expect(try await client.send("DELETE", "\(item)/versions/\(old)", token: alice).status == 204)
      #expect(try await heard.decode(FeedPage.self).items.map(\.purges) == [1])
      #expect(try await client.send("GET", "\(item)/versions/\(old)/content", token: alice).problem == .notFound)
      let list: VersionList = try await client.send("GET", "\(item)/versions", token: alice).decode()
      #expect(list.versions.map(\.id) == [current] && list.purged == [old])
      let deletion = Send(serial: 3, item: document.item, kind: .document, base: 1 << 40, isDeletion: true)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[deletion]]), token: alice)
      #expect(try await client.send("DELETE", item, token: alice).status == 204)
      #expect(try await client.send("GET", "\(item)/versions/\(current)/content", token: alice).problem == .notFound)
    }
  }

  @Test(arguments: StoreEngine.available)
  func foldersSayForHowLongTheyKeepThings(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, alice) = try await running.member()
      let (_, bob) = try await running.member("bob@hub.example")
      let folder = Send(serial: 1, item: WireID(), kind: .folder, places: [Place(parent: .root, "folder")], mode: 0o755)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[folder]]), token: alice)
      let path = "/v1/items/\(folder.item)/retention"
      let spans = SentRetention(keepDeleted: 86_400, keepVersions: nil)
      #expect(try await client.send("PUT", path, json: spans, token: bob).problem == .notFound)
      #expect(try await client.send("PUT", path, json: spans).problem == .unauthorized)
      #expect(try await client.send("GET", path, token: alice).problem == .method)
      let short = SentRetention(keepDeleted: 86_399, keepVersions: nil)
      #expect(try await client.send("PUT", path, json: short, token: alice).problem == .invalid)
      #expect(try await client.send("PUT", path, json: spans, token: alice).status == 204)
      let list: RetentionList = try await client.send("GET", "/v1/retentions", token: alice).decode()
      #expect(list.folders == [FolderRetention(item: folder.item, keepDeleted: 86_400, keepVersions: nil)])
      let others: RetentionList = try await client.send("GET", "/v1/retentions", token: bob).decode()
      #expect(others.folders == [] && others.keepDeleted == 30 * 86_400)
      #expect(try await client.send("GET", "/v1/retentions").problem == .unauthorized)
      let all = "/v1/items/\(WireID.root)/retention"
      #expect(try await client.send("PUT", all, json: spans, token: alice).status == 204)
    }
  }

  @Test(arguments: StoreEngine.available)
  func whatOneMachineSendsAnotherReads(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let zone = try await running.hub.account()
      let (_, laptop) = try await running.member(of: zone)
      let (_, desktop) = try await running.member(of: zone)
      let send = Send.document("trip.md", "Monday", serial: 1)
      let request = SendRequest(groups: [[send]])
      let answer: SendAnswer = try await client.send("POST", "/v1/sends", json: request, token: laptop).decode()
      #expect(answer.verdicts.map(\.outcome) == [.done] && answer.later.isEmpty && answer.number == 1)
      // Sent again, as when the answer was lost.
      #expect(try await client.send("POST", "/v1/sends", json: request, token: laptop).decode() == answer)

      let page: FeedPage = try await client.send("GET", "/v1/feed", token: desktop).decode()
      #expect(page.items.map(\.item) == [send.item] && !page.hasMore)
      let version = try #require(page.items.first?.version)
      let path = "/v1/items/\(send.item)/versions/\(version.id)/content"
      #expect(try await client.send("GET", path, token: desktop).body == Data("Monday".utf8))
      let versions: VersionList =
        try await client.send("GET", "/v1/items/\(send.item)/versions", token: desktop).decode()
      #expect(versions.versions == [version])
      let events: EventPage = try await client.send("GET", "/v1/events", token: desktop).decode()
      #expect(events.events.map(\.sequence) == [1])
      #expect(try await client.send("GET", "/v1/events?after=1", token: desktop).decode(EventPage.self).events.isEmpty)

      // Nothing of it is anybody else's.
      let (_, stranger) = try await running.member("bob@hub.example")
      #expect(try await client.send("GET", path, token: stranger).problem == .notFound)
      #expect(try await client.send("GET", "/v1/feed", token: stranger).decode(FeedPage.self).items.isEmpty)
      #expect(try await client.send("GET", "/v1/events", token: stranger).decode(EventPage.self).events.isEmpty)
      let foreign = try await client.send("GET", "/v1/feed?token=\(page.token)", token: stranger)
      #expect(foreign.problem == .gone)
    }
  }

  /// A request that waits is answered by what comes, not by the clock.
  @Test(arguments: StoreEngine.available)
  func aWaitingRequestHearsOfASend(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let zone = try await running.hub.account()
      let (_, laptop) = try await running.member(of: zone)
      let (_, desktop) = try await running.member(of: zone)
      let start: FeedPage = try await client.send("GET", "/v1/feed?wait=0", token: desktop).decode()
      async let waiting = client.send("GET", "/v1/feed?token=\(start.token)&wait=60", token: desktop)
      let first = SendRequest(groups: [[.document("a", "1", serial: 1)]])
      _ = try await client.send("POST", "/v1/sends", json: first, token: laptop)
      let page: FeedPage = try await waiting.decode()
      #expect(page.items.map(\.number) == [1])
      // What another process did.
      async let other = client.send("GET", "/v1/feed?token=\(page.token)&wait=60", token: desktop)
      let author = SendAuthor(
        device: "another", deviceName: "another", handle: "alice@hub.example", name: "Alice",
        now: Timestamp(seconds: 1_800_000_000))
      _ = try await running.hub.hub.zones.send(
        SendRequest(groups: [[.document("b", "2", serial: 1)]]), to: zone, by: author)
      #expect(try await other.decode(FeedPage.self).items.map(\.number) == [2])
    }
  }

  @Test(arguments: StoreEngine.available)
  func chunksAreUploadedAndReadInRanges(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 7) })
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes))))
      let asked = ChunkHashes(hashes: [hash])
      #expect(try await client.send("POST", "/v1/chunks/missing", json: asked, token: token).decode() == asked)
      let path = "/v1/chunks/\(hash)"
      let type = "application/octet-stream"
      #expect(
        try await client.send("PUT", path, body: bytes.dropLast(), type: type, token: token).problem == .invalid)
      #expect(try await client.send("PUT", path, body: bytes, type: type, token: token).status == 204)
      #expect(try await client.send("PUT", path, body: bytes, type: type, token: token).status == 204)
      let none = ChunkHashes(hashes: [])
      #expect(try await client.send("POST", "/v1/chunks/missing", json: asked, token: token).decode() == none)

      var send = Send.document("large", "", serial: 1)
      let version = WireID()
      send.version = SentVersion(
        id: version, base: nil, cause: .save, time: 1,
        extents: [
          Extent(hash: hash, length: 200_000), Extent(hash: nil, length: 100_000), Extent(hash: hash, length: 200_000),
        ])
      let answer: SendAnswer =
        try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[send]]), token: token).decode()
      #expect(answer.verdicts.map(\.outcome) == [.done])
      let whole = bytes + Data(count: 100_000) + bytes
      let content = "/v1/items/\(send.item)/versions/\(version)/content"
      let all = try await client.send("GET", content, token: token)
      #expect(all.status == 200 && all.body == whole && all.headers["content-length"] == "500000")
      for (range, part) in [
        ("0-0", 0..<1), ("199999-300000", 199_999..<300_001), ("499999-", 499_999..<500_000), ("-5", 499_995..<500_000),
        ("0-9999999", 0..<500_000),
      ] {
        let answer = try await client.send("GET", content, token: token, headers: [("Range", "bytes=\(range)")])
        #expect(answer.status == 206 && answer.body == whole[part], "\(range)")
        #expect(answer.headers["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/500000")
      }
      for range in ["500000-", "600000-700000", "-0"] {
        let answer = try await client.send("GET", content, token: token, headers: [("Range", "bytes=\(range)")])
        #expect(answer.problem == .range, "\(range)")
      }
      for range in ["5-4", "a-b", "0-1,3-4", "-"] {
        let answer = try await client.send("GET", content, token: token, headers: [("Range", "bytes=\(range)")])
        #expect(answer.status == 200 && answer.body.count == 500_000, "\(range)")
      }
      // Chunks are not told but as parts of a version.
      #expect(try await client.send("GET", path, token: token).problem == .method)
    }
  }

  @Test(arguments: StoreEngine.available)
  func aVersionSaysWhatItHasOfAnotherOne(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let chunks = (0..<4).map { number in Chunk([UInt8](repeating: UInt8(number + 1), count: 1_000 * (number + 1))) }
      for chunk in chunks {
        let answer = try await client.send(
          "PUT", "/v1/chunks/\(chunk.hash)", body: Data(chunk.bytes), type: "application/octet-stream", token: token)
        #expect(answer.status == 204)
      }
      func extents(_ numbers: Int?...) -> [Extent] {
        numbers.map { number in
          guard let number else { return Extent(hash: nil, length: 500) }
          return Extent(hash: chunks[number].hash, length: Int64(chunks[number].bytes.count))
        }
      }
      var send = Send.document("large", "", serial: 1)
      var versions: [WireID] = []
      for (serial, extents) in [
        extents(0, 1, 2, nil, 0, 2), extents(3, 0, 1, 3, 2, nil, 0, 2), extents(0, 2, 1, 2), extents(),
      ].enumerated() {
        send.serial = Int64(serial + 1)
        send.version = SentVersion(
          id: WireID(), base: versions.last, cause: .save, time: 1, extents: extents)
        if serial > 0 { (send.base, send.places, send.mode, send.mtime) = (Int64(serial), nil, nil, nil) }
        let answer: SendAnswer =
          try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[send]]), token: token).decode()
        #expect(answer.verdicts.map(\.outcome) == [.done])
        versions.append(try #require(send.version?.id))
      }
      let item = "/v1/items/\(send.item)/versions"
      func copies(_ version: Int, from other: Int) async throws -> [[Int64?]] {
        let answer: ContentCopies = try await client.send(
          "GET", "\(item)/\(versions[version])/copies?from=\(versions[other])", token: token
        ).decode()
        return answer.copies.map { [$0.offset, $0.source, $0.length] }
      }
      // What was inserted at the front and in between is missing.
      #expect(
        try await copies(1, from: 0) == [
          [4_000, 0, 3_000], [11_000, 3_000, 3_000], [14_000, nil, 500], [14_500, 0, 1_000], [15_500, 3_000, 3_000],
        ])
      #expect(try await copies(2, from: 0) == [[0, 0, 1_000], [1_000, 3_000, 3_000], [4_000, 1_000, 5_000]])
      #expect(
        try await copies(0, from: 0) == [
          [0, 0, 6_000], [6_000, nil, 500], [6_500, 0, 1_000], [7_500, 3_000, 3_000],
        ])
      #expect(try await copies(0, from: 3) == [[6_000, nil, 500]])
      #expect(try await copies(3, from: 0) == [])
      let path = "\(item)/\(versions[1])/copies"
      for (query, problem) in [
        ("", .invalid), ("?from=x", .invalid), ("?from=\(WireID())", .notFound),
      ] as [(String, Problem.Kind)] {
        #expect(try await client.send("GET", path + query, token: token).problem == problem)
      }
      let (_, stranger) = try await running.member("bob@hub.example")
      #expect(
        try await client.send("GET", "\(path)?from=\(versions[0])", token: stranger).problem == .notFound)
    }
  }

  /// The quota and the size are looked at before the bytes come.
  @Test func bodiesPastTheLimitsAreNotRead() async throws {
    try await RunningHub.with { running in
      let (device, token) = try await running.member()
      try await running.hub.accounts.setQuota(1_000, of: device.zone)
      let hash = String(repeating: "0", count: 64)
      func refusal(_ length: Int64) throws -> Substring {
        let connection = try RawConnection(port: running.port)
        connection.send(
          "PUT /v1/chunks/\(hash) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n"
            + "Content-Length: \(length)\r\n\r\n")
        return try connection.readToEnd().prefix(12)
      }
      #expect(try refusal(2_000) == "HTTP/1.1 507")
      #expect(try refusal(5 * 1024 * 1024) == "HTTP/1.1 413")
      #expect(try refusal(.max) == "HTTP/1.1 413")
      let much = ChunkHashes(hashes: [], bytes: 2_000)
      #expect(try await running.client.send("POST", "/v1/chunks/missing", json: much, token: token).problem == .quota)
      let large = SendRequest(groups: [[.document("a", String(repeating: "x", count: 2_000), serial: 1)]])
      #expect(try await running.client.send("POST", "/v1/sends", json: large, token: token).problem == .quota)
      let small = SendRequest(groups: [[.document("a", "x", serial: 1)]])
      #expect(try await running.client.send("POST", "/v1/sends", json: small, token: token).status == 200)
    }
  }

  @Test func compressedBodiesComeOutAsTheyWere() throws {
    // `zstd --no-check` of the five bytes, from a file and from a pipe: with the size in it, and without.
    let frames: [[UInt8]] = [
      [0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x05, 0x29, 0x00, 0x00, 0x53, 0x68, 0x65, 0x61, 0x66],
      [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x29, 0x00, 0x00, 0x53, 0x68, 0x65, 0x61, 0x66],
    ]
    for frame in frames {
      #expect(try Zstandard.decompressed(frame, upTo: 5) == Array("Sheaf".utf8))
      #expect(throws: HubError.self) { try Zstandard.decompressed(frame, upTo: 4) }
      #expect(throws: HubError.self) { try Zstandard.decompressed(frame + [0], upTo: 5) }
      #expect(throws: HubError.self) { try Zstandard.decompressed(frame + frame, upTo: 10) }
      for length in 0..<frame.count {
        #expect(throws: HubError.self) { try Zstandard.decompressed(Array(frame[..<length]), upTo: 5) }
      }
    }
    #expect(throws: HubError.self) { try Zstandard.decompressed(Array("Sheaf".utf8), upTo: 5) }
  }

  @Test func numbersAndIdsAreChecked() async throws {
    try await RunningHub.with { running in
      let client = running.client
      let (_, token) = try await running.member()
      for path in [
        "/v1/feed?limit=0", "/v1/feed?limit=1001", "/v1/feed?limit=x", "/v1/feed?limit=-1", "/v1/feed?wait=61",
        "/v1/feed?wait=1e1", "/v1/feed?token=x", "/v1/feed?token=", "/v1/events?after=-1", "/v1/events?after=x",
        "/v1/events?after=99999999999999999999", "/v1/events?limit=0",
        "/v1/feed?token=ffffffffffffffff" + String(repeating: "0", count: 48),
      ] {
        #expect(try await client.send("GET", path, token: token).problem == .invalid, "\(path)")
      }
      let epoch = "/v1/feed?token=0000000000000001" + String(repeating: "0", count: 48)
      #expect(try await client.send("GET", epoch, token: token).problem == .gone)
      let id = WireID().description
      for path in [
        "/v1/items/x/versions", "/v1/items/\(id)/versions/x/content", "/v1/items/\(id)/versions/\(id)/content",
      ] {
        #expect(try await client.send("GET", path, token: token).problem == .notFound, "\(path)")
      }
      #expect(try await client.send("PUT", "/v1/chunks/x", body: Data([1]), token: token).problem == .invalid)
    }
  }

  /// The upkeep of a served hub goes over zones that come and go.
  @Test(arguments: StoreEngine.available)
  func upkeepTakesEveryZone(_ engine: StoreEngine) async throws {
    try await engine.withDatabase { database in
      let hub = try await TestHub(database)
      let zones = [try await hub.account(), try await hub.account("bob@hub.example")]
      let bytes = [UInt8]("unused".utf8)
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes))))
      for zone in zones { try await hub.hub.contents.upload(bytes, hash: hash, to: zone) }
      try await hub.hub.upkeep()
      #expect(try await hub.accounts.list().map(\.used) == [6, 6])
      hub.clock.advance(seconds: 86_401)
      try await hub.hub.upkeep()
      #expect(try await hub.accounts.list().map(\.used) == [0, 0])
      #expect(try await hub.hub.check() == [])
    }
  }
}
