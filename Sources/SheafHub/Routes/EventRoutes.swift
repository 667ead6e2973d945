import HTTPTypes
import Hummingbird
import SheafModel
import SheafWire
import Synchronization

extension HubRoutes {
  /// Bytes of a request with read marks, of which one takes 100.
  private static let readMarksBody = 1 << 20

  /// The logs of events.
  func addEventRoutes(to routes: some RouterMethods<HubContext>) {
    add(
      "v1/events", to: routes,
      [
        .get: { request, context in
          let zone = try context.requireCaller().zone
          let (position, limit) = (try logPosition(request), try pageLimit(request))
          return try .json(withURLs(try await hub.events.page(after: position, limit: limit, of: zone)))
        }
      ])
    add(
      "v1/shares/:share/events", to: routes,
      [
        .get: { request, context in
          let place = try await shared(context).place
          let (position, limit) = (try logPosition(request), try pageLimit(request))
          return try .json(withURLs(try await hub.sharedEvents.page(after: position, limit: limit, of: place)))
        }
      ])
    add(
      "v1/events/read", to: routes,
      [
        .put: { request, context in
          let caller = try context.requireCaller()
          let asked = try await request.json(SentReadMarks.self, upTo: Self.readMarksBody)
          try await hub.readMarks.set(asked.marks, of: caller.zone)
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
    addCommentRoutes(to: routes)
    add("v1/events/stream", to: routes, [.get: { _, context in try await logStream(try context.requireCaller()) }])
  }

  /// Comments on items, of the account's own and of shares.
  private func addCommentRoutes(to routes: some RouterMethods<HubContext>) {
    add(
      "v1/items/:item/comments", to: routes,
      [
        .post: { request, context in
          let caller = try context.requireCaller()
          let comment = try await request.json(SentComment.self, upTo: Self.labelBody)
          try await hub.comments.add(
            comment, to: try id("item", context), of: caller.zone, in: nil, by: caller.author(now: hub.clock.now))
          await news.check(caller.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/shares/:share/items/:item/comments", to: routes,
      [
        .post: { request, context in
          let (caller, place) = try await shared(context)
          let comment = try await request.json(SentComment.self, upTo: Self.labelBody)
          try await hub.comments.add(
            comment, to: try id("item", context), of: place.zone, in: place, by: caller.author(now: hub.clock.now))
          await news.check(place.zone)
          return Response(status: .noContent)
        }
      ])
  }

  private func logPosition(_ request: Request) throws -> LogPosition {
    let after = try request.number("after")
    let token = try request.parameter("token").map { try LogToken($0) }
    let former = try request.parameter("former").map { try LogToken($0) }
    switch (token, former) {
    case (nil, nil): return .number(after ?? 0)
    case (let token?, nil): return .token(token, after: after)
    case (nil, let former?): return .former(former, after: after)
    default: throw HubError(.invalid, "token, former: one of them")
    }
  }

  /// Events with the URLs of shares in place of their tokens.
  private func withURLs(_ page: LogPage<Event>) -> LogPage<Event> {
    var page = page
    for index in page.events.indices {
      guard let share = page.events[index].data.share else { continue }
      page.events[index].data.share?.url = url(of: ShareToken(stored: share.url))
    }
    return page
  }

  /// Server-Sent Events, each of which names logs and how far they go: all that the account may read at the beginning,
  /// and then those that went on, or that the account was let into.
  private func logStream(_ caller: Caller) async throws -> Response {
    let start = try await hub.logs.all(of: caller.zone)
    let heard = HeardLogs()
    let place = try watch.take(for: caller) { heard.finish() }
    let body = ResponseBody { writer in
      defer { place.giveBack() }
      var told: [WireID?: (last: Int64, read: Int64)] = [:]
      var listening: [String: Task<Void, Never>] = [:]
      let ticking = Task {
        while !Task.isCancelled {
          try? await Task.sleep(for: limits.silence)
          heard.hear(.silence)
        }
      }
      defer {
        ticking.cancel()
        for task in listening.values { task.cancel() }
      }
      /// What of these logs is news. Those from which more may come are listened to from now on.
      func fresh(_ logs: [EventLogs.Log]) -> [LogNews.Log] {
        for log in logs {
          let key = log.place?.log ?? Hub.log(of: caller.zone)
          guard log.isOpen else {
            // When it goes on is no matter of somebody who is out.
            listening.removeValue(forKey: key)?.cancel()
            continue
          }
          let news = log.place.map { HeardLogs.News.share($0) } ?? .own
          if listening[key] == nil { listening[key] = listen(key, after: log.last, for: news, heard) }
        }
        return logs.compactMap { log in
          let share = log.place?.share
          if let known = told[share], known.last >= log.last, known.read >= log.read { return nil }
          told[share] = (log.last, log.read)
          return LogNews.Log(share: share, last: log.last, token: log.token.text, read: log.read)
        }
      }
      let inbox = Inboxes.feed(of: caller.zone)
      listening[inbox] = listen(inbox, after: nil, for: .all, heard)
      var logs = fresh(start)
      var (head, isSilent) = ("retry: 1000\n\n", true)
      while true {
        if isSilent || !logs.isEmpty {
          // A comment tells the device that the stream lives.
          let text =
            logs.isEmpty ? ": \n\n" : "data: \(String(buffer: try ByteBuffer(jsonLine: LogNews(logs: logs))))\n"
          try await writer.write(ByteBuffer(string: head + text))
        }
        head = ""
        guard let heardOf = await heard.next() else { break }
        isSilent = heardOf.contains(.silence)
        logs = fresh(try await self.logs(heardOf, of: caller.zone))
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
  }

  private func logs(_ changed: Set<HeardLogs.News>, of zone: String) async throws -> [EventLogs.Log] {
    if changed.contains(.all) || changed.contains(.silence) { return try await hub.logs.all(of: zone) }
    var logs: [EventLogs.Log] = []
    for news in changed {
      switch news {
      case .all, .silence: break
      case .own: logs.append(try await hub.logs.own(of: zone))
      case .share(let place): if let log = try await hub.logs.log(of: place) { logs.append(log) }
      }
    }
    return logs
  }

  private func listen(
    _ key: String, after number: Int64?, for what: HeardLogs.News, _ heard: HeardLogs
  ) -> Task<Void, Never> {
    let numbers = news.numbers(of: key, after: number)
    return Task {
      for await _ in numbers { heard.hear(what) }
      // They end with the server alone, or as nobody listens any more.
      if !Task.isCancelled { heard.finish() }
    }
  }
}

/// The logs of which there is news for one stream.
private final class HeardLogs: Sendable {
  enum News: Hashable {
    case own
    case share(SharedPlace)
    /// Any of them, or there are others than before.
    case all
    /// Nothing may have been said for long.
    case silence
  }

  private let changed = Mutex<Set<News>>([])
  private let wakeUps: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  init() { (wakeUps, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

  func hear(_ news: News) {
    changed.withLock { _ = $0.insert(news) }
    wake.yield()
  }

  func finish() { wake.finish() }

  /// What there is news of; nil once the stream is to end.
  func next() async -> Set<News>? {
    for await _ in wakeUps {
      return changed.withLock { changed in
        defer { changed = [] }
        return changed
      }
    }
    return nil
  }
}
