import Foundation
import Logging
import NIOCore
import SheafHubClient
import SheafModel
import SheafWire
import Synchronization

/// The connection to a hub, which comes and goes: one stream tells all sinks how far the logs of the account go.
///
/// What is wrong with the hub is said once, however many sinks wait for it and however often it is tried.
final class HubLink: EventSource {
  private struct State {
    /// The place after each log's newest event.
    var lasts: [HubLog: HubLogPlace] = [:]
    /// Whether the stream is there.
    var isThere = false
    /// The reason for which it is not, as the log has it.
    var told: String?
    var listening: Task<Void, Never>?
  }

  let client: DeviceClient
  private let log: Logger
  private let state = Mutex(State())
  private let poke = Poke()

  init(_ device: Device, limits: DeviceClientLimits, log: Logger) {
    client = DeviceClient(device, limits: limits)
    self.log = log
  }

  func answering() async throws -> any EventLogs {
    listen()
    while true {
      let count = poke.count
      try Task.checkCancellation()
      if state.withLock(\.isThere) { return HubLogs(link: self, log: log) }
      await poke.wait(past: count)
    }
  }

  /// A hub has nobody to whom it tells how delivery goes.
  func report(_ report: SidecarReport) async {}

  func close() async {
    let listening = state.withLock { $0.listening.take() }
    listening?.cancel()
    await listening?.value
    await client.shutdown()
  }

  /// How far the logs go, and the count of news so far, for ``wait(past:)``.
  func news() -> (count: UInt64, lasts: [HubLog: HubLogPlace]) {
    let count = poke.count
    return (count, state.withLock(\.lasts))
  }

  /// Notes that the hub does not know the device any more: its stream ends, too, and sinks wait until there is another.
  func lost(_ failure: HubFailure) { hear(.failure(failure)) }

  /// Returns once there was news, or the task is cancelled.
  func wait(past count: UInt64) async { await poke.wait(past: count) }

  private func listen() {
    state.withLock { state in
      guard state.listening == nil else { return }
      state.listening = Task { [self] in
        for await element in client.news() { hear(element) }
      }
    }
  }

  private func hear(_ element: HubNews.Element) {
    switch element {
    case .logs(let logs, let isBeginning):
      let wasTold = state.withLock { state in
        // A hub that went back may tell of less than before.
        if isBeginning { state.lasts = [:] }
        for log in logs {
          state.lasts[log.share.map { .share($0) } ?? .own] = HubLogPlace(number: log.last, token: log.token)
        }
        state.isThere = true
        return state.told.take() != nil
      }
      if wasTold { log.notice("the hub is there", metadata: ["hub": "\(client.device.hub)"]) }
    case .failure(let failure):
      let isNew = state.withLock { state in
        state.isThere = false
        defer { state.told = failure.description }
        return state.told != failure.description
      }
      if isNew { say(failure) }
    }
    poke.poke()
  }

  private func say(_ failure: HubFailure) {
    switch failure.kind {
    case .unreachable, .busy: log.notice("waiting for the hub", metadata: ["reason": "\(failure)"])
    default: log.error("nothing is delivered: \(failure)")
    }
  }
}

/// The logs of a hub that answers.
private struct HubLogs: EventLogs {
  let link: HubLink
  let log: Logger

  var id: String { link.client.device.zone }

  func newest(for sink: any Sink) async throws -> [LogPlace] {
    link.news().lasts.map { LogPlace($0.key, $0.value) }
  }

  func follow(for sink: any Sink, from record: SidecarState.Record) async throws -> any EventFlow {
    sink.reads(as: link.client.device.handle)
    return HubFlow(link: link, log: log, places: record.places)
  }
}

/// What a hub's failure is for a sink: the link says what is wrong with the hub itself.
private func described<Value>(_ body: () async throws -> Value) async throws -> Value {
  do {
    return try await body()
  } catch let failure as HubFailure {
    let error = failure.sheafError
    throw SheafError(.unavailable, subject: error.subject, reason: error.reason, advice: error.advice)
  }
}

/// The events of all logs of an account, each log in its order, the logs in turn.
private struct HubFlow: EventFlow {
  let link: HubLink
  let log: Logger
  /// Where the reader is in each log, by its name.
  var places: [String: LogPlace]
  /// The end up to which a log was read in which nothing more was found.
  private var exhausted: [HubLog: HubLogPlace] = [:]
  /// What was received, the next one last.
  private var received: [EventElement] = []
  /// The log that was read last.
  private var former: String?
  private var isIdle = false

  init(link: HubLink, log: Logger, places: [String: LogPlace]) {
    (self.link, self.log, self.places) = (link, log, places)
  }

  mutating func nextReceived() -> EventElement? { received.popLast() }

  mutating func next() async throws -> EventElement? {
    while true {
      if let element = received.popLast() { return element }
      try Task.checkCancellation()
      let (count, lasts) = link.news()
      if let (log, last) = choose(lasts) {
        try await read(log, upTo: last)
        (former, isIdle) = (log.name, false)
      } else if !isIdle {
        isIdle = true
        return .silence
      } else {
        await link.wait(past: count)
      }
    }
  }

  /// A log with events that were not read, or one that is not what it was: the one after the former, so that none waits
  /// for another for long.
  private func choose(_ lasts: [HubLog: HubLogPlace]) -> (HubLog, HubLogPlace)? {
    let waiting = lasts.filter { log, last in
      let place = places[log.name]
      // The hub may have gone back to fewer events, or to others with the same numbers.
      let isAtEnd = place.map { $0.number == last.number && $0.token == last.token } ?? (last.number == 0)
      return !isAtEnd && exhausted[log] != last
    }.sorted { $0.key.name < $1.key.name }
    guard let former else { return waiting.first.map { ($0.key, $0.value) } }
    return (waiting.first { $0.key.name > former } ?? waiting.first).map { ($0.key, $0.value) }
  }

  private mutating func read(_ log: HubLog, upTo last: HubLogPlace) async throws {
    let page: LogPage<Event>
    do {
      page = try await self.page(log)
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) && log != .own {
      // The account never took part, or its part ended so long ago that nobody knows of it.
      exhausted[log] = last
      return
    }
    let before = places[log.name]
    let place = LogPlace(log, HubLogPlace(number: page.next, token: page.token))
    places[log.name] = place
    if page.events.isEmpty, before?.number == page.next, before?.token == page.token { exhausted[log] = last }
    received = [.position(place)]
    for event in page.events.reversed() {
      let place = LogPlace(log, HubLogPlace(number: event.sequence, token: page.token))
      received.append(.event(Delivery(event: event, json: try event.json), place))
    }
  }

  /// The page that follows. Where the hub is not what it was when the place was noted, it says where to go on.
  private mutating func page(_ log: HubLog) async throws -> LogPage<Event> {
    let client = link.client
    let place = places[log.name].map { HubLogPlace(number: $0.number, token: $0.token) }
    do {
      return try await told(log) { try await client.events(log, after: place) }
    } catch let failure as HubFailure where failure.kind == .refused(.gone) {
      guard let place else { throw failure }
      exhausted[log] = nil
      let metadata: Logger.Metadata = ["hub": "\(client.device.hub)", "log": "\(log.name)"]
      do {
        let page = try await told(log) { try await client.events(log, former: place) }
        places[log.name] = nil
        self.log.warning(
          """
          the hub is a copy of an earlier time, which does not have all that was delivered (up to event \
          \(place.number)); going on with what it has besides
          """, metadata: metadata)
        return page
      } catch let failure as HubFailure where failure.kind == .refused(.gone) {
        places[log.name] = nil
        self.log.error(
          """
          events are lost, or come again: the hub does not know up to where they were delivered (event \
          \(place.number)), going on with the oldest that it has
          """, metadata: metadata)
        return try await told(log) { try await client.events(log, after: nil) }
      }
    }
  }

  /// Runs `body`; passes on what is to be dealt with here, and describes the rest.
  private func told<Value>(_ log: HubLog, _ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let failure as HubFailure where failure.kind == .refused(.gone) || failure.kind == .refused(.notFound) {
      throw failure
    } catch {
      if let failure = error as? HubFailure, [.deviceRemoved, .deviceWiped].contains(failure.kind) {
        link.lost(failure)
      }
      return try await described { throw error }
    }
  }
}

extension HubLog {
  /// Under which the positions in it are stored.
  fileprivate var name: String {
    switch self {
    case .own: "own"
    case .share(let share): share.description
    }
  }
}

extension LogPlace {
  fileprivate init(_ log: HubLog, _ place: HubLogPlace) {
    self.init(log: log.name, number: place.number, token: place.token)
  }
}

extension Event {
  /// The event as a library writes it.
  fileprivate var json: ByteBuffer {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return ByteBuffer(bytes: try encoder.encode(self))
    }
  }
}
