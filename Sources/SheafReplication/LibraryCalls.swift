/// Calls of a library for one of its replicas, on threads that may wait for a disk.
struct LibraryCalls: Sendable {
  private let library: any ReplicaEngine.ReplicaLibrary
  private let number: Int64
  private let threads: ReplicaThreads

  /// - Parameter number: The account whose `Documents` the replica is.
  init(_ library: any ReplicaEngine.ReplicaLibrary, _ number: Int64, _ threads: ReplicaThreads) {
    (self.library, self.number, self.threads) = (library, number, threads)
  }

  /// Runs `body` with the library and the number of the account.
  ///
  /// - Throws: what `body` throws; an error of the pool's once it is shut down.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (any ReplicaEngine.ReplicaLibrary, Int64) throws -> Value
  ) async throws -> Value {
    let (library, number) = (library, number)
    return try await threads.run { try body(library, number) }
  }
}
