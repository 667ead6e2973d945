internal import Foundation

/// When SQLite runs what is recorded, and a group is committed that nobody asks to be: soon after its first change.
// Sendable: everything that changes is touched only with `condition` locked.
final class CommitSchedule: @unchecked Sendable {
  /// Seconds for which other programs that read the library file may not see a change, and for which recorded statements are left
  /// to gather: those of many changes are run faster together, and the commit thread takes less time from whoever makes them.
  private static let interval = 0.05

  private let condition = MonotonicCondition()
  private var isDue = false
  private var isStopped = false

  /// - Parameter commit: runs what is recorded, and commits it.
  func start(commit: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      while let deadline = begin(), pause(until: deadline) { commit() }
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

  /// Waits until `deadline`; returns whether the group is to be committed.
  private func pause(until deadline: Moment) -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while !isStopped, condition.wait(until: deadline) {}
    isDue = false
    return !isStopped
  }
}
