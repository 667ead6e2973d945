internal import Foundation

/// When SQLite runs what is recorded, and when a group is committed that nobody asks to be: soon after its first change.
// Sendable: everything that changes is touched only with `condition` locked.
final class CommitSchedule: @unchecked Sendable {
  /// Seconds for which other programs that read the library file may not see a change.
  private static let interval = 0.025
  /// Seconds for which recorded statements are left to gather: those of some changes are run faster together, and the fewer
  /// wait the less a reader has to run.
  private static let applyInterval = 0.003

  private let condition = MonotonicCondition()
  private var isDue = false
  private var isStopped = false

  /// - Parameters:
  ///   - apply: runs what is recorded.
  ///   - commit: commits it.
  func start(apply: @escaping @Sendable () -> Void, commit: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      while let deadline = begin() {
        while pause(until: deadline) { apply() }
        guard end() else { return }
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

  func stop() {
    condition.lock()
    isStopped = true
    condition.signal()
    condition.unlock()
  }

  /// Waits for a group; returns when it is to be committed, nil where none comes any more.
  private func begin() -> Moment? {
    condition.lock()
    defer { condition.unlock() }
    while !isDue, !isStopped { condition.wait() }
    return isStopped ? nil : .now.after(seconds: Self.interval)
  }

  /// Waits a little; returns whether there is more time.
  private func pause(until deadline: Moment) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    let next = Moment.now.after(seconds: Self.applyInterval)
    while !isStopped, condition.wait(until: next) {}
    return !isStopped && next < deadline
  }

  /// Returns whether the group is to be committed.
  private func end() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    isDue = false
    return !isStopped
  }
}
