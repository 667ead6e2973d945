import Foundation
import Logging
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafWire
import Synchronization

/// The shares of one connected account: what its hub says about who takes part is shown in the library, and what others
/// share with it is kept the same by a ``ReplicaEngine`` each.
final class AccountShares: Sendable {
  /// How long it waits for shared items that are not here yet, and for people who may undo that they left.
  private static let pauses = (items: Duration.milliseconds(100), departures: Duration.seconds(1))
  /// How long it waits before it asks the hub of a share again that could not be asked.
  private static let elsewhere = Duration.seconds(5)
  /// How long what was done in a share may take to be sent after the account left it.
  private static let patience = Duration.seconds(30)
  /// The same where the share's owner is connected here by now, and nobody waits.
  private static let ownerPatience = Duration.seconds(3600)
  /// Between two attempts after a failure, at first and at most.
  private static let attempts = (first: 0.5, longest: 60.0)

  private struct Running {
    let engine: ReplicaEngine
    let task: Task<Void, Never>
    /// How far the hub says that the share's feed goes.
    var number: Int64
  }

  /// A share at another hub than the account's own.
  private struct Guest: Hashable {
    let share: WireID
    let hub: HubIdentity
  }

  private struct State {
    /// The newest numbers of feeds that were told.
    var numbers: [WireID: Int64] = [:]
    var inbox: Int64?
    /// The number of the inbox that was read last.
    var readInbox: Int64?
    /// Whether everything that was read is shown.
    private(set) var isShown = false
    /// How often that was called in question.
    private(set) var doubts = 0
    /// Whether the hub is to be told that the account left some.
    var isLeaving = true
    /// Shares whose item is deleted at the hub, until the hub tells of them again.
    var suspended: Set<WireID> = []
    /// Since when the hub is to be told that the account left.
    var departures: [WireID: ContinuousClock.Instant] = [:]
    var running: [WireID: Running] = [:]
    /// How often a reading of the inbox was asked for.
    var asked = 0
    var waiting: [(number: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    /// Clients of shares at other hubs.
    var guests: [Guest: DeviceClient] = [:]
    /// Whether their connections ended for good.
    var isShut = false
    /// Whether a hub of such a share could not be asked.
    var isAsking = false
    /// The number of the inbox when keys for such shares were deposited last.
    var deposited: Int64?
    var isOver = false

    /// Has everything looked at again.
    mutating func doubt() {
      isShown = false
      doubts += 1
    }

    /// Notes that everything is shown, unless that was called in question since.
    mutating func settle(_ known: Int) {
      if known == doubts { isShown = true }
    }
  }

  let own: ReplicaEngine
  let number: Int64
  private let library: Library
  private let client: DeviceClient
  private let threads: ReplicaThreads
  private let serials: @Sendable (WireID) -> SerialFile
  private let keys: KeyFile
  private let logger: Logger
  private let state = Mutex(State())
  private let signal = WakeSignal()

  /// - Parameters:
  ///   - serials: Where the serials of a share's sends are noted.
  ///   - keys: Where the keys are that stand for the device at other hubs.
  init(
    _ own: ReplicaEngine, _ number: Int64, _ library: Library, threads: ReplicaThreads,
    serials: @escaping @Sendable (WireID) -> SerialFile, keys: KeyFile, logger: Logger
  ) {
    self.keys = keys
    self.own = own
    self.number = number
    self.library = library
    self.threads = threads
    self.serials = serials
    self.logger = logger
    client = own.client
  }

  /// The client by which a share is asked about: at the account's hub, or at the one that has the share.
  func client(of share: WireID) async throws -> DeviceClient {
    try guest(of: share, at: try await call { library, number in try library.hub(of: share, for: number) })
  }

  /// - Parameter hub: Where the share is; nil for the account's own hub.
  private func guest(of share: WireID, at hub: String?) throws -> DeviceClient {
    guard let hub else { return client }
    guard let identity = HubIdentity(elsewhere: hub) else {
      throw SheafError(.inputOutput, subject: own.hub, reason: "names a hub of a share that is none")
    }
    let guest = Guest(share: share, hub: identity)
    return try state.withLock { state in
      if state.isShut { throw CancellationError() }
      if let known = state.guests[guest] { return known }
      let made = DeviceClient(client, guestOf: share, at: identity, keys: keys)
      state.guests[guest] = made
      return made
    }
  }

  /// Ends the connections to other hubs; it must have ended before.
  func shutdown() async {
    let guests = state.withLock { state in
      defer { (state.guests, state.isShut) = ([:], true) }
      return Array(state.guests.values)
    }
    for guest in guests { await guest.shutdown() }
  }

  /// Whether all that the hub said of shares is shown.
  func isSettled() async throws -> Bool {
    let (isRead, isShown, isLeaving, suspended) = state.withLock {
      ($0.inbox == $0.readInbox, $0.isShown, $0.isLeaving, $0.suspended)
    }
    guard isRead, !isShown, !isLeaving else { return isRead && isShown }
    return try await call { try $0.showsAllShares(of: $1, except: suspended) }
  }

  /// Has it read the inbox now.
  func wake() {
    state.withLock { $0.readInbox = nil }
    signal.raise()
  }

  /// The replicas of shares that run.
  var engines: [ReplicaEngine] { state.withLock { $0.running.values.map(\.engine) } }

  /// Sets how much is sent and fetched from now on. What goes on ends at once if nothing is to be.
  func set(_ pace: ReplicaPace) {
    client.pace.rate = pace.limit
    own.gate.isPaused = pace.isPaused
    signal.raise()
  }

  // MARK: - Running

  /// Runs until its task is cancelled.
  func run() async {
    let door = library.observe(account: number) { [signal] _ in signal.raise() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        for await news in own.news {
          state.withLock { state in
            state.inbox = news.inbox
            for share in news.shares {
              state.numbers[share.share] = share.number
              if share.number > 0, state.suspended.remove(share.share) != nil { state.doubt() }
            }
          }
          signal.raise()
        }
      }
      group.addTask { [self] in await work() }
      await group.next()
      group.cancelAll()
    }
    library.endObserving(door)
    let (running, waiting) = state.withLock { state in
      defer { (state.running, state.waiting, state.isOver) = ([:], [], true) }
      return (Array(state.running.values), state.waiting)
    }
    for each in waiting { each.continuation.resume(throwing: CancellationError()) }
    for each in running { each.task.cancel() }
    for each in running { await each.task.value }
  }

  private func work() async {
    var pause = Self.attempts.first
    while !Task.isCancelled {
      // Whoever asks is answered all the same.
      if own.gate.isPaused, state.withLock(\.waiting.isEmpty) {
        await signal.wait(atMost: nil)
        continue
      }
      do {
        let wait = try await cycle()
        pause = Self.attempts.first
        await signal.wait(atMost: wait)
      } catch is CancellationError {
        return
      } catch {
        fail(error)
        if !(error is HubFailure) {
          logger.error("shares cannot be shown", metadata: ["account": "\(own.account)", "error": "\(error)"])
        }
        // Whatever wakes it, it asks no more often than this.
        try? await Task.sleep(for: .seconds(Self.attempts.first))
        await signal.wait(atMost: .seconds(pause))
        pause = min(pause * 2, Self.attempts.longest)
      }
    }
  }

  /// Does everything that can be done now; returns after which time there may be more, if nothing wakes it.
  private func cycle() async throws -> Duration? {
    let (asked, inbox, isNew, isShown) = state.withLock { state in
      let isNew = state.inbox != nil && state.inbox != state.readInbox
      return (state.asked, state.inbox, isNew || !state.waiting.isEmpty, state.isShown)
    }
    if isNew {
      try await readInbox()
      state.withLock { state in
        state.readInbox = inbox
        state.suspended = []
        state.doubt()
      }
    }
    try await depositKeys()
    wakeEngines()
    let isOut = engines.contains(where: \.isOut)
    if !isNew, isShown, !isOut, try await !call({ try $0.isLeaving($1) }) { return nil }
    let doubts = state.withLock(\.doubts)
    let duties = try await call { library, number in try library.shareDuties(of: number) }
    for share in duties.ended { try await end(share) }
    for share in duties.followed { try await follow(share) }
    var isSending = false
    for share in duties.ownedHere {
      // What was saved in it goes to the hub first.
      try await follow(share)
      if try await isSent(share.share, within: Self.ownerPatience) { try await end(share) } else { isSending = true }
    }
    let suspended = state.withLock { $0.suspended }
    let waiting = try await call { library, number in try library.showShares(of: number, except: suspended) }
    state.withLock { state in
      // Whatever came meanwhile is looked at again.
      if waiting == 0, duties.left.isEmpty, !isSending { state.settle(doubts) } else { state.doubt() }
      state.isLeaving = !duties.left.isEmpty
    }
    wakeEngines()
    answer(upTo: asked)
    for share in duties.left {
      if try await isSent(share) == false {
        isSending = true
        continue
      }
      do {
        try await client(of: share).removeParticipant(own.account, of: share)
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        // It had ended before.
      }
      state.withLock { $0.readInbox = nil }
    }
    if isSending { return Self.pauses.departures }
    if !duties.left.isEmpty { return .zero }
    if waiting > 0 { return Self.pauses.items }
    if duties.isLeaving { return Self.pauses.departures }
    guard state.withLock(\.isAsking) else { return nil }
    state.withLock { $0.readInbox = nil }
    return Self.elsewhere
  }

  /// Deposits keys for shares of other hubs; an invitation to one may have taken some.
  private func depositKeys() async throws {
    let (inbox, deposited) = state.withLock { ($0.readInbox, $0.deposited) }
    guard inbox != deposited else { return }
    do {
      try await client.depositKeys(from: keys)
    } catch let error where !(error is CancellationError) {
      // Without them everything else goes on.
      logger.warning("no keys are deposited", metadata: ["account": "\(own.account)", "error": "\(error)"])
    }
    state.withLock { $0.deposited = inbox }
  }

  /// Whether the hub has what was done in a share before the account left it: what the same program deleted on the way
  /// out is to be back there, too. It is not waited for without an end.
  private func isSent(_ share: WireID, within patience: Duration = patience) async throws -> Bool {
    let (engine, since) = state.withLock { state in
      let since = state.departures[share] ?? .now
      state.departures[share] = since
      return (state.running[share]?.engine, since)
    }
    if let engine, !engine.isOut, ContinuousClock.now - since < patience {
      let status = try await engine.status()
      if status.unsent > 0 || !status.isSettled { return false }
    }
    state.withLock { _ = $0.departures.removeValue(forKey: share) }
    return true
  }

  private func readInbox() async throws {
    let inbox = try await client.inbox()
    var states: [ShareState] = []
    let known = try await call { library, number in try library.noted(of: number) }
    state.withLock { $0.isAsking = false }
    for entry in inbox.entries where entry.acceptance == .accepted {
      // Of the others nothing has changed.
      if let tag = entry.offer?.tag, known[entry.share] == tag { continue }
      do {
        states.append(try await guest(of: entry.share, at: entry.hub).share(entry.share))
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) {
        // It ended meanwhile, or its item is deleted.
      } catch is HubFailure where entry.hub != nil {
        // One hub that is away holds up no other.
        state.withLock { $0.isAsking = true }
      }
    }
    let read = states
    let hub = client.device.hub.description
    try await call { library, number in
      try library.noteHub(hub, of: number)
      try library.noteInbox(inbox.entries, read, of: number)
    }
    // The logs tell of what changed in shares.
    own.log.wake()
  }

  private func follow(_ share: FollowedShare) async throws {
    if state.withLock({ $0.running[share.share]?.engine.isOut ?? false }) {
      // The hub has it no more, though the account takes part: what is shared was deleted.
      try await end(share)
      state.withLock { _ = $0.suspended.insert(share.share) }
    }
    let guest = try await client(of: share.share)
    state.withLock { state in
      guard state.running[share.share] == nil, !state.suspended.contains(share.share) else { return }
      let engine = ReplicaEngine(
        own.account, .share(share), share.account, library, guest, log: own.log, gate: own.gate, threads: threads,
        serials: serials(share.share), logger: logger)
      let isElsewhere = guest !== client
      let task = Task { [signal] in
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await engine.run() }
          if isElsewhere { group.addTask { await Self.follow(share.share, guest, engine) } }
          await group.next()
          group.cancelAll()
        }
        signal.raise()
      }
      state.running[share.share] = Running(engine: engine, task: task, number: -1)
    }
  }

  /// Wakes the replica of a share at another hub whenever its feed goes on.
  private static func follow(_ share: WireID, _ client: DeviceClient, _ engine: ReplicaEngine) async {
    // Of the end of a right the engine hears as it reads.
    for await _ in client.news(of: share) { engine.wake(readsFeed: true) }
  }

  private func end(_ share: FollowedShare) async throws {
    let (running, guests) = state.withLock { state in
      let guests = state.guests.filter { $0.key.share == share.share }
      for guest in guests.keys { state.guests[guest] = nil }
      return (state.running.removeValue(forKey: share.share), guests)
    }
    running?.task.cancel()
    await running?.task.value
    for guest in guests.values { await guest.shutdown() }
    try await call { library, _ in try library.endShare(share) }
  }

  /// Has those replicas read their feeds that went on.
  private func wakeEngines() {
    let woken = state.withLock { state in
      var woken: [ReplicaEngine] = []
      for (share, number) in state.numbers {
        guard let running = state.running[share], running.number != number else { continue }
        state.running[share]?.number = number
        woken.append(running.engine)
      }
      return woken
    }
    for engine in woken { engine.wake(readsFeed: true) }
  }

  // MARK: - Being asked

  /// Has the account's shares looked at, since another account of the library was connected or is no more.
  func noteOtherAccounts() {
    state.withLock { $0.doubt() }
    signal.raise()
  }

  /// Reads the inbox now, and shows what it says.
  func refresh() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let isOver = state.withLock { state in
        if state.isOver { return true }
        state.asked += 1
        state.waiting.append((state.asked, continuation))
        return false
      }
      if isOver { continuation.resume(throwing: CancellationError()) }
      signal.raise()
    }
  }

  private func answer(upTo asked: Int) {
    let answered = state.withLock { state in
      defer { state.waiting.removeAll { $0.number <= asked } }
      return state.waiting.filter { $0.number <= asked }
    }
    for each in answered { each.continuation.resume() }
  }

  private func fail(_ error: any Error) {
    let failed = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for each in failed { each.continuation.resume(throwing: error) }
  }

  func call<Value: Sendable>(
    _ body: @escaping @Sendable (Library, Int64) throws -> Value
  ) async throws -> Value {
    let (library, number) = (library, number)
    return try await threads.run { try body(library, number) }
  }
}
