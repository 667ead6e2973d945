import Synchronization

/// Lets so many requests of a door be answered at once. Others wait for their turn in the order in which they came, so
/// that a door's requests take no more of the processors than that, however many clients send how much ahead.
final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  /// How many wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  init(_ limit: Int) { state = Mutex(State(free: limit)) }

  /// Runs `body` when it is its turn.
  func take<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    await begin()
    defer { end() }
    return try await body()
  }

  private func begin() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  /// Hands the turn on.
  private func end() {
    let next: CheckedContinuation<Void, Never>? = state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
