internal import Foundation

/// When a group is committed that nobody asks to be: soon after its first change.
// Sendable: everything that changes is touched only with `condition` locked.
final class CommitSchedule: @unchecked Sendable {
  /// Seconds for which other programs that read the library file may not see a change.
  private static let interval = 0.025

  private let condition = NSCondition()
  private var isDue = false
  private var isStopped = false

  func start(_ commit: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      while wait() { commit() }
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

  private func wait() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while !isDue, !isStopped { condition.wait() }
    let deadline = Date(timeIntervalSinceNow: Self.interval)
    while !isStopped, condition.wait(until: deadline) {}
    isDue = false
    return !isStopped
  }
}
