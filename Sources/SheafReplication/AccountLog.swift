import Foundation
import Logging
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafWire
import Synchronization

/// Reads the logs of a connected account at its hub into the library: the account's own, and those of shares of others.
///
/// One stream tells how far the logs go. Each is read from the place that the library notes, so the task may end
/// anywhere. If the hub went back, it says where the log of then and the log of now part.
final class AccountLog: Sendable {
  /// Between two attempts after a failure, at first and at most.
  private static let pauses = (first: 0.5, longest: 60.0)
  /// How long the hub hears nothing of what was read here: the library tells of every change of its log.
  private static let readingPause = Duration.milliseconds(250)
  /// Between two pages while everything that the hub has comes to this machine for the first time.
  private static let arrivalPause = Duration.seconds(1)

  private struct State {
    /// The place after each log's newest event, as it was told last.
    var lasts: [HubLog: HubLogPlace] = [:]
    /// What was told and is not in the library yet.
    var heads: [HubLog: HubLogHead] = [:]
    /// Logs that may go further than was told.
    var asked: Set<HubLog> = []
    /// The end up to which a log was read in which nothing more was found.
    var exhausted: [HubLog: HubLogPlace] = [:]
    /// Whether the stream has said how far all logs go.
    var isTold = false
    /// Whether more was asked for than to tell what was read here.
    var isUrgent = false
    /// Whether everything that the hub has comes to this machine, which matters more than what was done there before.
    var yields = false
    /// Rises with each wake-up.
    var wakes = 0
    /// The wake-up after which all was read.
    var settled = -1
  }

  private let account: AccountHandle
  private let number: Int64
  private let library: any ReplicaInterface & InodeInterface
  private let client: DeviceClient
  private let gate: PauseGate
  private let threads: ReplicaThreads
  private let logger: Logger
  private let state = Mutex(State())
  private let signal = WakeSignal()

  init(
    _ account: AccountHandle, _ number: Int64, _ library: any ReplicaInterface & InodeInterface, _ client: DeviceClient,
    gate: PauseGate, threads: ReplicaThreads, logger: Logger
  ) {
    self.account = account
    self.number = number
    self.library = library
    self.client = client
    self.gate = gate
    self.threads = threads
    self.logger = logger
  }

  /// Whether everything that was told is in the library.
  var isSettled: Bool { state.withLock { $0.isTold && $0.settled == $0.wakes } }

  /// Says whether everything that the hub has comes to this machine for the first time. Until it is here, what was done
  /// there before is read slowly.
  func noteArrival(goesOn: Bool) { state.withLock { $0.yields = goesOn } }

  /// Has a log read: the hub may have more than its stream told.
  func wake(_ log: HubLog) {
    state.withLock { state in
      state.asked.insert(log)
      state.isUrgent = true
      state.wakes += 1
    }
    signal.raise()
  }

  /// Has all logs read.
  func wake() {
    state.withLock { state in
      state.asked.formUnion(state.lasts.keys)
      state.asked.insert(.own)
      state.isUrgent = true
      state.wakes += 1
    }
    signal.raise()
  }

  /// Runs until its task is cancelled.
  func run() async {
    // What the account read of its notices is told to its other machines.
    let door = library.observe(account: number) { [weak self] _ in
      guard let self else { return }
      let isFirst = state.withLock { state in
        state.wakes += 1
        return state.settled == state.wakes - 1
      }
      if isFirst { signal.raise() }
    }
    while !Task.isCancelled {
      if gate.isPaused { await gate.wait(until: false) }
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.follow() }
        group.addTask { await self.work() }
        group.addTask { await self.gate.wait(until: true) }
        await group.next()
        group.cancelAll()
      }
    }
    library.endObserving(door)
  }

  private func follow() async {
    // What is wrong with the hub, the replica says.
    for await case .logs(let logs, let isBeginning) in client.news() {
      state.withLock { state in
        // A hub that went back may tell of less than before.
        if isBeginning { state.lasts = [:] }
        for log in logs {
          let name: HubLog = log.share.map { .share($0) } ?? .own
          state.lasts[name] = HubLogPlace(number: log.last, token: log.token)
          state.heads[name] = HubLogHead(share: log.share, last: log.last, read: log.read)
        }
        (state.isTold, state.isUrgent) = (true, true)
        state.wakes += 1
      }
      signal.raise()
    }
  }

  private func work() async {
    var pause = Self.pauses.first
    while !Task.isCancelled {
      let (wakes, isTold) = state.withLock { state in
        state.isUrgent = false
        return (state.wakes, state.isTold)
      }
      do {
        if isTold {
          try await cycle()
          state.withLock { $0.settled = wakes }
        }
        pause = Self.pauses.first
        if state.withLock({ $0.settled == $0.wakes || !$0.isTold }) { await signal.wait(atMost: nil) }
        if !state.withLock(\.isUrgent) { await signal.wait(atMost: Self.readingPause) }
      } catch is CancellationError {
        return
      } catch {
        say(error)
        try? await Task.sleep(for: .seconds(Self.pauses.first))
        await signal.wait(atMost: .seconds(pause))
        pause = min(pause * 2, Self.pauses.longest)
      }
    }
  }

  /// A hub that is away is no failure of this machine.
  private func say(_ error: any Error) {
    guard !(error is HubFailure), !(error is CancellationError) else { return }
    logger.error("a log cannot be read", metadata: ["account": "\(account)", "error": "\(error)"])
  }

  /// Reads everything that there is, and tells the hub what was read of the notices.
  private func cycle() async throws {
    let marks = try await call { try $0.readMarks(of: $1) }
    if !marks.isEmpty {
      try await client.setRead(marks)
      try await call { try $0.noteRead(marks, of: $1) }
    }
    while true {
      try Task.checkCancellation()
      let heads = state.withLock(\.heads)
      if !heads.isEmpty {
        try await call { try $0.noteLogs(Array(heads.values), of: $1) }
        state.withLock { state in
          // What was told meanwhile is still to be noted.
          for (log, head) in heads where state.heads[log] == head { state.heads[log] = nil }
        }
        continue
      }
      let positions = try await call { try $0.logPositions(of: $1) }
      let next = state.withLock { state -> HubLog? in
        for (log, last) in state.lasts.sorted(by: { $0.key.name < $1.key.name }) {
          let place = positions.first { $0.log == log }
          let isAtEnd = place.map { $0.number == last.number && $0.token == last.token } ?? (last.number == 0)
          // The library takes nothing of a log that it does not know.
          if state.heads[log] != nil { continue }
          if state.asked.contains(log) || !isAtEnd && state.exhausted[log] != last { return log }
        }
        // Of a log that the stream does not tell nothing is to be had.
        state.asked.formIntersection(state.heads.keys)
        return nil
      }
      guard let log = next else {
        if state.withLock(\.heads.isEmpty) { return }
        continue
      }
      try await read(log, positions.first { $0.log == log })
    }
  }

  /// Reads the next page of a log.
  private func read(_ log: HubLog, _ position: HubLogPosition?) async throws {
    let last = state.withLock { $0.lasts[log] }
    let before = position.flatMap { position in
      position.token.map { HubLogPlace(number: position.number, token: $0) }
    }
    do {
      var (page, isAnew): (LogPage<Event>, Bool)
      do {
        (page, isAnew) = (try await client.events(log, after: before), false)
      } catch let failure as HubFailure where failure.kind == .refused(.gone) {
        guard let before else { throw failure }
        do {
          (page, isAnew) = (try await client.events(log, former: before), true)
        } catch let failure as HubFailure where failure.kind == .refused(.gone) {
          // The hub knows nothing of that time.
          (page, isAnew) = (try await client.events(log, after: nil), true)
        }
      }
      let (read, starts, device) = (page, isAnew, client.device.id)
      let share = log.share
      try await call { library, number in
        try library.note(read, ofShare: share, of: number, device: device, isAnew: starts)
      }
      state.withLock { state in
        if page.next >= page.last { state.asked.remove(log) }
        if page.events.isEmpty, before?.number == page.next, before?.token == page.token { state.exhausted[log] = last }
      }
      if read.next < read.last, state.withLock(\.yields) { try await Task.sleep(for: Self.arrivalPause) }
    } catch let failure as HubFailure where failure.kind == .refused(.notFound) && log != .own {
      // The account's part ended so long ago that nobody knows of it.
      state.withLock { state in
        state.asked.remove(log)
        state.exhausted[log] = last
      }
    }
  }

  private func call<Value: Sendable>(
    _ body: @escaping @Sendable (any ReplicaInterface, Int64) throws -> Value
  ) async throws -> Value {
    let (library, number) = (library, number)
    return try await threads.run { try body(library, number) }
  }
}

extension HubLog {
  fileprivate var share: WireID? {
    switch self {
    case .own: nil
    case .share(let share): share
    }
  }

  fileprivate var name: String { share?.description ?? "" }
}

extension HubLogPosition {
  fileprivate var log: HubLog { share.map { .share($0) } ?? .own }
}
