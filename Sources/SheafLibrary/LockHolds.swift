import Glibc

/// How long operations held the library's lock, for which all others waited: of those that were long, by operation.
package struct LockHolds: Sendable {
  /// Of one operation.
  package struct Hold: Sendable {
    package var longestNanoseconds: Int64 = 0
    /// Holds of more than 10 ms.
    package var longCount: Int64 = 0
  }

  /// Shorter holds are not noted, so that they cost no more than two looks at the clock.
  private static let shortest: Int64 = 1_000_000
  private static let long: Int64 = 10_000_000

  package private(set) var byOperation: [String: Hold] = [:]
  /// The most inodes that an operation looked up in one hold, where they were many: that is the same on any machine.
  private(set) var mostLooks: [String: UInt64] = [:]
  private static let manyLooks: UInt64 = 512

  /// Nanoseconds by CLOCK_MONOTONIC.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// - Parameter operation: the function that held the lock, as `#function` has it.
  /// - Parameter looks: how many inodes it looked up.
  mutating func note(_ operation: StaticString, from start: Int64, to end: Int64, looks: UInt64 = 0) {
    let length = end - start
    guard length >= Self.shortest || looks >= Self.manyLooks else { return }
    let name = String("\(operation)".prefix { $0 != "(" })
    if looks >= Self.manyLooks { mostLooks[name] = max(mostLooks[name] ?? 0, looks) }
    guard length >= Self.shortest else { return }
    var hold = byOperation[name] ?? Hold()
    hold.longestNanoseconds = max(hold.longestNanoseconds, length)
    if length > Self.long { hold.longCount += 1 }
    byOperation[name] = hold
  }
}
