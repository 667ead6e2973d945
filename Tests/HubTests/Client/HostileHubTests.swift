import Foundation
import MountKit
import NIOCore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHubClient

/// A hub that answers with anything at all: the client ends with an error that says so, and takes no more than it may.
@Suite struct HostileHubTests {
  private static let event = #"""
    {"specversion":"1.0","id":"\#(WireID())","source":"sheaf://\#(WireID())","type":"sheaf.change.edit",
     "subject":"\#(WireID())","time":"2026-11-26T00:00:00Z","sequence":"SEQUENCE","datacontenttype":"application/json",
     "data":{"item":{"id":"\#(WireID())","kind":"document","name":"a","path":"a"},
             "actor":{"handle":"alice@hub.example","name":"Alice"},"share":null}}
    """#

  private static func page(_ sequences: [Int64], next: Int64, last: Int64 = 100, token: String = "00ff") -> String {
    let events = sequences.map { event.replacing("SEQUENCE", with: "\($0)") }.joined(separator: ",")
    return #"{"events":[\#(events)],"next":\#(next),"last":\#(last),"token":"\#(token)"}"#
  }

  private func events(_ text: String, after place: HubLogPlace? = nil) async throws -> HubFailure? {
    try await ScriptedServer.failure({ $0.hasPrefix("/v1/events") ? .json(text) : nil }) {
      _ = try await $0.events(.own, after: place)
    }
  }

  @Test func aSoundPageIsTaken() async throws {
    #expect(try await events(Self.page([1, 5], next: 7)) == nil)
    #expect(try await events(Self.page([], next: 3), after: HubLogPlace(number: 3, token: "0")) == nil)
  }

  @Test func pagesThatMakeNoSenseAreRefused() async throws {
    let place = HubLogPlace(number: 5, token: "0")
    let pages: [(String, HubLogPlace?)] = [
      (Self.page([2, 1], next: 2), nil), (Self.page([1, 1], next: 1), nil), (Self.page([5], next: 6), place),
      (Self.page([4], next: 6), place), (Self.page([7], next: 6), nil), (Self.page([1], next: -1), nil),
      (Self.page([], next: 1, last: -1), nil), (Self.page([1], next: 1, token: ""), nil),
      (Self.page([1], next: 1, token: "0&after=0"), nil), (Self.page([1], next: 1, token: "a b"), nil),
      (Self.page([1], next: 1, token: String(repeating: "0", count: 300)), nil),
      (Self.page(Array(1...101), next: 101), nil),
      (Self.page([1], next: 1).replacing(#""id":""#, with: #""id":"\r\nX: "#), nil),
      (Self.page([1], next: 1).replacing("sheaf://", with: "https://"), nil),
      (Self.page([1], next: 1).replacing("\"next\":1", with: "\"next\":1e99"), nil),
      (Self.page([1], next: 1).replacing("\"1\"", with: "\"99999999999999999999\""), nil),
      ("", nil), ("null", nil), ("[]", nil), ("{}", nil), ("{", nil), ("\u{0}", nil),
      (String(repeating: "[", count: 100_000), nil),
      (#"{"events":"# + String(repeating: "[", count: 33) + String(repeating: "]", count: 33) + "}", nil),
    ]
    for (text, place) in pages {
      let found = try await events(text, after: place)
      #expect(found?.kind == .nonsense && found?.advice != nil, "\(text.prefix(300)) \(String(describing: found))")
    }
  }

  @Test func answersOfOtherKindsAreNamed() async throws {
    func kind(_ answer: ScriptedServer.Answer) async throws -> HubFailure.Kind? {
      try await ScriptedServer.failure({ $0 == "/v1/account" ? answer : nil }) { _ = try await $0.account() }?.kind
    }
    let head = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    #expect(try await kind(.bytes(head)) == .moved)
    #expect(try await kind(.problem(.forbidden)) == .refused(.forbidden))
    #expect(try await kind(.problem(.failure)) == .refused(.failure))
    #expect(try await kind(.json("{}", status: "404 Not Found")) == .nonsense)
    #expect(try await kind(.json(#"{"type":"urn:sheaf:problem:gone"}"#, status: "500 Oops")) == .nonsense)
    #expect(try await kind(.bytes("")) == .unreachable)
    #expect(try await kind(.bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")) == .unreachable)
    #expect(try await kind(.bytes("\u{1}\u{2}\u{3}\r\n\r\n")) == .unreachable)
  }

  /// What a redirect leads to is not asked.
  @Test func redirectsAreNotFollowed() async throws {
    let other = try ScriptedServer { _ in nil }
    defer { other.close() }
    let location = "http://127.0.0.1:\(other.port)/v1/account"
    let moved = try await ScriptedServer.failure({ path in
      path == "/v1/account"
        ? .bytes("HTTP/1.1 307 Moved\r\nLocation: \(location)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") : nil
    }) { _ = try await $0.account() }
    #expect(moved?.kind == .moved && moved?.advice != nil && other.asked.isEmpty)
  }

  @Test func whatHasNoEndIsCutOff() async throws {
    var limits = DeviceClientLimits.brief
    limits.answer = 100_000
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    let once = Atomic(false)
    let endless = try await ScriptedServer.failure(
      limits: limits,
      { path in
        guard path == "/v1/account" else { return nil }
        return .endless(once.exchange(true, ordering: .relaxed) ? "x" : head + String(repeating: " ", count: 1_000_000))
      }
    ) { _ = try await $0.account() }
    #expect(endless?.kind == .nonsense)
    limits.request = .milliseconds(300)
    for answer in [ScriptedServer.Answer.stuck(""), .stuck(head), .stuck(head + "{")] {
      let stuck = try await ScriptedServer.failure(limits: limits, { $0 == "/v1/account" ? answer : nil }) {
        _ = try await $0.account()
      }
      #expect(stuck?.kind == .unreachable && stuck?.reason.contains("within") == true)
    }
  }

  /// What would keep a decoder busy for long is not decoded, though nobody asks for it.
  @Test func longNumbersAndManyValuesAreNotDecoded() async throws {
    var limits = DeviceClientLimits.brief
    limits.values = 1_000
    func list(_ value: String, _ count: Int) -> String {
      "[\(Array(repeating: value, count: count).joined(separator: ","))]"
    }
    for (value, reason) in [
      (String(repeating: "9", count: 64), nil), (String(repeating: "9", count: 65), "64 bytes"),
      (list("{}", 400), nil), (list("{}", 600), "1000 values"), (list("7", 900), nil),
      (list("7", 1_001), "1000 values"),
      ("\"\(String(repeating: "9,[{", count: 10_000))\"", nil),
    ] as [(String, String?)] {
      let text = Self.page([1], next: 1).replacing("\"next\"", with: "\"more\":\(value),\"next\"")
      let found = try await ScriptedServer.failure(
        limits: limits, { $0.hasPrefix("/v1/events") ? .json(text) : nil },
        { _ = try await $0.events(.own, after: nil) })
      #expect(found?.kind == (reason == nil ? nil : .nonsense), "\(String(describing: found))")
      #expect(found?.reason.contains(reason ?? "") ?? true, "\(String(describing: found))")
    }
  }

  /// A page may be long, and is decoded elsewhere then; what has a few facts may not.
  @Test func onlyListsAreLong() async throws {
    let room = String(repeating: " ", count: 2 * 1024 * 1024)
    #expect(try await events(Self.page([1, 5], next: 7) + room) == nil)
    #expect(try await events(Self.page([2, 1], next: 2) + room)?.kind == .nonsense)
    let facts = try await ScriptedServer.failure({ $0 == "/v1/account" ? .json("{}" + room) : nil }) {
      _ = try await $0.account()
    }
    #expect(facts?.kind == .nonsense && facts?.reason.contains("bytes") == true, "\(String(describing: facts))")
  }

  /// What a hub asks to do later is done later, a few times, and what it asks for is bounded.
  @Test func laterIsLater() async throws {
    func asked(_ header: String) async throws -> (HubFailure?, Int) {
      let count = Atomic(0)
      let found = try await ScriptedServer.failure({ path in
        guard path == "/v1/account" else { return nil }
        count.add(1, ordering: .relaxed)
        return .problem(.unavailable, header)
      }) { _ = try await $0.account() }
      return (found, count.load(ordering: .relaxed))
    }
    let (few, fewTimes) = try await asked("Retry-After: 0\r\n")
    #expect(few?.kind == .busy && fewTimes == 3)
    for header in ["", "Retry-After: 50000\r\n", "Retry-After: -1\r\n", "Retry-After: 99999999999999999999\r\n"] {
      let (later, times) = try await asked(header)
      #expect(later?.kind == .busy && times == 1, "\(header)")
    }
  }

  @Test func sessionsThatMakeNoSenseAreRefused() async throws {
    for (challenge, session) in [
      (#"{"nonce":"a\u0000b","expires":"2026-11-26T00:02:00Z"}"#, nil), (#"{"nonce":"a","expires":"soon"}"#, nil),
      (nil, #"{"token":"a\r\nX: y","expires":"2026-11-26T01:00:00Z"}"#), (nil, #"{"token":"a","expires":""}"#),
      (nil, #"{"token":"a","expires":"2026-11-26T00:02:00Z"}"#),
      (nil, #"{"token":"a","expires":"9999-11-26T00:02:00Z"}"#),
    ] as [(String?, String?)] {
      let found = try await ScriptedServer.failure({ path in
        switch path {
        case "/v1/challenges": challenge.map { .json($0, status: "201 Created") }
        case "/v1/sessions": session.map { .json($0, status: "201 Created") }
        default: nil
        }
      }) { _ = try await $0.account() }
      #expect(found?.kind == .nonsense, "\(challenge ?? "") \(session ?? "")")
    }
  }

  /// A stream that babbles, breaks off or falls silent is opened again, after pauses that grow.
  @Test func aStreamThatFailsIsOpenedAgain() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    let good = "data: {\"logs\":[{\"share\":null,\"last\":7,\"token\":\"0\"}]}\n\n"
    let answers: [ScriptedServer.Answer] = [
      .bytes(head), .bytes(head + good.replacing("7", with: "-7")), .bytes(head + "data: nonsense\n\n"),
      .bytes(head + "data: " + String(repeating: "x", count: 2 * 1024 * 1024)), .stuck(head + ": \n\n"),
      .problem(.tooMany), .bytes(head + ": \n\n" + good), .stuck(head + "data: {\"logs\":\ndata: []}\n\n"),
    ]
    let turn = Atomic(0)
    let server = try ScriptedServer { path in
      guard path == "/v1/events/stream" else { return nil }
      return answers[min(turn.add(1, ordering: .relaxed).oldValue, answers.count - 1)]
    }
    defer { server.close() }
    var limits = DeviceClientLimits.brief
    limits.silence = .seconds(2)
    let client = DeviceClient(try server.device, limits: limits)
    var (kinds, heard): ([HubFailure.Kind], [[LogNews.Log]]) = ([], [])
    for await element in client.news() {
      switch element {
      case .failure(let failure): kinds.append(failure.kind)
      case .logs(let logs, let isBeginning):
        #expect(isBeginning)
        heard.append(logs)
      }
      if heard.count == 2 { break }
    }
    #expect(
      kinds == [.unreachable, .nonsense, .nonsense, .nonsense, .unreachable, .busy, .unreachable], "\(kinds)")
    #expect(heard == [[LogNews.Log(share: nil, last: 7, token: "0")], []])
    await client.shutdown()
  }

  @Test func pausesGrow() async throws {
    let server = try ScriptedServer { $0 == "/v1/events/stream" ? .bytes("") : nil }
    defer { server.close() }
    var limits = DeviceClientLimits.brief
    limits.pauses = (first: 0.01, longest: 0.08)
    let client = DeviceClient(try server.device, limits: limits)
    var (count, begun) = (0, ContinuousClock.now)
    for await _ in client.news() {
      count += 1
      if count == 1 { begun = .now }
      if count == 6 { break }
    }
    // Half of 0.01 + 0.02 + 0.04 + 0.08 + 0.08 at least.
    #expect(ContinuousClock.now - begun >= .milliseconds(115))
    await client.shutdown()
  }
}

/// Streams in pieces of any size.
@Suite struct ServerSentTextTests {
  private func messages(_ text: String, by size: Int, longest: Int = 1_000) throws -> [String] {
    var parser = ServerSentText(longest: longest)
    var found: [String] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      parser.append(ByteBuffer(bytes: rest.prefix(size)))
      rest = rest.dropFirst(size)
      while let message = try parser.next() {
        switch message {
        case .data(let data): found.append(String(buffer: data))
        case .comment: found.append(":")
        }
      }
    }
    return found
  }

  @Test(arguments: [1, 2, 3, 7, 1_000])
  func messagesAreTakenApart(_ size: Int) throws {
    let text =
      "retry: 1000\n\ndata: a\n\n: hello\n\n\n\nevent: x\ndata:b\r\ndata:  c\r\n\r\nid: 1\n\ndata\ndatax: no\n\ndata: unfinished"
    #expect(try messages(text, by: size) == ["a", ":", "b\n c"])
  }

  @Test(arguments: [1, 10, 1_000])
  func whatHasNoEndIsRefused(_ size: Int) throws {
    for text in [
      String(repeating: "x", count: 101), "data: " + String(repeating: "x", count: 101),
      String(repeating: "data: 12345678\n", count: 20), ": " + String(repeating: "x", count: 101) + "\n",
    ] {
      #expect(throws: ServerSentText.TooLong.self) { try messages(text, by: size, longest: 100) }
    }
    #expect(try messages("data: \(String(repeating: "x", count: 90))\n\n", by: size, longest: 100).count == 1)
  }
}
