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
