import Foundation

/// Asks `condition` again and again until it holds.
///
/// - Throws: `Command.Failure` naming `what` if it does not hold in time.
public func eventually(
  _ what: String, within limit: Duration = .seconds(10), _ condition: () throws -> Bool
) throws {
  let deadline = ContinuousClock.now + limit
  while try !condition() {
    guard ContinuousClock.now < deadline else { throw Command.Failure(description: "\(what): not within \(limit)") }
    Thread.sleep(forTimeInterval: 0.02)
  }
}

/// Runs `body`, and once `limit` has passed, beside it `late`, to end its wait.
///
/// - Returns: the result of `body`, and whether it was late.
public func guarded<Result>(
  within limit: Duration, late: @escaping @Sendable () -> Void, _ body: () throws -> Result
) rethrows -> (Result, late: Bool) {
  let watch = Watch(limit, late)
  defer { watch.stop() }
  let result = try body()
  return (result, watch.stop())
}

/// A thread that acts at its deadline unless it is stopped before.
private final class Watch: @unchecked Sendable {
  // Guarded by `condition`.
  private var stopped = false
  private var fired = false
  private let condition = NSCondition()

  init(_ limit: Duration, _ late: @escaping @Sendable () -> Void) {
    let deadline = Date(timeIntervalSinceNow: limit / .seconds(1))
    Thread {
      self.condition.lock()
      while !self.stopped, self.condition.wait(until: deadline) {}
      self.fired = !self.stopped
      let act = self.fired
      self.condition.unlock()
      if act { late() }
    }.start()
  }

  /// Stops it; returns whether it had acted already.
  @discardableResult
  func stop() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    stopped = true
    condition.signal()
    return fired
  }
}
