import Dispatch
import Synchronization

/// A number that bodies of transactions count with.
package final class Counter: Sendable {
  private let count = Mutex(0)

  package init() {}

  package var value: Int { count.withLock { $0 } }

  package func set(_ value: Int) { count.withLock { $0 = value } }

  /// - Returns: how often it has been called, this time included.
  @discardableResult package func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}

/// A gate that bodies of transactions wait at, with a limit after which a test has failed.
package final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  package init() {}

  package func open() { semaphore.signal() }

  /// - Returns: whether it was opened.
  @discardableResult package func pass() -> Bool { semaphore.wait(timeout: .now() + 120) == .success }
}
