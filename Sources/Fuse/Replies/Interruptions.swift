import CFuse
import Synchronization

/// The actions to take when the kernel interrupts a request that waits for its answer, since its caller got a signal.
///
/// Requests have numbers of their own here: libfuse may interrupt one that another thread is just answering.
enum Interruptions {
  private struct State {
    var next: UInt = 1
    var actions: [UInt: @Sendable () -> Void] = [:]
  }

  private static let state = Mutex(State())

  /// Calls `action` when the kernel interrupts `request`, and at once if it already has.
  static func expect(_ request: fuse_req_t, _ action: @escaping @Sendable () -> Void) -> UInt {
    let number = state.withLock { state in
      defer { state.next += 1 }
      state.actions[state.next] = action
      return state.next
    }
    fuse_req_interrupt_func(
      request, { _, number in Interruptions.happen(UInt(bitPattern: number)) },
      UnsafeMutableRawPointer(bitPattern: number))
    return number
  }

  static func forget(_ number: UInt) { state.withLock { $0.actions[number] = nil } }

  private static func happen(_ number: UInt) {
    let action = state.withLock { $0.actions[number] }
    action?()
  }
}

/// The answer to a request that may wait for it.
package protocol InterruptibleReply: ~Copyable, Sendable {
  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void)
}
