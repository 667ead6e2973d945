/// The error of ``withTimeout(_:_:)`` when the time is over.
package struct TimedOut: Error {}

/// Runs `body`, and cancels it when it takes longer than `limit`.
package func withTimeout<Value: Sendable>(
  _ limit: Duration, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  try await withThrowingTaskGroup(of: Value.self) { group in
    group.addTask(operation: body)
    group.addTask {
      try await Task.sleep(for: limit)
      throw TimedOut()
    }
    defer { group.cancelAll() }
    guard let value = try await group.next() else { throw TimedOut() }
    return value
  }
}
