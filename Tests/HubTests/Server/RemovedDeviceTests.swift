import AsyncHTTPClient
import Crypto
import Foundation
import HubKit
import NIOCore
import SheafHub
import SheafModel
import SheafWire
import Testing

/// A machine that is removed is out, whatever it was doing.
@Suite struct RemovedDeviceTests {
  /// Who removes it: a request to the process that serves it, or another process on the same store.
  enum Remover: CaseIterable, Sendable {
    case request
    case otherProcess
  }

  @Test(arguments: StoreEngine.available, Remover.allCases)
  func itsStreamsAndWaitingRequestsEnd(_ engine: StoreEngine, _ remover: Remover) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let zone = try await running.hub.account()
      let (_, token) = try await running.member(of: zone)
      let (removed, removedToken) = try await running.member(of: zone)
      let (kept, keptToken) = try await running.member(of: zone)
      let stream = try await client.start("GET", "/v1/stream", token: removedToken)
      let keptStream = try await client.start("GET", "/v1/stream", token: keptToken)
      #expect(stream.status == .ok && keptStream.status == .ok)
      var parts = stream.body.makeAsyncIterator()
      var keptParts = keptStream.body.makeAsyncIterator()
      #expect(try await parts.next() != nil)
      #expect(try await keptParts.next() != nil)
      async let waiting = client.send("GET", "/v1/feed?wait=60", token: removedToken)
      switch remover {
      case .request:
        #expect(try await client.send("DELETE", "/v1/devices/\(removed.device)", token: token).status == 204)
      case .otherProcess: try await running.hub.accounts.removeDevice(removed.device, of: zone)
      }
      // Its end is awaited, however long it takes.
      while try await parts.next() != nil {}
      #expect(try await waiting.problem == .unauthorized)
      #expect(try await client.send("GET", "/v1/account", token: removedToken).problem == .unauthorized)
      // The others hear on.
      let sent = try await client.send(
        "POST", "/v1/sends", json: SendRequest(groups: [[.document("a", "1", serial: 1)]]), token: token)
      #expect(sent.status == 200)
      var heard = ""
      while let part = try await keptParts.next() {
        heard += String(buffer: part)
        if heard.contains("data: {\"number\":1,\"inbox\":0}\n") { break }
      }
      #expect(heard.contains("data: {\"number\":1,\"inbox\":0}\n"))
      #expect(try await client.send("DELETE", "/v1/devices/\(kept.device)", token: token).status == 204)
      while try await keptParts.next() != nil {}
    }
  }

  /// However slowly a request comes, it is not carried out for a device that was removed meanwhile, or whose session
  /// ended.
  @Test(arguments: StoreEngine.available, [Remover.request, .otherProcess, nil])
  func whatItHalfSentIsNotCarriedOut(_ engine: StoreEngine, _ remover: Remover?) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      let zone = try await running.hub.account()
      let (_, token) = try await running.member(of: zone)
      let (removed, removedToken) = try await running.member(of: zone)
      let chunk = String(repeating: "c", count: 100)
      let hash = try #require(ChunkHash(bytes: Array(SHA256.hash(data: Data(chunk.utf8)))))
      let sends = String(
        decoding: try JSONEncoder().encode(SendRequest(groups: [[.document("a", "1", serial: 1)]])), as: UTF8.self)
      let requests = [
        ("POST", "/v1/sends", sends), ("POST", "/v1/chunks/missing", #"{"hashes":[]}"#),
        ("PUT", "/v1/chunks/\(hash)", chunk),
      ]
      var connections: [(RawConnection, String)] = []
      for (method, path, body) in requests {
        let connection = try RawConnection(port: running.port)
        connection.send(
          "\(method) \(path) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(removedToken)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Expect: 100-continue\r\n\r\n")
        #expect(try connection.read(upTo: "100 Continue"))
        connection.send(String(body.prefix(10)))
        connections.append((connection, String(body.dropFirst(10))))
      }
      switch remover {
      case .request:
        #expect(try await client.send("DELETE", "/v1/devices/\(removed.device)", token: token).status == 204)
      case .otherProcess:
        try await running.hub.accounts.removeDevice(removed.device, of: zone)
        // This process hears of it within a second.
        let end = ContinuousClock.now + .seconds(60)
        while try await client.send("GET", "/v1/account", token: removedToken).status != 401, ContinuousClock.now < end
        {}
      case nil:
        #expect(try await client.send("DELETE", "/v1/sessions/current", token: removedToken).status == 204)
      }
      for (connection, rest) in connections {
        connection.send(rest)
        #expect(try connection.read(upTo: "HTTP/1.1 401"))
      }
      let feed: FeedPage = try await client.send("GET", "/v1/feed", token: token).decode()
      #expect(feed.items.isEmpty)
    }
  }

  /// What it is being given ends.
  @Test(arguments: [false, true]) func itsDownloadsEnd(_ isOfSeveral: Bool) async throws {
    try await RunningHub.with { running in
      let client = running.client
      let zone = try await running.hub.account()
      let (_, token) = try await running.member(of: zone)
      let (removed, removedToken) = try await running.member(of: zone)
      var large = Send.document("large", "", serial: 1)
      // Much more than all buffers on the way hold.
      large.version = SentVersion(
        id: WireID(), base: nil, cause: .save, time: 1, extents: [Extent(hash: nil, length: 256 << 20)])
      _ = try await client.send("POST", "/v1/sends", json: SendRequest(groups: [[large]]), token: token)
      let version = try #require(large.version?.id)
      let asked = ContentsRequest(contents: [.init(item: large.item, version: version)])
      let answer =
        if isOfSeveral {
          try await client.start("POST", "/v1/contents", body: JSONEncoder().encode(asked), token: removedToken)
        } else {
          try await client.start("GET", "/v1/items/\(large.item)/versions/\(version)/content", token: removedToken)
        }
      #expect(answer.status == .ok)
      var pieces = answer.body.makeAsyncIterator()
      #expect(try await pieces.next() != nil)
      #expect(try await client.send("DELETE", "/v1/devices/\(removed.device)", token: token).status == 204)
      await #expect(throws: (any Error).self) { while try await pieces.next() != nil {} }
    }
  }

  /// A device has so many streams at once, and a stream that ended gives its place back.
  @Test func aDeviceHasSoManyStreams() async throws {
    var limits = ServerLimits()
    limits.streamsOfDevice = 2
    try await RunningHub.with(limits: limits) { running in
      let client = running.client
      let (_, token) = try await running.member()
      let first = try await client.start("GET", "/v1/stream", token: token)
      var parts = first.body.makeAsyncIterator()
      #expect(try await parts.next() != nil)
      let second = try await client.start("GET", "/v1/stream", token: token)
      #expect(second.status == .ok)
      #expect(try await client.send("GET", "/v1/stream", token: token).problem == .tooMany)
      #expect(try await client.send("GET", "/v1/feed?wait=1", token: token).problem == .tooMany)
      // Others have their own.
      let (_, other) = try await running.member("bob@hub.example")
      #expect(try await client.start("GET", "/v1/stream", token: other).status == .ok)
    }
  }

  /// A server that ends ends its streams, so that machines go elsewhere at once.
  @Test func aServerThatEndsEndsItsStreams() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let hub = try await TestHub(database, address: "127.0.0.1:0")
      let server = try RunningHub.server(of: hub)
      try await server.start()
      let client = try HubClient(base: "http://\(hub.hub.addresses.first?.description ?? "")")
      let machine = TestDevice()
      let code = try await hub.accounts.makeCode(for: try await hub.account()).code
      let token = try await client.begin(machine, try await client.enroll(machine, code: code))
      let stream = try await client.start("GET", "/v1/stream", token: token)
      var parts = stream.body.makeAsyncIterator()
      #expect(try await parts.next() != nil)
      async let waiting = client.send("GET", "/v1/feed?wait=60", token: token)
      async let stopped: Void = server.stop()
      while try await parts.next() != nil {}
      // It was refused, or had nothing new; it did not hang.
      _ = try? await waiting
      await stopped
      await client.close()
    }
  }
}
