import Foundation
import HTTPTypes
import Hummingbird
import SheafModel
import SheafWire
import Synchronization

extension HubRoutes {
  /// Bytes of a request of sends.
  static let sendsBody = WireLimits.bytesPerRequest
  /// Bytes of a question for chunks, of which a hash takes 67.
  static let hashesBody = WireLimits.hashesPerRequest * 80
  /// Bytes of a question for contents, of which one takes 167 with the largest numbers.
  static let contentsBody = WireLimits.contentsPerRequest * 200
  /// Bytes of a request with a label, each character of which may be escaped.
  static let labelBody = 64 * 1024
  /// Bytes of a request with the spans of a folder.
  static let retentionBody = 1024
  /// Seconds for which a request may wait for news.
  static let longestWait: Int64 = 60
  /// Rows of a page if the request does not say how many.
  private static let usualPage: Int64 = 100

  /// The requests to the zone of the session: sending to it, and reading it.
  func addZoneRoutes(to routes: some RouterMethods<HubContext>) {
    add(
      "v1/sends", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller()
          let place = try takeRoom(for: request, upTo: Self.sendsBody, of: caller)
          defer { withExtendedLifetime(place) {} }
          let asked = try await request.json(SendRequest.self, upTo: Self.sendsBody)
          let answer = try await hub.zones.send(asked, to: caller.zone, by: caller.author(now: hub.clock.now))
          news.tell(caller.zone, number: answer.number)
          await news.check(caller.zone)
          return try .json(answer)
        }
      ])
    add("v1/feed", to: routes, [.get: { request, context in try await feed(request, try context.requireCaller()) }])
    add(
      "v1/stream", to: routes,
      [
        .get: { _, context in
          try await zoneStream(for: try context.requireCaller())
        }
      ])
    addRetentionRoutes(to: routes)
    addContentRoutes(to: routes)
  }

  /// For how long folders of the zone keep things.
  private func addRetentionRoutes(to routes: some RouterMethods<HubContext>) {
    let retentions = hub.folderRetentions
    add(
      "v1/retentions", to: routes,
      [.get: { _, context in try .json(try await retentions.list(of: try context.requireCaller().zone)) }])
    add(
      "v1/items/:item/retention", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let item = try id("item", context)
          let asked = try await request.json(SentRetention.self, upTo: Self.retentionBody)
          try await retentions.set(asked, of: item, in: caller.zone)
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
  }

  func pageLimit(_ request: Request) throws -> Int {
    let limit = try request.number("limit", upTo: Int64(WireLimits.rowsPerPage)) ?? Self.usualPage
    guard limit > 0 else { throw HubError(.invalid, "limit: at least 1") }
    return Int(limit)
  }

  // MARK: - Feeds

  /// A page of the zone's feed. With `wait` an empty page is not told before there is news, or so many seconds are
  /// over.
  private func feed(_ request: Request, _ caller: Caller) async throws -> Response {
    let (token, limit) = (try request.parameter("token").map { try FeedToken($0) }, try pageLimit(request))
    let wait = try request.number("wait", upTo: Self.longestWait) ?? 0
    let page = { @Sendable in try await hub.feeds.page(after: token, limit: limit, of: caller.zone) }
    return try .json(
      try await waiting(wait, for: caller, key: caller.zone, page) { !$0.items.isEmpty })
  }

  /// A page; with `wait` an empty one is not told before there is news of a feed, or so many seconds are over.
  func waiting<Page: Sendable>(
    _ wait: Int64, for caller: Caller, in place: SharedPlace? = nil, key: String,
    _ page: @escaping @Sendable () async throws -> Page, _ tells: @escaping @Sendable (Page) -> Bool
  ) async throws -> Page {
    if wait == 0 { return try await page() }
    return try await watch.run(for: caller, in: place) {
      // Heard before the page is read, so that nothing falls in between.
      let numbers = news.numbers(of: key)
      let first = try await page()
      if tells(first) { return first }
      return try await withThrowingTaskGroup(of: Page?.self) { group in
        group.addTask {
          for await _ in numbers {
            let next = try await page()
            if tells(next) { return next }
          }
          return nil
        }
        group.addTask {
          try? await Task.sleep(for: .seconds(wait))
          return nil
        }
        defer { group.cancelAll() }
        return try await group.next().flatMap { $0 } ?? first
      }
    }
  }

  /// Server-Sent Events (WHATWG HTML, section 9.2), each of which says at which number a share is: at the beginning, and
  /// whenever it went on. The device then reads the feed.
  ///
  /// - Parameter read: Reads the number; throws where the caller may not know it any more.
  func stream(
    of place: SharedPlace, for caller: Caller, _ read: @escaping @Sendable () async throws -> Int64
  ) async throws -> Response {
    let start = try await read()
    let (wakeUps, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let taken = try watch.take(for: caller, in: place) { wake.finish() }
    let body = ResponseBody { writer in
      defer { taken.giveBack() }
      let newest = NewestNumber(start)
      let numbers = news.numbers(of: place.feed, after: start)
      let hearing = Task {
        for await number in numbers {
          newest.rise(to: number)
          wake.yield()
        }
        wake.finish()
      }
      let ticking = Task {
        while !Task.isCancelled {
          try? await Task.sleep(for: limits.silence)
          wake.yield()
        }
      }
      defer {
        hearing.cancel()
        ticking.cancel()
      }
      var told = newest.value
      try await writer.write(ByteBuffer(string: "retry: 1000\n\ndata: {\"number\":\(told)}\n\n"))
      for await _ in wakeUps {
        var number = newest.value
        if number > told {
          // Nothing that came after the end of a right is told, whichever part of the hub learns of that end first.
          guard let allowed = try? await read() else { break }
          number = allowed
        }
        // A comment tells the device that the stream lives.
        let text = number > told ? "data: {\"number\":\(number)}\n\n" : ": \n\n"
        told = number
        try await writer.write(ByteBuffer(string: text))
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
  }

  // MARK: - Contents

  private func addContentRoutes(to routes: some RouterMethods<HubContext>) {
    let contents = hub.contents
    add(
      "v1/chunks/missing", to: routes,
      [
        .post: { request, context in
          let zone = try context.requireCaller().zone
          let asked = try await request.json(ChunkHashes.self, upTo: Self.hashesBody)
          let missing = try await contents.missing(asked.hashes, bytes: asked.bytes ?? 0, in: zone)
          return try .json(ChunkHashes(hashes: missing))
        }
      ])
    add(
      "v1/chunks/:hash", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let (zone, hash) = (caller.zone, try chunkHash(context))
          // The quota is looked at before the bytes come.
          let length = request.headers[.contentLength].flatMap { Int64($0) } ?? 0
          try await contents.checkRoom(for: length, in: zone)
          let place = try takeRoom(for: request, upTo: WireLimits.chunkBytes, of: caller)
          defer { withExtendedLifetime(place) {} }
          let bytes = try await chunk(request)
          try await contents.upload(bytes, hash: hash, to: zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/contents", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller()
          let zone = caller.zone
          return try await severalContents(request, caller, at: "/v1", logger: context.logger) { part in
            let (facts, manifest) = try await contents.version(part.version, of: part.item, in: zone)
            return (
              facts.size, { ContentReader(contents, manifest, $0, of: part.version, part.item, in: zone) }
            )
          }
        }
      ])
    add(
      "v1/items/:item/versions", to: routes,
      [
        .get: { request, context in
          let zone = try context.requireCaller().zone
          let item = try id("item", context)
          let (after, limit) = (try request.number("after") ?? 0, try pageLimit(request))
          return try .json(try await contents.versions(of: item, after: after, limit: limit, in: zone))
        }
      ])
    add(
      "v1/items/:item", to: routes,
      [
        .delete: { _, context in
          let caller = try context.requireCaller()
          try await hub.purging.purge(try id("item", context), in: caller.zone, by: caller.device)
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/items/:item/versions/:version", to: routes,
      [
        .delete: { _, context in
          let caller = try context.requireCaller()
          let (item, version) = (try id("item", context), try id("version", context))
          try await hub.purging.purge(version, of: item, in: caller.zone, by: caller.device)
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/items/:item/versions/:version/label", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let (item, version) = (try id("item", context), try id("version", context))
          let asked = try await request.json(SentLabel.self, upTo: Self.labelBody)
          try await hub.labels.label(version, of: item, as: asked.label, in: caller.zone, by: caller.device)
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/items/:item/versions/:version/copies", to: routes,
      [
        .get: { request, context in
          let zone = try context.requireCaller().zone
          return try await copies(request, context) { try await contents.version($0, of: $1, in: zone).manifest }
        }
      ])
    add(
      "v1/items/:item/versions/:version/content", to: routes,
      [
        .get: { request, context in
          let caller = try context.requireCaller()
          let (item, version) = (try id("item", context), try id("version", context))
          let (facts, manifest) = try await contents.version(version, of: item, in: caller.zone)
          return try content(size: facts.size, request, caller) {
            ContentReader(contents, manifest, $0, of: version, item, in: caller.zone)
          }
        }
      ])
  }

  /// Which parts of a version another one has, too.
  ///
  /// - Parameter manifest: Gets a version and its item, and throws `notFound` for what the caller may not read.
  func copies(
    _ request: Request, _ context: HubContext, manifest: (WireID, WireID) async throws -> Manifest
  ) async throws -> Response {
    let (item, version) = (try id("item", context), try id("version", context))
    guard let base = request.parameter("from").flatMap({ WireID($0) }) else {
      throw HubError(.invalid, "from: the id of a version of the item")
    }
    let place = try takeRoom(forContents: WireLimits.chunkBytes, of: try context.requireCaller())
    defer { withExtendedLifetime(place) {} }
    return try .json(try await manifest(version, item).copies(from: try await manifest(base, item)))
  }

  func id(_ name: String, _ context: HubContext) throws -> WireID {
    guard let id = context.parameters.get(name).flatMap({ WireID($0) }) else {
      throw HubError(.notFound, "\(name): nothing has this id")
    }
    return id
  }

  func chunkHash(_ context: HubContext) throws -> ChunkHash {
    guard let hash = context.parameters.get("hash").flatMap({ ChunkHash($0) }) else {
      throw HubError(.invalid, "hash: 64 hexadecimal digits in lower case")
    }
    return hash
  }

  /// The bytes of a chunk that is uploaded, as they are or compressed.
  func chunk(_ request: Request) async throws -> [UInt8] {
    let limit = WireLimits.chunkBytes
    switch request.headers[.contentEncoding]?.lowercased() {
    case nil, "identity": return [UInt8](buffer: try await request.bytes(upTo: limit))
    case "zstd": return try Zstandard.decompressed([UInt8](buffer: try await request.bytes(upTo: limit)), upTo: limit)
    default: throw HubError(.mediaType, "Content-Encoding: zstd, or none")
    }
  }
}

/// A number that only rises.
private final class NewestNumber: Sendable {
  private let number: Mutex<Int64>

  init(_ number: Int64) { self.number = Mutex(number) }

  var value: Int64 { number.withLock { $0 } }

  func rise(to newer: Int64) { number.withLock { $0 = max($0, newer) } }
}
