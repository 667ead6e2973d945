import Synchronization

/// The pace of contents between this machine and a hub, sent and fetched: how many bytes may pass in a second, and how
/// many have passed.
///
/// In any span, no more passes than the rate allows for it, and one piece. A piece passes as a whole; whoever comes after
/// it waits until the rate allows for it.
package final class ContentPace: Sendable {
  /// Where the pace has its time from.
  package struct Time: Sendable {
    package let now: @Sendable () -> Duration
    package let sleep: @Sendable (Duration) async throws -> Void

    package init(
      now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
      self.now = now
      self.sleep = sleep
    }

    package static var real: Time {
      let start = ContinuousClock.now
      return Time(now: { ContinuousClock.now - start }, sleep: { try await Task.sleep(for: $0) })
    }
  }

  /// After how long whoever waits looks whether the rate is another one.
  private static let look = Duration.milliseconds(250)

  private struct State {
    var rate: Int64?
    /// Bytes that passed and for which the rate has not allowed yet.
    var debt = 0.0
    var settled = Duration.zero
    var passed: Int64 = 0

    /// - Returns: nil if they have passed; otherwise for how long to wait.
    mutating func pass(_ bytes: Int, at now: Duration) -> Duration? {
      if let rate {
        debt = max(0, debt - (now - settled) / .seconds(1) * Double(rate))
        settled = now
        guard debt == 0 else { return .seconds(debt / Double(rate)) }
        debt = Double(bytes)
      }
      passed += Int64(bytes)
      return nil
    }
  }

  private let time: Time
  private let state = Mutex(State())

  package init(time: Time = .real) { self.time = time }

  /// Bytes in a second; nil for as many as come.
  package var rate: Int64? {
    get { state.withLock(\.rate) }
    set {
      let now = time.now()
      state.withLock { ($0.rate, $0.debt, $0.settled) = (newValue, 0, now) }
    }
  }

  /// Bytes that have passed.
  package var passed: Int64 { state.withLock(\.passed) }

  /// Returns once some bytes may pass.
  func take(_ bytes: Int) async throws {
    while let wait = state.withLock({ $0.pass(bytes, at: time.now()) }) {
      try await time.sleep(min(max(wait, .milliseconds(1)), Self.look))
    }
  }
}
