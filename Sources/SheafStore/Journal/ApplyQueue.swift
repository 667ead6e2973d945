internal import Synchronization

/// Recorded statements that SQLite has yet to run, in their order.
///
/// A change is done once it is in the record of changes (``ChangeRecorder``): its caller does not wait for SQLite. The
/// commit thread runs sealed statements, one at a time (``apply(_:until:)``). A thread that reads or commits before
/// that runs the rest (``drain(_:)``), and then has SQLite to itself until the next change is sealed.
///
/// Rules:
/// 1. Statements run in the order in which they were recorded, on whichever thread.
/// 2. Only its own caller runs the statements of a change that is not sealed. If such a change then comes to nothing,
///    the caller has to make the group again (``hasBegun``).
/// 3. After SQLite has refused a statement, none runs any more: the group is made again from the record.
/// 4. A statement that sets columns of a row to values need not run if the same statement sets them again before a
///    commit, and nothing in between reads them (``Waiting/row``).
/// 5. Not many more than ``limit`` wait, so that no reader waits long for those before: past half of that the commit
///    thread begins at once, and past it each change runs some (``apply(_:limit:)``).
/// 6. A commit is one of them (``appendCommit(_:as:)``): it holds everything that was recorded before it, and nothing
///    from after it.
///
/// The record, in which the arguments lie, bounds the queue.
// Sendable: `unsealed`, `hasWaiting` and `hasBegun` are touched only with the writer's lock held, `sealed` and
// `failure` are mutexes. SQLite's connection is used with `turn` held, or with the writer's lock held after draining
// the queue.
final class ApplyQueue: @unchecked Sendable {
  /// A statement with its arguments, as the record has them.
  // Sendable: of the statement only constants are used; the record's memory stays as it is while this waits.
  struct Waiting: @unchecked Sendable {
    let statement: Statement
    let arguments: UnsafeRawPointer
    let count: Int
    /// The row whose columns the statement sets, whatever they were; nil for any other statement.
    var row: Int64?
  }

  // Sendable: of the statement only constants are used.
  private enum Step: @unchecked Sendable {
    case statement(Waiting)
    /// The end of a group, and the beginning of the next one. The statement notes the number of the group's last
    /// change.
    case commit(Statement, number: Int64)
  }

  /// The steps that are being run, some of which are done.
  private struct Batch {
    private var steps: [Step?] = []
    private var next = 0

    /// The next step. Steps sealed since are taken over all at once, so that sealing never waits for SQLite.
    mutating func popFirst(takingOver sealed: borrowing Mutex<[Step?]>, from count: borrowing Atomic<Int>) -> Step? {
      while true {
        if next == steps.count {
          steps.removeAll(keepingCapacity: true)
          next = 0
          sealed.withLock { swap(&$0, &steps) }
          if steps.isEmpty { return nil }
          leaveOutRepeated()
        }
        next += 1
        count.subtract(1, ordering: .relaxed)
        if let step = steps[next - 1] { return step }
      }
    }

    /// Leaves out statements whose values are set again later (rule 4).
    private mutating func leaveOutRepeated() {
      struct Target: Hashable {
        let statement: ObjectIdentifier
        let row: Int64
      }
      var later: Set<Target> = []
      for index in steps.indices.reversed() {
        switch steps[index] {
        case .statement(let waiting):
          guard let row = waiting.row else { continue }
          let target = Target(statement: ObjectIdentifier(waiting.statement), row: row)
          if !later.insert(target).inserted { steps[index] = nil }
        case .commit: later = []
        case nil: continue
        }
      }
    }
  }

  /// Sealed statements that may wait.
  static let limit = 2048
  /// Statements that whoever makes a change runs past that; a change has a dozen.
  static let share = 32

  /// How many steps are sealed and not run.
  private let count = Atomic(0)
  private let turn = Mutex(Batch())
  private let sealed = Mutex<[Step?]>([])
  private let failure = Mutex<(any Error)?>(nil)
  private let isRefused = Atomic(false)
  private let lastCommitted = Atomic(Int64.min)
  private let isEndingGroup = Atomic(false)
  private var unsealed: [Waiting] = []
  /// Whether anything was added since the queue was drained.
  private var hasWaiting = false
  /// Whether SQLite has run statements of the running change.
  private(set) var hasBegun = false

  /// How many sealed statements wait.
  var length: Int { count.load(ordering: .relaxed) }

  /// Whether SQLite refused a statement.
  var hasFailed: Bool { isRefused.load(ordering: .acquiring) }

  /// Number of the last change that was committed from here; the least number before any.
  var committed: Int64 { lastCommitted.load(ordering: .acquiring) }

  /// Whether a commit is running: SQLite then reports already that there is no transaction.
  var isCommitting: Bool { isEndingGroup.load(ordering: .acquiring) }

  // MARK: - Adding

  /// Adds a statement of the running change.
  func append(_ waiting: Waiting) {
    unsealed.append(waiting)
    hasWaiting = true
  }

  /// Seals the running change: its statements will run.
  func seal() {
    hasBegun = false
    guard !unsealed.isEmpty else { return }
    let added = unsealed
    count.add(added.count, ordering: .relaxed)
    sealed.withLock { steps in
      for waiting in added { steps.append(.statement(waiting)) }
    }
    unsealed.removeAll(keepingCapacity: true)
  }

  /// Queues the commit of everything recorded so far, and the beginning of the next transaction.
  ///
  /// - Parameters:
  ///   - statement: notes its only argument, `number`, as that of the last change.
  ///   - number: of the last change that was recorded.
  func appendCommit(_ statement: Statement, as number: Int64) {
    let step = Step.commit(statement, number: number)
    count.add(1, ordering: .relaxed)
    sealed.withLock { $0.append(step) }
    hasWaiting = true
  }

  /// Forgets the running change.
  func discard() {
    unsealed.removeAll(keepingCapacity: true)
    hasBegun = false
  }

  /// Forgets everything, a refused statement too: the group is given up, or about to be made again.
  func reset() {
    turn.withLock { batch in
      batch = Batch()
      count.store(0, ordering: .relaxed)
      sealed.withLock { $0 = [] }
      failure.withLock { $0 = nil }
      isRefused.store(false, ordering: .releasing)
      unsealed = []
      hasWaiting = false
      hasBegun = false
    }
  }

  // MARK: - Running

  /// Runs all statements that wait, those of the running change too.
  ///
  /// - Throws: SQLite's refusal, now or before.
  func drain(_ connection: Connection) throws {
    guard hasWaiting else { return }
    try turn.withLock { batch in
      while try runNext(of: &batch, connection) {}
      if !unsealed.isEmpty {
        hasBegun = true
        for waiting in unsealed { try run(waiting, connection) }
        unsealed.removeAll(keepingCapacity: true)
      }
    }
    hasWaiting = false
  }

  /// Runs `body`, with SQLite to itself, before the waiting statements.
  func ahead<Value>(_ body: () throws -> Value) rethrows -> Value {
    if !hasWaiting { return try body() }
    return try turn.withLock { _ in try body() }
  }

  /// Runs sealed statements; a thread that needs SQLite meanwhile waits for one statement.
  ///
  /// - Parameter number: Nothing is run once the change of this number is committed.
  func apply(_ connection: Connection, until number: Int64 = .max) {
    // The owner of the group finds out about a refusal.
    while committed < number, (try? turn.withLock { try runNext(of: &$0, connection) }) ?? false {}
  }

  /// Runs sealed statements, `limit` at most (rule 5).
  func apply(_ connection: Connection, limit: Int) {
    // The owner of the group finds out about a refusal.
    for _ in 0..<limit where (try? turn.withLock { try runNext(of: &$0, connection) }) != true { return }
  }

  /// Runs the next sealed statement, with `turn` held; returns whether there was one.
  private func runNext(of batch: inout Batch, _ connection: Connection) throws -> Bool {
    if hasFailed, let failure = failure.withLock({ $0 }) { throw failure }
    switch batch.popFirst(takingOver: sealed, from: count) {
    case nil: return false
    case .statement(let waiting): try run(waiting, connection)
    case .commit(let statement, let number): try commit(statement, number, connection)
    }
    return true
  }

  private func run(_ waiting: Waiting, _ connection: Connection) throws {
    try noting {
      try Faults.pass(.changesApply)
      try connection.run(waiting)
    }
  }

  private func commit(_ statement: Statement, _ number: Int64, _ connection: Connection) throws {
    try noting {
      try Faults.pass(.changesCommit)
      isEndingGroup.store(true, ordering: .releasing)
      defer { isEndingGroup.store(false, ordering: .releasing) }
      try connection.commit(statement, number)
      lastCommitted.store(number, ordering: .releasing)
      try connection.execute("BEGIN")
    }
  }

  private func noting(_ body: () throws -> Void) throws {
    do { try body() } catch {
      failure.withLock { $0 = error }
      isRefused.store(true, ordering: .releasing)
      throw error
    }
  }
}
