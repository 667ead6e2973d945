import Foundation
import SheafStore

/// When the thread runs that completes kept saves: when there are some, and again after a failure.
// Sendable: everything that changes is touched only with `condition` locked.
final class StoringSchedule: @unchecked Sendable {
  /// Seconds after which what failed is tried again.
  private static let pause = 1.0

  private let condition = MonotonicCondition()
  private var isDue = false
  private var isStopped = false
  private var isRunning = false

  /// - Parameter complete: completes what is kept; returns false where something is left that failed.
  func start(_ complete: @escaping @Sendable () -> Bool) {
    condition.lock()
    isRunning = true
    condition.unlock()
    let thread = Thread { [self] in
      while wait() {
        if !complete() { tryAgain() }
      }
      condition.lock()
      isRunning = false
      condition.broadcast()
      condition.unlock()
    }
    thread.name = "sheaf-store"
    thread.stackSize = 1 << 20
    thread.start()
  }

  func wake() {
    condition.lock()
    isDue = true
    condition.broadcast()
    condition.unlock()
  }

  /// Returns when the thread does nothing any more.
  func stop() {
    condition.lock()
    isStopped = true
    condition.broadcast()
    while isRunning { condition.wait() }
    condition.unlock()
  }

  private func wait() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while !isDue, !isStopped { condition.wait() }
    isDue = false
    return !isStopped
  }

  private func tryAgain() {
    condition.lock()
    defer { condition.unlock() }
    let end = Moment.now.after(seconds: Self.pause)
    while !isStopped, condition.wait(until: end) {}
    isDue = true
  }
}
