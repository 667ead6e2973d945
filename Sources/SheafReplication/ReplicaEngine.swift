import Foundation
import Logging
import NIOCore
import SheafHubClient
import SheafLibrary
import SheafModel
import SheafReplica
import SheafWire
import Synchronization

/// Keeps one replica and its hub the same, for as long as it runs: of an account's own zone, or of a share of somebody
/// elsewhere.
///
/// One task does one thing after the other, as ``ReplicaInterface`` asks for it. Of an account's own zone another one
/// follows the hub's stream and wakes the first. Everything that is durable is the library's, so the task may end
/// anywhere.
final class ReplicaEngine: Sendable {
  typealias ReplicaLibrary = ReplicaInterface & SharedReplicaInterface & InodeInterface

  /// What is kept the same.
  enum Subject: Sendable {
    case zone
    case share(FollowedShare)

    var isShare: Bool { if case .share = self { true } else { false } }

    var scope: HubScope {
      switch self {
      case .zone: .own
      case .share(let share): .share(share.share)
      }
    }
  }

  /// Sends of a request.
  private static let sendLimit = 64
  /// Rows of a page of the feed.
  private static let pageLimit = 64
  /// How long new items wait until they are looked at again.
  private static let pause = Duration.milliseconds(1_050)
  /// Between two attempts after a failure, at first and at most.
  private static let pauses = (first: 0.5, longest: 60.0)
  /// Items that wait since their contents are too large; with more of them, only deletions are sent.
  private static let largeLimit = 256
  /// How long what did not fit on the disk waits until it is tried again.
  private static let roomPause = Duration.seconds(30)
  /// How long a machine that the hub seems not to know leaves it alone at least.
  private static let answerPause = Duration.seconds(5)
  /// How often at most everything is read anew since the hub told a wrong size.
  private static let sizesPause = Duration.seconds(600)

  private struct State {
    var state = ConnectionStatus.State.connecting
    var since: Timestamp
    var problem: String?
    var needsFeed = true
    /// Answers in a row that refused everything.
    var refusals = 0
    /// Rises with each wake-up; the comparison that began after a wake-up has seen what it was about.
    var wakes = 0
    /// The wake-up after which all was the same.
    var settled = -1
    var notices = NoticeList()
    var lacking = LackingRoom()
    /// Whether it ended since the hub says that there is no such share for the account.
    var isOut = false
    /// Whether it ended by an answer that may be another one's than the hub's, so that it is asked again, though rarely.
    var isTriedAgain = false
    /// Whether the hub says that this machine is to destroy what it has of the account.
    var isWiped = false
    var full: Full?
    /// When everything was read anew last since the hub told a wrong size.
    var sizesRead: ContinuousClock.Instant?
    /// After which contents the search for those that are to come goes on, and the wake-up for which it began; nil once
    /// it found no more.
    var search: (after: Int64, wakes: Int)? = (0, 0)
    /// The wake-up for which the last search that came to its end began.
    var searched = -1
  }

  /// The hub has no room: until a moment something is not sent. Everything else goes on.
  private struct Full {
    /// The items whose contents are too large; nil if there is no room for anything, and only deletions are sent.
    var items: Set<WireID>?
    let problem: String
    var until: ContinuousClock.Instant
    let pause: Double

    /// What is sent now.
    var sends: PlannedSends {
      guard .now < until else { return .all }
      return items.map { .allBut($0) } ?? .deletions
    }

    /// The same, to be tried again now.
    var over: Full {
      var over = self
      over.until = .now
      return over
    }
  }

  /// The connected account.
  let account: AccountHandle
  let subject: Subject
  /// The account whose `Documents` the replica is.
  let number: Int64
  private let library: any ReplicaLibrary
  let client: DeviceClient
  private let calls: LibraryCalls
  private let serials: SerialFile
  let logger: Logger
  private let state: Mutex<State>
  private let signal = WakeSignal()
  /// Whether the account is paused, for all its replicas.
  let gate: PauseGate
  /// What the hub's stream says, the newest last.
  let news: AsyncStream<FeedNews>
  private let told: AsyncStream<FeedNews>.Continuation
  private let ahead = FetchedContents()
  private let demand = ContentsDemand()
  private let contents: SentContents
  /// What is known of the spans for which folders keep things.
  let retentions = Mutex(SentRetentions())
  /// The account's logs at the hub.
  let log: AccountLog

  init(
    _ account: AccountHandle, _ subject: Subject, _ number: Int64, _ library: any ReplicaLibrary,
    _ client: DeviceClient, log: AccountLog, gate: PauseGate, threads: ReplicaThreads, serials: SerialFile,
    logger: Logger
  ) {
    self.log = log
    self.gate = gate
    self.serials = serials
    self.account = account
    self.subject = subject
    self.number = number
    self.library = library
    calls = LibraryCalls(library, number, threads)
    contents = SentContents(calls, client, subject.scope)
    self.logger = logger
    self.client = client
    state = Mutex(State(since: Self.now))
    (news, told) = AsyncStream.makeStream(of: FeedNews.self, bufferingPolicy: .bufferingNewest(256))
  }

  static var now: Timestamp { Timestamp(nanoseconds: Int64(Date().timeIntervalSince1970 * 1_000_000_000)) }

  // MARK: - For others

  /// Whether it ended since the hub says that there is no such share for the account.
  var isOut: Bool { state.withLock { $0.isOut } }

  /// Whether it ended since the hub says that this machine is to destroy what it has of the account.
  var isWiped: Bool { state.withLock { $0.isWiped } }

  var hub: String { client.device.hub.description }

  /// - Parameter readsFeed: whether the hub may have more than its stream told.
  func wake(readsFeed: Bool = false) {
    searchAgain(readsFeed: readsFeed)
    signal.raise()
  }

  /// Has the next comparison look for contents that are to come from the first one on: something that was passed may be
  /// wanted now, or fit.
  private func searchAgain(readsFeed: Bool = false) {
    state.withLock { state in
      state.wakes += 1
      state.search = (0, state.wakes)
      if readsFeed { state.needsFeed = true }
    }
  }

  /// Rises with each wake-up.
  var wakes: Int { state.withLock { $0.wakes } }

  func status() async throws -> ConnectionStatus {
    let told = state.withLock { $0.lacking.notices + $0.notices.notices }
    let (counts, notices) = try await call { library, number in
      let counts = try library.replicaCounts(number)
      let isAllHere = counts.news + counts.histories == 0
      let present = try told.filter { notice in
        guard let copy = notice.copy else { return true }
        return try !(library.isDecided(copy, of: number) ?? isAllHere)
      }
      return (
        counts, try present.map { "\(try library.replicaPath($0.item, of: number) ?? "id:\($0.item)"): \($0.text)" }
      )
    }
    return state.withLock { state in
      ConnectionStatus(
        account: account, hub: hub, state: state.state, since: state.since,
        problem: state.problem ?? state.full?.problem,
        unsent: max(counts.unsent, counts.saves + counts.sends), unfetched: counts.news + counts.histories,
        isSettled: state.settled == state.wakes && counts.saves == 0,
        isPaused: gate.isPaused, limit: client.pace.rate, movedBytes: client.pace.passed,
        notices: notices)
    }
  }

  func devices() async throws -> [ConnectedDevice] {
    try await asked { client in
      try await client.devices().map {
        ConnectedDevice(
          id: $0.id, name: $0.name, added: $0.added, seen: $0.seen, isOwn: $0.id == client.device.id,
          wipeAsked: $0.wipe?.asked, wiped: $0.wipe?.done)
      }
    }
  }

  func addDevice() async throws -> DeviceLink {
    try await asked { client in
      let facts = try await client.newDeviceLink()
      return DeviceLink(link: facts.link, expires: facts.expires)
    }
  }

  func revokeDeviceLinks() async throws -> RevokedDeviceLinks {
    try await asked { RevokedDeviceLinks(revoked: try await $0.revokeDeviceLinks()) }
  }

  func removeDevice(_ id: String, wipes: Bool) async throws {
    guard let id = WireID(id) else {
      throw SheafError(.notFound, subject: "device \(id)".printable, reason: "is no device's id")
    }
    try await asked { try await $0.removeDevice(id, wipes: wipes) }
  }

  private func asked<Value>(_ body: (DeviceClient) async throws -> Value) async throws -> Value {
    do {
      return try await body(client)
    } catch let failure as HubFailure {
      throw failure.sheafError
    }
  }

  // MARK: - Running

  /// Runs until its task is cancelled, or the hub does not know this machine any more.
  func run() async {
    let door = library.observe(account: number) { [weak self] _ in self?.wake() }
    var isEnded = false
    while !isEnded, !Task.isCancelled {
      if gate.isPaused { await rest() }
      isEnded = await withTaskGroup(of: Bool.self) { group in
        if case .zone = subject {
          group.addTask {
            await self.follow()
            return true
          }
        }
        group.addTask {
          await self.work()
          return true
        }
        group.addTask {
          await self.gate.wait(until: true)
          return false
        }
        let first = await group.next() ?? true
        group.cancelAll()
        return first
      }
      // For a moment another one may have answered in the hub's place, such as the page of a network to log in to.
      if isEnded, state.withLock({ $0.isTriedAgain }), !Task.isCancelled {
        try? await Task.sleep(for: Self.answerPause)
        await signal.wait(atMost: .seconds(Self.pauses.longest))
        state.withLock { ($0.isTriedAgain, $0.needsFeed) = (false, true) }
        isEnded = false
      }
    }
    library.endObserving(door)
    told.finish()
  }

  /// Waits while it is paused. Everything that it has learned and not done is done, or asked for, once more.
  private func rest() async {
    become(.disconnected, nil)
    await gate.wait(until: false)
    become(.connecting, nil)
    wake(readsFeed: true)
  }

  /// Follows the hub's stream.
  private func follow() async {
    for await change in client.changes() {
      switch change {
      case .at(let news, let isBeginning):
        told.yield(news)
        state.withLock { $0.needsFeed = true }
        if isBeginning {
          // What the hub refused before, it may take now.
          retentions.withLock { $0.refused = [:] }
          become(.connected, nil)
        }
        wake()
      case .failure(let failure):
        note(failure)
        if isFinal(failure) { return }
      }
    }
  }

  private func work() async {
    var pause = Self.pauses.first
    var isBegun = false
    while !Task.isCancelled {
      let wakes = state.withLock { $0.wakes }
      do {
        if !isBegun {
          try await call { [serials] library, number in try serials.raise(library, number) }
          isBegun = true
        }
        let left = try await cycle()
        pause = Self.pauses.first
        if left == .others {
          await signal.wait(atMost: full.map { max(Self.pause, $0.until - .now) } ?? Self.pause)
          continue
        }
        let lacksRoom = state.withLock { state in
          if left == .nothing { state.settled = wakes }
          state.lacking.end(state.searched)
          return left == .earlierVersions || !state.lacking.isEmpty
        }
        await signal.wait(atMost: lacksRoom ? Self.roomPause : nil)
        if lacksRoom { searchAgain() }
      } catch is CancellationError {
        return
      } catch {
        if let failure = error as? HubFailure {
          note(failure)
          if isFinal(failure) { return }
        } else {
          logger.error("a replica cannot go on", metadata: ["account": "\(account)", "error": "\(error)"])
          become(.disconnected, "\(error)")
        }
        // The hub is asked in any case, which tells that all is well again.
        state.withLock { $0.needsFeed = true }
        try? await wait(seconds: pause)
        pause = min(pause * 2, Self.pauses.longest)
      }
    }
  }

  /// Waits after a failure, for news at most. Whatever wakes it, such as a stream that begins, it asks no more often than
  /// twice a second.
  ///
  /// - Throws: `CancellationError`.
  private func wait(seconds: Double) async throws {
    try await Task.sleep(for: .seconds(min(seconds, Self.pauses.first)))
    if seconds > Self.pauses.first { await signal.wait(atMost: .seconds(seconds - Self.pauses.first)) }
  }

  /// Whether another attempt does not help: the hub does not know the device, or the account is out of the share.
  private func isFinal(_ failure: HubFailure) -> Bool {
    switch (failure.kind, subject) {
    case (.deviceRemoved, _), (.deviceWiped, _), (.certificateChanged, _): true
    case (.refused(.forbidden), .share), (.refused(.notFound), .share): true
    default: false
    }
  }

  private func note(_ failure: HubFailure) {
    let isFinal = isFinal(failure)
    if isFinal, state.withLock({ $0.state != .failed }) {
      logger.notice(
        "a replica ends",
        metadata: ["account": "\(account)", "subject": "\(subject.scope.path)", "reason": "\(failure)"])
    }
    if failure.kind == .deviceRemoved || failure.kind == .certificateChanged {
      state.withLock { $0.isTriedAgain = true }
    }
    if isFinal, case .refused = failure.kind { state.withLock { $0.isOut = true } }
    if failure.kind == .deviceWiped { state.withLock { $0.isWiped = true } }
    become(isFinal ? .failed : .disconnected, "\(failure)")
  }

  private func become(_ new: ConnectionStatus.State, _ problem: String?) {
    let isOther = state.withLock { state in
      let isOther = state.state != new
      if isOther { state.since = Self.now }
      (state.state, state.problem) = (new, problem)
      return isOther
    }
    if isOther { noteSending() }
  }

  /// Tells the library whether the hub takes what was done here.
  private func noteSending() {
    library.noteSending(state.withLock { $0.state == .connected && $0.full == nil }, number)
  }

  /// Has the feed read once more.
  func readFeedAgain() { state.withLock { $0.needsFeed = true } }

  func call<Value: Sendable>(
    _ body: @escaping @Sendable (any ReplicaLibrary, Int64) throws -> Value
  ) async throws -> Value {
    try await calls.run(body)
  }

  // MARK: - One comparison

  /// What is left when everything was done that can be done now.
  private enum Left {
    case nothing
    /// Earlier versions that do not fit on the disk.
    case earlierVersions
    /// Also what is to be looked at again soon.
    case others
  }

  /// Does everything that can be done now.
  private func cycle() async throws -> Left {
    let left = try await goOn()
    // What cannot be sent waits, too.
    return full == nil ? left : .others
  }

  private func goOn() async throws -> Left {
    var impossible = ImpossibleSteps()
    while true {
      try Task.checkCancellation()
      let way = try await carryOutSteps()
      if case .wasImpossible(let step) = way {
        let pause = impossible.pause(after: step)
        // What the hub cannot give keeps nothing else back.
        if pause > ImpossibleSteps.pauses.first { try await doTheRest() }
        try await wait(seconds: pause)
      }
      guard case .noneLeft = way else { continue }
      if try await send() { continue }
      let replica = try await call { library, number in try library.replica(number) }
      guard let replica else { throw CancellationError() }
      if replica.rereads {
        try await reread()
        continue
      }
      if state.withLock({ $0.needsFeed }) {
        try await readFeed(after: replica.token)
        continue
      }
      let sends = full?.sends ?? .all
      switch try await call({ try $0.plan($1, sending: sends) }) {
      case .planned(let notices): tell(notices)
      case .settled(let waiting):
        log.noteArrival(goesOn: false)
        if sends == .all { become(full: nil) }
        if try await alignRetentions() { continue }
        if try await fetchWanted() { continue }
        switch try await compareHistories() {
        case .went: continue
        case .later: return .others
        case .lacksRoom: return waiting > 0 ? .others : .earlierVersions
        case .done: return waiting > 0 ? .others : .nothing
        }
      }
    }
  }

  /// Does what comes once everything current is the same, until something happens.
  private func doTheRest() async throws {
    let wakes = wakes
    while self.wakes == wakes {
      if try await alignRetentions() { continue }
      if try await fetchWanted() { continue }
      guard case .went = try await compareHistories() else { return }
    }
  }

  private func readFeed(after token: String?) async throws {
    // What comes meanwhile is told again.
    state.withLock { $0.needsFeed = false }
    do {
      if try await readPage(after: token) { state.withLock { $0.needsFeed = true } }
    } catch let failure as HubFailure where failure.kind == .refused(.gone) {
      try await call { try $0.reread($1, isGone: true) }
    } catch {
      state.withLock { $0.needsFeed = true }
      throw error
    }
    become(.connected, nil)
  }

  /// Reads what the feed tells next.
  ///
  /// - Returns: whether there is more.
  private func readPage(after token: String?) async throws -> Bool {
    guard case .share(let share) = subject else {
      let page = try await client.feed(after: token, limit: Self.pageLimit)
      try await call { try $0.note(page, of: $1) }
      noteRetentions(page)
      if !page.items.isEmpty { readLog() }
      return page.hasMore
    }
    let page = try await client.feed(of: share.share, after: token, limit: Self.pageLimit)
    for change in page.changes {
      let isWhole =
        switch change.change {
        case .changed: false
        case .entered: change.state?.kind == .folder
        case .left:
          if change.deleted == nil {
            try await call { library, _ in try library.isSharedFolder(change.item, in: share) }
          } else {
            false
          }
        }
      // With a folder all that is in it comes or goes.
      if isWhole {
        try await call { try $0.reread($1, isGone: false) }
        return true
      }
    }
    if !page.changes.isEmpty { readLog() }
    let left = page.changes.filter { $0.change == .left && $0.deleted == nil }.map(\.item)
    let states = page.changes.compactMap { $0.state ?? $0.deleted }
    try await call { library, _ in try library.noteShared(states, left: left, token: page.token, of: share) }
    return page.hasMore
  }

  /// Notes what was deleted from a share since its feed was read: everything that is there, read anew, does not tell it.
  ///
  /// - Returns: what left, which may be in the trash here.
  private func noteDeletions(in share: FollowedShare) async throws -> Set<WireID> {
    var left: Set<WireID> = []
    guard var token = try await call({ try $0.replica($1)?.token }) else { return left }
    do {
      while true {
        let page = try await client.feed(of: share.share, after: token, limit: Self.pageLimit)
        let deleted = page.changes.compactMap(\.deleted)
        try await call { library, _ in try library.noteDeleted(deleted, in: share) }
        left.formUnion(page.changes.filter { $0.change == .left && $0.deleted == nil }.map(\.item))
        try checkCount(left.count)
        guard page.hasMore else { return left }
        token = page.token
      }
    } catch let failure as HubFailure where failure.kind == .refused(.gone) {
      try await call { try $0.reread($1, isGone: true) }
      return left
    }
  }

  /// Has the log read that tells of what this replica sends and receives.
  func readLog() {
    switch subject {
    case .zone: log.wake(.own)
    case .share(let share): log.wake(.share(share.share))
    }
  }

  private func reread() async throws {
    readLog()
    // The library may have forgotten what its hub keeps.
    retentions.withLock { $0.noted = nil }
    if case .share(let share) = subject { return try await reread(share) }
    if try await call({ try $0.replica($1)?.token }) == nil { return try await readAll() }
    var (states, token): ([ItemState], String?) = ([], nil)
    while true {
      let page = try await client.feed(after: token, limit: WireLimits.rowsPerPage)
      states += page.items
      try checkCount(states.count)
      token = page.token
      noteRetentions(page)
      guard page.hasMore else { break }
    }
    let (all, last) = (states, token ?? "")
    try await call { try $0.noteAll(all, token: last, of: $1) }
    become(.connected, nil)
  }

  /// Items that are held in memory while everything is read anew.
  private static let rereadItems = 2_000_000

  /// Bounds what a hub can make this process remember.
  ///
  /// - Throws: `tooLarge`.
  private func checkCount(_ items: Int) throws(SheafError) {
    guard items > Self.rereadItems else { return }
    throw SheafError(
      .tooLarge, subject: hub,
      reason: "tells of more than \(Self.rereadItems) items, which are too many to be read anew",
      advice: "connect a new library to it")
  }

  /// Reads everything that the hub has for the first time. There may be very much.
  private func readAll() async throws {
    log.noteArrival(goesOn: true)
    var (token, read): (String?, Int64) = (nil, 0)
    while true {
      let page = try await client.feed(after: token, limit: WireLimits.rowsPerPage)
      let begins = token == nil
      try await call { try $0.noteListed(page.items, begins: begins, of: $1) }
      noteRetentions(page)
      (token, read) = (page.token, page.items.last?.number ?? read)
      guard page.hasMore else { break }
    }
    let (last, number) = (token ?? "", read)
    try await call { try $0.endListing(token: last, read: number, of: $1) }
    become(.connected, nil)
  }

  /// Reads everything that is in a share.
  private func reread(_ share: FollowedShare) async throws {
    // What changes meanwhile follows after its token.
    let beginning = try await client.feed(of: share.share, after: nil)
    let left = try await noteDeletions(in: share)
    guard let top = beginning.changes.first?.state else {
      throw SheafError(.inputOutput, subject: hub, reason: "tells of a share of nothing")
    }
    var (states, folders) = ([top], top.kind == .folder ? [top.item] : [])
    var known: Set<WireID> = [top.item]
    while let folder = folders.popLast() {
      do {
        for state in try await client.children(of: folder, in: share.share) where known.insert(state.item).inserted {
          states.append(state)
          if state.kind == .folder { folders.append(state.item) }
        }
        try checkCount(states.count)
      } catch let failure as HubFailure where failure.kind == .refused(.notFound) && folder != top.item {
        // It left meanwhile, and the feed says so.
      }
    }
    let (all, token) = (states, beginning.token)
    try await call { library, _ in try library.noteAllShared(all, left: left, token: token, of: share) }
    become(.connected, nil)
  }

  // MARK: - Steps

  /// How far some steps came.
  private enum StepProgress {
    case noneLeft
    case went
    /// The last one could not be done; it is compared anew.
    case wasImpossible(ReplicaStep)
    case needs(item: WireID, ItemVersion, for: ReplicaStep, number: Int64)
  }

  /// Steps that are carried out with one change of threads.
  private static let stepLimit = 64

  /// Carries out some of the steps that are left.
  private func carryOutSteps() async throws -> StepProgress {
    let way = try await call { [self] library, account -> StepProgress in
      for _ in 0..<Self.stepLimit {
        if try library.makeTogether(of: account, contents: { [ahead] in ahead.take($0) }) > 0 { continue }
        guard let (number, step) = try library.step(of: account) else { return .noneLeft }
        var contents: ReceivedContents?
        if let needed = try library.needsContents(step, of: account) {
          guard let bytes = ahead.take(needed.version) else {
            return .needs(item: needed.item, needed.version, for: step, number: number)
          }
          do {
            try library.requireRoom(forContents: needed.version.size)
            contents = .bytes(bytes)
          } catch let error as SheafError where error.kind == .noSpace {
            tellLacking(needed.item, error)
          }
        }
        guard try library.carryOut(number, step, of: account, contents: contents) else {
          return .wasImpossible(step)
        }
      }
      return .went
    }
    guard case .needs(let item, let version, let step, let number) = way else { return way }
    if try await fetchAhead(version) { return .went }
    return try await carryOut(number, step, (item, version)) ? .went : .wasImpossible(step)
  }

  /// Tells that contents of an item have another size than the hub told, and has everything read anew, though not
  /// often: the hub may tell the right size by now, and its feed does not say the same twice.
  private func noteOtherSize(of item: WireID) async throws {
    tell(ItemNotice(item: item, text: "has contents of another size at the hub than it tells, so they do not come"))
    let rereads = state.withLock { state in
      let now = ContinuousClock.now
      if let last = state.sizesRead, now - last < Self.sizesPause { return false }
      state.sizesRead = now
      return true
    }
    if rereads { try await call { try $0.reread($1, isGone: false) } }
  }

  /// Carries out a step that needs contents.
  private func carryOut(
    _ number: Int64, _ step: ReplicaStep, _ needed: (item: WireID, version: ItemVersion)
  ) async throws -> Bool {
    let handle = try await call { try $0.beginContents(of: $1) }
    let isDone: Bool
    do {
      var isThere = false
      do {
        isThere = try await fetch(needed.item, needed.version, to: handle)
      } catch is OtherSize {
        try await noteOtherSize(of: needed.item)
      } catch let error as SheafError where error.kind == .noSpace {
        tellLacking(needed.item, error)
      }
      let contents = isThere ? ReceivedContents.file(handle) : nil
      isDone = try await call { try $0.carryOut(number, step, of: $1, contents: contents) }
    } catch {
      // Also where the task was cancelled, in which nothing more is called.
      await Task { try? await call { library, _ in try library.release(handle) } }.value
      throw error
    }
    try await call { library, _ in try library.release(handle) }
    return isDone
  }

  /// Writes the contents of a version to an open file; returns whether the hub has them.
  ///
  /// - Throws: ``OtherSize`` if they are shorter or longer than the hub told.
  func fetch(_ item: WireID, _ version: ItemVersion, to handle: UInt64) async throws -> Bool {
    guard (1...WireLimits.documentBytes).contains(version.size) else { return false }
    let ranges = try await copyKnown(item, version, to: handle)
    try await requireRoom(for: ranges.reduce(0) { $0 + Int64($1.count) })
    // A part has the length that it is asked for; of all that there is, another size shows.
    let isWhole = ranges == [0..<version.size]
    let parts = ranges.map { range in
      isWhole
        ? ContentsRequest.Part(item: item, version: version.id)
        : ContentsRequest.Part(
          item: item, version: version.id, offset: range.lowerBound, length: Int64(range.count))
    }
    var (part, offset, isThere): (Int, Int64, Bool) = (-1, 0, true)
    try await client.contents(parts, of: subject.scope) { index, bytes in
      if index != part { (part, offset) = (index, ranges[index].lowerBound) }
      guard offset + Int64(bytes.readableBytes) <= ranges[index].upperBound else {
        throw OtherSize(version: version.id)
      }
      try await write(bytes, to: handle, at: offset)
      offset += Int64(bytes.readableBytes)
    } end: { index, failure in
      guard let failure else {
        guard index == part, offset == ranges[index].upperBound else { throw OtherSize(version: version.id) }
        return
      }
      switch failure.kind {
      case .refused(.notFound), .refused(.gone): isThere = false
      case .refused(.failure):
        isThere = false
        tellDamage(item, failure)
      default: throw failure
      }
    }
    return isThere
  }

  /// Bytes of a version from which on the hub is asked which parts of it are here.
  static let copiedLength: Int64 = 1 << 20
  private static let copiedAtOnce = 64

  /// Gives an open file what a version of a document that is here has of a large one; returns the ranges that are missing
  /// then.
  private func copyKnown(
    _ item: WireID, _ version: ItemVersion, to handle: UInt64
  ) async throws -> [Range<Int64>] {
    let all = [0..<version.size]
    guard version.size >= Self.copiedLength else { return all }
    let versions = try await call { try $0.versionsHere(ofItem: item, like: version.size, of: $1) }
    guard let (here, copies) = try await copies(of: version, of: item, from: versions) else { return all }
    // Some at a time: the library's lock is held for each.
    for start in stride(from: 0, to: copies.count, by: Self.copiedAtOnce) {
      let some = Array(copies[start...].prefix(Self.copiedAtOnce))
      let isCopied = try await call { library, number in
        try library.copy(some, of: here, ofItem: item, size: version.size, to: handle, of: number)
      }
      guard isCopied else { return all }
    }
    var (missing, end): ([Range<Int64>], Int64) = ([], 0)
    for copy in copies {
      if copy.offset > end { missing.append(end..<copy.offset) }
      end = copy.offset + copy.length
    }
    return end < version.size ? missing + [end..<version.size] : missing
  }

  /// The first of some versions that are here and that the hub has, too, and what another one has of it.
  private func copies(
    of version: ItemVersion, of item: WireID, from versions: [(version: WireID, size: Int64)]
  ) async throws -> (WireID, [ContentCopies.Copy])? {
    for here in versions {
      do {
        return (
          here.version,
          try await client.copies(version.id, size: version.size, from: here, of: item, in: subject.scope)
        )
      } catch let failure as HubFailure where Self.hasNoMore(failure) {
        // One of the two; the contents themselves tell which.
        continue
      }
    }
    return nil
  }

  func write(_ bytes: ByteBuffer, to handle: UInt64, at offset: Int64) async throws {
    demand.noteProgress()
    try await call { library, _ in
      try bytes.withUnsafeReadableBytes {
        try library.write(
          handle, at: offset, $0, appends: false, isWriteBack: false, by: nil, thread: 0, clearsCapability: false)
      }
    }
  }

  // MARK: - Contents on demand

  /// Fetches some contents that are to be on this machine though nobody waits for them; returns whether there may be
  /// more.
  private func fetchWanted() async throws -> Bool {
    while let search = state.withLock({ $0.search }) {
      let (wanted, next) = try await call { try $0.wantedContents(of: $1, after: search.after) }
      guard let wanted else {
        goOn(from: search, after: next)
        continue
      }
      do {
        try await requireRoom(for: Int64(Self.fetched(wanted).count))
        try await fetch(wanted)
        state.withLock { $0.lacking.remove(wanted.item) }
      } catch let error as SheafError where error.kind == .noSpace {
        tellLacking(wanted.item, error)
        goOn(from: search, after: wanted.id)
      } catch let failure as HubFailure where Self.hasNoMore(failure) {
        // The feed tells what became of it.
        goOn(from: search, after: wanted.id)
      } catch let failure as HubFailure where failure.kind == .refused(.failure) {
        tellDamage(wanted.item, failure)
        goOn(from: search, after: wanted.id)
      }
      return true
    }
    if demand.takeFetched() { try await call { library, _ in try library.freeBeyondLimit() } }
    return false
  }

  /// Has a search go on after some contents, or end, unless another one began meanwhile.
  private func goOn(from search: (after: Int64, wakes: Int), after next: Int64?) {
    state.withLock { state in
      guard state.search?.wakes == search.wakes else { return }
      state.search = next.map { ($0, search.wakes) }
      if next == nil { state.searched = search.wakes }
    }
  }

  /// Bytes from which on contents come by what is read of them.
  private static let wholeLength: Int64 = 1 << 20
  /// Bytes of such contents that come at a time.
  private static let slice: Int64 = 4 << 20

  /// Refuses contents for which the disk has no room: nothing of them is asked for.
  ///
  /// - Throws: `noSpace`.
  func requireRoom(for bytes: Int64) async throws {
    try await call { library, _ in try library.requireRoom(forContents: bytes) }
  }

  /// What is fetched of absent contents: all of small ones, and of others what is wanted, and what a reader reads next.
  private static func fetched(_ absent: AbsentContents) -> Range<Int64> {
    guard absent.size > wholeLength, absent.range != 0..<absent.size else { return 0..<absent.size }
    let start = absent.range.lowerBound / wholeLength * wholeLength
    return start..<min(absent.size, max(absent.range.upperBound, start + slice))
  }

  /// Fetches absent contents. Whoever wants the same meanwhile waits for this.
  ///
  /// - Throws: ``HubFailure``, ``SheafError`` of the library, `CancellationError`.
  private func fetch(_ absent: AbsentContents) async throws {
    let range = Self.fetched(absent)
    // In slices, so that what waits for a part does not wait for all.
    var start = range.lowerBound
    while start < range.upperBound {
      let end = min(range.upperBound, start + Self.slice)
      let slice = AbsentContents(
        id: absent.id, account: absent.account, item: absent.item, version: absent.version, size: absent.size,
        range: start..<end)
      try await demand.fetch(slice) { [self] in try await fetchSlice(slice) }
      start = end
    }
  }

  private func fetchSlice(_ absent: AbsentContents) async throws {
    try await requireRoom(for: Int64(absent.range.count))
    let handle = try await call { try $0.beginContents(of: $1) }
    do {
      var offset: Int64 = 0
      try await client.contents(
        [
          .init(
            item: absent.item, version: absent.version, offset: absent.range.lowerBound,
            length: Int64(absent.range.count))
        ], of: subject.scope
      ) { _, bytes in
        guard offset + Int64(bytes.readableBytes) <= absent.range.count else {
          throw SheafError(.inputOutput, subject: hub, reason: "gives out more than was asked for")
        }
        try await write(bytes, to: handle, at: offset)
        offset += Int64(bytes.readableBytes)
      } end: { _, failure in
        if let failure { throw failure }
      }
      try await call { try $0.take(absent, contents: handle, of: $1) }
    } catch {
      await Task { try? await call { library, _ in try library.release(handle) } }.value
      throw error
    }
    try await call { library, _ in try library.release(handle) }
  }

  private static func hasNoMore(_ failure: HubFailure) -> Bool {
    switch failure.kind {
    case .refused(.notFound), .refused(.gone): true
    default: false
    }
  }

  /// What a reader is told of contents that do not come.
  private static func absence(_ failure: HubFailure) -> SheafError {
    switch failure.kind {
    case _ where hasNoMore(failure): SheafError(.gone, subject: "contents", reason: "are no more at the hub")
    case .refused(.forbidden): SheafError(.accessDenied, subject: "contents", reason: "the hub refuses them")
    default: SheafError(.unreachable, subject: "contents", reason: "are at the hub: \(failure)")
    }
  }

  /// Fetches what somebody waits for.
  ///
  /// - Throws: ``SheafError``: `gone`, `accessDenied`, those of the library; `unreachable` at once where the hub is known
  ///   not to be reached, and after five seconds in which nothing came.
  func fetchOnDemand(_ absent: AbsentContents) async throws {
    // Just after the mount nothing is known yet, and the hub is asked.
    let (mayBeReached, problem) = state.withLock { ([.connected, .connecting].contains($0.state), $0.problem) }
    guard mayBeReached else {
      // The hub may be back: it is asked before its turn comes.
      signal.raise()
      throw SheafError(
        .unreachable, subject: "contents",
        reason: "are at the hub, which cannot be reached" + (problem.map { ": \($0)" } ?? ""))
    }
    do {
      try await demand.withPatience { [self] in try await fetch(absent) }
    } catch let failure as HubFailure {
      throw Self.absence(failure)
    }
    wake()
  }

  /// Fetches the contents of a small version with those that the next steps need; returns whether it is small and the hub
  /// gives it so.
  private func fetchAhead(_ version: ItemVersion) async throws -> Bool {
    guard version.size <= FetchedContents.longest else { return false }
    let next = try await call { try $0.neededContents(of: $1, limit: FetchedContents.steps) }
    let small = next.filter { $0.version.size <= FetchedContents.longest }
    var fetched: [WireID: [UInt8]] = [:]
    var bytes: [UInt8] = []
    do {
      try await client.contents(
        small.map { .init(item: $0.item, version: $0.version.id) }, of: subject.scope
      ) { index, some in
        guard Int64(bytes.count + some.readableBytes) <= small[index].version.size else {
          throw OtherSize(version: small[index].version.id)
        }
        bytes += some.readableBytesView
      } end: { index, failure in
        if failure == nil { fetched[small[index].version.id] = bytes }
        bytes = []
      }
    } catch is OtherSize {
      // Its own step says so.
    }
    ahead.keep(fetched)
    return ahead.has(version)
  }

  // MARK: - Sends

  private var full: Full? { state.withLock { $0.full } }

  /// Sends what waits to be sent; returns whether there was anything.
  private func send() async throws -> Bool {
    let waiting = try await call { try $0.sends(of: $1, limit: Self.sendLimit) }
    guard let first = waiting.first?.first else { return false }
    do {
      guard try await send(waiting) else { return false }
      let isRoomMade = waiting.allSatisfy(\.send.isDeletion)
      // What was deleted may have been what is too much.
      if isRoomMade { become(full: full?.over) } else if full?.items == nil { become(full: nil) }
    } catch let lack as LackOfQuota {
      try await call { try $0.withdrawSends(from: first, of: $1) }
      noteFull(lack.failure, lack.items)
    } catch let failure as HubFailure {
      switch (failure.kind, subject) {
      case (.refused(.quota), _) where !waiting.allSatisfy(\.send.isDeletion),
        (.refused(.full), _) where !waiting.allSatisfy(\.send.isDeletion):
        try await call { try $0.withdrawSends(from: first, of: $1) }
        noteFull(failure, nil)
      case (.refused(.forbidden), .share(let share)):
        // The account may only read by now.
        try await call { try $0.withdrawSends(from: first, of: $1) }
        let items = Set(waiting.map(\.send.item))
        try await call { library, _ in try library.giveUp(items, in: share) }
      default: throw failure
      }
    }
    return true
  }

  /// - Parameter items: The items whose contents are too large; nil if there is no room for anything.
  private func noteFull(_ failure: HubFailure, _ items: Set<WireID>?) {
    if let items, var full, let others = full.items, full.sends != .all, others.count < Self.largeLimit {
      full.items = others.union(items)
      return become(full: full)
    }
    let pause = min((full?.pause ?? Self.pauses.first) * 2, Self.pauses.longest)
    become(full: Full(items: items, problem: "\(failure)", until: .now + .seconds(pause), pause: pause))
  }

  private func become(full: Full?) {
    let isOther = state.withLock { state in
      let isOther = (state.full == nil) != (full == nil)
      state.full = full
      return isOther
    }
    if isOther { noteSending() }
  }

  private func send(_ waiting: [ReplicaSend]) async throws -> Bool {
    let groups = try await contents.filled(waiting)
    if groups.isEmpty, let first = waiting.first?.first {
      // A version is no more: what remains is compared anew.
      try await call { try $0.withdrawSends(from: first, of: $1) }
      return true
    }
    let last = groups.last?.last?.serial ?? 0
    let confirmed = try await call { [serials] library, number in
      try serials.reserve(last, for: library)
      return try library.replica(number)?.confirmed ?? 0
    }
    let answer = try await client.send(groups, confirmed: confirmed, to: subject.scope)
    let deferred = Set(answer.later.map(\.serial))
    let verdicts = Dictionary(uniqueKeysWithValues: answer.verdicts.map { ($0.serial, $0) })
    let settled = groups.joined().map(\.serial).prefix { !deferred.contains($0) }.compactMap { verdicts[$0] }
    state.withLock { $0.needsFeed = true }
    readLog()
    guard !settled.isEmpty else {
      // It keeps chunks for a day only, or has too much to do: once more from the beginning.
      contents.forget()
      try await Task.sleep(for: .seconds(1))
      return true
    }
    tell(try await call { try $0.settle(settled, of: $1) })
    if case .share(let share) = subject {
      let sent = Dictionary(groups.joined().map { ($0.serial, $0.item) }) { first, _ in first }
      let items = Set(settled.filter(\.isGivenUp).map { sent[$0.serial] ?? $0.item })
      if !items.isEmpty { try await call { library, _ in try library.giveUp(items, in: share) } }
    }
    let isRefused = settled.allSatisfy { $0.outcome == .refused }
    let refusals = state.withLock { state in
      state.refusals = isRefused ? min(state.refusals + 1, 12) : 0
      return state.refusals
    }
    // What is refused again and again is asked for ever more rarely.
    if refusals > 2 { try await Task.sleep(for: .milliseconds(10 << refusals)) }
    return true
  }

  // MARK: - Notices

  private func tell(_ notices: [ReplicaNotice]) {
    for notice in notices {
      let text =
        switch notice.kind {
        case .beside: "others had saved it, so what was saved here is beside it"
        case .renamed: "has another name now, since another item has it at the hub"
        case .kept: "was changed elsewhere after it was deleted here, so it is back"
        case .purgedElsewhere: "was saved or recovered here while it was purged elsewhere, so it is a new document"
        case .refused(.border) where subject.isShare:
          "the hub refused it: it would lie outside of the share, as what goes beside a document that is shared by itself "
            + "and that others saved first"
        case .refused(let reason): "the hub refused it: \(reason.words)"
        }
      var copy: WireID?
      if case .beside(let document) = notice.kind { copy = document }
      tell(ItemNotice(item: notice.item, text: text, copy: copy))
    }
  }

  /// Tells that something of an item does not fit on the disk. It is tried again; everything else goes on.
  func tellLacking(_ item: WireID, _ error: SheafError) {
    let notice = ItemNotice(item: item, text: "\(error)")
    if state.withLock({ $0.lacking.note(notice, in: $0.wakes) }) { log(notice) }
  }

  func tell(_ notice: ItemNotice) { if state.withLock({ $0.notices.add(notice) }) { log(notice) } }

  /// Tells that contents do not come since the hub's store is damaged.
  private func tellDamage(_ item: WireID, _ failure: HubFailure) {
    tell(ItemNotice(item: item, text: "does not come here: \(failure.reason)"))
  }

  private func log(_ notice: ItemNotice) {
    logger.notice("id:\(notice.item): \(notice.text)", metadata: ["account": "\(account)"])
  }
}

extension Verdict.Reason {
  /// The reason for people.
  fileprivate var words: String {
    switch self {
    case .invalid: "it is not what this hub takes (invalid)"
    case .unknown: "it knows no such item"
    case .noParent: "its folder is not there any more"
    case .loop: "the folder would be inside of itself"
    case .tooLarge: "it is too large"
    case .border: "one share cannot lie in another one, and one document not on both sides of a share's border"
    case .denied: "the account's part in the share does not allow it"
    case .purged: "it was purged there"
    case .group: "something else that belongs to it was refused"
    case .confirmed: "it was answered before"
    }
  }
}
