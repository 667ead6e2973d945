import Synchronization
import Testing

@testable import SheafLibrary

/// The table of locks, without a mount.
struct FileLockTests {
  private let locks = FileLocks()

  /// What became of a request, once it is known.
  private final class Answer: Sendable {
    private let outcome = Mutex<FileLocks.Outcome?>(nil)

    func give(_ outcome: FileLocks.Outcome) {
      self.outcome.withLock {
        #expect($0 == nil, "answered twice")
        $0 = outcome
      }
    }

    var now: FileLocks.Outcome? { outcome.withLock { $0 } }
  }

  @discardableResult
  private func set(
    _ owner: UInt64, _ range: ClosedRange<Int64> = 0...Int64.max, exclusive: Bool = true,
    family: FileLocks.Family = .record, of file: UInt64 = 1, door: Int = 1, waits: Bool = true
  ) -> (answer: Answer, request: UInt64) {
    let answer = Answer()
    let request = locks.newRequest()
    let lock = FileLocks.Lock(
      owner: .init(door: door, id: owner), handle: owner, process: Int32(owner), isExclusive: exclusive, range: range)
    locks.set(lock, family, of: file, waits: waits, request: request) { answer.give($0) }
    return (answer, request)
  }

  private func unlock(_ owner: UInt64, _ range: ClosedRange<Int64>, of file: UInt64 = 1) {
    locks.unlock(range, .record, of: file, by: .init(door: 1, id: owner))
  }

  @Test func whoeverLetsGoLetsTheNextOneIn() {
    #expect(set(1).answer.now == .granted)
    let second = set(2).answer
    let third = set(3, exclusive: false).answer
    #expect(second.now == nil && third.now == nil)
    unlock(1, 0...Int64.max)
    #expect(second.now == .granted && third.now == nil)
    locks.closed(1, by: .init(door: 1, id: 2))
    #expect(third.now == .granted)
    locks.released(1, door: 1, handle: 3)
    #expect(locks.isEmpty)
  }

  @Test func ringsAreRefused() {
    for owner in 1...3 as ClosedRange<UInt64> { #expect(set(owner, of: owner).answer.now == .granted) }
    let first = set(1, of: 2).answer
    let second = set(2, of: 3).answer
    #expect(first.now == nil && second.now == nil)
    #expect(set(3, of: 1).answer.now == .deadlock)
    locks.released(3, door: 1, handle: 3)
    #expect(second.now == .granted)
  }

  @Test func whoOnlyTriesIsNotWaitedFor() {
    for owner in 1...2 as ClosedRange<UInt64> { #expect(set(owner, of: owner).answer.now == .granted) }
    // Thought over for a moment, and then refused: it is no part of a ring.
    set(1, of: 2, waits: false)
    let waiting = set(2, of: 1).answer
    #expect(waiting.now == nil)
    locks.released(1, door: 1, handle: 1)
    #expect(waiting.now == .granted)
  }

  @Test func whoIsInterruptedWaitsNoLonger() {
    set(1)
    let (answer, request) = set(2)
    locks.interrupt(request)
    #expect(answer.now == .interrupted)
    let early = locks.newRequest()
    locks.interrupt(early)
    let late = Answer()
    let lock = FileLocks.Lock(owner: .init(door: 1, id: 3), handle: 3, process: 3, isExclusive: true)
    locks.set(lock, .record, of: 1, waits: true, request: early) { late.give($0) }
    #expect(late.now == .interrupted)
    locks.ended(1)
    #expect(locks.isEmpty)
  }

  @Test func whoTakesAllTheirLocksLeavesOthersTheirs() {
    for file in 1...UInt64(FileLocks.limit) { set(1, of: file) }
    #expect(set(1, of: UInt64(FileLocks.limit) + 1).answer.now == .tooMany)
    #expect(set(1, of: UInt64(FileLocks.limit) + 1, door: 2).answer.now == .granted)
    unlock(1, 0...Int64.max, of: 1)
    #expect(set(1, of: UInt64(FileLocks.limit) + 2).answer.now == .granted)
    locks.ended(1)
    #expect(set(1, of: 1).answer.now == .granted)
  }

  @Test func whoWaitsTooOftenLeavesOthersToWait() {
    set(1, of: 1)
    let waiting = (0..<FileLocks.waitingLimit).map { set(UInt64($0) + 2, of: 1).answer }
    #expect(waiting.allSatisfy { $0.now == nil })
    #expect(set(1_000_000, of: 1).answer.now == .tooMany)
    let other = set(1, of: 1, door: 2).answer
    #expect(other.now == nil)
    locks.ended(1)
    #expect(waiting.allSatisfy { $0.now == .interrupted } && other.now == .granted)
    set(2, of: 1, door: 1)
    locks.ended(2)
    locks.ended(1)
    #expect(locks.isEmpty)
  }

  @Test func whatAMountHeldGoesWithIt() {
    set(1, family: .flock, door: 1)
    let other = set(1, family: .flock, door: 2).answer
    let same = set(7, family: .flock, door: 1).answer
    locks.ended(1)
    #expect(same.now == .interrupted && other.now == .granted)
    locks.revoked(1, door: 2)
    #expect(locks.isEmpty)
  }

  // MARK: - What it costs

  /// Thousands who wait, and tens of thousands of locks, by other owners of the same file.
  @Test func whoLetsGoPaysForThoseWhoWaitedForThat() {
    let pieces = 20_000
    for piece in 0..<pieces { #expect(set(1, byte(2 * piece)).answer.now == .granted) }
    let waiting = (0..<4000).map { set(UInt64(2 + $0), byte(2 * $0)).answer }
    let before = locks.comparisons
    for number in 0..<100 {
      unlock(1, byte(2 * number))
      #expect(waiting[number].now == .granted)
    }
    #expect(waiting.count { $0.now != nil } == 100)
    // Each waits behind the holder; a comparison of each with each lock would be eighty million.
    let cost = (locks.comparisons - before) / 100
    #expect(cost < 2 * waiting.count, "\(cost) for each")
    locks.ended(1)
    #expect(locks.isEmpty)
  }

  /// One after the other gets the lock that all of them want.
  @Test func aLockThatAllWantIsPassedOn() {
    let waiters = 1000
    // Of others, all over the file, and of the one who wants it all.
    for piece in 0..<5000 { set(UInt64(piece % 2 + 1), byte(2 * piece + 1), exclusive: piece % 2 == 0) }
    set(3, byte(100_000))
    let waiting = (0..<waiters).map { set(UInt64(10 + $0), byte(100_000)).answer }
    let before = locks.comparisons
    var holder: UInt64 = 3
    for number in 0..<waiters {
      unlock(holder, byte(100_000))
      #expect(waiting[number].now == .granted && (number + 1 == waiters || waiting[number + 1].now == nil))
      holder = UInt64(10 + number)
    }
    let cost = (locks.comparisons - before) / waiters
    #expect(cost < 3 * waiters, "\(cost) for each")
  }

  /// Locks in all the places where blocks of them are nearly empty.
  @Test func fewLocksAreFewBlocks() {
    for piece in 0..<20_000 { set(1, byte(2 * piece)) }
    for piece in 0..<20_000 where piece % 100 != 0 { unlock(1, byte(2 * piece)) }
    let before = locks.comparisons
    let lock = FileLocks.Lock(owner: .init(door: 1, id: 1), handle: 1, process: 1, isExclusive: true)
    for _ in 0..<10 { #expect(locks.holder(against: lock, of: 1) == nil) }
    let cost = (locks.comparisons - before) / 10
    #expect(cost < 50, "\(cost) for 200 locks")
  }

  private func byte(_ number: Int) -> ClosedRange<Int64> { Int64(number)...Int64(number) }

  // MARK: - The most that there can be

  @Test func whoHasAllTheirLocksMakesNoTwoOfOne() {
    for piece in 0..<(FileLocks.limit - 1) { set(1, byte(2 * piece)) }
    #expect(set(1, 1_000_000...1_000_009, of: 2).answer.now == .granted)
    // A piece from the middle would leave two.
    #expect(!locks.unlock(byte(1_000_005), .record, of: 2, by: .init(door: 1, id: 1)))
    #expect(set(1, byte(1_000_005), exclusive: false, of: 2).answer.now == .tooMany)
    let other = set(2, byte(1_000_005), of: 2).answer
    #expect(other.now == nil)
    // What leaves one is done, and whoever has locks to spare may do all of it.
    #expect(locks.unlock(1_000_006...1_000_009, .record, of: 2, by: .init(door: 1, id: 1)))
    #expect(other.now == nil)
    unlock(1, byte(0))
    #expect(locks.unlock(byte(1_000_002), .record, of: 2, by: .init(door: 1, id: 1)))
    #expect(set(1, 1_000_000...1_000_005, of: 2).answer.now == .granted)
    unlock(1, byte(2))
    unlock(1, 1_000_000...1_000_005, of: 2)
    #expect(other.now == .granted)
  }

  @Test func whoIsLetInMayHaveNoMoreThanAnyone() {
    for file in 1...UInt64(FileLocks.limit) { set(1, of: file) }
    set(1, of: 100_000, door: 2)
    let waiting = set(2, of: 100_000).answer
    locks.ended(2)
    #expect(waiting.now == .tooMany)
    unlock(1, 0...Int64.max)
    #expect(set(2, of: 100_000).answer.now == .granted)
  }

  // MARK: - Rings

  /// Whoever waits for two is looked at when the first one lets go.
  @Test func aRingIsFoundWhenItIsAllThatIsLeft() {
    set(1, byte(1))
    set(2, byte(2))
    set(3, byte(3))
    let first = set(3, 1...2).answer
    // It waits for the third one, which waits for the first one first.
    let second = set(2, byte(3)).answer
    #expect(first.now == nil && second.now == nil)
    unlock(1, byte(1))
    #expect(first.now == .deadlock)
    unlock(3, byte(3))
    #expect(second.now == .granted)
  }

  /// Against a list of all who hold and wait, in which everybody is compared with everybody.
  @Test func nobodyWaitsWhoCouldGoOn() {
    var random = SeededRandom()
    let note = random.note
    let owners: ClosedRange<UInt64> = 1...6
    let world = Mutex(LockWorld())
    var requests: [UInt64: UInt64] = [:]
    for _ in 0..<5000 {
      let owner = UInt64.random(in: owners, using: &random)
      let start = Int64.random(in: 0..<12, using: &random)
      let range = start...Int64.random(in: start..<12, using: &random)
      let isWaiting = world.withLock { $0.waiting[owner] != nil }
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        world.withLock { $0.unlock(range, owner) }
        unlock(owner, range)
      case 4 where isWaiting: locks.interrupt(requests[owner] ?? 0)
      case 5:
        world.withLock { $0.unlock(0...Int64.max, owner) }
        locks.closed(1, by: .init(door: 1, id: owner))
      default:
        if isWaiting { continue }
        let lock = FileLocks.Lock(
          owner: .init(door: 1, id: owner), handle: 1, process: 1,
          isExclusive: Bool.random(using: &random), range: range)
        let request = locks.newRequest()
        requests[owner] = request
        world.withLock { $0.waiting[owner] = lock }
        locks.set(lock, .record, of: 1, waits: true, request: request) { outcome in
          world.withLock { $0.answer(owner, outcome, note) }
        }
      }
      world.withLock { $0.expectNobodyForgotten(note) }
    }
    for owner in owners {
      if let request = requests[owner] { locks.interrupt(request) }
      world.withLock { $0.unlock(0...Int64.max, owner) }
      unlock(owner, 0...Int64.max)
    }
    #expect(locks.isEmpty, note)
  }

  /// Against an array with each byte's holders.
  @Test func rangesAreHeldByteForByte() {
    var random = SeededRandom()
    let size = 40
    var bytes: [[UInt64: Bool]] = Array(repeating: [:], count: size)
    for _ in 0..<20_000 {
      let owner = UInt64.random(in: 1...3, using: &random)
      let start = Int.random(in: 0..<size, using: &random)
      let end = Int.random(in: start..<size, using: &random)
      let range = Int64(start)...Int64(end)
      if Int.random(in: 0..<3, using: &random) == 0 {
        unlock(owner, range)
        for byte in start...end { bytes[byte][owner] = nil }
        continue
      }
      let isExclusive = Bool.random(using: &random)
      let isFree = bytes[start...end].allSatisfy { holders in
        holders.allSatisfy { $0.key == owner || !isExclusive && !$0.value }
      }
      let lock = FileLocks.Lock(
        owner: .init(door: 1, id: owner), handle: 1, process: Int32(owner), isExclusive: isExclusive, range: range)
      #expect((locks.holder(against: lock, of: 1) == nil) == isFree, random.note)
      guard isFree else { continue }
      let answer = Answer()
      locks.set(lock, .record, of: 1, waits: true, request: locks.newRequest()) { answer.give($0) }
      #expect(answer.now == .granted, random.note)
      for byte in start...end { bytes[byte][owner] = isExclusive }
    }
    for owner in 1...3 as ClosedRange<UInt64> { unlock(owner, 0...Int64.max) }
    #expect(locks.isEmpty)
  }
}

/// What programs hold and wait for, byte by byte.
private struct LockWorld {
  /// Who holds each byte, and whether exclusively.
  private var bytes: [[UInt64: Bool]] = Array(repeating: [:], count: 12)
  var waiting: [UInt64: FileLocks.Lock] = [:]

  private func blockers(of lock: FileLocks.Lock) -> Set<UInt64> {
    var found: Set<UInt64> = []
    for byte in bytes.indices where lock.range.contains(Int64(byte)) {
      for (holder, isExclusive) in bytes[byte]
      where holder != lock.owner.id && (isExclusive || lock.isExclusive) { found.insert(holder) }
    }
    return found
  }

  mutating func unlock(_ range: ClosedRange<Int64>, _ owner: UInt64) {
    for byte in bytes.indices where range.contains(Int64(byte)) { bytes[byte][owner] = nil }
  }

  mutating func answer(_ owner: UInt64, _ outcome: FileLocks.Outcome, _ note: Comment) {
    guard let lock = waiting.removeValue(forKey: owner) else { return }
    switch outcome {
    case .granted:
      #expect(blockers(of: lock).isEmpty, note)
      for byte in bytes.indices where lock.range.contains(Int64(byte)) { bytes[byte][owner] = lock.isExclusive }
    case .deadlock:
      var reached = blockers(of: lock)
      for _ in 0..<bytes.count {
        for next in reached { if let lock = waiting[next] { reached.formUnion(blockers(of: lock)) } }
      }
      #expect(reached.contains(owner), note)
    case .interrupted: break
    default: Issue.record("\(outcome), \(note)")
    }
  }

  /// Expects that everybody who waits has to, and that no ring of them is closed to all others.
  func expectNobodyForgotten(_ note: Comment) {
    var stuck = waiting.mapValues { blockers(of: $0) }
    for blockers in stuck.values { #expect(!blockers.isEmpty, note) }
    // As long as somebody else is in the way too, a ring may be found later: when that one lets go.
    while let free = stuck.first(where: { !$0.value.isSubset(of: stuck.keys) })?.key { stuck[free] = nil }
    #expect(stuck.isEmpty, note)
  }
}
