import Foundation
import MountKit
import NIOCore
import SheafModel
import SheafWire
import Synchronization
import Testing

@testable import SheafHubClient

/// A hub that answers a replica with anything at all: whatever does not fit to what was asked is refused, in a bounded
/// time and memory.
@Suite struct HostileZoneTests {
  // MARK: - Verdicts

  private static let hash = String(repeating: "0a", count: 32)
  private static let other = String(repeating: "0b", count: 32)
  private static let item = WireID()

  private static func verdict(_ serial: Int64, _ more: String = "") -> String {
    #"{"serial":\#(serial),"outcome":"done","item":"\#(item)","number":1\#(more)}"#
  }

  private static func later(_ serial: Int64, _ missing: String...) -> String {
    #"{"serial":\#(serial),"missing":[\#(missing.map { "\"\($0)\"" }.joined(separator: ","))]}"#
  }

  /// What sends 1, 2, and 3 with 4 in a group, fail with if they are answered so. The last one names a chunk.
  private func sends(_ verdicts: [String], _ later: [String] = [], number: String = "9") async throws -> HubFailure? {
    let lists = [verdicts, later].map { $0.joined(separator: ",") }
    let text = #"{"verdicts":[\#(lists[0])],"later":[\#(lists[1])],"number":\#(number)}"#
    var last = Send.document("4", "", serial: 4)
    last.version?.contents = nil
    last.version?.extents = [Extent(hash: ChunkHash(Self.hash), length: 7), Extent(hash: nil, length: 9)]
    let others = (1...3).map { Send.document("\($0)", "", serial: $0) }
    let groups = [[others[0]], [others[1]], [others[2], last]]
    return try await ScriptedServer.failure({ $0 == "/v1/sends" ? .json(text) : nil }) {
      _ = try await $0.send(groups, confirmed: 0)
    }
  }

  @Test func verdictsThatFitAreTaken() async throws {
    #expect(try await sends([1, 2, 3, 4].map { Self.verdict($0) }) == nil)
    #expect(try await sends([4, 2, 1, 3].map { Self.verdict($0) }) == nil)
    let later = [Self.later(2), Self.later(3, Self.hash), Self.later(4, Self.hash)]
    #expect(try await sends([Self.verdict(1)], later) == nil)
    #expect(try await sends([], [1, 2, 3, 4].map { Self.later($0) }) == nil)
    let place = #","places":[{"parent":"\#(WireID.root)","name":"a (2)"}]"#
    #expect(try await sends([1, 2, 3, 4].map { Self.verdict($0, place) }) == nil)
  }

  @Test func verdictsThatFitNothingAreRefused() async throws {
    let all = [1, 2, 3, 4] as [Int64]
    func replaced(_ text: String) -> [String] { [text] + all.dropFirst().map { Self.verdict($0) } }
    func changed(_ word: String, _ other: String) -> [String] { replaced(Self.verdict(1).replacing(word, with: other)) }
    func placed(_ place: String) -> [String] { replaced(Self.verdict(1, #","places":[\#(place)]"#)) }
    let parent = #""parent":"\#(WireID.root)""#
    let answers: [(verdicts: [String], later: [String])] = [
      // One is missing, doubled, of another send, or both.
      ([], []), (all.dropLast().map { Self.verdict($0) }, []), ((all + [4]).map { Self.verdict($0) }, []),
      ((all + [5]).map { Self.verdict($0) }, []), (replaced(Self.verdict(5)), []), (replaced(Self.verdict(2)), []),
      (all.map { Self.verdict($0) }, [Self.later(1)]), ([1, 2, 3].map { Self.verdict($0) }, [Self.later(3)]),
      ([1, 2].map { Self.verdict($0) }, [Self.later(3), Self.later(3)]),
      ([1, 2, 3].map { Self.verdict($0) }, [Self.later(-4)]),
      // Half of a group.
      ([1, 2, 3].map { Self.verdict($0) }, [Self.later(4)]), ([1, 2, 4].map { Self.verdict($0) }, [Self.later(3)]),
      // Chunks that the group does not name.
      ([2, 3, 4].map { Self.verdict($0) }, [Self.later(1, Self.hash)]),
      ([1, 2].map { Self.verdict($0) }, [Self.later(3, Self.other), Self.later(4)]),
      ([1, 2].map { Self.verdict($0) }, [Self.later(3, Self.hash, Self.hash), Self.later(4)]),
      ([1, 2].map { Self.verdict($0) }, [Self.later(3, "0a"), Self.later(4)]),
      // What is no id, number, outcome, reason or place.
      (changed("\"\(Self.item)\"", "\"x\""), []), (changed("\"\(Self.item)\"", "\"\(WireID.root)\""), []),
      (changed("\"number\":1", "\"number\":-1"), []), (changed("\"number\":1", "\"number\":1e30"), []),
      (changed("\"done\"", "\"great\""), []), (changed("\"done\"", "\"refused\""), []),
      (replaced(Self.verdict(1, #","reason":"loop""#)), []), (replaced(Self.verdict(1, #","versionNumber":-1"#)), []),
      (replaced(Self.verdict(1, #","version":"\#(WireID.root)""#)), []),
      (changed("\"number\":1", "\"number\":9223372036854775807"), []),
      (replaced(Self.verdict(1, #","versionNumber":9223372036854775807"#)), []),
      (placed(""), []), (placed(#"{\#(parent),"name":".."}"#), []), (placed(#"{\#(parent),"name":""}"#), []),
      (placed(#"{\#(parent),"name":"a/b"}"#), []), (placed(#"{\#(parent),"name":".versions"}"#), []),
      (placed(#"{\#(parent),"nameBase64":"YQA="}"#), []), (placed(#"{"parent":"x","name":"a"}"#), []),
    ]
    for (verdicts, later) in answers {
      let found = try await sends(verdicts, later)
      #expect(found?.kind == .nonsense && found?.advice != nil, "\(verdicts) \(later)")
    }
    #expect(try await sends(all.map { Self.verdict($0) }, number: "-1")?.kind == .nonsense)
  }

  // MARK: - Chunks, versions, devices

  private func kind(
    _ path: String, _ text: String, _ body: (DeviceClient) async throws -> Void
  ) async throws -> HubFailure.Kind? {
    try await ScriptedServer.failure({ $0.hasPrefix(path) ? .json(text) : nil }, body)?.kind
  }

  @Test func chunksThatNobodyAskedForAreNotMissing() async throws {
    let hash = try #require(ChunkHash(Self.hash))
    for (list, expected) in [
      ("", nil), ("\"\(Self.hash)\"", nil), ("\"\(Self.other)\"", .nonsense), ("\"x\"", .nonsense),
      ("\"\(Self.hash)\",\"\(Self.hash)\"", .nonsense),
    ] as [(String, HubFailure.Kind?)] {
      let found = try await kind("/v1/chunks/missing", #"{"hashes":[\#(list)]}"#) { _ = try await $0.missing([hash]) }
      #expect(found == expected, "\(list)")
    }
  }

  @Test func spansThatCannotBeAreRefused() async throws {
    let one = #"{"item":"\#(Self.item)","keepDeleted":86400}"#
    let many = (0...WireLimits.retainingFolders).map { _ in #"{"item":"\#(WireID())"}"# }.joined(separator: ",")
    for (list, expected) in [
      (#""folders":[]"#, nil), (#""folders":[\#(one)],"keepVersions":86400"#, nil),
      (#""keepVersions":86400"#, .nonsense), (#""folders":[],"keepVersions":86399"#, .nonsense),
      (#""folders":[],"keepDeleted":1000000000001"#, .nonsense), (#""folders":[\#(one),\#(one)]"#, .nonsense),
      (#""folders":[{"item":"\#(Self.item)","keepVersions":-1}]"#, .nonsense),
      (#""folders":[{"item":"x","keepVersions":86400}]"#, .nonsense),
      (#""folders":[\#(many)]"#, .nonsense),
    ] as [(String, HubFailure.Kind?)] {
      let found = try await kind("/v1/retentions", "{\(list)}") { _ = try await $0.retentions() }
      #expect(found == expected, "\(list.prefix(200))")
    }
  }

  private static func version(
    _ number: String, size: String = "1", id: WireID = WireID(), author: String = "bob@hub.example"
  ) -> String {
    #"{"id":"\#(id)","number":\#(number),"cause":"save","time":1,"arrived":1,"size":\#(size),"author":"\#(author)"}"#
  }

  /// Whoever noted such an item could never show it, whatever the hub says later.
  @Test func itemsThatMakeNoSenseAreRefused() async throws {
    let share = WireID()
    for (more, expected) in [
      ("", nil), (#","madeBy":null,"placedBy":"bob@hub.example""#, nil), (#","version":\#(Self.version("1"))"#, nil),
      (#","placedBy":"../evil@x""#, .nonsense), (#","madeBy":"bob""#, .nonsense), (#","madeBy":"Bob@x""#, .nonsense),
      (#","version":\#(Self.version("1", author: "../evil@x"))"#, .nonsense),
      (#","version":\#(Self.version("9007199254740992"))"#, nil),
      (#","version":\#(Self.version("-1"))"#, .nonsense),
      (#","version":\#(Self.version("9007199254740993"))"#, .nonsense),
      (#","version":\#(Self.version("9223372036854775807"))"#, .nonsense),
      (#","version":\#(Self.version("-9223372036854775808"))"#, .nonsense),
      (#","labels":9223372036854775807"#, .nonsense), (#","labels":-1"#, .nonsense),
      (#","version":\#(Self.version("1", size: "-1"))"#, .nonsense),
      (#","version":\#(Self.version("1", size: "9007199254740993"))"#, .nonsense),
    ] as [(String, HubFailure.Kind?)] {
      let state = #"""
        {"number":1,"item":"\#(Self.item)","kind":"document","isDeleted":false,
         "places":[{"parent":"\#(WireID.root)","name":"a"}],"mode":420,"mtime":1,"attributes":{},"isPurged":false,
         "purges":0\#(more)}
        """#
      let change = #"{"number":1,"item":"\#(Self.item)","change":"changed","state":\#(state),"isPurged":false}"#
      let rest = #""token":"0","hasMore":false}"#
      let found = [
        try await kind("/v1/feed", #"{"items":[\#(state)],\#(rest)"#) { _ = try await $0.feed(after: nil) },
        try await kind("/v1/shares/\(share)/feed", #"{"changes":[\#(change)],\#(rest)"#) {
          _ = try await $0.feed(of: share, after: "0")
        },
        try await kind("/v1/shares/\(share)/items/", #"{"items":[\#(state)]}"#) {
          _ = try await $0.children(of: .root, in: share)
        },
      ]
      #expect(found == [expected, expected, expected], "\(more)")
    }
  }

  @Test func versionsThatMakeNoSenseAreRefused() async throws {
    let id = WireID()
    for (versions, purged, expected) in [
      ([Self.version("3"), Self.version("5")], [], nil), ([], [id], nil),
      ([Self.version("2")], [], .nonsense), ([Self.version("4"), Self.version("4")], [], .nonsense),
      ([Self.version("4"), Self.version("3")], [], .nonsense), ([Self.version("3", size: "-1")], [], .nonsense),
      ([Self.version("3", size: "9007199254740993")], [], .nonsense), ([Self.version("1e40")], [], .nonsense),
      ([Self.version("3", author: "../evil@x")], [], .nonsense),
      ([Self.version("3", id: id), Self.version("4", id: id)], [], .nonsense),
      ([Self.version("3", id: id)], [id], .nonsense), ([], [id, id], .nonsense),
      ((3..<1_004).map { Self.version("\($0)") }, [], .nonsense),
    ] as [([String], [WireID], HubFailure.Kind?)] {
      let purged = purged.map { "\"\($0)\"" }.joined(separator: ",")
      let text = #"{"versions":[\#(versions.joined(separator: ","))],"purged":[\#(purged)]}"#
      let found = try await kind("/v1/items/", text) { _ = try await $0.versions(of: id, after: 2) }
      #expect(found == expected, "\(text.prefix(200))")
    }
  }

  @Test func copiesOfWhatNoVersionHasAreRefused() async throws {
    let id = WireID()
    for (text, expected) in [
      ("", nil), (#"{"offset":0,"source":0,"length":1000}"#, nil), (#"{"offset":999,"source":99,"length":1}"#, nil),
      (#"{"offset":0,"length":1000}"#, nil),
      (#"{"offset":1,"source":0,"length":100},{"offset":101,"length":899}"#, nil),
      (#"{"offset":0,"source":0,"length":1001}"#, .nonsense), (#"{"offset":1000,"source":0,"length":1}"#, .nonsense),
      (#"{"offset":0,"source":1,"length":100}"#, .nonsense), (#"{"offset":0,"source":-1,"length":10}"#, .nonsense),
      (#"{"offset":-1,"source":0,"length":10}"#, .nonsense), (#"{"offset":0,"source":0,"length":0}"#, .nonsense),
      (#"{"offset":0,"source":9223372036854775807,"length":1}"#, .nonsense),
      (#"{"offset":9223372036854775807,"source":0,"length":1}"#, .nonsense),
      (#"{"offset":10,"source":0,"length":10},{"offset":19,"source":0,"length":10}"#, .nonsense),
      (#"{"offset":10,"source":0,"length":10},{"offset":0,"source":0,"length":10}"#, .nonsense),
    ] as [(String, HubFailure.Kind?)] {
      let found = try await kind("/v1/items/", #"{"copies":[\#(text)]}"#) {
        _ = try await $0.copies(id, size: 1_000, from: (id, 100), of: id)
      }
      // What is larger than the other version cannot come from it.
      #expect(found == (text.contains(#""source":0,"length":1000}"#) ? .nonsense : expected), "\(text)")
    }
  }

  /// Pages that always go on end somewhere.
  @Test func aListOfVersionsHasAnEnd() async throws {
    var limits = DeviceClientLimits.brief
    limits.versions = 2_500
    let pages = Atomic(0)
    let answer: @Sendable (String) -> ScriptedServer.Answer? = { path in
      guard path.hasPrefix("/v1/items/"), let after = path.firstMatch(of: /after=(\d+)/).flatMap({ Int($0.1) }) else {
        return nil
      }
      pages.add(1, ordering: .relaxed)
      let limit = path.firstMatch(of: /limit=(\d+)/).flatMap { Int($0.1) } ?? 0
      let versions = (0..<limit).map { Self.version("\(after + 1 + $0)") }.joined(separator: ",")
      return .json(#"{"versions":[\#(versions)],"purged":[]}"#)
    }
    let failure = try await ScriptedServer.failure(limits: limits, answer) { client in
      let list = try await client.versions(of: WireID())
      #expect(list.versions.count == 2_500)
    }
    #expect(failure == nil && pages.load(ordering: .relaxed) == 3)
  }

  @Test func devicesAndLinksThatMakeNoSenseAreRefused() async throws {
    func devices(_ id: String, _ name: String) async throws -> HubFailure.Kind? {
      let text = #"{"devices":[{"id":"\#(id)","name":"\#(name)","added":"2026-11-26T00:00:00Z","seen":null}]}"#
      return try await kind("/v1/devices", text) { _ = try await $0.devices() }
    }
    #expect(try await devices(WireID().description, "laptop") == nil)
    #expect(try await devices("x", "laptop") == .nonsense)
    #expect(try await devices(WireID().description.uppercased(), "laptop") == .nonsense)
    #expect(try await devices(WireID().description, String(repeating: "x", count: 65)) == .nonsense)
    let code = Base64URL.text([UInt8](repeating: 7, count: 32))
    for (link, expected) in [
      ("https://hub.example/enrol/\(code)", nil), ("http://hub.example/enrol/\(code)", .nonsense), ("", .nonsense),
      ("https://hub.example/s/\(code)", .nonsense), ("https://hub.example/enrol/x", .nonsense),
    ] as [(String, HubFailure.Kind?)] {
      let found = try await kind("/v1/links", #"{"link":"\#(link)","expires":"2026-11-27T00:00:00Z"}"#) {
        _ = try await $0.newDeviceLink()
      }
      #expect(found == expected, "\(link)")
    }
  }

  // MARK: - Contents

  private struct Contents {
    var failure: HubFailure?
    var pieces: [Int: String] = [:]
    /// Parts that are over, with what went wrong.
    var ends: [Int: HubFailure.Kind?] = [:]
  }

  private static let version = WireID()
  private static let address = "/v1/items/\(item)/versions/\(version)/content"

  private static func head(
    _ length: String, range: String? = nil, type: String = "application/octet-stream", address: String = address
  ) -> String {
    "--b\r\nContent-Type: \(type)\r\nContent-Location: \(address)\r\nContent-Length: \(length)\r\n"
      + (range.map { "Content-Range: bytes \($0)\r\n" } ?? "") + "\r\n"
  }

  private static func part(_ text: String, range: String? = nil) -> String {
    head("\(text.utf8.count)", range: range) + text + "\r\n"
  }

  private static let start = "HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=b\r\nConnection: close\r\n\r\n"

  /// What comes of parts that are answered so.
  private func contents(
    _ answer: ScriptedServer.Answer, _ asked: [(offset: Int64?, length: Int64?)], limits: DeviceClientLimits = .brief
  ) async throws -> Contents {
    let parts = asked.map {
      ContentsRequest.Part(item: Self.item, version: Self.version, offset: $0.offset, length: $0.length)
    }
    var found = Contents()
    found.failure = try await ScriptedServer.failure(limits: limits, { $0 == "/v1/contents" ? answer : nil }) {
      try await $0.contents(parts) { index, piece in
        found.pieces[index, default: ""] += String(buffer: piece)
      } end: { index, failure in
        found.ends[index] = .some(failure?.kind)
      }
    }
    return found
  }

  private func contents(_ text: String, _ asked: (offset: Int64?, length: Int64?)...) async throws -> Contents {
    try await contents(.bytes(Self.start + text), asked)
  }

  @Test func partsThatWereAskedForAreTaken() async throws {
    let found = try await contents(
      Self.part("--b--\r\n\r\n--b\r\n") + Self.part("bc", range: "1-2/9") + Self.part("")
        + Self.part("ij", range: "8-9/10") + Self.part("abc") + "--b--\r\n",
      (nil, nil), (1, 2), (9, nil), (8, 100), (0, 100))
    #expect(found.failure == nil, "\(String(describing: found.failure))")
    #expect(found.pieces == [0: "--b--\r\n\r\n--b\r\n", 1: "bc", 3: "ij", 4: "abc"])
    #expect(found.ends.count == 5 && found.ends.values.allSatisfy { $0 == nil })
  }

  /// A part that is not given fails alone, for the reason that stands in its place.
  @Test func aPartMayFailAlone() async throws {
    func problem(_ type: String, _ status: Int) -> String {
      let text = #"{"type":"urn:sheaf:problem:\#(type)","title":"","status":\#(status),"detail":"so it is"}"#
      return Self.head("\(text.utf8.count)", type: "application/problem+json") + text + "\r\n"
    }
    let found = try await contents(
      problem("not-found", 404) + Self.part("a") + problem("forbidden", 403) + problem("unavailable", 503)
        + problem("new", 499) + Self.part("b") + "--b--\r\n",
      (nil, nil), (nil, nil), (nil, nil), (nil, nil), (nil, nil), (nil, nil))
    #expect(found.failure == nil && found.pieces == [1: "a", 5: "b"])
    let kinds = (0..<6).map { found.ends[$0] ?? nil }
    #expect(kinds == [.refused(.notFound), nil, .refused(.forbidden), .busy, .nonsense, nil])
  }

  @Test func partsThatWereNotAskedForAreRefused() async throws {
    let end = "--b--\r\n"
    let answers: [(String, (offset: Int64?, length: Int64?))] = [
      // Longer or shorter than it says; no part at all, and one too many.
      (Self.head("2") + "abc\r\n" + end, (nil, nil)), (Self.head("4") + "abc\r\n" + end, (nil, nil)),
      (end, (nil, nil)), (Self.part("a") + Self.part("a") + end, (nil, nil)), ("", (nil, nil)),
      // Of another length, place or size than it was asked for.
      (Self.part("abc") + end, (nil, 2)), (Self.head("9007199254740993") + "abc", (nil, nil)),
      (Self.head("9223372036854775807") + "abc", (nil, nil)), (Self.part("abc") + end, (1, nil)),
      (Self.part("abc", range: "0-2/9") + end, (1, nil)), (Self.part("abc", range: "1-3/9") + end, (1, nil)),
      (Self.part("abc", range: "1-3/9") + end, (1, 4)), (Self.part("abc", range: "1-3/3") + end, (1, 3)),
      (Self.part("abc", range: "1-2/9") + end, (1, 3)), (Self.part("abc", range: "3-1/9") + end, (1, 3)),
      (Self.part("", range: "1-0/9") + end, (1, 3)), (Self.part("abc", range: "1-3/*") + end, (1, 3)),
      (Self.part("abc", range: "1-9223372036854775807/9223372036854775807") + end, (1, 3)),
      (Self.part("abc", range: "1-9223372036854775808/9223372036854775809") + end, (1, 3)),
      // Of something else.
      (Self.head("1", address: "/v1/items/\(Self.item)/versions/\(WireID())/content") + "a\r\n" + end, (nil, nil)),
      (Self.head("1", type: "text/html") + "a\r\n" + end, (nil, nil)),
      (Self.head("1", type: "application/problem+json") + "a\r\n" + end, (nil, nil)),
      (Self.head("100000", type: "application/problem+json") + String(repeating: " ", count: 100_000), (nil, nil)),
      ("Content-Length: 1\r\n\r\n", (nil, nil)),
    ]
    for (text, asked) in answers {
      let found = try await contents(text, asked)
      let kind: HubFailure.Kind = text.isEmpty ? .unreachable : .nonsense
      #expect(found.failure?.kind == kind && found.failure?.advice != nil, "\(text.prefix(300)) \(found)")
      #expect(found.ends[0] == nil || text.hasPrefix(Self.part("a")), "\(text.prefix(300)) \(found)")
    }
    for type in ["application/json", "multipart/mixed", "multipart/mixed; boundary=b; boundary=c"] {
      let found = try await contents(
        .bytes(Self.start.replacing("multipart/mixed; boundary=b", with: type) + Self.part("a") + end), [(nil, nil)])
      #expect(found.failure?.kind == .nonsense, "\(type)")
    }
  }

  /// What came before an answer broke off stays, and what did not come is missed.
  @Test func anAnswerThatBreaksOffIsMissed() async throws {
    let whole = Self.part("abc") + Self.part("def")
    for text in [whole, whole + "--b", Self.part("abc") + Self.head("3") + "de", Self.part("abc") + "--b\r\nContent-"] {
      let found = try await contents(text, (nil, nil), (nil, nil))
      #expect(found.failure?.kind == .unreachable && found.ends[0] == .some(nil), "\(text)")
      #expect(found.pieces[0] == "abc" && (found.ends[1] == nil) == !text.hasPrefix(whole + "--b"), "\(text)")
    }
    // The connection ends before the body does.
    let long = Self.start.replacing("Connection: close", with: "Content-Length: 100000")
    let cut = try await contents(.bytes(long + Self.part("abc")), [(nil, nil)])
    #expect(cut.failure?.kind == .unreachable && cut.pieces == [0: "abc"] && cut.ends.isEmpty)
  }

  /// Neither a head nor what follows the last part goes on for ever, and whoever says nothing is not waited for.
  @Test func whatHasNoEndIsLeft() async throws {
    var limits = DeviceClientLimits.brief
    let head = Self.start + "--b\r\n" + String(repeating: "x", count: 10_000)
    let heads = try await contents(.endless(head), [(nil, nil)])
    #expect(heads.failure?.kind == .nonsense)
    let tail = try await contents(.endless(Self.start + Self.part("a") + "--b--\r\n"), [(nil, nil)])
    #expect(tail.failure?.kind == .nonsense && tail.pieces == [0: "a"])
    let parts = try await contents(.endless(Self.start + Self.part("a")), [(nil, nil)])
    #expect(parts.failure?.kind == .nonsense)
    limits.silence = .milliseconds(300)
    for text in [Self.start, Self.start + Self.head("5") + "abc", Self.start + Self.part("a")] {
      let stuck = try await contents(.stuck(text), [(nil, nil)], limits: limits)
      #expect(stuck.failure?.kind == .unreachable && stuck.failure?.reason == "falls silent", "\(stuck)")
    }
  }

  /// Contents that a hub wants to give out later are asked for later, a few times.
  @Test func laterIsLater() async throws {
    let asked = Atomic(0)
    let failure = try await ScriptedServer.failure({ path in
      guard path == "/v1/contents" else { return nil }
      asked.add(1, ordering: .relaxed)
      return .problem(.unavailable, "Retry-After: 0\r\n")
    }) {
      try await $0.contents([.init(item: Self.item, version: Self.version)]) { _, _ in
      } end: { _, _ in
      }
    }
    #expect(failure?.kind == .busy && asked.load(ordering: .relaxed) == 3)
  }

  /// A slow network has time for what is sent.
  @Test func longBodiesHaveMoreTime() async throws {
    let hub = try HubIdentity(scheme: "http", address: "127.0.0.1:1", fingerprint: nil)
    let transport = HubTransport(hub, limits: .brief)
    var random = SystemRandomNumberGenerator()
    let noise = ByteBuffer(bytes: (0..<160 * 1024).map { _ in UInt8.random(in: 0...255, using: &random) })
    #expect(transport.time(for: HubRequest("/")) == .seconds(60))
    #expect(transport.time(for: HubRequest(putting: noise, to: "/")) == .seconds(70))
    await transport.shutdown()
  }

  // MARK: - Changes

  /// Whoever listens ends with its task, also while it waits for the hub.
  @Test(arguments: [false, true]) func listeningEndsWithItsTask(_ isReached: Bool) async throws {
    let text = isReached ? "HTTP/1.1 200 OK\r\n\r\ndata: {\"number\":7,\"inbox\":2}\n\n" : ""
    let server = try ScriptedServer { $0 == "/v1/stream" ? .stuck(text) : nil }
    defer { server.close() }
    let client = DeviceClient(try server.device, limits: .brief)
    let (heard, told) = AsyncStream.makeStream(of: Int64.self)
    let listening = Task {
      for await element in client.changes() {
        if case .at(let news, _) = element { told.yield(news.number) }
      }
      told.finish()
    }
    var numbers = heard.makeAsyncIterator()
    if isReached { #expect(await numbers.next() == 7) }
    while !server.asked.contains("/v1/stream") { await Task.yield() }
    listening.cancel()
    await listening.value
    #expect(await numbers.next() == nil)
    await client.shutdown()
  }

  @Test func aStreamOfChangesThatFailsIsOpenedAgain() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    let answers: [ScriptedServer.Answer] = [
      .bytes(head), .bytes(head + "data: {\"number\":-1,\"inbox\":0}\n\n"), .bytes(head + "data: {\"number\":1}\n\n"),
      .bytes(head + "data: {\"number\":1,\"inbox\":-1}\n\n"),
      .bytes(head + "data: " + String(repeating: "x", count: 140_000)),
      .problem(.unavailable), .bytes(head + "retry: 1000\n\ndata: {\"number\":7,\"inbox\":2}\n\n: \n\n"),
      .stuck(head + "data: {\"number\":3,\"inbox\":2}\n\ndata: {\"number\":4,\"inbox\":3}\n\n"),
    ]
    let turn = Atomic(0)
    let server = try ScriptedServer { path in
      guard path == "/v1/stream" else { return nil }
      return answers[min(turn.add(1, ordering: .relaxed).oldValue, answers.count - 1)]
    }
    defer { server.close() }
    let client = DeviceClient(try server.device, limits: .brief)
    var (kinds, heard, beginnings): ([HubFailure.Kind], [FeedNews], [Bool]) = ([], [], [])
    for await element in client.changes() {
      switch element {
      case .failure(let failure): kinds.append(failure.kind)
      case .at(let news, let isBeginning):
        heard.append(news)
        beginnings.append(isBeginning)
      }
      if heard.count == 3 { break }
    }
    #expect(kinds == [.unreachable, .nonsense, .nonsense, .nonsense, .nonsense, .busy, .unreachable], "\(kinds)")
    // A hub that went back says a smaller number: the token of the feed tells the rest.
    #expect(heard == [(7, 2), (3, 2), (4, 3)].map { FeedNews(number: $0.0, inbox: $0.1) })
    #expect(beginnings == [true, true, false])
    await client.shutdown()
  }
}
