import Foundation
import HubKit
import Logging
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire
import Testing

/// What the server does with requests of any kind.
@Suite struct ServerTests {
  @Test(arguments: StoreEngine.available)
  func aDeviceEnrollsAndHasItsAccount(_ engine: StoreEngine) async throws {
    try await RunningHub.with(engine) { running in
      let client = running.client
      #expect(try await client.send("GET", "/v1").decode(HubFacts.self).name == "sheaf-hub")
      #expect(try await client.send("GET", "/v1/health").status == 204)
      let (device, token) = try await running.member()
      let account: AccountFacts = try await client.send("GET", "/v1/account", token: token).decode()
      #expect(account.handle == "alice@hub.example" && account.zone == device.zone)
      // A second machine, by a link of the first.
      let made: LinkFacts = try await client.send("POST", "/v1/links", token: token).decode()
      let link = try #require(EnrollmentLink(made.link))
      #expect(link.address == client.address && link.scheme == "http" && link.fingerprint == nil)
      let second = try await client.enroll(TestDevice(), code: link.code)
      let devices: DeviceList = try await client.send("GET", "/v1/devices", token: token).decode()
      #expect(Set(devices.devices.map(\.id)) == [device.device, second.device])
      #expect(try await client.send("DELETE", "/v1/devices/\(second.device)", token: token).status == 204)
      #expect(try await client.send("DELETE", "/v1/devices/\(second.device)", token: token).problem == .notFound)
      #expect(try await client.send("DELETE", "/v1/sessions/current", token: token).status == 204)
      #expect(try await client.send("GET", "/v1/account", token: token).problem == .unauthorized)
    }
  }

  /// A body that is not framed as HTTP has it, or that breaks off, is the client's mistake.
  @Test func malformedBodiesAreTheClientsMistake() async throws {
    try await RunningHub.with { running in
      let (_, token) = try await running.member()
      let hash = String(repeating: "0", count: 64)
      let chunked = "Transfer-Encoding: chunked\r\n\r\n"
      for path in ["POST /v1/sends", "POST /v1/sessions", "PUT /v1/chunks/\(hash)", "POST /v1/chunks/missing"] {
        for body in [
          chunked + "ZZ\r\n{}\r\n0\r\n\r\n", chunked + "2\r\n{}XX\r\n0\r\n\r\n",
          chunked + "FFFFFFFFFFFFFFFFFF\r\n{}", chunked + "-1\r\n{}\r\n0\r\n\r\n", chunked + "\r\n{}",
          chunked + "1\r\n{\r\nG\r\n", "Content-Length: x\r\n\r\n{}", "Content-Length: -1\r\n\r\n{}",
          "Content-Length: 2, 3\r\n\r\n{}", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
          "Content-Length: 2\r\n" + chunked + "2\r\n{}\r\n0\r\n\r\n",
        ] {
          let connection = try RawConnection(port: running.port)
          connection.send(
            "\(path) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\nContent-Type: application/json\r\n"
              + "Connection: close\r\n\(body)")
          #expect(try connection.readToEnd().prefix(12) == "HTTP/1.1 400", "\(path) \(body)")
        }
      }
    }
  }

  @Test func failuresAreProblemDetails() async throws {
    try await RunningHub.with { running in
      let client = running.client
      let (_, token) = try await running.member()
      func expect(_ kind: Problem.Kind, _ answer: HubClient.Answer, _ place: SourceLocation = #_sourceLocation) {
        #expect(answer.problem == kind && answer.status == kind.status, sourceLocation: place)
        #expect(answer.headers["cache-control"] == "no-store", sourceLocation: place)
        #expect(answer.headers["x-content-type-options"] == "nosniff", sourceLocation: place)
      }
      expect(.notFound, try await client.send("GET", "/v1/nothing"))
      expect(.notFound, try await client.send("GET", "/v1/devices/x/y"))
      let method = try await client.send("PATCH", "/v1/account", token: token)
      expect(.method, method)
      #expect(method.headers["allow"] == "GET")
      expect(.method, try await client.send("OPTIONS", "/v1/devices/x"))
      let stranger = try await client.send("GET", "/v1/account")
      expect(.unauthorized, stranger)
      #expect(stranger.headers["www-authenticate"] == "Bearer")
      for wrong in ["x", "", token + "A", String(repeating: "A", count: 64)] {
        expect(.unauthorized, try await client.send("GET", "/v1/account", token: wrong))
      }
      expect(.mediaType, try await client.send("POST", "/v1/sessions", body: Data("{}".utf8), type: "text/plain"))
      for encoding in ["gzip", "zstd", "x"] {
        let packed = try await client.send(
          "POST", "/v1/sessions", body: Data("{}".utf8), headers: [("Content-Encoding", encoding)])
        expect(.mediaType, packed)
      }
      for text in ["", "{", "[]", "{}", "null", "\u{0}", "{\"zone\":1}", String(repeating: "[", count: 5_000)] {
        expect(.invalid, try await client.send("POST", "/v1/sessions", body: Data(text.utf8)))
      }
      expect(.invalid, try await client.send("POST", "/v1/sessions", body: Data([0xFF, 0xFE, 0x7B])))
      expect(.tooLarge, try await client.send("POST", "/v1/sessions", body: Data(count: 17 * 1024)))
      // Without a length, too.
      let chunked = try RawConnection(port: running.port)
      let head = "POST /v1/sessions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      chunked.send(
        head + "Transfer-Encoding: chunked\r\n\r\n5000\r\n" + String(repeating: "x", count: 0x5000) + "\r\n0\r\n\r\n")
      #expect(try chunked.readToEnd().hasPrefix("HTTP/1.1 413"))
      // Of a body that never ends nothing is awaited.
      let endless = try RawConnection(port: running.port)
      endless.send(head + "Content-Length: 9000000000000\r\n\r\n")
      #expect(try endless.readToEnd().hasPrefix("HTTP/1.1 413"))
    }
  }

  /// A machine that listens for long is no machine that was not seen for long.
  @Test func aDeviceThatListensIsSeen() async throws {
    try await RunningHub.with { running in
      let client = running.client
      let (device, token) = try await running.member()
      func seen() async throws -> String? {
        let list: DeviceList = try await client.send("GET", "/v1/devices", token: token).decode()
        return list.devices.first { $0.id == device.device }?.seen
      }
      let before = try await seen()
      running.hub.clock.advance(seconds: 120)
      #expect(try await seen() == before)
      let stream = try await client.start("GET", "/v1/stream", token: token)
      var parts = stream.body.makeAsyncIterator()
      #expect(try await parts.next() != nil)
      let end = ContinuousClock.now + .seconds(60)
      while try await seen() == before, ContinuousClock.now < end {}
      #expect(try await seen() != before)
    }
  }

  @Test func headersHaveALimit() async throws {
    try await RunningHub.with { running in
      let connection = try RawConnection(port: running.port)
      connection.send("GET /v1 HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "x", count: 64 * 1024) + "\r\n\r\n")
      #expect(try connection.readToEnd().hasPrefix("HTTP/1.1 400"))
      #expect(try await running.client.send("GET", "/v1").status == 200)
    }
  }

  @Test func nonsenseEndsItsConnectionAlone() async throws {
    try await RunningHub.with { running in
      for text in [
        "\u{0}\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
      ] {
        let connection = try RawConnection(port: running.port)
        connection.send(text)
        _ = try connection.readToEnd()
      }
      #expect(try await running.client.send("GET", "/v1").status == 200)
    }
  }

  /// Connections that say nothing, and requests that stop half-way, hold nobody up.
  @Test func halfSentRequestsHoldNobodyUp() async throws {
    var limits = ServerLimits()
    limits.idleTime = .seconds(600)
    try await RunningHub.with(limits: limits) { running in
      let (_, token) = try await running.member()
      var connections: [RawConnection] = []
      for number in 0..<120 {
        let connection = try RawConnection(port: running.port)
        switch number % 3 {
        case 0: break
        case 1: connection.send("GET /v1 HT")
        default:
          connection.send(
            "POST /v1/sessions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        }
        connections.append(connection)
      }
      for _ in 0..<20 { #expect(try await running.client.send("GET", "/v1/account", token: token).status == 200) }
      withExtendedLifetime(connections) {}
    }
  }

  /// They end by themselves, too.
  @Test func idleConnectionsAreClosed() async throws {
    var limits = ServerLimits()
    limits.idleTime = .milliseconds(300)
    try await RunningHub.with(limits: limits) { running in
      let texts = [
        "", "GET /v1 HT", "GET /v1 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /v1/sessions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
      ]
      let connections = try texts.map { text in
        let connection = try RawConnection(port: running.port)
        connection.send(text)
        return connection
      }
      let answers = try connections.map { try $0.readToEnd() }
      #expect(answers[2].hasPrefix("HTTP/1.1 200"))
    }
  }

  /// For one connection too many the one goes that has waited longest for its client, whatever it has sent of a request.
  @Test func whoSaysNothingKeepsNobodyOut() async throws {
    var limits = ServerLimits()
    limits.connections = 8
    limits.idleTime = .seconds(600)
    try await RunningHub.with(limits: limits) { running in
      let half =
        "POST /v1/sessions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
      let silent = try [half, "", "GET /v1 HT", half, "", "GET /v1 HT", half, ""].map { text in
        let connection = try RawConnection(port: running.port)
        connection.send(text)
        return connection
      }
      var served: [RawConnection] = []
      for number in 1...6 {
        let late = try RawConnection(port: running.port)
        late.send("GET /v1 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try late.read(upTo: "sheaf-hub"))
        served.append(late)
        // Each takes the place of one that was there before all of them.
        try eventually("one goes", within: .seconds(60)) { silent.count(where: \.isClosed) == number }
        #expect(served.allSatisfy { !$0.isClosed })
      }
    }
  }

  /// What is being answered stays, however many connections come.
  @Test func whoIsAnsweredStays() async throws {
    var limits = ServerLimits()
    limits.connections = 4
    limits.idleTime = .seconds(600)
    try await RunningHub.with(limits: limits) { running in
      let (_, token) = try await running.member()
      let streams = try (0..<4).map { _ in
        let stream = try RawConnection(port: running.port)
        stream.send("GET /v1/stream HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\n\r\n")
        #expect(try stream.read(upTo: "\"number\":0,"))
        return stream
      }
      let idle = try (0..<20).map { _ in try RawConnection(port: running.port) }
      try eventually("one idle connection is left", within: .seconds(60)) { idle.count(where: \.isClosed) == 19 }
      // The first client's connection went for the streams, and it may not have heard of that yet.
      let late = try HubClient(base: running.client.base)
      let sent = SendRequest(groups: [[.document("a", "a", serial: 1)]])
      #expect(try await late.send("POST", "/v1/sends", json: sent, token: token).status == 200)
      for stream in streams { #expect(try stream.read(upTo: "\"number\":1,")) }
      await late.close()
      withExtendedLifetime(idle) {}
    }
  }

  /// Large bodies that arrive at once have so much room and no more, and no account has all of it.
  @Test func largeBodiesHaveALimit() async throws {
    var limits = ServerLimits()
    limits.bodies = 4 * 1024 * 1024
    try await RunningHub.with(limits: limits) { running in
      let (_, token) = try await running.member()
      let (_, other) = try await running.member("bob@hub.example")
      let hash = String(repeating: "0", count: 64)
      func begin(_ length: Int, _ token: String) throws -> RawConnection {
        let connection = try RawConnection(port: running.port)
        connection.send(
          "PUT /v1/chunks/\(hash) HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(token)\r\nContent-Length: \(length)\r\n"
            + "Expect: 100-continue\r\n\r\n")
        return connection
      }
      func upload(_ length: Int, _ token: String) async throws -> HubClient.Answer {
        try await running.client.send("PUT", "/v1/chunks/\(hash)", body: Data(count: length), token: token)
      }
      // Its bytes do not come, and its room is taken.
      let slow = try begin(900_000, token)
      #expect(try slow.read(upTo: "100 Continue"))
      var answer = try await upload(200_000, token)
      #expect(answer.problem == .unavailable && answer.headers["retry-after"] != nil)
      #expect(try await upload(200_000, other).problem == .invalid)
      // One that is compressed counts as what may come out of it, and one alone always has room.
      let bomb = try await running.client.send(
        "PUT", "/v1/chunks/\(hash)", body: Data(count: 10), token: other, headers: [("Content-Encoding", "zstd")])
      #expect(bomb.status == 503)
      slow.close()
      // The server hears of the end when it comes to it.
      let end = ContinuousClock.now + .seconds(30)
      while answer.status == 503, ContinuousClock.now < end { answer = try await upload(200_000, token) }
      #expect(answer.problem == .invalid)
      #expect(try await upload(4_000_000, other).problem == .invalid)
    }
  }

  @Test func plainHTTPIsForThisMachineAlone() async throws {
    try await StoreEngine.sqlite.withDatabase { database in
      let hub = try await TestHub(database)
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      for text in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "hub.example"] {
        #expect(throws: SheafError.self) {
          try HubServer(hub: hub.hub, listen: try ListenAddress(text), certificate: nil, logger: logger)
        }
      }
    }
  }

  /// An enrolment link that is opened by a browser or for a preview uses nothing up.
  @Test func openingALinkUsesNothingUp() async throws {
    try await RunningHub.with { running in
      let zone = try await running.hub.account()
      let code = try await running.hub.accounts.makeCode(for: zone).code
      let page = try await running.client.send("GET", "/enrol/\(code)")
      #expect(page.status == 200 && page.headers["content-type"] == "text/html; charset=utf-8")
      #expect(page.headers["content-security-policy"]?.contains("default-src 'none'") == true)
      #expect(page.headers["cache-control"] == "no-store" && page.headers["referrer-policy"] == "no-referrer")
      // The page of a code that is none is the same.
      #expect(try await running.client.send("GET", "/enrol/none").body == page.body)
      #expect(try await running.client.enroll(TestDevice(), code: code).zone == zone)
    }
  }
}
