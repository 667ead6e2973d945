import SheafStore

/// When kept saves are completed: when there are some, and again after a failure.
// Sendable: everything that changes is touched only with the worker's lock held.
final class StoringSchedule: @unchecked Sendable {
  /// Seconds after which what failed is tried again.
  private static let pause = 1.0

  private let worker = Worker()
  private var isDue = false
  private var nextAttempt = Moment.past

  /// - Parameter complete: completes what is kept; returns false where something is left that failed.
  func start(_ complete: @escaping @Sendable () -> Bool) {
    worker.start("sheaf-store") { [self] in
      while wait() {
        if !complete() { tryAgain() }
      }
    }
  }

  func wake() {
    worker.change {
      isDue = true
      return true
    }
  }

  /// Returns when the thread does nothing any more.
  func stop() { worker.stop() }

  private func wait() -> Bool {
    let begun: Void? = worker.wait {
      guard isDue else { return .sleep }
      guard Moment.now >= nextAttempt else { return .pause(until: nextAttempt) }
      isDue = false
      return .work(())
    }
    return begun != nil
  }

  private func tryAgain() {
    worker.locked {
      isDue = true
      nextAttempt = .now.after(seconds: Self.pause)
    }
  }
}
