import AsyncHTTPClient
import Crypto
import Foundation
import HubKit
import SheafModel
import SheafWire
import Testing

@testable import SheafHub

/// Contents of several versions in one answer.
@Suite struct SeveralContentsTests {
  private typealias Part = ContentsRequest.Part

  private func ask(
    _ client: HubClient, _ parts: [ContentsRequest.Part], at path: String = "/v1/contents", token: String
  ) async throws -> [ContentPart] {
    let answer = try await client.send("POST", path, json: ContentsRequest(contents: parts), token: token)
    #expect(answer.status == 200)
    return try ContentPart.all(answer)
  }

  @Test(arguments: StoreEngine.available)
  func theyComeInTheOrderThatWasAskedFor(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let (_, bob) = try await running.member("bob@hub.example")
      let bytes = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 7) })
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes))))
      _ = try await client.send(
        "PUT", "/v1/chunks/\(hash)", body: bytes, type: "application/octet-stream", token: token)
      let (small, empty) = (Send.document("small", "--\r\n\r\n", serial: 1), Send.document("empty", "", serial: 2))
      var large = Send.document("large", "", serial: 3)
      large.version = SentVersion(
        id: WireID(), base: nil, cause: .save, time: 1,
        extents: [
          Extent(hash: hash, length: 300_000), Extent(hash: nil, length: 2_000_000),
          Extent(hash: hash, length: 300_000),
        ])
      let sent: SendAnswer = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[small], [empty], [large]]), token: token
      ).decode()
      #expect(sent.verdicts.map(\.outcome) == [.done, .done, .done])
      let whole = bytes + Data(count: 2_000_000) + bytes
      func part(_ send: Send, _ offset: Int64? = nil, _ length: Int64? = nil) -> ContentsRequest.Part {
        Part(item: send.item, version: send.version?.id ?? WireID(), offset: offset, length: length)
      }
      let unknown = Part(item: small.item, version: WireID())
      let parts = try await ask(
        client,
        [
          part(large), part(small), unknown, part(empty), part(small), part(large, 299_999, 3),
          part(large, 2_599_999, .max), part(large, .max), part(small, 6), part(small, 7), part(small, 0, 0),
        ], token: token)
      #expect(
        parts.map(\.problem) == [nil, nil, .notFound, nil, nil, nil, nil, .range, nil, .range, nil])
      let found = parts.map { $0.problem == nil ? $0.body : Data() }
      #expect(
        found == [
          whole, Data("--\r\n\r\n".utf8), Data(), Data(), Data("--\r\n\r\n".utf8), whole[299_999..<300_002],
          whole[2_599_999...], Data(), Data(), Data(), Data(),
        ])
      #expect(
        parts.map { $0.headers["content-range"] } == [
          nil, nil, nil, nil, nil, "bytes 299999-300001/2600000", "bytes 2599999-2599999/2600000", nil, nil, nil, nil,
        ])
      #expect(parts[2].headers["content-location"] == "/v1/items/\(small.item)/versions/\(unknown.version)/content")
      // Nothing of it is anybody else's, whoever's item is named with it.
      let own = Send.document("own", "mine", serial: 1)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[own]]), token: bob)
      let strange = Part(item: own.item, version: try #require(small.version?.id))
      let foreign = try await ask(client, [part(small), part(large), part(own), strange], token: bob)
      #expect(foreign.map(\.problem) == [.notFound, .notFound, nil, .notFound] && foreign[2].text == "mine")
    }
  }

  /// Parts begin and end anywhere in chunks, in holes, and in holes that are many extents.
  @Test func anyPartIsGiven() async throws {
    var random = SystemRandomNumberGenerator()
    let seed = ProcessInfo.processInfo.environment["SHEAF_SEED"].flatMap { UInt64($0) } ?? random.next()
    var state = seed
    func next(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
    try await RunningHub.with { running in
      let client = running.client
      let (_, token) = try await running.member()
      let bytes = Data((0..<10_000).map { _ in UInt8(next(256)) })
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes))))
      _ = try await client.send(
        "PUT", "/v1/chunks/\(hash)", body: bytes, type: "application/octet-stream", token: token)
      var send = Send.document("a", "", serial: 1)
      var (extents, whole): ([Extent], Data) = ([], Data())
      for _ in 0..<60 {
        if next(3) == 0 {
          extents.append(Extent(hash: hash, length: 10_000))
          whole += bytes
        } else {
          let length = next(2) == 0 ? 1 : next(1_500_000) + 1
          extents.append(Extent(hash: nil, length: Int64(length)))
          whole += Data(count: length)
        }
      }
      send.version = SentVersion(id: WireID(), base: nil, cause: .save, time: 1, extents: extents)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[send]]), token: token)
      let version = try #require(send.version?.id)
      let ranges = (0..<50).map { _ in
        let start = next(whole.count)
        return start..<(start + next(next(2) == 0 ? 5 : whole.count - start))
      }
      let asked = ranges.map { range in
        ContentsRequest.Part(
          item: send.item, version: version, offset: Int64(range.lowerBound), length: Int64(range.count))
      }
      let parts = try await ask(client, asked, token: token)
      for (range, part) in zip(ranges, parts) {
        let expected = whole[range.clamped(to: 0..<whole.count)]
        #expect(part.problem == nil && part.body == expected, "\(range), SHEAF_SEED=\(seed)")
      }
      let content = "/v1/items/\(send.item)/versions/\(version)/content"
      #expect(try await client.send("GET", content, token: token).body == whole, "SHEAF_SEED=\(seed)")
    }
  }

  /// Whatever numbers a range has.
  @Test func rangesEndWithTheContents() throws {
    let highest = Int64.max
    for (header, range) in [
      ("bytes=0-\(highest)", 0..<11), ("bytes=3-\(highest)", 3..<11), ("bytes=3-\(highest - 1)", 3..<11),
      ("bytes=3-", 3..<11), ("bytes=10-10", 10..<11), ("bytes=-\(highest)", 0..<11), ("bytes=-1", 10..<11),
      ("bytes=0-0", 0..<1), ("bytes=5-4", nil), ("bytes=0-99999999999999999999", nil), ("bytes=-", nil),
    ] as [(String, Range<Int64>?)] {
      #expect(try ByteRange.of(header, size: 11) == range, "\(header)")
    }
    for header in ["bytes=11-\(highest)", "bytes=\(highest)-\(highest)", "bytes=-0"] {
      #expect(throws: HubError.self, "\(header)") { try ByteRange.of(header, size: 11) }
    }
    #expect(throws: HubError.self) { try ByteRange.of("bytes=0-\(highest)", size: 0) }
  }

  /// Contents that clients are given take so much memory and no more, and no account has all of it.
  @Test func answersHaveALimit() async throws {
    var limits = ServerLimits()
    limits.answers = 16 * 1024 * 1024
    try await RunningHub.with(limits: limits) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let (_, other) = try await running.member("bob@hub.example")
      var large = Send.document("large", "", serial: 1)
      // Much more than all buffers on the way hold.
      large.version = SentVersion(
        id: WireID(), base: nil, cause: .save, time: 1, extents: [Extent(hash: nil, length: 256 << 20)])
      let small = Send.document("small", "x", serial: 2)
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[large], [small]]), token: token)
      func path(_ send: Send) throws -> String {
        "/v1/items/\(send.item)/versions/\(try #require(send.version?.id))/content"
      }
      let asked = ContentsRequest(contents: [Part(item: small.item, version: try #require(small.version?.id))])
      // Nobody reads it, and its room is taken.
      let slow = try await client.start("GET", try path(large), token: token)
      #expect(slow.status == .ok)
      var pieces = slow.body.makeAsyncIterator()
      #expect(try await pieces.next() != nil)
      let refused = try await client.send("POST", "/v1/contents", json: asked, token: token)
      #expect(refused.problem == .unavailable && refused.headers["retry-after"] != nil)
      #expect(try await client.send("GET", try path(small), token: token).problem == .unavailable)
      // Others have theirs.
      let others = try await client.send("POST", "/v1/contents", json: asked, token: other)
      #expect(try ContentPart.all(others).map(\.problem) == [.notFound])
      while try await pieces.next() != nil {}
      var answer = try await client.send("POST", "/v1/contents", json: asked, token: token)
      // The hub may hold it for a moment longer than the client reads.
      while answer.status == 503 { answer = try await client.send("POST", "/v1/contents", json: asked, token: token) }
      #expect(try ContentPart.all(answer).map(\.text) == ["x"])
    }
  }

  @Test func requestsThatMakeNoSenseAreRefused() async throws {
    try await RunningHub.with { running in
      let client = running.client
      let (_, token) = try await running.member()
      let part = Part(item: WireID(), version: WireID())
      for parts in [
        [], Array(repeating: part, count: WireLimits.contentsPerRequest + 1),
        [part, Part(item: part.item, version: part.version, offset: -1)],
        [Part(item: part.item, version: part.version, length: .min)],
      ] {
        let answer = try await client.send(
          "POST", "/v1/contents", json: ContentsRequest(contents: parts), token: token)
        #expect(answer.problem == .invalid, "\(parts.count)")
      }
      // The longest request that is allowed is taken.
      let longest = Part(item: part.item, version: part.version, offset: .max, length: .max)
      let most = try await ask(
        client, Array(repeating: longest, count: WireLimits.contentsPerRequest), token: token)
      #expect(most.count == WireLimits.contentsPerRequest && most.allSatisfy { $0.problem == .notFound })
      #expect(try await client.send("POST", "/v1/contents", json: ContentsRequest(contents: [part])).status == 401)
      let long = Data(repeating: UInt8(ascii: " "), count: HubRoutes.contentsBody + 1)
      #expect(try await client.send("POST", "/v1/contents", body: long, token: token).problem == .tooLarge)
      #expect(try await client.send("GET", "/v1/contents", token: token).problem == .method)
    }
  }

  /// Members get what they see, and what came before they could see it is not there.
  @Test(arguments: StoreEngine.available)
  func membersGetWhatTheySee(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let place = try await SharedRouteTests.Place(running)
      let (client, bob, alice) = (place.client, place.bob.token, place.alice.token)
      let path = "\(place.path)/contents"
      let versions: VersionList = try await client.send(
        "GET", "/v1/items/\(place.plan)/versions", token: alice
      ).decode()
      let plan = try #require(versions.versions.first?.id)
      // Two versions from before it came into the share, of which the last one is seen; one that lies elsewhere.
      let draft = Send.document("draft", "secret", serial: 3)
      var final = Send.document("draft", "open", serial: 4, item: draft.item)
      final.version?.base = draft.version?.id
      var move = Send(serial: 5, item: draft.item, kind: .document)
      move.places = [SheafWire.Place(parent: place.trip, "draft")]
      let hidden = Send.document("hidden", "private", serial: 6)
      let sent: SendAnswer = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[draft], [final], [move], [hidden]]), token: alice
      ).decode()
      #expect(sent.verdicts.map(\.outcome) == [.done, .done, .done, .done])
      let asked = [
        Part(item: place.plan, version: plan, offset: 3), Part(item: draft.item, version: draft.version?.id ?? plan),
        Part(item: draft.item, version: final.version?.id ?? plan),
        Part(item: hidden.item, version: hidden.version?.id ?? plan),
        Part(item: place.plan, version: hidden.version?.id ?? plan),
      ]
      let parts = try await ask(client, asked, at: path, token: bob)
      #expect(parts.map(\.problem) == [nil, .notFound, nil, .notFound, .notFound])
      #expect(parts[0].text == "day" && parts[2].text == "open")
      #expect(parts[0].headers["content-location"]?.hasPrefix("\(place.path)/items/\(place.plan)/") == true)
      // Nobody else is let in, and neither is a member that was removed.
      let (_, carol) = try await running.member("carol@hub.example")
      let request = ContentsRequest(contents: asked)
      #expect(try await client.send("POST", path, json: request, token: carol).problem == .notFound)
      _ = try await client.send("DELETE", "\(place.path)/participants/bob%40hub.example", token: alice)
      #expect(try await client.send("POST", path, json: request, token: bob).problem == .notFound)
    }
  }

  /// Where a member or an item leaves the share in the middle of an answer, no further piece is given.
  @Test(arguments: StoreEngine.available, ["member", "item"])
  func itIsLookedAtAnewForEachPiece(_ engine: StoreEngine, _ leaving: String) async throws {
    try await RunningHub.with(engine) { running in
      let place = try await SharedRouteTests.Place(running)
      let (client, alice) = (place.client, place.alice.token)
      var large = Send.document("large", "", serial: 3)
      large.places = [SheafWire.Place(parent: place.trip, "large")]
      // Much more than all buffers on the way hold.
      large.version = SentVersion(
        id: WireID(), base: nil, cause: .save, time: 1, extents: [Extent(hash: nil, length: 256 << 20)])
      let sent: SendAnswer = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[large]]), token: alice
      ).decode()
      #expect(sent.verdicts.map(\.outcome) == [.done])
      let version = try #require(large.version?.id)
      let asked = ContentsRequest(contents: [Part(item: large.item, version: version)])
      let answer = try await client.start(
        "POST", "\(place.path)/contents", body: try JSONEncoder().encode(asked), token: place.bob.token)
      #expect(answer.status == .ok)
      var pieces = answer.body.makeAsyncIterator()
      #expect(try await pieces.next() != nil)
      if leaving == "member" {
        _ = try await client.send("DELETE", "\(place.path)/participants/bob%40hub.example", token: alice)
      } else {
        var move = Send(serial: 4, item: large.item, kind: .document)
        move.places = [SheafWire.Place(parent: .root, "large")]
        let moved: SendAnswer = try await client.send(
          "POST", "/v1/sends", json: SendRequest(groups: [[move]]), token: alice
        ).decode()
        #expect(moved.verdicts.map(\.outcome) == [.done])
      }
      var count = 0
      await #expect(throws: (any Error).self) {
        while let piece = try await pieces.next() { count += piece.readableBytes }
      }
      #expect(count < 256 << 20)
    }
  }
}
