import SheafModel
import Synchronization

/// Lets so many requests of a door be answered at once. Others wait for their turn in the order in which they came, so
/// that a door's requests take no more of the processors than that, however many clients send how much ahead.
///
/// A request goes on waiting when its client leaves, and the client may come back with another one: so there is a limit
/// to those that wait, too.
final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, any Error>] = []
  }

  private let most: Int
  private let state: Mutex<State>

  /// How many wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// - Parameter most: how many may wait.
  init(_ limit: Int, waiting most: Int) {
    state = Mutex(State(free: limit))
    self.most = most
  }

  /// Runs `body` when it is its turn.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` where too many wait; what `body` throws.
  func take<Value>(_ body: () async throws -> Value) async throws -> Value {
    try await begin()
    defer { end() }
    return try await body()
  }

  private func begin() async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      let outcome: Result<Void, any Error>? = state.withLock { state in
        if state.free > 0 {
          state.free -= 1
          return .success(())
        }
        guard state.waiting.count < most else { return .failure(refusal) }
        state.waiting.append(continuation)
        return nil
      }
      if let outcome { continuation.resume(with: outcome) }
    }
  }

  private var refusal: SheafError {
    SheafError(
      .unavailable, reason: "\(most) requests wait here, which is the most", advice: "try again when some are done")
  }

  /// Hands the turn on.
  private func end() {
    let next: CheckedContinuation<Void, any Error>? = state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
