import ConformanceKit
import Crypto
import Foundation
import HubKit
import MountKit
import NIOCore
import SheafModel
import SheafWire
import Testing

@testable import SheafHub
@testable import SheafHubClient

/// What a replica asks of a real hub, over TLS.
@Suite(.serialized) struct ZoneClientTests {
  private static func noise(_ count: Int, seed: UInt64) -> ByteBuffer {
    var random = SeededRandom(seed: seed)
    var bytes = ByteBuffer()
    while bytes.readableBytes < count { bytes.writeInteger(random.next()) }
    return bytes.getSlice(at: 0, length: count) ?? bytes
  }

  private static func hash(_ bytes: ByteBuffer) throws -> ChunkHash {
    try #require(ChunkHash(bytes: Array(SHA256.hash(data: bytes.readableBytesView))))
  }

  /// A new document of these extents.
  private static func document(_ name: String, _ extents: [Extent], serial: Int64) -> Send {
    var send = Send.document(name, "", serial: serial)
    send.version = SentVersion(id: WireID(), base: nil, cause: .save, time: 1, extents: extents)
    return send
  }

  // MARK: - Sends

  @Test func sendsGetTheirVerdicts() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let (a, b) = (Send.document("a", "1", serial: 1), Send.document("b", "2", serial: 2))
        let answer = try await client.send([[a], [b]], confirmed: 0)
        #expect(answer.verdicts.map(\.serial) == [1, 2] && answer.verdicts.map(\.outcome) == [.done, .done])
        #expect(answer.later.isEmpty && answer.number == 2)
        // The name is taken, and the other group names a folder that nobody knows.
        var lost = Send.document("lost", "", serial: 5)
        lost.places = [Place(parent: WireID(), "lost")]
        let more = try await client.send(
          [[.document("a", "other", serial: 3)], [.document("c", "", serial: 4), lost]], confirmed: 2)
        #expect(more.verdicts.map(\.outcome) == [.renamed, .refused, .refused])
        #expect(more.verdicts.map(\.reason) == [nil, .group, .noParent])
        #expect(more.verdicts[0].places == [Place(parent: .root, "a (2)")] && more.number == 3)
        // What was confirmed is forgotten.
        let forgotten = try await client.send([[a]], confirmed: 2)
        #expect(forgotten.verdicts.map(\.reason) == [.confirmed])
        // Nothing that makes no sense is sent in vain without a word.
        let refused = try await hubFailure { _ = try await client.send([], confirmed: 0) }
        #expect(refused.kind == .refused(.invalid))
      }
    }
  }

  /// The hub did it, and its answer did not arrive.
  @Test func aSendWhoseAnswerWasLostIsDoneOnce() async throws {
    try await SecureHub.with { hub in
      let device = try await hub.device()
      let groups = (1...8).map { [Send.document("\($0)", "x", serial: $0)] }
      var limits = DeviceClientLimits.brief
      // Answers that begin a session are shorter.
      limits.longAnswer = 900
      let deaf = DeviceClient(device, limits: limits)
      let lost = try await hubFailure { _ = try await deaf.send(groups, confirmed: 0) }
      #expect(lost.kind == .nonsense && lost.reason.contains("900"), "\(lost)")
      await deaf.shutdown()
      try await hub.withClient(of: device) { client in
        let feed = try await client.feed(after: nil)
        #expect(feed.items.count == 8)
        let answer = try await client.send(groups, confirmed: 0)
        #expect(answer.verdicts.map(\.outcome) == Array(repeating: .done, count: 8) && answer.number == 8)
        #expect(answer.verdicts.map(\.number) == feed.items.map(\.number))
        #expect(try await client.feed(after: feed.token).items.isEmpty)
      }
    }
  }

  // MARK: - Chunks

  /// What a replica does with contents: cut, ask, upload, send; and get them again.
  @Test func contentsAreCutUploadedAndSent() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        var (cutter, chunks) = (ContentCutter(), [ChunkHash: ByteBuffer]())
        let (noise, zeros) = (Self.noise(300_000, seed: 1), ByteBuffer(repeating: 0, count: 100_000))
        // Half of it can be compressed, and half of it cannot.
        let text = ByteBuffer(string: String((0..<40_000).map { "\($0) " }.joined().prefix(200_000)))
        for part in [noise, zeros, text] { try cutter.append(part) { chunks[$0] = $1 } }
        let extents = try cutter.finish { chunks[$0] = $1 }
        #expect(extents.contains { $0.hash == nil })
        let all = extents.compactMap(\.hash)
        #expect(try await client.missing(all + all) == all)
        let send = Self.document("large", extents, serial: 1)
        let early = try await client.send([[send]], confirmed: 0)
        #expect(early.verdicts.isEmpty && Set(early.later.first?.missing ?? []) == Set(all))
        for (hash, bytes) in chunks.dropFirst() { try await client.upload(hash, bytes) }
        let last = try #require(chunks.first)
        #expect(try await client.missing(all) == [last.key])
        #expect(try await client.send([[send]], confirmed: 0).later.first?.missing == [last.key])
        try await client.upload(last.key, last.value)
        try await client.upload(last.key, last.value)
        #expect(try await client.missing(all).isEmpty)
        #expect(try await client.send([[send]], confirmed: 0).verdicts.map(\.outcome) == [.done])
        let version = try #require(send.version?.id)
        var (whole, ends) = (ByteBuffer(), 0)
        try await client.contents([.init(item: send.item, version: version)]) { _, piece in
          whole.writeImmutableBuffer(piece)
        } end: { _, failure in
          #expect(failure == nil)
          ends += 1
        }
        let expected = [noise, zeros, text].flatMap { Array($0.readableBytesView) }
        #expect(ends == 1 && Array(whole.readableBytesView) == expected)
      }
    }
  }

  @Test func theLargestChunkIsTakenAndNoLargerOne() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let largest = Self.noise(WireLimits.chunkBytes, seed: 1)
        try await client.upload(try Self.hash(largest), largest)
        #expect(try await client.missing([try Self.hash(largest)]).isEmpty)
        let zeros = ByteBuffer(repeating: 0, count: WireLimits.chunkBytes)
        try await client.upload(try Self.hash(zeros), zeros)
        let count = WireLimits.chunkBytes + 1
        for bytes in [ByteBuffer(repeating: 0, count: count), Self.noise(count, seed: 2)] {
          let refused = try await hubFailure { try await client.upload(try Self.hash(bytes), bytes) }
          #expect(refused.kind == .refused(.tooLarge), "\(refused)")
        }
        let wrong = try await hubFailure { try await client.upload(try Self.hash(zeros), ByteBuffer(string: "x")) }
        #expect(wrong.kind == .refused(.invalid))
        // What is no smaller as a frame travels as it is.
        #expect(HubRequest(putting: largest, to: "/").body?.encoding == nil)
        let body = try #require(HubRequest(putting: zeros, to: "/").body)
        #expect(body.encoding == "zstd" && body.bytes.readableBytes < 1_000)
      }
    }
  }

  /// More than one request may ask for.
  @Test func manyChunksAreAskedFor() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let chunks = (0..<1_200).map { ByteBuffer(string: "chunk \($0)") }
        let hashes = try chunks.map { try Self.hash($0) }
        for index in [0, 999, 1_000, 1_199] { try await client.upload(hashes[index], chunks[index]) }
        let missing = try await client.missing(hashes)
        #expect(missing == Array(hashes[1..<999] + hashes[1_001..<1_199]))
        #expect(try await client.missing([]).isEmpty)
      }
    }
  }

  // MARK: - Versions

  @Test func allVersionsAreListed() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let item = WireID()
        let first = Send.document("a", "0", serial: 1, item: item)
        var (sends, ids) = ([first], [try #require(first.version?.id)])
        for serial in 2...1_010 as ClosedRange<Int64> {
          var send = Send(serial: serial, item: item, kind: .document)
          send.version = SentVersion(
            id: WireID(), base: ids.last, cause: .save, time: serial, contents: Data("\(serial)".utf8))
          sends.append(send)
          ids.append(try #require(send.version?.id))
        }
        for start in stride(from: 0, to: sends.count, by: WireLimits.sendsPerRequest) {
          let groups = sends[start...].prefix(WireLimits.sendsPerRequest).map { [$0] }
          let answer = try await client.send(groups, confirmed: 0)
          #expect(answer.verdicts.allSatisfy { $0.outcome == .done })
        }
        let list = try await client.versions(of: item)
        #expect(list.versions.map(\.id) == ids && list.versions.map(\.number) == Array(1...1_010))
        #expect(list.purged.isEmpty)
        #expect(try await client.versions(of: item, after: 1_005).versions.map(\.id) == Array(ids[1_005...]))
        for index in [3, 1_002] {
          try await hub.hub.purging.purge(ids[index], of: item, in: client.device.zone, by: client.device.id)
        }
        let less = try await client.versions(of: item)
        #expect(less.versions.count == 1_008 && less.purged == [ids[3], ids[1_002]])
        #expect(try await client.versions(of: WireID()) == VersionList(versions: []))
      }
    }
  }

  // MARK: - Contents

  /// More than one request may ask for, in the order in which they were asked for, also those that are not there.
  @Test func manyContentsCome() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let small = (1...200).map { Send.document("\($0)", String(repeating: "\($0) ", count: $0), serial: Int64($0)) }
        let large = Self.document("large", [Extent(hash: nil, length: 3_000_000)], serial: 201)
        for send in small + [large] {
          #expect(try await client.send([[send]], confirmed: send.serial - 1).verdicts.map(\.outcome) == [.done])
        }
        func part(_ send: Send, _ offset: Int64? = nil, _ length: Int64? = nil) -> ContentsRequest.Part {
          .init(item: send.item, version: send.version?.id ?? WireID(), offset: offset, length: length)
        }
        var (parts, expected): ([ContentsRequest.Part], [Data?]) = ([], [])
        for number in 0..<1_300 {
          let send = small[number % small.count]
          let contents = send.version?.contents ?? Data()
          switch number % 7 {
          case 0:
            parts.append(.init(item: send.item, version: WireID()))
            expected.append(nil)
          case 1:
            parts.append(part(send, 1))
            expected.append(contents.dropFirst())
          case 2:
            parts.append(part(send, 0, 1))
            expected.append(contents.prefix(1))
          case 3:
            parts.append(part(send, Int64(contents.count)))
            expected.append(Data())
          case 4:
            parts.append(part(send, Int64(contents.count) + 1))
            expected.append(nil)
          default:
            parts.append(part(send))
            expected.append(contents)
          }
          if number % 500 == 77 {
            parts.append(part(large, 1_000, 2_000_000))
            expected.append(Data(count: 2_000_000))
          }
        }
        var (found, failures): ([Data?], [HubFailure.Kind]) = ([], [])
        var current = Data()
        // The session ended meanwhile.
        hub.test.clock.advance(seconds: 3_601)
        try await client.contents(parts) { index, piece in
          #expect(index == found.count && piece.readableBytes > 0)
          current += piece.readableBytesView
        } end: { index, failure in
          #expect(index == found.count)
          if let failure { failures.append(failure.kind) }
          found.append(failure == nil ? current : nil)
          current = Data()
        }
        #expect(found == expected)
        #expect(Set(failures) == [.refused(.notFound), .refused(.range)])
        try await client.contents([]) { _, _ in
        } end: { _, _ in
        }
      }
    }
  }

  /// What the caller throws ends it, and the client goes on.
  @Test func whoTakesContentsMayFail() async throws {
    struct Full: Error {}
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let large = Self.document("large", [Extent(hash: nil, length: 100_000_000)], serial: 1)
        _ = try await client.send([[large]], confirmed: 0)
        let part = ContentsRequest.Part(item: large.item, version: try #require(large.version?.id))
        await #expect(throws: Full.self) {
          try await client.contents([part]) { _, _ in
            throw Full()
          } end: { _, _ in
          }
        }
        await #expect(throws: Full.self) {
          try await client.contents([.init(item: part.item, version: part.version, length: 1)]) { _, _ in
          } end: { _, _ in
            throw Full()
          }
        }
        #expect(try await client.account().handle == "alice@hub.example")
      }
    }
  }

  // MARK: - Devices

  @Test func devicesAreListedAddedAndRemoved() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        let link = try await client.newDeviceLink()
        #expect(Timestamp(rfc3339: link.expires) != nil)
        // The hub's clock stands still otherwise, and lists devices by their time.
        hub.test.clock.advance(seconds: 1)
        // The server of this test knows no fingerprint.
        let enrolment = try Enrolment("\(link.link)#\(try hub.fingerprint)")
        let file = DeviceFile("\(hub.folder.path)/other")
        let other = try await DeviceClient.enroll(by: enrolment, name: "desktop", file: file, limits: .brief)
        #expect(other.zone == client.device.zone && other.hub.address == client.device.hub.address)
        #expect(try await client.devices().map(\.name) == ["laptop", "desktop"])
        try await hub.withClient(of: other) { desktop in
          _ = try await desktop.account()
          let id = try #require(WireID(other.id))
          try await client.removeDevice(id)
          #expect(try await hubFailure { _ = try await desktop.send([], confirmed: 0) }.kind == .deviceRemoved)
          let hash = try Self.hash(ByteBuffer())
          #expect(try await hubFailure { _ = try await desktop.missing([hash]) }.kind == .deviceRemoved)
          #expect(try await hubFailure { try await client.removeDevice(id) }.kind == .refused(.notFound))
        }
        #expect(try await client.devices().map(\.id) == [client.device.id])
        // A link that somebody else may have read.
        let open = try await client.newDeviceLink()
        #expect(try await client.revokeDeviceLinks() == 1)
        #expect(try await client.revokeDeviceLinks() == 0)
        let useless = try Enrolment("\(open.link)#\(try hub.fingerprint)")
        let never = DeviceFile("\(hub.folder.path)/never")
        let failure = try await hubFailure {
          _ = try await DeviceClient.enroll(by: useless, name: "thief", file: never, limits: .brief)
        }
        #expect(failure.kind == .refused(.forbidden))
        // It may end its own.
        try await client.removeDevice(try #require(WireID(client.device.id)))
        #expect(try await hubFailure { _ = try await client.devices() }.kind == .deviceRemoved)
      }
    }
  }

  // MARK: - Changes

  private struct Told: Equatable {
    let number: Int64
    let isBeginning: Bool

    init(_ number: Int64, _ isBeginning: Bool) {
      self.number = number
      self.isBeginning = isBeginning
    }

    init(_ element: HubChanges.Element?) throws {
      guard case .at(let news, let isBeginning) = element else {
        throw Command.Failure(description: "\(String(describing: element))")
      }
      self.init(news.number, isBeginning)
    }
  }

  @Test func changesAreTold() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        var changes = client.changes().makeAsyncIterator()
        #expect(try Told(await changes.next()) == Told(0, true))
        _ = try await client.send([[.document("a", "1", serial: 1)]], confirmed: 0)
        #expect(try Told(await changes.next()) == Told(1, false))
        // Those of others, too.
        try await hub.withClient { other in
          _ = try await other.send([[.document("b", "2", serial: 1)]], confirmed: 0)
        }
        #expect(try Told(await changes.next()) == Told(2, false))
      }
    }
  }

  @Test func aRemovedDeviceHearsWhy() async throws {
    try await SecureHub.with { hub in
      try await hub.withClient { client in
        var changes = client.changes().makeAsyncIterator()
        #expect(try Told(await changes.next()) == Told(0, true))
        try await hub.hub.accounts.removeDevice(client.device.id, of: client.device.zone)
        var last: HubFailure?
        while last?.kind != .deviceRemoved {
          guard case .failure(let failure) = await changes.next() else { continue }
          last = failure
        }
        #expect(last?.advice?.contains("new link") == true)
      }
    }
  }

  @Test func changesGoOnWhenTheHubIsBack() async throws {
    let place = try HubPlace()
    _ = try place.serve()
    let device = try await DeviceClient.enroll(
      by: try Enrolment(place.link), name: "laptop", file: DeviceFile(place.device), limits: .brief)
    let client = DeviceClient(device, limits: .brief)
    var changes = client.changes().makeAsyncIterator()
    #expect(try Told(await changes.next()) == Told(0, true))
    for round in 1...2 as ClosedRange<Int64> {
      let answer = try await client.send([[.document("\(round)", "x", serial: round)]], confirmed: round - 1)
      #expect(answer.number == round)
      #expect(try Told(await changes.next()) == Told(round, false))
      place.hub.kill()
      // The stream ends, and then nobody answers.
      for _ in 0..<3 {
        guard case .failure(let failure) = await changes.next() else {
          throw Command.Failure(description: "news of a hub that is away")
        }
        #expect(failure.kind == .unreachable)
      }
      _ = try place.serve()
      var element = await changes.next()
      while case .failure = element { element = await changes.next() }
      #expect(try Told(element) == Told(round, true))
    }
    await client.shutdown()
    place.hub.kill()
  }
}
