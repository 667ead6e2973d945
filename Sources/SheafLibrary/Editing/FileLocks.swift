import Dispatch
import Synchronization

/// Locks of files, common to all mounts of a library: those of flock(2), and those of fcntl(2), be they of a process or of
/// an open file description.
///
/// They are advisory, and outlive neither who holds them nor the process that serves the mounts. Nothing here waits: who
/// has to is answered later, by who lets go, is interrupted, or ends. The table has a lock of its own, under which nothing
/// else is called, so that it can be asked with or without the library's.
///
/// The kernel tells of the last close of a file after close(2) has returned. So who would not wait is refused only after a
/// moment in which a holder may be found to have closed.
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

    fileprivate func conflicts(with other: Lock) -> Bool {
      owner != other.owner && (isExclusive || other.isExclusive) && range.overlaps(other.range)
    }
  }

  /// What became of a request.
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

  private struct Waiter {
    let number: UInt64
    let family: Family
    let lock: Lock
    /// Whether it waits for as long as it takes: another one is refused in a moment, and nobody waits for it.
    let waits: Bool
    let answer: Answer
  }

  private struct File {
    var held: [Family: [Lock]] = [:]
    /// In the order in which they came.
    var waiting: [Waiter] = []

    var isUnused: Bool { waiting.isEmpty && held.values.allSatisfy(\.isEmpty) }
  }

  private struct State {
    /// By number of the node.
    var files: [UInt64: File] = [:]
    /// Locks that are held by each door.
    var held: [Int: Int] = [:]
    /// Requests that wait at each door.
    var waiting: [Int: Int] = [:]
    /// Requests that are on their way here, and whether they were interrupted already.
    var coming: [UInt64: Bool] = [:]
    var next: UInt64 = 1
  }

  /// Locks held by one door at most (rule 7 of docs/ARCHITECTURE.md): whoever takes all that they can leaves others theirs.
  static let limit = 32_768
  /// Requests that wait at one door at most.
  static let waitingLimit = 4096
  /// How long a request that does not wait is thought over.
  private static let patience = DispatchTimeInterval.milliseconds(2)

  private let state = Mutex(State())
  private let filesInUse = Atomic<Int>(0)

  package init() {}

  /// Whether nobody holds or wants any lock.
  package var isEmpty: Bool { filesInUse.load(ordering: .acquiring) == 0 }

  /// Whether somebody holds a lock of a file.
  package func isLocked(_ file: UInt64) -> Bool {
    !isEmpty && state.withLock { state in state.files[file]?.held.values.contains { !$0.isEmpty } ?? false }
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
      return Self.takeWaiters(&state) { _, waiter in waiter.number == request }.map { ($0.answer, .interrupted) }
    }
  }

  /// Sets a lock; `answer` is called once, here or later on any thread.
  package func set(
    _ lock: Lock, _ family: Family, of file: UInt64, waits: Bool, request: UInt64, _ answer: @escaping Answer
  ) {
    var isWaiting = false
    change { state in
      let isInterrupted = state.coming.removeValue(forKey: request) ?? false
      if isInterrupted { return [(answer, .interrupted)] }
      var answers: [(Answer, Outcome)] = []
      if family == .flock, let own = state.files[file]?.held[.flock]?.first(where: { $0.owner == lock.owner }) {
        if own.isExclusive == lock.isExclusive { return [(answer, .granted)] }
        // Changing from one to the other lets go in between (flock(2)).
        answers += Self.drop(&state, file, of: lock.owner.door) { $0 == .flock && $1.owner == lock.owner }
      }
      if Self.isFree(state, lock, family, of: file) {
        guard state.held[lock.owner.door] ?? 0 < Self.limit else { return answers + [(answer, .tooMany)] }
        Self.put(&state, lock, family, in: file)
        return answers + [(answer, .granted)] + Self.wake(&state, file)
      }
      if waits, family == .record, Self.isWaitedFor(state, by: lock, of: file) {
        return answers + [(answer, .deadlock)]
      }
      guard state.waiting[lock.owner.door] ?? 0 < Self.waitingLimit else { return answers + [(answer, .tooMany)] }
      Self.add(1, for: lock.owner.door, to: &state.waiting)
      state.files[file, default: File()].waiting.append(
        Waiter(number: request, family: family, lock: lock, waits: waits, answer: answer))
      isWaiting = true
      return answers
    }
    if isWaiting, !waits {
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { self.refuse(request) }
    }
  }

  private func refuse(_ request: UInt64) {
    change { state in
      Self.takeWaiters(&state) { _, waiter in waiter.number == request }.map { ($0.answer, .refused) }
    }
  }

  /// Lets go of what `owner` holds of a range.
  package func unlock(_ range: ClosedRange<Int64>, _ family: Family, of file: UInt64, by owner: Owner) {
    if isEmpty { return }
    change { state in
      guard state.files[file] != nil else { return [] }
      Self.cut(&state, range, family, of: file, by: owner)
      return Self.wake(&state, file)
    }
  }

  /// A lock that would keep `lock` from being set; nil where there is none.
  package func holder(against lock: Lock, of file: UInt64) -> Lock? {
    state.withLock { state in
      Self.holders(state, lock, .record, of: file).min { $0.range.lowerBound < $1.range.lowerBound }
    }
  }

  // MARK: - Ending

  /// A process closed a descriptor of the file: its records go, whatever descriptor they were set through (fcntl(2)).
  package func closed(_ file: UInt64, by owner: Owner) { unlock(0...Int64.max, .record, of: file, by: owner) }

  /// The last descriptor of an open file was closed.
  package func released(_ file: UInt64, door: Int, handle: UInt64) {
    if isEmpty { return }
    change { state in
      Self.drop(&state, file, of: door) { _, lock in lock.handle == handle }
    }
  }

  /// The account of a door does not see the file any more.
  package func revoked(_ file: UInt64, door: Int) {
    if isEmpty { return }
    change { state in
      let waiters = Self.takeWaiters(&state) { number, waiter in number == file && waiter.lock.owner.door == door }
      return waiters.map { ($0.answer, .denied) } + Self.drop(&state, file, of: door) { _, _ in true }
    }
  }

  /// A mount ended, with all who used it.
  package func ended(_ door: Int) {
    if isEmpty { return }
    change { state in
      var answers: [(Answer, Outcome)] = Self.takeWaiters(&state) { _, waiter in waiter.lock.owner.door == door }
        .map { ($0.answer, .interrupted) }
      for file in Array(state.files.keys) {
        answers += Self.drop(&state, file, of: door) { _, _ in true }
      }
      return answers
    }
  }

  // MARK: - The table

  /// Changes the table, and gives the answers that come of it with the table free.
  private func change(_ body: (inout State) -> [(Answer, Outcome)]) {
    let answers = state.withLock { state in
      let answers = body(&state)
      filesInUse.store(state.files.count, ordering: .releasing)
      return answers
    }
    for (answer, outcome) in answers { answer(outcome) }
  }

  private static func holders(_ state: State, _ lock: Lock, _ family: Family, of file: UInt64) -> [Lock] {
    (state.files[file]?.held[family] ?? []).filter { lock.conflicts(with: $0) }
  }

  private static func isFree(_ state: State, _ lock: Lock, _ family: Family, of file: UInt64) -> Bool {
    !(state.files[file]?.held[family]?.contains { lock.conflicts(with: $0) } ?? false)
  }

  /// Whether one of those whom `lock` would wait for waits for its owner, directly or through others.
  private static func isWaitedFor(_ state: State, by lock: Lock, of file: UInt64) -> Bool {
    var wanted: [Owner: [(file: UInt64, lock: Lock)]] = [:]
    for (number, file) in state.files {
      for waiter in file.waiting where waiter.waits && waiter.family == .record {
        wanted[waiter.lock.owner, default: []].append((number, waiter.lock))
      }
    }
    var seen: Set<Owner> = []
    var open = holders(state, lock, .record, of: file).map(\.owner)
    while let owner = open.popLast() {
      if owner == lock.owner { return true }
      guard seen.insert(owner).inserted else { continue }
      for (file, lock) in wanted[owner] ?? [] { open += holders(state, lock, .record, of: file).map(\.owner) }
    }
    return false
  }

  private static func put(_ state: inout State, _ lock: Lock, _ family: Family, in file: UInt64) {
    cut(&state, lock.range, family, of: file, by: lock.owner)
    var lock = lock
    var held = state.files[file]?.held[family] ?? []
    // Neighbours of one kind are one lock.
    held.removeAll { other in
      guard other.owner == lock.owner, other.isExclusive == lock.isExclusive, other.handle == lock.handle,
        other.range.upperBound.addingReportingOverflow(1).partialValue == lock.range.lowerBound
          || lock.range.upperBound.addingReportingOverflow(1).partialValue == other.range.lowerBound
      else { return false }
      lock.range =
        min(lock.range.lowerBound, other.range.lowerBound)...max(lock.range.upperBound, other.range.upperBound)
      return true
    }
    held.append(lock)
    replace(&state, held, family, of: file, by: lock.owner.door)
  }

  /// Takes a range from what an owner holds.
  private static func cut(
    _ state: inout State, _ range: ClosedRange<Int64>, _ family: Family, of file: UInt64, by owner: Owner
  ) {
    guard let held = state.files[file]?.held[family],
      held.contains(where: { $0.owner == owner && $0.range.overlaps(range) })
    else { return }
    let left = held.flatMap { lock -> [Lock] in
      guard lock.owner == owner, lock.range.overlaps(range) else { return [lock] }
      var parts: [Lock] = []
      if lock.range.lowerBound < range.lowerBound {
        var part = lock
        part.range = lock.range.lowerBound...(range.lowerBound - 1)
        parts.append(part)
      }
      if lock.range.upperBound > range.upperBound {
        var part = lock
        part.range = (range.upperBound + 1)...lock.range.upperBound
        parts.append(part)
      }
      return parts
    }
    replace(&state, left, family, of: file, by: owner.door)
  }

  /// Notes what is held of a file now, after a change of one door's locks.
  private static func replace(
    _ state: inout State, _ held: [Lock], _ family: Family, of file: UInt64, by door: Int
  ) {
    add(held.count - (state.files[file]?.held[family]?.count ?? 0), for: door, to: &state.held)
    state.files[file, default: File()].held[family] = held
    if state.files[file]?.isUnused ?? false { state.files[file] = nil }
  }

  /// Counts for a door; one that has none has no entry.
  private static func add(_ count: Int, for door: Int, to counts: inout [Int: Int]) {
    let sum = (counts[door] ?? 0) + count
    counts[door] = sum == 0 ? nil : sum
  }

  /// Drops locks that a door holds of a file, and grants what waited for them.
  private static func drop(
    _ state: inout State, _ file: UInt64, of door: Int, where isDropped: (Family, Lock) -> Bool
  ) -> [(Answer, Outcome)] {
    var isChanged = false
    for (family, held) in state.files[file]?.held ?? [:] {
      let left = held.filter { $0.owner.door != door || !isDropped(family, $0) }
      if left.count == held.count { continue }
      isChanged = true
      replace(&state, left, family, of: file, by: door)
    }
    return isChanged ? wake(&state, file) : []
  }

  /// Grants what can be granted now, in the order in which it was asked for.
  private static func wake(_ state: inout State, _ file: UInt64) -> [(Answer, Outcome)] {
    var answers: [(Answer, Outcome)] = []
    for waiter in state.files[file]?.waiting ?? []
    where isFree(state, waiter.lock, waiter.family, of: file) {
      put(&state, waiter.lock, waiter.family, in: file)
      add(-1, for: waiter.lock.owner.door, to: &state.waiting)
      state.files[file]?.waiting.removeAll { $0.number == waiter.number }
      answers.append((waiter.answer, .granted))
    }
    return answers
  }

  private static func takeWaiters(_ state: inout State, where isTaken: (UInt64, Waiter) -> Bool) -> [Waiter] {
    var taken: [Waiter] = []
    for (number, file) in state.files where !file.waiting.isEmpty {
      let found = file.waiting.filter { isTaken(number, $0) }
      if found.isEmpty { continue }
      taken += found
      for waiter in found { add(-1, for: waiter.lock.owner.door, to: &state.waiting) }
      state.files[number]?.waiting.removeAll { isTaken(number, $0) }
      if state.files[number]?.isUnused ?? false { state.files[number] = nil }
    }
    return taken
  }
}

extension Library {
  /// Checks that an open file may be locked: everyone who may read it may lock it.
  ///
  /// - Throws: `accessDenied`.
  package func permitLock(_ handle: UInt64) throws {
    try locked { if let file = files[handle] { try allow(.read, file) } }
  }
}
