internal import Foundation
internal import GRDBSQLite
internal import Synchronization
internal import SheafModel

/// The one connection that changes the library file, and the groups in which it commits.
///
/// A transaction of SQLite costs several times what its statements cost, so many changes share one: a *group*. Each is
/// recorded (``ChangeRecorder``) before its caller hears of it, so that it outlives this process as a commit does;
/// SQLite runs its statements after that (``ApplyQueue``). Readers of this connection see a change at once; others see
/// it after the commit.
///
/// ```
///          change(_:_:), read(_:)            50 ms without a change, sync, a long record
///   none ─────────────────────────► open ────────────────────────────────────────────────────────► none
///                                    ▲ │ a change throws of which SQLite ran something, SQLite refuses a statement,
///                                    │ │ the commit fails, SQLite rolls back by itself since a read did
///                          restore() │ ▼
///                                    lost: the record alone has it; nothing is read or changed until it is restored
/// ```
/// Rules:
/// 1. A change is in its group as a whole or not at all. If it throws before SQLite has run any of its statements, they
///    are forgotten; otherwise the group is made again from the record, which does not have the change. (A savepoint
///    would cost every change a copy of all pages that it touches.)
/// 2. Recorded changes are never given up: a group that SQLite loses is made again, too. While that fails, nothing is
///    read or changed, and every caller hears why; the next opening does the changes that SQLite takes
///    (``CrashRecovery``).
/// 3. If the disk is nearly full, or a change is large, the change is committed at once instead: then its caller hears
///    of a failure.
/// 4. A sync takes the cheapest way: it syncs the record, if that holds every change since those in the synced log, and
///    SQLite's log otherwise. Changes that only the record makes durable stay in it until the log is synced
///    (``renewRecord()``).
/// 5. The working file is synced before every commit and every sync: a row that refers to it is durable only with its
///    bytes. For rows that only the record holds, ``CrashRecovery`` finds out whether the bytes are there.
/// 6. Every 50 ms, and for each snapshot, recorded changes are committed in their turn, and the next group begins with
///    that (``commit()``): a thread that makes a change waits neither for SQLite's statements nor for its commit,
///    unless it asks SQLite for a row that is not known.
// Sendable: everything but constants is touched only with `lock` held, and the connection as ``ApplyQueue`` says.
final class Writer: @unchecked Sendable {
  private let lock = Mutex<Void>(())
  private let connection: Connection
  private let recorder: ChangeRecorder?
  private let reserve: Reserve
  let schedule = CommitSchedule()

  private var isOpen = false
  private var isLost = false
  /// Whether the changes of the open group are recorded.
  private var records = false
  /// Whether a group is open that began with ``roomForGroups`` to spare.
  private let isRoomy = Atomic(false)
  /// The thread that makes a change, and reads its changes so far; 0 for none.
  private let changing = Atomic<UInt>(0)
  /// The number of the last change that is committed.
  private(set) var committed: Int64 {
    get { lastCommitted.load(ordering: .acquiring) }
    set { lastCommitted.store(newValue, ordering: .releasing) }
  }
  private let lastCommitted: Atomic<Int64>
  /// The number of the last change that the synced log is known to hold.
  private(set) var logged = Int64.min
  /// The number of the last change that was promised to survive power loss in the record.
  private(set) var promised = Int64.min
  /// Whether the record keeps committed changes, since a caller is likely to ask for durability again soon.
  private var keepsRecord = false
  let log: WALFile
  let room: FileRoom
  private let working: WorkingFile

  /// Bytes that the disk must have left for changes to be recorded rather than committed at once: more than a group can
  /// make the log grow by.
  static let roomForGroups: Int64 = 128 << 20

  /// Bytes that the disk must have left when the library is opened for there to be a record.
  private static let roomToRecord: Int64 = 32 << 20

  /// Whether the disk has room to spare for a group, and for the log to be copied.
  private var hasAmpleRoom: Bool { reserve.space().available - logBytes > Self.roomForGroups }

  /// Opens the library file, after ``CrashRecovery``, and begins a new record.
  init(path: String, recordPath: String, busySeconds: Int, reserve: Reserve, working: WorkingFile) throws {
    self.reserve = reserve
    self.working = working
    connection = try Connection(path: path)
    room = try FileRoom(of: path)
    sqlite3_busy_timeout(connection.handle, Int32(busySeconds * 1000))
    try connection.execute(Store.pragmas)
    connection.known = KnownRows()
    let first = Int64.random(in: 1 ... .max / 2)
    lastCommitted = Atomic(first)
    try connection.setLastChange(first)
    try connection.allocateGrowth(in: room)
    connection.needsTransaction = true
    log = try WALFile(of: path)
    let hasRoom = reserve.space().available > Self.roomToRecord
    recorder = hasRoom ? ChangeRecorder(path: recordPath, of: path, number: first) : nil
    // What it held is in the log by now, and its room is needed.
    if recorder == nil { LibraryFolder.remove(recordPath) }
    connection.queue = recorder?.queue
    schedule.start { [weak self] in
      // Not more than that: a commit may be due.
      if let self { recorder?.queue.apply(connection, limit: ApplyQueue.limit) }
    } commit: { [weak self] in
      self?.commitInTime()
    }
  }

  deinit { schedule.stop() }

  private func locked<Value>(_ body: () throws -> Value) rethrows -> Value { try lock.withLock { _ in try body() } }

  // MARK: - Changing and reading

  /// Makes one change, which outlives this process when this returns.
  func change<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    precondition(!isChanging, "changes do not nest")
    return try locked {
      try Faults.pass(.begin(step))
      if recorder?.isAlmostFull ?? false { try renewRecord() }
      try open()
      guard records, let recorder else { return try changeAtOnce(step, body) }
      recorder.begin()
      connection.recorder = recorder
      let value: Value
      do {
        defer { connection.recorder = nil }
        value = try run(body)
        if !step.isAnsweredFirst { try recorder.queue.drain(connection) }
        try Faults.pass(.commit(step))
      } catch {
        try undo(recorder)
        throw error
      }
      if !recorder.seal() {
        do {
          try tryToCommit(withUnrecorded: true)
        } catch {
          try restore()
          throw error
        }
      }
      keepShort(recorder.queue)
      // Only a kill has an effect here: a recorded change is done, and is answered as done.
      do { try Faults.pass(.committed(step)) } catch {}
      return value
    }
  }

  /// Lets SQLite keep up with the record (rule 5 of ``ApplyQueue``).
  private func keepShort(_ queue: ApplyQueue) {
    if queue.length > ApplyQueue.limit / 2 { schedule.runNow() }
    if queue.length > ApplyQueue.limit { queue.apply(connection, limit: ApplyQueue.share) }
  }

  /// Recorded statements that wait for SQLite.
  var waitingStatements: Int { recorder?.queue.length ?? 0 }

  /// Whether the caller makes a change.
  private var isChanging: Bool { changing.load(ordering: .relaxed) == UInt(pthread_self()) }

  private func run<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    changing.store(UInt(pthread_self()), ordering: .relaxed)
    defer { changing.store(0, ordering: .relaxed) }
    return try body(StoreTransaction(connection))
  }

  /// Makes one change in a transaction of its own.
  private func changeAtOnce<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    let value: Value
    do {
      value = try run(body)
      syncContents()
      try Faults.pass(.commit(step))
      if let recorder { try connection.setLastChange(recorder.number + 1) }
      try connection.commit()
    } catch {
      connection.known = KnownRows()
      if connection.isInTransaction { try execute("ROLLBACK") }
      closeGroup()
      throw error
    }
    noteCommit(withUnrecorded: true)
    do { try Faults.pass(.committed(step)) } catch {}
    return value
  }

  /// Reads the state after all changes so far. The thread that makes a change sees this change, too.
  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    if isChanging { return try body(StoreTransaction(connection)) }
    return try locked {
      try open()
      return try body(StoreTransaction(connection))
    }
  }

  /// Runs `body` with everything committed, no transaction open and all changes held off.
  func alone<Value>(_ body: (Connection) throws -> Value) throws -> Value {
    syncContents()
    apply()
    return try locked {
      try commitGroup()
      connection.needsTransaction = false
      defer { connection.needsTransaction = true }
      return try body(connection)
    }
  }

  // MARK: - Groups

  /// Commits all changes so far, for readers by other connections.
  ///
  /// SQLite commits in its turn, without the lock: changes go on meanwhile, in the next group.
  func commit() throws {
    // Here nobody waits for the disk, nor for SQLite.
    syncContents()
    guard let number = try locked({ try orderCommit() }) else { return }
    apply(until: number)
    try locked { try endOrder(of: number) }
  }

  /// Makes SQLite run recorded statements, without the lock: changes go on meanwhile.
  private func apply(until number: Int64 = .max) { recorder?.queue.apply(connection, until: number) }

  private func commitInTime() {
    do { try commit() } catch { schedule.wake() }
  }

  /// Queues the commit of the open group.
  ///
  /// - Returns: the number of its last change; nil if all is committed now, under the lock, since nothing was changed
  ///   or something has to be put right first.
  private func orderCommit() throws -> Int64? {
    guard isOpen, records, let recorder, recorder.number != committed, !isLost, !isRolledBack else {
      try commitGroup()
      return nil
    }
    syncContents()
    recorder.queue.appendCommit(try connection.lastChangeStatement, as: recorder.number)
    return recorder.number
  }

  /// Notes that the changes up to `number` were committed in their turn; the group that began with that goes on.
  private func endOrder(of number: Int64) throws {
    let isNews = noteOrdered()
    // If the order was given up before its turn, the commit happens here, and the caller hears of a failure.
    guard let recorder, committed >= number, !isLost, !recorder.queue.hasFailed else { return try commitGroup() }
    guard isNews, isOpen else { return }
    if recorder.number == committed, !keepsRecord { recorder.reset() }
    // Each group looks at the room once. Changes that came meanwhile are few, and with them committed the record begins
    // anew.
    let isLong = recorder.isLong && !keepsRecord
    if !isLong, hasAmpleRoom { schedule.wake() } else { try commitGroup() }
  }

  /// Notes the changes that were committed in their turn; returns whether there are any.
  @discardableResult
  private func noteOrdered() -> Bool {
    guard let number = recorder?.queue.committed, number > committed else { return false }
    committed = number
    return true
  }

  /// Whether SQLite gave up the open group by itself, as it does if the disk fails or memory is short.
  private var isRolledBack: Bool {
    guard isOpen, !connection.isInTransaction, !(recorder?.queue.isCommitting ?? false) else { return false }
    // A commit may have ended in between.
    return recorder?.queue.ahead { !connection.isInTransaction } ?? true
  }

  private func open() throws {
    if isLost || isRolledBack || recorder?.queue.hasFailed ?? false { try restore() }
    guard !isOpen else { return }
    // Nobody else writes, so a reading transaction can always become a writing one.
    try execute("BEGIN")
    isOpen = true
    let isRoomy = hasAmpleRoom
    self.isRoomy.store(isRoomy, ordering: .relaxed)
    records = recorder != nil && isRoomy
    schedule.wake()
  }

  private func commitGroup() throws {
    do {
      if isLost || isRolledBack { try restore() }
      guard isOpen else { return }
      try tryToCommit()
    } catch {
      // The callers were told that the changes are done: the reserve is for this, too.
      try reserve.lend {
        try restore()
        try tryToCommit()
      }
    }
  }

  /// - Parameter withUnrecorded: whether the last change is one that is not recorded.
  private func tryToCommit(withUnrecorded: Bool = false) throws {
    do {
      syncContents()
      try recorder?.queue.drain(connection)
      if let recorder, recorder.number != committed || withUnrecorded {
        try Faults.pass(.changesCommit)
        try connection.setLastChange(recorder.number + (withUnrecorded ? 1 : 0))
      }
      try connection.commit()
    } catch {
      recorder?.queue.reset()
      if connection.isInTransaction { try? execute("ROLLBACK") }
      closeGroup()
      isLost = true
      throw error
    }
    noteCommit(withUnrecorded: withUnrecorded)
  }

  private func noteCommit(withUnrecorded: Bool) {
    closeGroup()
    guard let recorder else {
      committed += 1
      return
    }
    if withUnrecorded { recorder.skip() }
    committed = recorder.number
    if !keepsRecord {
      recorder.reset()
    } else if withUnrecorded {
      // If the log cannot be synced now, the next caller that wants a sync hears of it.
      try? renewRecord()
    }
  }

  /// Forgets a change that came to nothing.
  private func undo(_ recorder: ChangeRecorder) throws {
    // A change that is too large to be recorded runs at once.
    let hasBegun = recorder.isTooLarge || recorder.queue.hasBegun
    recorder.discard()
    if hasBegun || recorder.queue.hasFailed || isRolledBack {
      try restore()
    } else {
      // Statements that SQLite has not run need no undoing.
      recorder.queue.discard()
      connection.known = KnownRows(hasForgotten: true)
    }
  }

  /// Makes the group anew from the record.
  private func restore() throws {
    connection.known = KnownRows()
    recorder?.queue.reset()
    noteOrdered()
    if connection.isInTransaction { try execute("ROLLBACK") }
    closeGroup()
    isLost = true
    try execute("BEGIN")
    try connection.run(recorder?.pending(after: committed) ?? [])
    isOpen = true
    isLost = false
    schedule.wake()
  }

  private func closeGroup() {
    isOpen = false
    isRoomy.store(false, ordering: .relaxed)
  }

  /// Whether a group is open that began a moment ago with more room than ``roomForGroups``; read without the lock.
  var hasRoomForGroup: Bool { isRoomy.load(ordering: .relaxed) }

  private func execute(_ sql: String) throws { try connection.execute(sql) }

  /// Brings the bytes that changes refer to onto the disk, before the changes.
  private func syncContents() {
    // A caller that asks for durability hears if the disk does not take them; until then the process has them.
    try? working.sync()
  }

  // MARK: - Durability

  /// Makes every change that returned survive power loss.
  ///
  /// - Parameter log: whether SQLite's log has to hold them, rather than the record.
  func sync(log wantsLog: Bool) throws {
    try working.sync()
    if wantsLog { apply() }
    switch try locked({ try prepareSync(wantsLog) }) {
    case .nothing: return
    case .record: try syncRecord()
    case .log(let target):
      try syncLog()
      locked {
        logged = max(logged, target)
        if committed == target, recorder?.number ?? target == target { recorder?.reset() }
      }
    }
  }

  private enum SyncTarget {
    case nothing, record
    /// The log, which holds every change up to this one.
    case log(Int64)
  }

  private func prepareSync(_ wantsLog: Bool) throws -> SyncTarget {
    if !wantsLog, let recorder, recorder.isWhole, recorder.first <= logged {
      keepsRecord = true
      promised = recorder.number
      recorder.fillAhead()
      return .record
    }
    try commitGroup()
    if committed == logged { return .nothing }
    // With everything committed, SQLite writes nothing to it.
    if log.isUnreliable { try log.rewrite() }
    if promised <= logged { recorder?.reset() }
    if !wantsLog, let recorder, !keepsRecord {
      recorder.fillAhead()
      keepsRecord = true
    }
    return .log(committed)
  }

  private func syncLog() throws {
    do { try Faults.pass(.logSync) } catch {
      log.markUnreliable()
      throw error
    }
    try log.sync()
  }

  private func syncRecord() throws {
    do {
      try Faults.pass(.changesSync)
      try recorder?.sync()
    } catch {
      // Changes that the disk did not take must not count as durable if it takes the next ones.
      locked { recorder?.markUnreliable() }
      throw error
    }
  }

  /// Begins the record anew, once everything is committed and nothing in it was promised to survive power loss.
  private func renewRecord() throws {
    try commitGroup()
    if promised > logged {
      if log.isUnreliable { try log.rewrite() }
      try syncLog()
      logged = committed
    }
    keepsRecord = false
    recorder?.reset()
  }

  /// Leaves nothing of the changes so far in the record.
  func eraseRecord() throws {
    apply()
    try locked {
      try renewRecord()
      recorder?.erase()
    }
  }

  /// Whether other connections see the change of this number; to be asked by any thread.
  func isCommitted(_ number: Int64) -> Bool { number <= committed || number <= recorder?.queue.committed ?? .min }

  /// The number of the last change.
  var number: Int64 { recorder?.number ?? committed }

  /// Bytes of the log's file; it is used anew from its start once all of it is copied.
  var logBytes: Int64 { log.bytes }

  /// Closes the connection; uncommitted changes stay recorded.
  func close() {
    schedule.stop()
    locked {
      recorder?.queue.reset()
      closeGroup()
      connection.close()
    }
    room.close()
  }
}
