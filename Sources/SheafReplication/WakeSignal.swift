import Synchronization

/// A signal that wakes one task; raised before that task waits, it wakes it at once. It may wake it for nothing.
final class WakeSignal: Sendable {
  private struct State {
    var isRaised = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func raise() {
    let waiting = state.withLock { state in
      defer { state.waiting = nil }
      if state.waiting == nil { state.isRaised = true }
      return state.waiting
    }
    waiting?.resume()
  }

  /// - Parameter limit: How long it waits; nil for as long as it takes.
  func wait(atMost limit: Duration?) async {
    let timer = limit.map { limit in
      Task {
        try? await Task.sleep(for: limit)
        if !Task.isCancelled { raise() }
      }
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isRaised = state.withLock { state in
          if state.isRaised {
            state.isRaised = false
            return true
          }
          state.waiting = continuation
          return false
        }
        if isRaised { continuation.resume() }
      }
    } onCancel: {
      raise()
    }
    timer?.cancel()
  }
}
