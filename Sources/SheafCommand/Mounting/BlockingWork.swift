import Dispatch

/// Calls that wait for the kernel, kept off the threads of Swift's concurrency.
enum BlockingWork {
  private static let queue = DispatchQueue(label: "sheaf.blocking", attributes: .concurrent)

  /// Runs `body` on a thread of its own.
  static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }
}
