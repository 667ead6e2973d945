import Hummingbird
import SheafWire
import Synchronization

extension HubRoutes {
  /// Server-Sent Events (WHATWG HTML, section 9.2), each of which says how far the zone, the inbox and the shares of
  /// others go that the caller joined: at the beginning, and whenever one of them went on.
  func zoneStream(for caller: Caller) async throws -> Response {
    let inbox = Inboxes.feed(of: caller.zone)
    let start = try await hub.numbers(of: [caller.zone, inbox])
    let heard = HeardFeeds(zone: start[caller.zone] ?? 0, inbox: start[inbox] ?? 0)
    let place = try watch.take(for: caller) { heard.finish() }
    let body = ResponseBody { writer in
      defer { place.giveBack() }
      var (told, toldOfShares) = (FeedNews(number: -1, inbox: -1), [WireID: Int64]())
      let listening = [
        listen(caller.zone, after: start[caller.zone], heard) { $0.zone = max($0.zone, $1) },
        listen(inbox, after: start[inbox], heard) { $0.inbox = max($0.inbox, $1) },
      ]
      var known: [SharedPlace: Task<Void, Never>] = [:]
      let ticking = Task {
        while !Task.isCancelled {
          try? await Task.sleep(for: limits.silence)
          heard.change { $0.isSilent = true }
        }
      }
      defer {
        ticking.cancel()
        for task in listening + known.values { task.cancel() }
      }
      heard.change { _ in }
      while let feeds = await heard.next() {
        var (next, places) = (FeedNews(number: feeds.zone, inbox: feeds.inbox), feeds.places)
        if next.inbox != told.inbox {
          let joined = Set(try await hub.logs.joined(by: caller.zone))
          for (place, task) in known where !joined.contains(place) {
            // When it goes on from here is no matter of somebody who is out.
            task.cancel()
            known[place] = nil
            places.insert(place)
          }
          for place in joined where known[place] == nil {
            known[place] = listen(place.feed, after: nil, heard) { feeds, _ in feeds.places.insert(place) }
          }
          places.formUnion(joined)
        }
        for place in places {
          // Nothing that came after the end of a right is told.
          guard let number = try? await hub.sharedFeeds.number(of: place) else {
            // It ended, or its item is deleted. No share is at 0.
            if toldOfShares.removeValue(forKey: place.share) != nil {
              next.shares.append(.init(share: place.share, number: 0))
            }
            continue
          }
          guard toldOfShares.updateValue(number, forKey: place.share) != number else { continue }
          next.shares.append(.init(share: place.share, number: number))
        }
        let isBeginning = told.number < 0
        let isNews = !next.shares.isEmpty || next.number > told.number || next.inbox > told.inbox
        told = FeedNews(number: next.number, inbox: next.inbox)
        guard isNews || isBeginning || feeds.isSilent else { continue }
        // A comment tells the device that the stream lives.
        let text = isNews ? "data: \(Self.text(next))\n\n" : ": \n\n"
        try await writer.write(ByteBuffer(string: (isBeginning ? "retry: 1000\n\n" : "") + text))
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
  }

  private static func text(_ news: FeedNews) -> String {
    let shares = news.shares.map { "{\"share\":\"\($0.share)\",\"number\":\($0.number)}" }.joined(separator: ",")
    return "{\"number\":\(news.number),\"inbox\":\(news.inbox)\(shares.isEmpty ? "" : ",\"shares\":[\(shares)]")}"
  }

  private func listen(
    _ key: String, after number: Int64?, _ heard: HeardFeeds,
    _ note: @escaping @Sendable (inout HeardFeeds.Feeds, Int64) -> Void
  ) -> Task<Void, Never> {
    let numbers = news.numbers(of: key, after: number)
    return Task {
      for await number in numbers { heard.change { note(&$0, number) } }
      // They end with the server alone, or as nobody listens any more.
      if !Task.isCancelled { heard.finish() }
    }
  }
}

/// How far the feeds go of which one stream tells.
private final class HeardFeeds: Sendable {
  struct Feeds {
    var zone: Int64
    var inbox: Int64
    /// Shares that may have gone on.
    var places: Set<SharedPlace> = []
    /// Whether nothing may have been said for long.
    var isSilent = false
  }

  private let feeds: Mutex<Feeds>
  private let wakeUps: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  init(zone: Int64, inbox: Int64) {
    feeds = Mutex(Feeds(zone: zone, inbox: inbox))
    (wakeUps, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  func change(_ body: (inout Feeds) -> Void) {
    feeds.withLock { body(&$0) }
    wake.yield()
  }

  func finish() { wake.finish() }

  /// What was heard; nil once the stream is to end.
  func next() async -> Feeds? {
    for await _ in wakeUps {
      return feeds.withLock { feeds in
        defer { (feeds.places, feeds.isSilent) = ([], false) }
        return feeds
      }
    }
    return nil
  }
}
