internal import Synchronization

/// Recorded statements that SQLite has still to run, in their order.
///
/// A change is done once it is in the record of changes (``ChangeRecorder``): its caller does not wait for SQLite. The
/// commit thread runs what is sealed, one statement at a time (``apply(_:)``). Who reads or commits before that runs what is
/// left (``drain(_:)``) and has SQLite for itself then, until the next change is sealed.
///
/// Rules:
/// 1. Statements run in the order in which they were recorded, whoever runs them.
/// 2. Those of a change that is not sealed are run only by its own caller, who has to have the group made again if the change
///    comes to nothing then (``hasBegun``).
/// 3. After one that SQLite refused none is run any more: the group is made again from the record.
///
/// What waits is bounded by the record, in which the arguments lie.
// Sendable: `unsealed`, `hasWaiting` and `hasBegun` are touched only with the writer's lock held, `sealed` and `failure` are
// mutexes. SQLite's connection is used with `turn` held, or by who holds the writer's lock and has drained the queue.
final class ApplyQueue: @unchecked Sendable {
  /// A statement with its arguments, as the record has them.
  // Sendable: of the statement only constants are used; the record's memory stays as it is while this waits.
  struct Waiting: @unchecked Sendable {
    let statement: Statement
    let arguments: UnsafeRawPointer
    let count: Int
  }

  private struct Sealed {
    var statements: [Waiting] = []
    var next = 0

    mutating func popFirst() -> Waiting? {
      guard next < statements.count else { return nil }
      next += 1
      return statements[next - 1]
    }

    mutating func append(_ added: [Waiting]) {
      if next == statements.count {
        statements.removeAll(keepingCapacity: true)
        next = 0
      }
      statements.append(contentsOf: added)
    }
  }

  private let turn = Mutex<Void>(())
  private let sealed = Mutex(Sealed())
  private let failure = Mutex<(any Error)?>(nil)
  private var unsealed: [Waiting] = []
  /// Whether anything was added since all was run.
  private var hasWaiting = false
  /// Whether statements of the running change were run.
  private(set) var hasBegun = false

  /// Whether a statement was refused.
  var hasFailed: Bool { failure.withLock { $0 != nil } }

  // MARK: - Adding

  /// Adds a statement of the running change.
  func append(_ waiting: Waiting) {
    unsealed.append(waiting)
    hasWaiting = true
  }

  /// Has the running change be run, whatever happens to it.
  func seal() {
    hasBegun = false
    guard !unsealed.isEmpty else { return }
    sealed.withLock { $0.append(unsealed) }
    unsealed.removeAll(keepingCapacity: true)
  }

  /// Forgets the running change.
  func discard() {
    unsealed.removeAll(keepingCapacity: true)
    hasBegun = false
  }

  /// Forgets everything, what was refused too: the group is given up, or about to be made again.
  func reset() {
    turn.withLock { _ in
      sealed.withLock { $0 = Sealed() }
      failure.withLock { $0 = nil }
      unsealed = []
      hasWaiting = false
      hasBegun = false
    }
  }

  // MARK: - Running

  /// Runs all that waits, the running change's included.
  ///
  /// - Throws: what SQLite refused, now or before.
  func drain(_ connection: Connection) throws {
    guard hasWaiting else { return }
    try turn.withLock { _ in
      while try runNext(connection) {}
      if !unsealed.isEmpty {
        hasBegun = true
        for waiting in unsealed { try run(waiting, connection) }
        unsealed.removeAll(keepingCapacity: true)
      }
    }
    hasWaiting = false
  }

  /// Runs `body`, with SQLite for itself, before what waits.
  func ahead<Value>(_ body: () throws -> Value) rethrows -> Value {
    if !hasWaiting { return try body() }
    return try turn.withLock { _ in try body() }
  }

  /// Runs what is sealed; whoever needs SQLite meanwhile waits for one statement.
  func apply(_ connection: Connection) {
    // Whose group it is finds out what was refused.
    while (try? turn.withLock { _ in try runNext(connection) }) ?? false {}
  }

  /// Runs the next sealed statement, with `turn` held; returns whether there was one.
  private func runNext(_ connection: Connection) throws -> Bool {
    if let failure = failure.withLock({ $0 }) { throw failure }
    guard let waiting = sealed.withLock({ $0.popFirst() }) else { return false }
    try run(waiting, connection)
    return true
  }

  private func run(_ waiting: Waiting, _ connection: Connection) throws {
    do {
      try Faults.pass(.changesApply)
      try connection.run(waiting)
    } catch {
      failure.withLock { $0 = error }
      throw error
    }
  }
}
