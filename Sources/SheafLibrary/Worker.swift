import Foundation
import SheafStore

/// A thread of the library's own, which sleeps while there is nothing to do, and the lock under which others give it
/// work. A schedule decides on the work and its time, and keeps its state under this lock.
// Sendable: everything that changes is touched only with `condition` locked.
final class Worker: @unchecked Sendable {
  /// The worker's next action.
  enum Next<Work> {
    case work(Work)
    /// Nothing before that moment, unless something changes.
    case pause(until: Moment)
    case sleep
  }

  private let condition = MonotonicCondition()
  private var isRunning = false
  /// Whether the thread is to end; to be asked with the lock held.
  private(set) var isStopped = false

  /// Starts the thread, which ends with `body`: that goes on for as long as ``wait(for:)`` has work.
  func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
    locked { isRunning = true }
    let thread = Thread { [self] in
      body()
      change {
        isRunning = false
        return true
      }
    }
    thread.name = name
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Waits for the next work; nil once stopped.
  ///
  /// - Parameter next: called with the lock held, whenever something may have changed.
  func wait<Work>(for next: () -> Next<Work>) -> Work? {
    condition.lock()
    defer { condition.unlock() }
    while !isStopped {
      switch next() {
      case .work(let work): return work
      case .pause(let end): _ = condition.wait(until: end)
      case .sleep: condition.wait()
      }
    }
    return nil
  }

  func locked<Value>(_ body: () -> Value) -> Value {
    condition.lock()
    defer { condition.unlock() }
    return body()
  }

  /// Runs `body` with the lock held, and wakes who waits if it says so.
  func change(_ body: () -> Bool) {
    locked {
      if body() { condition.broadcast() }
    }
  }

  /// Ends the thread, and returns once it has ended and nothing else goes on of which `isBusy` tells.
  func stop(while isBusy: () -> Bool = { false }) {
    locked {
      isStopped = true
      condition.broadcast()
      while isRunning || isBusy() { condition.wait() }
    }
  }
}
