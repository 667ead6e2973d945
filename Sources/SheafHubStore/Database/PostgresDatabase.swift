import Dispatch
import Glibc
import Synchronization

/// An engine that speaks PostgreSQL's protocol, for a hub of any number of processes.
///
/// A limited number of connections serves all transactions, each on a thread of its own while it runs. A lost
/// connection is replaced, and a transaction that it was lost in runs again unless it was being committed.
package final class PostgresDatabase: Database {
  /// How often a transaction runs again after the engine refused it for another one's sake.
  private static let refusalLimit = 20

  private let target: String
  private let limit: Int
  private let threads = DispatchQueue(label: "sheaf.hub.postgres", attributes: .concurrent)
  private let pool = Mutex(Pool())

  private struct Pool {
    var idle: [PostgresSession] = []
    var waiting: [Job] = []
    /// Position of the next waiting job: those before it have been taken.
    var next = 0
    var running = 0
    var isClosed = false
    var closers: [CheckedContinuation<Void, Never>] = []

    mutating func takeJob() -> Job? {
      guard next < waiting.count else { return nil }
      defer {
        next += 1
        if next > 1_024, next * 2 > waiting.count {
          waiting.removeFirst(next)
          next = 0
        }
      }
      return waiting[next]
    }

    mutating func takeAll() -> ArraySlice<Job> {
      defer { (waiting, next) = ([], 0) }
      return waiting[next...]
    }
  }

  private struct Job: Sendable {
    let run: @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
  }

  /// - Parameters:
  ///   - target: libpq's connection string or URI; it may name several hosts, and with
  ///     `target_session_attrs=read-write` the one that takes writes is used.
  ///   - connections: connections at most.
  package init(target: String, connections: Int = 16) {
    self.target = target
    limit = max(1, connections)
  }

  package func write<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    try await submit(.write, body)
  }

  package func read<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    try await submit(.read, body)
  }

  package func close() async {
    let refused = pool.withLock { pool in
      pool.isClosed = true
      return pool.takeAll()
    }
    for job in refused { job.fail(HubStoreError.unavailable("the store is closed")) }
    await withCheckedContinuation { continuation in
      let isIdle = pool.withLock { pool in
        if pool.running > 0 { pool.closers.append(continuation) }
        return pool.running == 0
      }
      if isIdle { continuation.resume() }
    }
    dropIdle()
  }

  /// Why what is acknowledged may be lost with one machine; nil where a commit waits for a standby, and for an engine
  /// that has none of PostgreSQL's settings.
  package func durabilityWarning() async throws -> String? {
    do { return try await settingsWarning() } catch HubStoreError.refused { return nil }
  }

  private func settingsWarning() async throws -> String? {
    try await read { connection in
      func setting(_ sql: StaticString) throws -> String { try connection.query(sql).first?.text(0) ?? "" }
      let (fsync, commit) = (try setting("SHOW fsync"), try setting("SHOW synchronous_commit"))
      if fsync != "on" { return "fsync is \(fsync), so a power failure may damage the store" }
      if !["on", "remote_apply"].contains(commit) {
        return "synchronous_commit is \(commit), so what is acknowledged may be lost"
      }
      if try setting("SHOW synchronous_standby_names").isEmpty {
        return "synchronous_standby_names is empty, so what is acknowledged lies on one machine"
      }
      return nil
    }
  }

  private func submit<T: Sendable>(
    _ access: PostgresSession.Access, _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<T, any Error>) in
      let job = Job(
        run: { continuation.resume(with: Result { try self.transact(access, body) }) },
        fail: { continuation.resume(throwing: $0) })
      let (isClosed, starts) = pool.withLock { pool in
        if pool.isClosed { return (true, false) }
        if pool.running == limit {
          pool.waiting.append(job)
          return (false, false)
        }
        pool.running += 1
        return (false, true)
      }
      if isClosed { return job.fail(HubStoreError.unavailable("the store is closed")) }
      if starts { threads.async { self.work(on: job) } }
    }
  }

  /// Runs a job, and then those that waited meanwhile.
  private func work(on first: Job) {
    var job: Job? = first
    while let next = job {
      next.run()
      var closers: [CheckedContinuation<Void, Never>] = []
      job = pool.withLock { pool in
        if let waiting = pool.takeJob() { return waiting }
        pool.running -= 1
        if pool.isClosed, pool.running == 0 { (closers, pool.closers) = (pool.closers, []) }
        return nil
      }
      for closer in closers { closer.resume() }
    }
  }

  private func transact<T: Sendable>(
    _ access: PostgresSession.Access, _ body: @Sendable (inout any SQLConnection) throws -> T
  ) throws -> T {
    var refusals = 0
    var hasLostOne = false
    while true {
      let session = try pool.withLock { $0.idle.popLast() } ?? connect()
      do {
        let value = try session.transact(access, body)
        keep(session)
        return value
      } catch let failure as PostgresFailure {
        switch failure {
        case .again where refusals < Self.refusalLimit:
          keep(session)
          refusals += 1
          // Both would meet again if they waited equally long.
          usleep(UInt32.random(in: 0...(500 << UInt32(min(refusals, 7)))))
        case .lost where !hasLostOne:
          // The cause that ended one connection has most often ended all.
          hasLostOne = true
          dropIdle()
        case .again: throw HubStoreError.unavailable("PostgreSQL refuses the transaction again and again")
        case .lost(let reason): throw HubStoreError.unavailable(reason)
        case .lostAtCommit(let reason):
          dropIdle()
          throw HubStoreError.unavailable(reason)
        }
      } catch {
        keep(session)
        throw error
      }
    }
  }

  private func connect() throws -> PostgresSession {
    do {
      return try PostgresSession(target: target)
    } catch {
      // Each of those who wait would wait for the same answer, one after the other.
      for job in pool.withLock({ $0.takeAll() }) { job.fail(error) }
      throw error
    }
  }

  private func keep(_ session: PostgresSession) {
    guard session.isUsable else { return }
    pool.withLock { if !$0.isClosed { $0.idle.append(session) } }
  }

  private func dropIdle() {
    let dropped = pool.withLock { pool in
      defer { pool.idle = [] }
      return pool.idle
    }
    // They close here, outside of the lock.
    _ = dropped
  }
}
