import Synchronization

/// Whether a replica is paused, for those who wait for the one or for the other.
final class PauseGate: Sendable {
  private struct State {
    var isPaused = false
    var next = 0
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  var isPaused: Bool {
    get { state.withLock(\.isPaused) }
    set {
      let waiting = state.withLock { state in
        guard state.isPaused != newValue else { return [CheckedContinuation<Void, Never>]() }
        state.isPaused = newValue
        defer { state.waiting = [:] }
        return Array(state.waiting.values)
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  /// Returns once it is so, or when the task is cancelled.
  func wait(until isPaused: Bool) async {
    let number = state.withLock { state in
      state.next += 1
      return state.next
    }
    while !Task.isCancelled, self.isPaused != isPaused {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            if state.isPaused == isPaused || Task.isCancelled { return true }
            state.waiting[number] = continuation
            return false
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
      }
    }
  }
}
