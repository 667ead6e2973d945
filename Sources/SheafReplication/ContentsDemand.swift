import SheafLibrary
import SheafModel
import Synchronization

/// The contents that a replica fetches for those who wait for them: the same ones once, however many wait.
final class ContentsDemand: Sendable {
  /// How long whoever waits does so without a byte.
  private static let patience = Duration.seconds(5)

  private struct State {
    var running: [AbsentContents: Task<Void, any Error>] = [:]
    var progress = ContinuousClock.now
    var hasFetched = false
  }

  private let state = Mutex(State())

  /// Notes that bytes came.
  func noteProgress() { state.withLock { $0.progress = .now } }

  /// Whether anything was fetched since this was asked last.
  func takeFetched() -> Bool {
    state.withLock { state in
      defer { state.hasFetched = false }
      return state.hasFetched
    }
  }

  /// Runs `body`, which fetches some contents, unless that is being done already; returns once it is done.
  func fetch(_ contents: AbsentContents, _ body: @escaping @Sendable () async throws -> Void) async throws {
    let task = state.withLock { state in
      if let running = state.running[contents] { return running }
      let task = Task {
        do {
          try await body()
        } catch {
          end(contents)
          throw error
        }
        end(contents)
      }
      state.running[contents] = task
      return task
    }
    try await task.value
  }

  private func end(_ contents: AbsentContents) {
    state.withLock { state in
      state.running[contents] = nil
      state.hasFetched = true
    }
  }

  /// Waits for `body`, which goes on if nobody waits for it any more.
  ///
  /// - Throws: What `body` throws; `unreachable` once nothing came for ``patience``; `CancellationError` at once.
  func withPatience(_ body: @escaping @Sendable () async throws -> Void) async throws {
    noteProgress()
    let answer = FirstAnswer()
    Task {
      do {
        try await body()
        answer.give(.success(()))
      } catch {
        answer.give(.failure(error))
      }
    }
    let watch = Task {
      while !Task.isCancelled {
        let since = state.withLock(\.progress)
        try await Task.sleep(until: since + Self.patience)
        guard state.withLock({ $0.progress == since }) else { continue }
        let seconds = Self.patience.components.seconds
        answer.give(
          .failure(
            SheafError(.unreachable, subject: "contents", reason: "the hub sent nothing for \(seconds) seconds")))
        return
      }
    }
    let result = await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      answer.give(.failure(CancellationError()))
    }
    watch.cancel()
    try result.get()
  }
}

/// The first of several answers, for the one who waits.
private final class FirstAnswer: Sendable {
  private struct State {
    var answer: Result<Void, any Error>?
    var waiting: CheckedContinuation<Result<Void, any Error>, Never>?
  }

  private let state = Mutex(State())

  func give(_ answer: Result<Void, any Error>) {
    let waiting = state.withLock { state -> CheckedContinuation<Result<Void, any Error>, Never>? in
      guard state.answer == nil else { return nil }
      state.answer = answer
      defer { state.waiting = nil }
      return state.waiting
    }
    waiting?.resume(returning: answer)
  }

  func value() async -> Result<Void, any Error> {
    await withCheckedContinuation { continuation in
      let answer = state.withLock { state in
        if state.answer == nil { state.waiting = continuation }
        return state.answer
      }
      if let answer { continuation.resume(returning: answer) }
    }
  }
}
