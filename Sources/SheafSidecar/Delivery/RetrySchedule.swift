package import SheafModel

/// When another attempt is due: exponential backoff with full jitter, for three days.
///
/// The wait before attempt n + 1 is a random part of `base` × 2ⁿ, at most `cap`: not all waiting clients come at once
/// when an endpoint is back ("Exponential Backoff And Jitter", AWS Architecture Blog).
package struct RetrySchedule: Sendable, Equatable {
  /// Seconds.
  package var base: Double
  package var cap: Double
  /// Seconds after which an event is given up.
  package var patience: Double

  package init(base: Double = 1, cap: Double = 4 * 3600, patience: Double = 3 * 86_400) {
    self.base = base
    self.cap = cap
    self.patience = patience
  }

  /// Seconds until the next attempt.
  ///
  /// - Parameters:
  ///   - failures: Attempts that failed in a row, at least 1.
  ///   - random: From 0 up to 1.
  package func wait(afterFailures failures: Int, asked: Double?, random: Double) -> Double {
    let longest = Double.minimum(
      cap, base * Double(sign: .plus, exponent: min(max(0, failures - 1), 60), significand: 1))
    return Double.maximum(longest * random, asked ?? 0)
  }

  /// Whether to give up an event: it has waited long enough, and the endpoint has failed for as long.
  ///
  /// - Parameters:
  ///   - event: When it happened.
  ///   - failing: When the first of the endpoint's failures in a row was.
  package func gives(up event: Timestamp, failingSince failing: Timestamp, at now: Timestamp) -> Bool {
    (Double(now.nanoseconds) - Double(max(event, failing).nanoseconds)) / 1e9 >= patience
  }
}
