internal import Foundation

/// The thread by which SQLite runs recorded statements and commits a group soon after its first change, if nobody asks
/// for that before.
// Sendable: everything that changes is touched only with `condition` locked.
final class CommitSchedule: @unchecked Sendable {
  /// Seconds for which other readers of the library file may not see a change, and in which recorded statements gather:
  /// the statements of many changes run faster together, and the commit thread takes less time from the threads that
  /// make changes.
  private static let interval = 0.05

  private let condition = MonotonicCondition()
  private var isDue = false
  private var isUrgent = false
  private var isStopped = false

  /// - Parameters:
  ///   - apply: Runs recorded statements.
  ///   - commit: Runs the recorded statements, and commits them.
  func start(apply: @escaping @Sendable () -> Void, commit: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      while let deadline = begin() {
        while pause(until: deadline) { apply() }
        if !finish() { return }
        commit()
      }
    }
    thread.name = "sheaf-commit"
    thread.stackSize = 1 << 20
    thread.start()
  }

  func wake() {
    condition.lock()
    if !isDue {
      isDue = true
      condition.signal()
    }
    condition.unlock()
  }

  /// Makes the thread run recorded statements at once, since many wait.
  func runNow() {
    condition.lock()
    if !isUrgent {
      isUrgent = true
      condition.signal()
    }
    condition.unlock()
  }

  func stop() {
    condition.lock()
    isStopped = true
    condition.signal()
    condition.unlock()
  }

  /// Waits for a group; returns the moment at which to commit it, nil when none comes any more.
  private func begin() -> Moment? {
    condition.lock()
    defer { condition.unlock() }
    while !isDue, !isStopped { condition.wait() }
    return isStopped ? nil : .now.after(seconds: Self.interval)
  }

  /// Waits until `deadline`, and returns true where statements are to run before that.
  private func pause(until deadline: Moment) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while !isStopped, !isUrgent, condition.wait(until: deadline) {}
    defer { isUrgent = false }
    return isUrgent && !isStopped
  }

  /// Ends a pause; returns whether to commit the group.
  private func finish() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    isDue = false
    return !isStopped
  }
}
