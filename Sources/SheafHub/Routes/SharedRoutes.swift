import HTTPTypes
import Hummingbird
import SheafModel
import SheafWire

extension HubRoutes {
  /// The contents of a share: the requests by which its members read them and send to them.
  func addSharedRoutes(to routes: some RouterMethods<HubContext>) {
    let (zones, feeds, clock) = (hub.zones, hub.sharedFeeds, hub.clock)
    add(
      "v1/shares/:share/sends", to: routes,
      [
        .post: { request, context in
          let (caller, place) = try await shared(context)
          let room = try takeRoom(for: request, upTo: Self.sendsBody, of: caller)
          defer { withExtendedLifetime(room) {} }
          let asked = try await request.json(SendRequest.self, upTo: Self.sendsBody)
          let answer = try await zones.send(asked, to: place, by: caller.author(now: clock.now))
          await news.check(place.zone)
          return try .json(answer)
        }
      ])
    add(
      "v1/shares/:share/feed", to: routes,
      [
        .get: { request, context in
          let (caller, place) = try await shared(context)
          let (token, limit) = (try request.parameter("token").map { try SharedToken($0) }, try pageLimit(request))
          let wait = try request.number("wait", upTo: Self.longestWait) ?? 0
          let page = { @Sendable in try await feeds.page(after: token, limit: limit, of: place) }
          return try .json(
            try await waiting(wait, for: caller, in: place, key: place.feed, page) { !$0.changes.isEmpty })
        }
      ])
    add(
      "v1/shares/:share/stream", to: routes,
      [
        .get: { _, context in
          let (caller, place) = try await shared(context)
          return try await stream(of: place, for: caller) { try await feeds.number(of: place) }
        }
      ])
    addSharedContentRoutes(to: routes)
  }

  private func addSharedContentRoutes(to routes: some RouterMethods<HubContext>) {
    let (feeds, contents) = (hub.sharedFeeds, hub.contents)
    add(
      "v1/shares/:share/items/:item/children", to: routes,
      [
        .get: { request, context in
          let place = try await shared(context).place
          let (item, limit) = (try id("item", context), try pageLimit(request))
          let after = try request.parameter("after").map { text in
            guard let name = Hexadecimal.bytes(of: text) else { throw HubError(.invalid, "after: of no page") }
            return name
          }
          return try .json(try await feeds.children(of: item, after: after ?? [], limit: limit, of: place))
        }
      ])
    add(
      "v1/shares/:share/items/:item/versions", to: routes,
      [
        .get: { request, context in
          let place = try await shared(context).place
          let item = try id("item", context)
          let (after, limit) = (try request.number("after") ?? 0, try pageLimit(request))
          return try .json(try await feeds.versions(of: item, after: after, limit: limit, of: place))
        }
      ])
    add(
      "v1/shares/:share/items/:item/versions/:version/label", to: routes,
      [
        .put: { request, context in
          let (caller, place) = try await shared(context)
          let (item, version) = (try id("item", context), try id("version", context))
          let asked = try await request.json(SentLabel.self, upTo: Self.labelBody)
          try await hub.labels.label(version, of: item, as: asked.label, in: place, by: caller.device)
          await news.check(place.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/shares/:share/items/:item/versions/:version/copies", to: routes,
      [
        .get: { request, context in
          let place = try await shared(context).place
          return try await copies(request, context) { try await feeds.version($0, of: $1, of: place).manifest }
        }
      ])
    add(
      "v1/shares/:share/items/:item/versions/:version/content", to: routes,
      [
        .get: { request, context in
          let (caller, place) = try await shared(context)
          let (item, version) = (try id("item", context), try id("version", context))
          let (facts, manifest) = try await feeds.version(version, of: item, of: place)
          return try content(size: facts.size, request, caller) {
            ContentReader(contents, manifest, $0, of: version, item, in: place)
          }
        }
      ])
    add(
      "v1/shares/:share/contents", to: routes,
      [
        .post: { request, context in
          let (caller, place) = try await shared(context)
          // A right that ended is no matter of the parts.
          _ = try await feeds.number(of: place)
          return try await severalContents(request, caller, at: "/v1/shares/\(place.share)", logger: context.logger) {
            part in
            let (facts, manifest) = try await feeds.version(part.version, of: part.item, of: place)
            return (
              facts.size, { ContentReader(contents, manifest, $0, of: part.version, part.item, in: place) }
            )
          }
        }
      ])
    add(
      "v1/shares/:share/chunks/missing", to: routes,
      [
        .post: { request, context in
          let place = try await shared(context).place
          let asked = try await request.json(ChunkHashes.self, upTo: Self.hashesBody)
          let missing = try await feeds.missing(asked.hashes, bytes: asked.bytes ?? 0, of: place)
          return try .json(ChunkHashes(hashes: missing))
        }
      ])
    add(
      "v1/shares/:share/chunks/:hash", to: routes,
      [
        .put: { request, context in
          let (caller, place) = try await shared(context)
          let hash = try chunkHash(context)
          // The right and the quota are looked at before the bytes come.
          let length = request.headers[.contentLength].flatMap { Int64($0) } ?? 0
          try await feeds.checkRoom(for: length, of: place)
          let room = try takeRoom(for: request, upTo: WireLimits.chunkBytes, of: caller)
          defer { withExtendedLifetime(room) {} }
          try await feeds.upload(try await chunk(request), hash: hash, of: place)
          return Response(status: .noContent)
        }
      ])
  }

  /// The share of a path, as the caller comes to it.
  func shared(_ context: HubContext) async throws -> (caller: Caller, place: SharedPlace) {
    let share = try shareID("share", context)
    let caller = try context.requireCaller(in: share)
    let zone = try await hub.sharing.zone(of: share, for: caller)
    return (caller, SharedPlace(share: share, zone: zone, account: caller.zone))
  }
}
