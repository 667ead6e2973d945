import Foundation
import Synchronization

/// A thread to wait for, with the result of its body.
final class DetachedThread<Value: Sendable>: Sendable {
  private let outcome = Mutex<Result<Value, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  /// Starts the thread.
  init(_ body: @escaping @Sendable () throws -> Value) {
    let thread = Thread {
      let result = Result { try body() }
      self.outcome.withLock { $0 = result }
      self.done.signal()
    }
    thread.start()
  }

  /// Waits for the end, once; throws the error of the body.
  func wait() throws -> Value {
    done.wait()
    return try outcome.withLock { $0! }.get()
  }

  /// Whether the body ended within `seconds`; `wait` may follow.
  func ended(within seconds: Double) -> Bool {
    guard done.wait(timeout: .now() + seconds) == .success else { return false }
    done.signal()
    return true
  }
}
