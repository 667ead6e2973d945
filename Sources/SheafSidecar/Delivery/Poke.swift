import Synchronization

/// Wakes waiting tasks, which may be cancelled and come again.
final class Poke: Sendable {
  private struct State {
    var count: UInt64 = 0
    var next = 0
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  /// The number of pokes so far.
  var count: UInt64 { state.withLock { $0.count } }

  func poke() {
    let waiting = state.withLock { state in
      state.count += 1
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Returns once there were more pokes than `count`, or the task is cancelled.
  func wait(past count: UInt64) async {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDone = state.withLock { state in
          if state.count > count || Task.isCancelled { return true }
          state.waiting[number] = continuation
          return false
        }
        if isDone { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
    }
  }
}
