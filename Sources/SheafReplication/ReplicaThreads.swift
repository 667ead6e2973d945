import Glibc
import NIOPosix

/// The threads on which replicas call their library, which may wait for a disk there.
///
/// They give way to everything else that wants the processor, first of all to the programs that use a mount. Threads that
/// they begin are as nice.
struct ReplicaThreads: Sendable {
  /// How much nicer than the process they are (setpriority(2)).
  private static let nicer: CInt = 10
  private static let niceness = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) + nicer

  private let pool: NIOThreadPool

  /// Begins so many threads.
  init(count: Int) {
    pool = NIOThreadPool(numberOfThreads: count)
    pool.start()
  }

  /// Runs `body` on one of them.
  ///
  /// - Throws: what `body` throws; an error of the pool's once it is shut down.
  func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await pool.runIfActive {
      // Linux has a niceness for each thread. The pool does not say when one begins, and setting it again is one system
      // call.
      _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
      return try body()
    }
  }

  /// Ends them once what they run is done.
  func shutDown() async throws { try await pool.shutdownGracefully() }
}
