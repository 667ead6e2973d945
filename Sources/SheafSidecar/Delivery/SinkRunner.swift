import Logging
import NIOCore
import SheafModel

/// Delivers the events of a library or a hub to one sink: in order, each at least once, whichever process ends in between.
///
/// Rules that never break:
/// - The position moves past an event when the sink took it or gave it up, in one transaction with the outcome.
/// - Nothing is queued: an event that is not delivered is read from its log again. So a sink that has failed
///   for a day costs no more than any other, and no sink waits for another.
/// - An attempt that has begun is finished, even when the sidecar is told to stop: then within ``SinkTurns/patience``.
/// - Dead letters that a person wants sent again go between the events (``DeadLetterRetry``), and hold up none.
///
/// ```
///             source answers              event that the sink wants
///   waiting ─────────────────► following ──────────────────────────► delivering
///      ▲                        ▲     │ stream ends        arrived, │    │ failed
///      └────────────────────────┼─────┘                    given up │    ▼
///                               ├───────────────────────────────────┘  pausing (next_attempt) ──► waiting
///                               │ resumed, poked
///                            disabled
/// ```
struct SinkRunner: Sendable {
  let name: String
  let kind: String
  let sink: any Sink
  let filter: EventFilter
  let schedule: RetrySchedule
  /// Whether a new sink begins with the next event rather than the oldest one that is kept.
  let beginsNow: Bool
  /// Whether events that are given up become dead letters, which can be sent again.
  let keepsDeadLetters: Bool
  let source: any EventSource
  let state: SidecarState
  let board: StatusBoard
  let clock: any SidecarClock
  /// From 0 up to 1.
  let random: @Sendable () -> Double
  let log: Logger

  /// Ends a go: the next one begins anew, with the stored record.
  private struct Pause: Error {}

  /// The source ended a stream from which nothing had come.
  private struct Fruitless: Error {
    let reason: String
  }

  /// The outcome of a go.
  private enum Outcome {
    case again
    /// The source answered and broke off: it was just ending, or it cannot read its events.
    case fruitless(String)
    /// The last go.
    case ended
    /// A failure that is not the endpoint's: of the state file, or the configured account.
    case failed(String)
  }

  /// Seconds until another go after one that failed, at first and at most.
  private static let waits = (first: 1.0, longest: 60.0)

  /// Delivers until the task is cancelled or the sink's reader has gone.
  ///
  /// - Parameter poke: Makes the sink read its record again, after a person changed it.
  func run(poke: Poke) async {
    var wait = Self.waits.first
    var told: String?
    var isFruitless = false
    let turns = SinkTurns(sink)
    let letters = DeadLetterRetry(
      name: name, schedule: schedule, turns: turns, state: state, board: board, clock: clock, random: random, log: log)
    while !Task.isCancelled {
      // A go that a poke cancels ends at its next chance, and another one follows.
      let pokes = poke.count
      var outcome = await untilPoked(poke, past: pokes) { await go(turns, letters) }
      if case .fruitless(let reason) = outcome {
        // The next go waits for a process that was just ending. A process that breaks off again would be asked all the
        // time.
        outcome = isFruitless ? .failed(reason) : .again
        isFruitless = true
      } else if case .again = outcome {
        isFruitless = false
      }
      switch outcome {
      case .ended: return await sink.close()
      case .again, .fruitless: (wait, told) = (Self.waits.first, nil)
      case .failed(let reason):
        if told != reason { log.error("delivery stopped: \(reason)", metadata: ["sink": "\(name)"]) }
        told = reason
        board.fail(name, kind: kind, reason)
        let end = clock.now.adding(wait)
        _ = await untilPoked(poke, past: pokes) {
          try? await clock.sleep(until: end)
          return .again
        }
        wait = min(wait * 2, Self.waits.longest)
      }
    }
    await sink.close()
  }

  /// Runs `body`, which a poke cancels, and returns its outcome.
  private func untilPoked(_ poke: Poke, past pokes: UInt64, _ body: @escaping @Sendable () async -> Outcome) async
    -> Outcome
  {
    await withTaskGroup(of: Outcome?.self) { group in
      group.addTask(operation: body)
      group.addTask {
        await poke.wait(past: pokes)
        return nil
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      // A cancelled go itself says how it ended.
      return if let first { first } else { await group.next().flatMap { $0 } ?? .again }
    }
  }

  private func go(_ turns: SinkTurns, _ letters: DeadLetterRetry) async -> Outcome {
    do {
      try await session(turns, letters)
    } catch is ReaderGone {
      return .ended
    } catch is CancellationError, is Pause {
      return .again
    } catch let fruitless as Fruitless {
      return Task.isCancelled ? .again : .fruitless(fruitless.reason)
    } catch {
      if !Task.isCancelled { return .failed("\(error)") }
    }
    return .again
  }

  private func session(_ turns: SinkTurns, _ letters: DeadLetterRetry) async throws {
    let logs = try await source.answering()
    let key = SinkKey(library: logs.id, name: name)
    var record = try state.record(key)
    show(record, key)
    if record.disabled != nil {
      await Poke().wait(past: 0)
      return
    }
    if let next = record.nextAttempt {
      // If the clock was put back, the wait does not become longer than it was meant to be.
      if record.failedLast.map({ $0 <= clock.now }) ?? true { try await clock.sleep(until: next) }
      record.nextAttempt = nil
    }
    do {
      let start = record
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          try await letters.run(key)
          return false
        }
        group.addTask {
          try await read(logs, start, key, turns)
          return true
        }
        while let isOver = try await group.next(), !isOver {}
        group.cancelAll()
      }
    } catch let disabled as SinkDisabled {
      log.error("disabled until `sheaf-sidecar resume`: \(disabled.reason)", metadata: ["sink": "\(name)"])
      record = try state.record(key)
      record.disabled = disabled.reason
      try state.save(record, of: key)
      show(record, key)
    }
  }

  /// Reads the logs from the sink's positions on, and delivers their events.
  private func read(
    _ logs: any EventLogs, _ start: SidecarState.Record, _ key: SinkKey, _ turns: SinkTurns
  ) async throws {
    var record = start
    var hasHeard = false
    do {
      // Only a new sink skips events: one with a position must not miss any.
      if record.isNew, beginsNow {
        let places = try await logs.newest(for: sink)
        for place in places { record.pass(place) }
        try state.save(record, of: key, places: places.filter { !$0.log.isEmpty })
      }
      var flow = try await logs.follow(for: sink, from: record)
      try await follow(&flow, &record, key, turns) { hasHeard = true }
      guard hasHeard else { throw Fruitless(reason: "the stream of events ended") }
    } catch let error as SheafError where error.kind == .gone {
      log.error("events are lost, going on with the oldest that is kept: \(error)", metadata: ["sink": "\(name)"])
      record.position = nil
      try state.save(record, of: key)
    } catch let error as SheafError where error.kind == .unavailable {
      guard hasHeard else { throw Fruitless(reason: "\(error)") }
      log.info("the source of events has gone", metadata: ["sink": "\(name)"])
    }
  }

  /// Unwanted events after which the position is stored although nothing was delivered. It is also stored when the
  /// stream is quiet.
  private static let unsavedLimit = 256

  /// - Parameter heard: Called when the source has sent anything of a log.
  private func follow(
    _ flow: inout any EventFlow, _ record: inout SidecarState.Record, _ key: SinkKey, _ turns: SinkTurns,
    heard: () -> Void
  ) async throws {
    var unsaved = 0
    // The places in a hub's logs that the record has and the file does not.
    var places: [String: LogPlace] = [:]
    func pass(_ place: LogPlace, _ record: inout SidecarState.Record) {
      record.pass(place)
      if !place.log.isEmpty { places[place.log] = place }
    }
    while let element = try await flow.next() {
      if case .silence = element {} else { heard() }
      switch element {
      case .silence: if unsaved == 0 { continue }
      case .position(let place): pass(place, &record)
      case .event(let delivery, let place):
        guard filter.includes(delivery.event) else {
          pass(place, &record)
          unsaved += 1
          show(record, key)
          if unsaved < Self.unsavedLimit { continue }
          break
        }
        var (deliveries, passed) = ([delivery], [place])
        while deliveries.count < sink.batch, let more = try flow.nextReceived() {
          switch more {
          case .silence: continue
          case .position(let place): passed.append(place)
          case .event(let delivery, let place):
            if filter.includes(delivery.event) { deliveries.append(delivery) }
            passed.append(place)
          }
        }
        try await deliver(deliveries, &record, key, turns) { record in
          for place in passed { pass(place, &record) }
          return Array(places.values)
        }
      }
      try state.save(record, of: key, places: places.values)
      places = [:]
      unsaved = 0
      show(record, key)
      try Task.checkCancellation()
    }
  }

  /// The longest wait, in seconds, for which the stream stays open.
  private static let shortWait = 2.0

  /// Makes attempts until one succeeds, the event is given up, or the next wait is long.
  ///
  /// - Throws: `Pause` and `ReaderGone`, with which the position stays.
  ///
  /// - Parameter pass: Notes in the record that the deliveries are dealt with; returns what of a hub's logs is to be
  ///   stored with that.
  private func deliver(
    _ deliveries: [Delivery], _ record: inout SidecarState.Record, _ key: SinkKey, _ turns: SinkTurns,
    pass: (inout SidecarState.Record) -> [LogPlace]
  ) async throws {
    while let failure = try await turns.attempt(deliveries) {
      if try await hasGivenUp(deliveries, failure, &record, key, pass: pass) { return }
      record.nextAttempt = nil
    }
    _ = pass(&record)
    record.noteSuccess()
    record.delivered += Int64(deliveries.count)
  }

  /// Stores that an attempt failed, and waits until the next one is due; returns true if there will be none.
  private func hasGivenUp(
    _ deliveries: [Delivery], _ failure: DeliveryFailure, _ record: inout SidecarState.Record, _ key: SinkKey,
    pass: (inout SidecarState.Record) -> [LogPlace]
  ) async throws -> Bool {
    let now = clock.now
    record.note(failure, at: now)
    let metadata: Logger.Metadata = [
      "sink": "\(name)", "event": "\(deliveries[0].event.id)", "failures": "\(record.failures)",
    ]
    switch failure.consequence {
    case .end:
      log.notice("\(failure.description)", metadata: metadata)
      throw ReaderGone()
    case .disable:
      log.error("disabled until `sheaf-sidecar resume`: \(failure.description)", metadata: metadata)
      record.disabled = failure.description
    case .retry(let asked):
      let latest = deliveries.map(\.event.time).max() ?? now
      if schedule.gives(up: latest, failingSince: record.failingSince ?? now, at: now) {
        log.error("given up: \(failure.description)", metadata: metadata)
        let places = pass(&record)
        let dead = deliveries.map {
          DeadLetter(
            sink: name, sequence: $0.event.sequence, event: String(buffer: $0.json), reason: failure.description,
            time: now)
        }
        try state.save(record, of: key, places: places, dead: keepsDeadLetters ? dead : [])
        return true
      }
      let wait = schedule.wait(afterFailures: record.failures, asked: asked, random: random())
      record.nextAttempt = now.adding(wait)
      log.warning("to be tried again in \(Int(wait.rounded(.up))) s: \(failure.description)", metadata: metadata)
    }
    try state.save(record, of: key)
    show(record, key)
    guard let next = record.nextAttempt, next <= now.adding(Self.shortWait) else { throw Pause() }
    try await clock.sleep(until: next)
    return false
  }

  private func show(_ record: SidecarState.Record, _ key: SinkKey) {
    var status = SinkStatus(name: name, kind: kind)
    status.position = record.position ?? 0
    status.delivered = record.delivered
    status.failed = record.failed
    status.deadLetters = (try? Int64(state.deadLetterCount(of: key))) ?? 0
    status.failure = record.failure
    status.nextAttempt = record.nextAttempt
    status.disabled = record.disabled
    board.update(status)
  }
}

extension SidecarState.Record {
  fileprivate mutating func note(_ failure: DeliveryFailure, at time: Timestamp) {
    failures += 1
    failed += 1
    failingSince = min(failingSince ?? time, time)
    failedLast = time
    self.failure = failure.description
  }

  fileprivate mutating func noteSuccess() {
    failures = 0
    (failingSince, failedLast, failure) = (nil, nil, nil)
  }
}

extension Timestamp {
  /// The moment that many seconds later.
  func adding(_ seconds: Double) -> Timestamp { Timestamp(nanoseconds: nanoseconds + Int64(seconds * 1e9)) }
}
