import FoundationEssentials
import Hummingbird
import SheafLibrary
import SheafModel
import Synchronization

extension LibraryAPI {
  /// How long a stream is silent at most: a comment tells the reader that it lives.
  static let keepAlive = Duration.seconds(15)
  /// Events of a stream's first page: a reader that comes only for the next one costs little. Each page is larger.
  private static let firstPage = 16

  /// Server-Sent Events (WHATWG HTML, section 9.2): each event's `id` is its sequence number, its `data` the CloudEvent.
  ///
  /// There is no queue per reader. A stream reads pages from its own position and waits for a signal where the log ends, so
  /// that a slow one costs nothing and loses nothing. An `id` without data tells how far the log has been read where nothing
  /// was for this reader, so that it never falls behind retention.
  func eventStream(_ reader: EventReader) async throws -> Response {
    let scope = try await call { try reader.scope(in: $0) }
    let start = try await call { try $0.eventStart(after: reader.position) }
    let body = ResponseBody { writer in
      try await clients.withoutCounting {
        var position = start
        var limit = Self.firstPage
        try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
        for await _ in signals.wakeUps(every: Self.keepAlive) {
          var written = false
          while true {
            let page = try await call { [position, limit] library in
              try library.events(after: position, limit: limit, for: reader.account, in: scope)
            }
            if !page.events.isEmpty { try await writer.write(ByteBuffer(events: page.events)) }
            if page.next > page.events.last?.sequence ?? position {
              try await writer.write(ByteBuffer(string: "id: \(page.next)\n\n"))
            }
            if page.next > position { written = true }
            position = page.next
            limit = min(limit * 4, Library.eventPage)
            if position >= page.last { break }
          }
          if !written { try await writer.write(ByteBuffer(string: ": \n\n")) }
        }
      }
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }
}

extension ByteBuffer {
  /// Events as they stand in a stream.
  fileprivate init(events: [Event]) throws {
    self.init()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    for event in events {
      writeString("id: \(event.sequence)\ndata: ")
      writeBytes(try encoder.encode(event))
      writeString("\n\n")
    }
  }
}

/// Wakes the streams of a library when events were numbered or webhooks changed.
final class EventSignals: Sendable {
  private struct State {
    var streams: [UInt64: AsyncStream<Void>.Continuation] = [:]
    var next: UInt64 = 0
    var isFinished = false
  }

  private let state = Mutex(State())
  private let library: Library
  private let observer = Mutex<Int?>(nil)

  init(library: Library) {
    self.library = library
    let number = library.observeEvents { [weak self] in self?.wake() }
    observer.withLock { $0 = number }
  }

  /// Streams that are being read.
  var count: Int { state.withLock { $0.streams.count } }

  /// A wake-up now, one after each change of the log, and at least one in each interval; several at once are one. The
  /// sequence ends with the service.
  func wakeUps(every interval: Duration) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let number: UInt64? = state.withLock { state in
      guard !state.isFinished else { return nil }
      state.next += 1
      state.streams[state.next] = continuation
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

  /// Ends all streams, and takes no more.
  func finish() {
    if let number = observer.withLock({ $0.take() }) { library.endObservingEvents(number) }
    let streams = state.withLock { state in
      state.isFinished = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.finish() }
  }

  private func wake() {
    let streams = state.withLock { Array($0.streams.values) }
    for stream in streams { stream.yield() }
  }
}
