import Dispatch
import SheafModel
import Synchronization

/// Hands values from a thread that makes them to a task that sends them, a few ahead and no more.
///
/// The thread waits in ``Producer/put(_:)`` while the task is behind; the task waits in ``next()`` while there is no
/// value yet. Once nobody reads a handoff any longer, it is cancelled, and ends the thread's work with an error.
final class Handoff<Element: Sendable>: Sendable {
  /// How many values the thread may be ahead.
  private static var ahead: Int { 4 }

  /// The thread's end of a handoff.
  struct Producer {
    fileprivate let state: HandoffState
    fileprivate let continuation: AsyncThrowingStream<Element, any Error>.Continuation

    /// Gives a value, waiting until it may.
    ///
    /// - Throws: `CancellationError` if nobody reads any longer.
    func put(_ element: Element) throws {
      try state.waitForSlot()
      continuation.yield(element)
    }

    /// Gives a value that is dropped if the task is behind or gone.
    func offer(_ element: Element) {
      if state.takeSlot() { continuation.yield(element) }
    }
  }

  private let state: HandoffState
  private let stream: AsyncThrowingStream<Element, any Error>
  private let continuation: AsyncThrowingStream<Element, any Error>.Continuation

  private init(state: HandoffState) {
    self.state = state
    (stream, continuation) = AsyncThrowingStream.makeStream()
    continuation.onTermination = { _ in state.cancel() }
  }

  deinit { state.cancel() }

  /// Starts a thread that runs `work`, which puts its values into the handoff.
  ///
  /// - Parameter slot: Kept for as long as the thread runs.
  static func start(
    _ slot: Slots.Slot, _ work: @escaping @Sendable (Producer) throws -> Void
  ) -> Handoff {
    let state = HandoffState(ahead: ahead)
    let handoff = Handoff(state: state)
    let continuation = handoff.continuation
    DispatchQueue(label: "sheaf.transfer").async {
      defer { withExtendedLifetime(slot) {} }
      do {
        try work(Producer(state: state, continuation: continuation))
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    return handoff
  }

  /// The next value, or nil after the last.
  ///
  /// - Throws: the error of the work; `CancellationError` if the task was cancelled.
  func next() async throws -> Element? {
    var iterator = stream.makeAsyncIterator()
    let element = try await iterator.next()
    if element == nil { try Task.checkCancellation() }
    state.signal()
    return element
  }
}

/// The state that the thread and the task of a handoff share.
private final class HandoffState: Sendable {
  private let slots = DispatchSemaphore(value: 0)
  private let cancelled = Atomic(false)

  init(ahead: Int) {
    for _ in 0..<ahead { slots.signal() }
  }

  func waitForSlot() throws {
    slots.wait()
    guard !cancelled.load(ordering: .acquiring) else {
      slots.signal()
      throw CancellationError()
    }
  }

  func takeSlot() -> Bool { slots.wait(timeout: .now()) == .success }

  func signal() { slots.signal() }

  func cancel() {
    cancelled.store(true, ordering: .releasing)
    slots.signal()
  }
}
