import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// Knows the callers of the last second, and ends streams and waiting requests of callers whose device or session is
/// removed.
///
/// A request asks the store for the caller of its token, unless the watch knows an answer of the last second. Streams
/// and waiting requests are registered here; once a second the watch asks the store about all of them.
final class SessionWatch: Service {
  /// How old an answer of the store may be.
  private static let freshness = Duration.seconds(1)
  /// Answers that are kept.
  private static let mostAnswers = 16_384

  private struct Answer {
    let caller: Caller
    let asked: ContinuousClock.Instant
  }

  private struct State {
    var answers: [[UInt8]: Answer] = [:]
    var running: [UInt64: (caller: Caller, place: SharedPlace?, end: @Sendable () -> Void)] = [:]
    var next: UInt64 = 0
    var isFinished = false
    private var seen: ContinuousClock.Instant?

    /// Whether it is time to note once more which devices are there.
    mutating func noteSeen(at now: ContinuousClock.Instant) -> Bool {
      if let seen, now - seen < SessionWatch.seenInterval { return false }
      seen = now
      return true
    }
  }

  /// How often the store hears which devices have a stream.
  private static let seenInterval = Duration.seconds(60)

  private let accounts: Accounts
  private let shares: SharedFeeds
  private let limits: ServerLimits
  private let logger: Logger
  private let state = Mutex(State())

  init(accounts: Accounts, shares: SharedFeeds, limits: ServerLimits, logger: Logger) {
    self.accounts = accounts
    self.shares = shares
    self.limits = limits
    self.logger = logger
  }

  /// Streams and waiting requests.
  var count: Int { state.withLock { $0.running.count } }

  /// Whose token it is.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`.
  func caller(token: String) async throws -> Caller {
    let refusal = HubError(.unauthorized, "the session ended, or there is none")
    guard let hash = ZonedSecret(token, length: ZonedSecret.tokenLength)?.hash else { throw refusal }
    let now = ContinuousClock.now
    let known = state.withLock { state in state.answers[hash].flatMap { now - $0.asked < Self.freshness ? $0 : nil } }
    if let known, known.caller.expires > accounts.clock.now { return known.caller }
    guard let caller = try await accounts.caller(token: token) else {
      state.withLock { _ = $0.answers.removeValue(forKey: hash) }
      throw refusal
    }
    keep(Answer(caller: caller, asked: now))
    return caller
  }

  /// Looks again whether a caller still has the session.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`.
  func recheck(_ caller: Caller) async throws {
    let known = state.withLock { $0.answers[caller.session] }
    if let known, .now - known.asked < Self.freshness, caller.expires > accounts.clock.now { return }
    try await confirm(caller)
  }

  /// Asks the store whether a caller still has the session.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`.
  func confirm(_ caller: Caller) async throws {
    let now = ContinuousClock.now
    guard try await accounts.valid([caller]).contains(caller) else {
      throw HubError(.unauthorized, "the session ended")
    }
    keep(Answer(caller: caller, asked: now))
  }

  /// Runs `body` until it ends, the caller's session or device does, the account's part in the share, or the server.
  /// Then it is cancelled.
  ///
  /// - Parameter shared: The share that it is about, if any.
  /// - Throws: ``HubError`` of kind `tooMany`, `unauthorized`, `notFound` or `unavailable`; what `body` throws.
  func run<Value: Sendable>(
    for caller: Caller, in shared: SharedPlace? = nil, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    let place = try take(for: caller, in: shared) { end.finish() }
    defer { place.giveBack() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        for await _ in ended {}
        return nil
      }
      defer { group.cancelAll() }
      if let value = try await group.next() ?? nil { return value }
      if state.withLock(\.isFinished) { throw HubError(.unavailable, "the hub is ending") }
      if let shared, try await !shares.open([shared]).contains(shared) { throw HubShare.nothing }
      throw HubError(.unauthorized, "the session ended")
    }
  }

  /// Takes a place for a stream, until it is given back.
  ///
  /// - Parameters:
  ///   - shared: The share that it is about, if any.
  ///   - end: Called when the caller's session or device ends, the account's part in the share, or the server.
  /// - Throws: ``HubError`` of kind `tooMany` or `unavailable`.
  func take(for caller: Caller, in shared: SharedPlace? = nil, end: @escaping @Sendable () -> Void) throws -> Place {
    let number = try state.withLock { state in
      guard !state.isFinished else { throw HubError(.unavailable, "the hub is ending") }
      guard state.running.count < limits.streams,
        state.running.values.count(where: { $0.caller.zone == caller.zone && $0.caller.device == caller.device })
          < limits.streamsOfDevice
      else { throw HubError(.tooMany, "as many streams are open as there may be") }
      state.next += 1
      state.running[state.next] = (caller, shared, end)
      return state.next
    }
    return Place { [self] in state.withLock { _ = $0.running.removeValue(forKey: number) } }
  }

  /// A stream's place. It is given back at the latest when nothing refers to it, as when an answer is never written.
  final class Place: Sendable {
    private let release: @Sendable () -> Void

    fileprivate init(_ release: @escaping @Sendable () -> Void) { self.release = release }

    deinit { release() }

    func giveBack() { release() }
  }

  /// Ends what runs for callers that `removed` names, and asks the store about them next time.
  func end(where removed: @Sendable (Caller) -> Bool) {
    let ended = state.withLock { state in
      state.answers = state.answers.filter { !removed($0.value.caller) }
      return state.running.values.filter { removed($0.caller) }.map(\.end)
    }
    for end in ended { end() }
  }

  /// Asks the store about everything that runs; its cost is that of a look at each session.
  func check() async {
    let (callers, places) = state.withLock { state in
      (Array(Set(state.running.values.map(\.caller))), Set(state.running.values.compactMap(\.place)))
    }
    if callers.isEmpty { return }
    do {
      if !places.isEmpty {
        let lost = places.subtracting(try await shares.open(places))
        let ended = state.withLock { state in
          state.running.values.filter { $0.place.map(lost.contains) ?? false }.map(\.end)
        }
        for end in ended { end() }
      }
      let valid = try await accounts.valid(callers)
      end { callers.contains($0) && !valid.contains($0) }
      if state.withLock({ $0.noteSeen(at: .now) }) { try await accounts.noteSeen(valid) }
    } catch is CancellationError {
    } catch {
      logger.warning("sessions could not be checked", metadata: ["reason": "\(error)"])
    }
  }

  /// Checks each second until the server ends.
  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: Self.freshness)
        await check()
      }
    }
    finish()
  }

  /// Ends everything that runs, and starts no more.
  func finish() {
    let ended = state.withLock { state in
      state.isFinished = true
      return state.running.values.map(\.end)
    }
    for end in ended { end() }
  }

  private func keep(_ answer: Answer) {
    state.withLock { state in
      if state.answers.count >= Self.mostAnswers { state.answers = [:] }
      state.answers[answer.caller.session] = answer
    }
  }
}
