import FoundationEssentials
import Hummingbird
import SheafLibrary
import SheafModel
import Synchronization

extension LibraryAPI {
  /// The longest silence of a stream: after it a comment tells the reader that the stream lives.
  static let keepAlive = Duration.seconds(15)
  /// Events of a stream's first page, few so that a reader that comes for a single event costs little. Each page is
  /// larger than the one before.
  private static let firstPage = 16
  /// How long a stream rests after it gave out events, for each stream that there is, and at most: all of them together
  /// leave the library to those who work with it, however much happens.
  private static let rest = (each: Duration.milliseconds(2), longest: Duration.milliseconds(500))

  /// Server-Sent Events (WHATWG HTML, section 9.2): each event's `id` is its sequence number, its `data` the
  /// CloudEvent.
  ///
  /// There is no queue for a reader. A stream reads pages from its own position and waits for a signal at the end of
  /// the log, so a slow one costs nothing and loses nothing. If the log has nothing for this reader, an `id` without
  /// data tells how far it was read, so that the reader never falls behind retention.
  func eventStream(_ query: EventQuery) async throws -> Response {
    let slot = try streams.take()
    let scope = try await call { try query.scope(in: $0) }
    let start = try await call { try $0.eventStart(after: query.position) }
    let account = try await call { library in try query.account.map { try library.number(of: $0) } }
    let interest = account.map(EventSignals.Interest.account) ?? .log
    let body = ResponseBody { writer in
      defer { withExtendedLifetime(slot) {} }
      try await clients.withoutCounting {
        var position = start
        var limit = Self.firstPage
        try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
        for await _ in signals.wakeUps(for: interest, every: Self.keepAlive) {
          var written = false
          while true {
            let page = try await call { [position, limit] library in
              try library.events(
                after: position, limit: limit, for: query.account, in: scope, isNews: true)
            }
            if !page.events.isEmpty { try await writer.write(ByteBuffer(events: page.events)) }
            if page.next > page.events.last?.position ?? position {
              try await writer.write(ByteBuffer(string: "id: \(page.next)\n\n"))
            }
            if page.next > position { written = true }
            position = page.next
            limit = min(limit * 4, Library.eventPage)
            if position >= page.last { break }
          }
          if written {
            try await Task.sleep(for: min(Self.rest.each * signals.count, Self.rest.longest))
          } else {
            try await writer.write(ByteBuffer(string: ": \n\n"))
          }
        }
      }
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }
}

extension ByteBuffer {
  /// The text of events in a stream.
  fileprivate init(events: [Event]) throws {
    self.init()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for event in events {
      writeString("id: \(event.position)\ndata: ")
      writeBytes(try encoder.encode(event))
      writeString("\n\n")
    }
  }
}

/// Wakes the streams of a library when there is news for them.
final class EventSignals: Sendable {
  /// The events that a stream is about.
  enum Interest: Sendable {
    /// All events.
    case log
    /// The events that an account sees; others do not wake its streams.
    case account(Int64)
    case webhooks

    fileprivate func includes(_ news: EventNews) -> Bool {
      switch self {
      case .log: !news.audience.isEmpty
      case .account(let account): news.audience.contains(account)
      case .webhooks: news.webhooks
      }
    }
  }

  private struct State {
    var streams: [UInt64: (interest: Interest, continuation: AsyncStream<Void>.Continuation)] = [:]
    var next: UInt64 = 0
    var wakeUps: Int64 = 0
    var isFinished = false
  }

  private let state = Mutex(State())
  private let library: any PathInterface
  private let observer = Mutex<Int?>(nil)

  init(library: any PathInterface) {
    self.library = library
    let number = library.observeEvents { [weak self] news in self?.wake(news) }
    observer.withLock { $0 = number }
  }

  /// Streams that are being read.
  var count: Int { state.withLock { $0.streams.count } }

  /// How many times news woke a stream.
  var wakeUps: Int64 { state.withLock { $0.wakeUps } }

  /// Wakes now, after each change of interest, and at least once in each interval; several wake-ups at once are one.
  /// The sequence ends with the service.
  func wakeUps(for interest: Interest, every interval: Duration) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let number: UInt64? = state.withLock { state in
      guard !state.isFinished else { return nil }
      state.next += 1
      state.streams[state.next] = (interest, continuation)
      return state.next
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    let timer = Task {
      while !Task.isCancelled {
        continuation.yield()
        try? await Task.sleep(for: interval)
      }
    }
    continuation.onTermination = { [weak self] _ in
      timer.cancel()
      self?.state.withLock { $0.streams[number] = nil }
    }
    return stream
  }

  /// Ends all streams, and accepts no more.
  func finish() {
    if let number = observer.withLock({ $0.take() }) { library.endObservingEvents(number) }
    let streams = state.withLock { state in
      state.isFinished = true
      return state.streams.values.map(\.continuation)
    }
    for stream in streams { stream.finish() }
  }

  private func wake(_ news: EventNews) {
    let woken = state.withLock { state in
      let woken = state.streams.values.filter { $0.interest.includes(news) }.map(\.continuation)
      state.wakeUps += Int64(woken.count)
      return woken
    }
    for stream in woken { stream.yield() }
  }
}
