/// The sink's reader has gone.
struct ReaderGone: Error {}

/// Attempts at a sink, one at a time: events and dead letters take turns.
actor SinkTurns {
  /// How long an attempt may go on after the sidecar was told to stop: a pipe may be stuck. The systemd unit waits
  /// longer.
  static let patience = Duration.seconds(75)

  private let sink: any Sink
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ sink: any Sink) { self.sink = sink }

  /// Makes one attempt, which goes on if the task is cancelled meanwhile; returns nil if it succeeded.
  ///
  /// - Throws: `CancellationError` if the task was cancelled before its turn.
  func attempt(_ deliveries: [Delivery]) async throws -> DeliveryFailure? {
    await take()
    defer { pass() }
    try Task.checkCancellation()
    let attempt = Task { [sink] () -> DeliveryFailure? in
      do {
        try await sink.deliver(deliveries)
        return nil
      } catch let failure as DeliveryFailure {
        return failure
      } catch {
        return DeliveryFailure("\(error)")
      }
    }
    return await withTaskCancellationHandler {
      await attempt.value
    } onCancel: {
      Task {
        try? await Task.sleep(for: Self.patience)
        attempt.cancel()
      }
    }
  }

  private func take() async {
    guard isTaken else {
      isTaken = true
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  private func pass() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
