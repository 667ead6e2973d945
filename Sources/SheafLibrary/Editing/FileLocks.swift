import Dispatch
import Synchronization

/// Locks of files, common to all mounts of a library: those of flock(2), and those of fcntl(2), be they of a process or
/// of an open file description.
///
/// They are advisory, and outlive neither who holds them nor the process that serves the mounts. Nothing here waits:
/// who has to is answered later, by who lets go, is interrupted, or ends. The tables have a lock of their own, under
/// which nothing else is called, so that they can be asked with or without the library's.
///
/// The kernel tells of the last close of a file after close(2) has returned. So who would not wait is refused only
/// after a moment in which a holder may be found to have closed.
package final class FileLocks: Sendable {
  /// The two kinds of lock, which know nothing of each other (flock(2)).
  package enum Family: Hashable, Sendable { case flock, record }

  /// A holder as a mount's kernel tells them apart: a process, or an open file description.
  package struct Owner: Hashable, Sendable {
    package let door: Int
    package let id: UInt64

    package init(door: Int, id: UInt64) {
      self.door = door
      self.id = id
    }
  }

  /// A lock that someone holds or wants.
  package struct Lock: Sendable {
    package let owner: Owner
    /// The open file through which it was set.
    package let handle: UInt64
    /// The process that set it, for fcntl(2) with F_GETLK.
    package let process: Int32
    package let isExclusive: Bool
    /// Bytes; those of a family that knows no ranges are all.
    package var range: ClosedRange<Int64>

    package init(
      owner: Owner, handle: UInt64, process: Int32, isExclusive: Bool, range: ClosedRange<Int64> = 0...Int64.max
    ) {
      self.owner = owner
      self.handle = handle
      self.process = process
      self.isExclusive = isExclusive
      self.range = range
    }

    func conflicts(with other: Lock) -> Bool {
      owner != other.owner && (isExclusive || other.isExclusive) && range.overlaps(other.range)
    }
  }

  /// The outcome of a request.
  package enum Outcome: Sendable {
    case granted
    /// EAGAIN.
    case refused
    /// EINTR.
    case interrupted
    /// EDEADLK: the holder waits for what the caller holds.
    case deadlock
    /// ENOLCK.
    case tooMany
    /// EACCES: the account may not look at the file any more.
    case denied
  }

  package typealias Answer = @Sendable (Outcome) -> Void

  /// One of the two tables of a file.
  fileprivate struct Place: Hashable {
    let file: UInt64
    let family: Family
  }

  fileprivate final class Waiter {
    let number: UInt64
    let place: Place
    let lock: Lock
    /// Whether it waits for as long as it takes: another one is refused in a moment, and nobody waits for it.
    let waits: Bool
    let answer: Answer
    /// One of those who hold a lock that is in its way. Until that one lets go, nobody looks at the waiter.
    var blocker: Owner

    init(number: UInt64, place: Place, lock: Lock, waits: Bool, blocker: Owner, answer: @escaping Answer) {
      self.number = number
      self.place = place
      self.lock = lock
      self.waits = waits
      self.blocker = blocker
      self.answer = answer
    }
  }

  /// The locks that are held and requested at one place.
  fileprivate final class Table {
    var held = HeldLocks()
    /// Those who wait behind each holder, by the number of their request.
    var waiting: [Owner: [UInt64: Waiter]] = [:]
  }

  fileprivate typealias Answers = [(Answer, Outcome)]

  fileprivate struct State {
    var tables: [Place: Table] = [:]
    /// All who wait, by the number of their request.
    var waiters: [UInt64: Waiter] = [:]
    /// The records that each owner waits for as long as it takes.
    var wanted: [Owner: [UInt64: Waiter]] = [:]
    /// Locks that are held by each door.
    var held: [Int: Int] = [:]
    /// Requests that wait at each door.
    var waiting: [Int: Int] = [:]
    /// Requests that are on their way here, and whether they were interrupted already.
    var coming: [UInt64: Bool] = [:]
    var next: UInt64 = 1
    var comparisons = 0
  }

  /// Locks held by one door at most (rule 7 of docs/ARCHITECTURE.md): a user who takes all that they can leaves others
  /// theirs.
  static let limit = 32_768
  /// Requests that wait at one door at most.
  static let waitingLimit = 4096
  /// Waiters that are followed to find a ring, at most.
  static let cycleLimit = 64
  /// How long a request that does not wait is thought over.
  private static let patience = DispatchTimeInterval.milliseconds(2)

  private let state = Mutex(State())
  private let tablesInUse = Atomic<Int>(0)

  package init() {}

  /// Whether nobody holds or wants any lock.
  package var isEmpty: Bool { tablesInUse.load(ordering: .acquiring) == 0 }

  /// How many locks and waiters were looked at so far, which is what the table's work is measured by.
  var comparisons: Int { state.withLock { $0.comparisons } }

  /// The processes that set locks of a file which are held.
  package func holders(of file: UInt64) -> Set<Int32> {
    guard !isEmpty else { return [] }
    return state.withLock { state in
      [Family.flock, .record].reduce(into: []) { holders, family in
        state.tables[Place(file: file, family: family)]?.held.addProcesses(to: &holders)
      }
    }
  }

  // MARK: - Asking

  /// The number of a request to come, by which it can be interrupted.
  package func newRequest() -> UInt64 {
    state.withLock { state in
      defer { state.next += 1 }
      state.coming[state.next] = false
      return state.next
    }
  }

  /// Ends a request's waiting.
  package func interrupt(_ request: UInt64) {
    change { state in
      if state.coming[request] != nil { state.coming[request] = true }
      return state.endWaiting(request, .interrupted)
    }
  }

  /// Sets a lock; `answer` is called once, here or later on any thread.
  package func set(
    _ lock: Lock, _ family: Family, of file: UInt64, waits: Bool, request: UInt64, _ answer: @escaping Answer
  ) {
    let place = Place(file: file, family: family)
    var isWaiting = false
    change { state in
      let isInterrupted = state.coming.removeValue(forKey: request) ?? false
      if isInterrupted { return [(answer, .interrupted)] }
      var answers: Answers = []
      if family == .flock, let own = state.tables[place]?.held.locks(of: lock.owner).first {
        if own.isExclusive == lock.isExclusive { return [(answer, .granted)] }
        // Changing from one to the other lets go in between (flock(2)).
        answers += state.letGo(at: place, of: [lock.owner])
      }
      guard let blocker = state.blocker(of: lock, at: place) else {
        var freed: [(Owner, ClosedRange<Int64>)] = []
        answers.append((answer, state.grant(lock, at: place, &freed)))
        return answers + state.wake(at: place, behind: freed)
      }
      if waits, family == .record, state.closesCycle(lock.owner, behind: blocker) {
        return answers + [(answer, .deadlock)]
      }
      guard state.waiting[lock.owner.door] ?? 0 < Self.waitingLimit else { return answers + [(answer, .tooMany)] }
      state.add(
        Waiter(number: request, place: place, lock: lock, waits: waits, blocker: blocker, answer: answer))
      isWaiting = true
      return answers
    }
    if isWaiting, !waits {
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { self.refuse(request) }
    }
  }

  private func refuse(_ request: UInt64) { change { $0.endWaiting(request, .refused) } }

  /// Lets go of what `owner` holds of a range; says whether it did. It does not where a lock would become two and the
  /// door has as many as it can have (ENOLCK, as fcntl(2) has it).
  @discardableResult
  package func unlock(_ range: ClosedRange<Int64>, _ family: Family, of file: UInt64, by owner: Owner) -> Bool {
    if isEmpty { return true }
    let place = Place(file: file, family: family)
    var isDone = true
    change { state in
      guard let table = state.tables[place] else { return [] }
      let replacement = table.held.replacement(of: range, by: owner)
      if replacement.gone.isEmpty { return [] }
      isDone = state.make(replacement, at: place, for: owner.door)
      return isDone ? state.wake(at: place, behind: [(owner, range)]) : []
    }
    return isDone
  }

  /// A lock that would keep `lock` from being set; nil where there is none.
  package func holder(against lock: Lock, of file: UInt64) -> Lock? {
    state.withLock { $0.first(against: lock, at: Place(file: file, family: .record)) }
  }

  /// Whether an owner holds a record lock of a file.
  package func holds(_ file: UInt64, by owner: Owner) -> Bool {
    if isEmpty { return false }
    return state.withLock { $0.tables[Place(file: file, family: .record)]?.held.owners.contains(owner) ?? false }
  }

  /// Whether somebody holds a lock of a file by a door.
  package func holds(_ file: UInt64, door: Int) -> Bool {
    if isEmpty { return false }
    return state.withLock { state in
      Self.places(of: file).contains { !state.holders(at: $0, door).isEmpty }
    }
  }

  // MARK: - Ending

  /// A process closed a descriptor of the file: its records go, whatever descriptor they were set through (fcntl(2)).
  package func closed(_ file: UInt64, by owner: Owner) { unlock(0...Int64.max, .record, of: file, by: owner) }

  /// The last descriptor of an open file was closed.
  package func released(_ file: UInt64, door: Int, handle: UInt64) {
    if isEmpty { return }
    change { state in
      Self.places(of: file).flatMap { place in
        let owners = state.tables[place]?.held.owners(through: handle).filter { $0.door == door } ?? []
        return state.letGo(at: place, of: owners, through: handle)
      }
    }
  }

  /// The account of a door does not see the file any more.
  package func revoked(_ file: UInt64, door: Int) {
    if isEmpty { return }
    change { state in
      let places = Self.places(of: file)
      var answers = state.endWaiting(.denied) { places.contains($0.place) && $0.lock.owner.door == door }
      for place in places { answers += state.letGo(at: place, of: state.holders(at: place, door)) }
      return answers
    }
  }

  /// A mount ended, with all who used it.
  package func ended(_ door: Int) {
    if isEmpty { return }
    change { state in
      var answers = state.endWaiting(.interrupted) { $0.lock.owner.door == door }
      for place in Array(state.tables.keys) { answers += state.letGo(at: place, of: state.holders(at: place, door)) }
      return answers
    }
  }

  private static func places(of file: UInt64) -> [Place] {
    [Place(file: file, family: .flock), Place(file: file, family: .record)]
  }

  /// Changes the tables, and gives the answers that come of it with the tables free.
  private func change(_ body: (inout State) -> Answers) {
    let answers = state.withLock { state in
      let answers = body(&state)
      tablesInUse.store(state.tables.count, ordering: .releasing)
      return answers
    }
    for (answer, outcome) in answers { answer(outcome) }
  }
}

/// The tables. Rules:
/// 1. Each waiter waits behind one holder of a lock that is in the way, and is looked at when this holder releases
///    something in the waiter's range. Then another holder is in the way, or the lock is granted. So nobody waits who
///    could go on, and releases of other holders cost nothing.
/// 2. As each waiter waits behind one holder, a ring of owners is found when the last of its waiters begins to wait
///    behind the next owner.
extension FileLocks.State {
  fileprivate typealias Owner = FileLocks.Owner
  fileprivate typealias Range = ClosedRange<Int64>

  fileprivate mutating func first(against lock: FileLocks.Lock, at place: FileLocks.Place) -> FileLocks.Lock? {
    tables[place]?.held.first(against: lock, &comparisons)
  }

  /// Somebody who holds a lock that is in the way of `lock`; nil where it is free.
  fileprivate mutating func blocker(of lock: FileLocks.Lock, at place: FileLocks.Place) -> Owner? {
    first(against: lock, at: place)?.owner
  }

  /// Those who hold locks at a place by a door.
  fileprivate func holders(at place: FileLocks.Place, _ door: Int) -> [Owner] {
    tables[place]?.held.owners.filter { $0.door == door } ?? []
  }

  // MARK: - Holding

  /// Grants a lock that is free, if the door may have more, and notes what its owner let go of by that.
  fileprivate mutating func grant(
    _ lock: FileLocks.Lock, at place: FileLocks.Place, _ freed: inout [(Owner, Range)]
  ) -> FileLocks.Outcome {
    let table = tables[place] ?? FileLocks.Table()
    let replacement = table.held.replacement(of: lock.range, by: lock.owner, with: lock)
    tables[place] = table
    guard make(replacement, at: place, for: lock.owner.door) else {
      forgetUnused(place)
      return .tooMany
    }
    if !replacement.gone.isEmpty { freed.append((lock.owner, lock.range)) }
    return .granted
  }

  /// Makes a replacement if it leaves the door with no more locks than it may have; says whether it did.
  fileprivate mutating func make(
    _ replacement: HeldLocks.Replacement, at place: FileLocks.Place, for door: Int
  ) -> Bool {
    let count = (held[door] ?? 0) + replacement.growth
    guard replacement.growth <= 0 || count <= FileLocks.limit else { return false }
    tables[place]?.held.make(replacement)
    Self.add(replacement.growth, for: door, to: &held)
    forgetUnused(place)
    return true
  }

  /// Lets go of what some owners hold at a place, or of what they set through one handle, and wakes those who waited.
  fileprivate mutating func letGo(
    at place: FileLocks.Place, of owners: [Owner], through handle: UInt64? = nil
  ) -> FileLocks.Answers {
    for owner in owners {
      let count = tables[place]?.held.removeAll(of: owner, through: handle) ?? 0
      Self.add(-count, for: owner.door, to: &held)
    }
    forgetUnused(place)
    return wake(at: place, behind: owners.map { ($0, 0...Int64.max) })
  }

  private mutating func forgetUnused(_ place: FileLocks.Place) {
    if let table = tables[place], table.held.isEmpty, table.waiting.isEmpty { tables[place] = nil }
  }

  /// Counts for a door; one that has none has no entry.
  private static func add(_ count: Int, for door: Int, to counts: inout [Int: Int]) {
    let sum = (counts[door] ?? 0) + count
    counts[door] = sum == 0 ? nil : sum
  }

  // MARK: - Waiting

  fileprivate mutating func add(_ waiter: FileLocks.Waiter) {
    waiters[waiter.number] = waiter
    Self.add(1, for: waiter.lock.owner.door, to: &waiting)
    if waiter.waits, waiter.place.family == .record { wanted[waiter.lock.owner, default: [:]][waiter.number] = waiter }
    tables[waiter.place]?.waiting[waiter.blocker, default: [:]][waiter.number] = waiter
  }

  private mutating func remove(_ waiter: FileLocks.Waiter) {
    let owner = waiter.lock.owner
    waiters[waiter.number] = nil
    Self.add(-1, for: owner.door, to: &waiting)
    wanted[owner]?[waiter.number] = nil
    if wanted[owner]?.isEmpty ?? false { wanted[owner] = nil }
    stopWaiting(waiter)
    forgetUnused(waiter.place)
  }

  /// Takes a waiter from behind the holder in its way.
  private func stopWaiting(_ waiter: FileLocks.Waiter) {
    guard let table = tables[waiter.place] else { return }
    table.waiting[waiter.blocker]?[waiter.number] = nil
    if table.waiting[waiter.blocker]?.isEmpty ?? false { table.waiting[waiter.blocker] = nil }
  }

  /// Ends the waiting of a request, if it waits.
  fileprivate mutating func endWaiting(_ request: UInt64, _ outcome: FileLocks.Outcome) -> FileLocks.Answers {
    guard let waiter = waiters[request] else { return [] }
    remove(waiter)
    return [(waiter.answer, outcome)]
  }

  fileprivate mutating func endWaiting(
    _ outcome: FileLocks.Outcome, where isMeant: (FileLocks.Waiter) -> Bool
  ) -> FileLocks.Answers {
    let ended = waiters.values.filter(isMeant)
    for waiter in ended { remove(waiter) }
    return ended.map { ($0.answer, outcome) }
  }

  /// Looks at those who wait behind owners that let go of ranges (rule 1): grants what can be granted now, in the order
  /// in which it was asked for, and has the others wait behind someone else.
  fileprivate mutating func wake(
    at place: FileLocks.Place, behind owners: [(Owner, Range)]
  ) -> FileLocks.Answers {
    var answers: FileLocks.Answers = []
    var freed = owners
    while let (owner, range) = freed.popLast() {
      guard let waiting = tables[place]?.waiting[owner] else { continue }
      comparisons += waiting.count
      let meant = waiting.values.filter { $0.lock.range.overlaps(range) }.sorted { $0.number < $1.number }
      var granted: FileLocks.Lock?
      for waiter in meant {
        // As a rule what was granted just now is in the way of those after it.
        let blocker =
          granted.flatMap { waiter.lock.conflicts(with: $0) ? $0.owner : nil } ?? blocker(of: waiter.lock, at: place)
        comparisons += 1
        guard let blocker else {
          remove(waiter)
          let outcome = grant(waiter.lock, at: place, &freed)
          if outcome == .granted { granted = waiter.lock }
          answers.append((waiter.answer, outcome))
          continue
        }
        if blocker == waiter.blocker { continue }
        if waiter.waits, place.family == .record, closesCycle(waiter.lock.owner, behind: blocker) {
          remove(waiter)
          answers.append((waiter.answer, .deadlock))
          continue
        }
        stopWaiting(waiter)
        waiter.blocker = blocker
        tables[place]?.waiting[blocker, default: [:]][waiter.number] = waiter
      }
    }
    return answers
  }

  /// Whether `blocker` waits for `owner`, directly or behind others (rule 2).
  fileprivate mutating func closesCycle(_ owner: Owner, behind blocker: Owner) -> Bool {
    var seen: Set<Owner> = []
    var open = [blocker]
    var left = FileLocks.cycleLimit
    while let next = open.popLast() {
      if next == owner { return true }
      guard seen.insert(next).inserted else { continue }
      let waiters = (wanted[next] ?? [:]).values.prefix(left)
      left -= waiters.count
      comparisons += waiters.count
      open += waiters.map(\.blocker)
    }
    return false
  }
}
