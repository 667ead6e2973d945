internal import Foundation
internal import GRDBSQLite
internal import Synchronization
internal import SheafModel

/// The one connection that changes the library file, and the groups in which it commits.
///
/// A transaction of SQLite costs several times what its statements cost, so many changes share one: a *group*. Each is
/// recorded (``ChangeRecorder``) before its caller hears of it, so that it outlives this process as a commit does.
/// Readers of this connection see it at once; others, after the commit.
///
/// ```
///          change(_:_:), read(_:)            commit(), after 25 ms, sync, snapshot, a full record
///   none ─────────────────────────► open ────────────────────────────────────────────────────────► none
///                                    ▲ │ a change throws, the commit fails
///                          restore() │ ▼
///                                    lost: the record alone has it; nothing is read or changed until it is restored
/// ```
/// Rules:
/// 1. A change is in its group as a whole or not at all: if it throws, the group is made again from the record, which has
///    it not. (A savepoint would cost every change a copy of all pages that it touches.)
/// 2. What is recorded is never given up: a group that SQLite loses is made again, too.
/// 3. Where the disk is nearly full, or a change is large, it is committed at once instead: then its caller hears what fails.
// Sendable: everything is touched only with `lock` held, but for constants.
final class Writer: @unchecked Sendable {
  private let lock = Mutex<Void>(())
  private let connection: Connection
  private let recorder: ChangeRecorder?
  private let reserve: Reserve
  private let schedule = CommitSchedule()

  private var isOpen = false
  private var isLost = false
  /// Whether the changes of the open group are recorded.
  private var records = false
  /// Whether a group is open that began with that much room.
  private let isRoomy = Atomic(false)
  /// The number of the last recorded change that is committed.
  private var committed: Int64

  /// Bytes that the disk must have left for changes to be recorded rather than committed at once: more than a group can
  /// make the log grow by.
  static let roomForGroups: Int64 = 128 << 20

  /// Opens the library file, does again what the record of a killed process holds, and begins a record of its own.
  init(path: String, recordPath: String, busySeconds: Int, reserve: Reserve) throws {
    self.reserve = reserve
    connection = try Connection(path: path)
    sqlite3_busy_timeout(connection.handle, Int32(busySeconds * 1000))
    try connection.execute(Store.pragmas)
    let last = try Self.lastChange(connection)
    let left = last.map { ChangeRecorder.read(path: recordPath, after: $0) } ?? []
    committed = Int64.random(in: 1 ... .max / 2)
    try connection.execute("BEGIN IMMEDIATE")
    try Self.run(left, on: connection)
    try Self.setLastChange(committed, on: connection)
    try connection.execute("COMMIT")
    recorder = ChangeRecorder(path: recordPath, number: committed)
    schedule.start { [weak self] in self?.commitInTime() }
  }

  deinit { schedule.stop() }

  private static func lastChange(_ connection: Connection) throws -> Int64? {
    var number: Int64?
    try connection.run(connection.statement("SELECT value FROM settings WHERE key = 'change'"), []) {
      number = $0[0]
      return false
    }
    return number
  }

  private static func setLastChange(_ number: Int64, on connection: Connection) throws {
    try connection.run(
      connection.statement(
        "INSERT INTO settings (key, value) VALUES ('change', ?) ON CONFLICT DO UPDATE SET value = excluded.value"),
      [number]
    ) { _ in true }
  }

  private static func run(_ changes: [[ChangeRecorder.Recorded]], on connection: Connection) throws {
    for statement in changes.joined() {
      try connection.run(connection.statement(statement.sql), statement.arguments) { _ in true }
    }
  }

  private func locked<Value>(_ body: () throws -> Value) rethrows -> Value { try lock.withLock { _ in try body() } }

  // MARK: - Changing and reading

  /// Makes one change, which outlives this process when this returns.
  func change<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    try locked {
      try Faults.pass(.begin(step))
      if recorder?.isAlmostFull ?? false { try commitGroup() }
      try open()
      guard records, let recorder else { return try changeAtOnce(step, body) }
      recorder.begin()
      connection.recorder = recorder
      let value: Value
      do {
        defer { connection.recorder = nil }
        value = try body(StoreTransaction(connection))
        try Faults.pass(.commit(step))
      } catch {
        recorder.discard()
        try restore()
        throw error
      }
      if !recorder.seal() {
        do {
          try tryToCommit()
        } catch {
          try restore()
          throw error
        }
      }
      // Only a kill means something here: what is recorded is done, and is answered as done.
      do { try Faults.pass(.committed(step)) } catch {}
      return value
    }
  }

  /// Makes one change in a transaction of its own.
  private func changeAtOnce<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    let value: Value
    do {
      value = try body(StoreTransaction(connection))
      try Faults.pass(.commit(step))
      try execute("COMMIT")
    } catch {
      if connection.isInTransaction { try execute("ROLLBACK") }
      closeGroup()
      throw error
    }
    closeGroup()
    do { try Faults.pass(.committed(step)) } catch {}
    return value
  }

  /// Reads what is changed so far.
  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    try locked {
      try open()
      return try body(StoreTransaction(connection))
    }
  }

  /// Runs `body` with everything committed, no transaction open and nobody changing anything meanwhile.
  func alone<Value>(_ body: (Connection) throws -> Value) throws -> Value {
    try locked {
      try commitGroup()
      return try body(connection)
    }
  }

  // MARK: - Groups

  /// Commits what is changed so far, for those who read by other connections and for ``Store/sync()``.
  func commit() throws { try locked { try commitGroup() } }

  private func commitInTime() {
    do { try commit() } catch { schedule.wake() }
  }

  private func open() throws {
    if isLost { try restore() }
    guard !isOpen else { return }
    // Nobody else writes, so that a reading transaction can always become a writing one.
    try execute("BEGIN")
    isOpen = true
    let isRoomy = reserve.space().available > Self.roomForGroups
    self.isRoomy.store(isRoomy, ordering: .relaxed)
    records = recorder != nil && isRoomy
    schedule.wake()
  }

  private func commitGroup() throws {
    if isLost { try restore() }
    guard isOpen else { return }
    do {
      try tryToCommit()
    } catch {
      // Its callers believe it done: the space held back is for this, too.
      try? reserve.release()
      try restore()
      try tryToCommit()
    }
  }

  private func tryToCommit() throws {
    do {
      if let recorder, recorder.number != committed {
        try Faults.pass(.changesCommit)
        try Self.setLastChange(recorder.number, on: connection)
      }
      try execute("COMMIT")
    } catch {
      if connection.isInTransaction { try? execute("ROLLBACK") }
      closeGroup()
      isLost = true
      throw error
    }
    closeGroup()
    committed = recorder?.number ?? committed
    recorder?.reset()
  }

  /// Makes the group anew from the record.
  private func restore() throws {
    if connection.isInTransaction { try execute("ROLLBACK") }
    closeGroup()
    isLost = true
    try execute("BEGIN")
    try Self.run(recorder?.pending(after: committed) ?? [], on: connection)
    isOpen = true
    isLost = false
    schedule.wake()
  }

  private func closeGroup() {
    isOpen = false
    isRoomy.store(false, ordering: .relaxed)
  }

  /// Whether a group is open that began a moment ago with more room than ``roomForGroups``; asked without the lock.
  var hasRoomForGroup: Bool { isRoomy.load(ordering: .relaxed) }

  private func execute(_ sql: String) throws {
    try connection.run(connection.statement(sql), []) { _ in true }
  }

  /// Closes the connection; what is not committed stays recorded.
  func close() {
    schedule.stop()
    locked { connection.close() }
  }
}

/// When a group is committed that nobody asks to be: soon after its first change.
// Sendable: everything that changes is touched only with `condition` locked.
private final class CommitSchedule: @unchecked Sendable {
  /// Seconds for which other programs that read the library file may not see a change.
  private static let interval = 0.025

  private let condition = NSCondition()
  private var isDue = false
  private var isStopped = false

  func start(_ commit: @escaping @Sendable () -> Void) {
    let thread = Thread { [self] in
      while wait() { commit() }
    }
    thread.name = "sheaf-commit"
    thread.stackSize = 1 << 20
    thread.start()
  }

  func wake() {
    condition.lock()
    if !isDue {
      isDue = true
      condition.signal()
    }
    condition.unlock()
  }

  func stop() {
    condition.lock()
    isStopped = true
    condition.signal()
    condition.unlock()
  }

  private func wait() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    while !isDue, !isStopped { condition.wait() }
    let deadline = Date(timeIntervalSinceNow: Self.interval)
    while !isStopped, condition.wait(until: deadline) {}
    isDue = false
    return !isStopped
  }
}
