internal import Foundation
internal import GRDBSQLite
internal import Synchronization
internal import SheafModel

/// The one connection that changes the library file, and the groups in which it commits.
///
/// A transaction of SQLite costs several times what its statements cost, so many changes share one: a *group*. Each is
/// recorded (``ChangeRecorder``) before its caller hears of it, so that it outlives this process as a commit does; SQLite runs
/// its statements after that (``ApplyQueue``). Readers of this connection see it at once; others, after the commit.
///
/// ```
///          change(_:_:), read(_:)            50 ms without a change, sync, a long record
///   none ─────────────────────────► open ────────────────────────────────────────────────────────► none
///                                    ▲ │ a change throws of which SQLite has run something, SQLite refuses a statement,
///                                    │ │ the commit fails, SQLite rolls back by itself since a read did
///                          restore() │ ▼
///                                    lost: the record alone has it; nothing is read or changed until it is restored
/// ```
/// Rules:
/// 1. A change is in its group as a whole or not at all: if it throws, what SQLite has not run of it is forgotten; has it run
///    something, the group is made again from the record, which has it not. (A savepoint would cost every change a copy of all
///    pages that it touches.)
/// 2. What is recorded is never given up: a group that SQLite loses is made again, too. While that fails, nothing is read or
///    changed, and everyone hears why; the next opening does what SQLite takes (``CrashRecovery``).
/// 3. Where the disk is nearly full, or a change is large, it is committed at once instead: then its caller hears what fails.
/// 4. What is to survive power loss is synced where that costs least: the record, if it holds every change since those that
///    the synced log holds, and SQLite's log otherwise. What was promised by the record alone stays in it until the log is
///    synced (``renewRecord()``).
/// 5. No commit and no sync comes before the working file's: what refers to it is durable only with its bytes, and in the
///    record alone ``CrashRecovery`` finds out whether they are there.
/// 6. Every 50 ms, and for each snapshot, what is recorded is committed in its turn, and the next group begun with that
///    (``commit()``): whoever changes something waits neither for SQLite's statements nor for its commit, unless it asks SQLite for
///    what is not known.
// Sendable: everything is touched only with `lock` held, but for constants, and the connection as ``ApplyQueue`` says.
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
  /// Whether a group is open that began with that much room.
  private let isRoomy = Atomic(false)
  /// The number of the last change that is committed.
  private(set) var committed: Int64
  /// That of the last one which the log is known to hold after power loss.
  private(set) var logged = Int64.min
  /// That of the last one of which somebody was told that it survives power loss, by the record.
  private(set) var promised = Int64.min
  /// Whether the record keeps what is committed, since somebody is likely to ask for durability again soon.
  private var keepsRecord = false
  let log: WALFile
  private let working: WorkingFile

  /// Bytes that the disk must have left for changes to be recorded rather than committed at once: more than a group can
  /// make the log grow by.
  static let roomForGroups: Int64 = 128 << 20

  /// Opens the library file, of which ``CrashRecovery`` has done what was left, and begins a record of its own.
  init(path: String, recordPath: String, busySeconds: Int, reserve: Reserve, working: WorkingFile) throws {
    self.reserve = reserve
    self.working = working
    connection = try Connection(path: path)
    sqlite3_busy_timeout(connection.handle, Int32(busySeconds * 1000))
    try connection.execute(Store.pragmas)
    connection.known = KnownRows()
    committed = Int64.random(in: 1 ... .max / 2)
    try connection.setLastChange(committed)
    connection.needsTransaction = true
    log = try WALFile(of: path)
    recorder = ChangeRecorder(path: recordPath, of: path, number: committed)
    connection.queue = recorder?.queue
    schedule.start { [weak self] in self?.commitInTime() }
  }

  deinit { schedule.stop() }

  private func locked<Value>(_ body: () throws -> Value) rethrows -> Value { try lock.withLock { _ in try body() } }

  // MARK: - Changing and reading

  /// Makes one change, which outlives this process when this returns.
  func change<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    try locked {
      try Faults.pass(.begin(step))
      if recorder?.isAlmostFull ?? false { try renewRecord() }
      try open()
      guard records, let recorder else { return try changeAtOnce(step, body) }
      recorder.begin()
      connection.recorder = recorder
      let value: Value
      do {
        defer { connection.recorder = nil }
        value = try body(StoreTransaction(connection))
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
      syncContents()
      try Faults.pass(.commit(step))
      if let recorder { try connection.setLastChange(recorder.number + 1) }
      try execute("COMMIT")
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

  /// Reads what is changed so far.
  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    try locked {
      try open()
      return try body(StoreTransaction(connection))
    }
  }

  /// Runs `body` with everything committed, no transaction open and nobody changing anything meanwhile.
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

  /// Commits what is changed so far, for those who read by other connections.
  ///
  /// SQLite commits in its turn, without the lock: whoever changes something goes on meanwhile, in the next group.
  func commit() throws {
    // Here nobody waits for the disk, nor for SQLite.
    syncContents()
    guard let number = try locked({ try orderCommit() }) else { return }
    apply(until: number)
    try locked { try endOrder(of: number) }
  }

  /// Has SQLite run what is recorded, without the lock: whoever changes something goes on meanwhile.
  private func apply(until number: Int64 = .max) { recorder?.queue.apply(connection, until: number) }

  private func commitInTime() {
    do { try commit() } catch { schedule.wake() }
  }

  /// Has the open group be committed in its turn.
  ///
  /// - Returns: the number of its last change; nil where all is committed now, with the lock, since nothing was changed, or
  ///   something has to be put right first.
  private func orderCommit() throws -> Int64? {
    guard isOpen, records, let recorder, recorder.number != committed, !isLost, !isRolledBack else {
      try commitGroup()
      return nil
    }
    syncContents()
    recorder.queue.appendCommit(try connection.lastChangeStatement, as: recorder.number)
    return recorder.number
  }

  /// Notes that the changes up to `number` were committed in their turn; the group that was begun with that goes on.
  private func endOrder(of number: Int64) throws {
    let isNews = noteOrdered()
    // What was given up before its turn came is committed here, and who is told hears of what fails.
    guard let recorder, committed >= number, !isLost, !recorder.queue.hasFailed else { return try commitGroup() }
    guard isNews, isOpen else { return }
    if recorder.number == committed, !keepsRecord { recorder.reset() }
    // Room is looked at once in a group. What came meanwhile is little, and with that the record begins anew.
    let isLong = recorder.isLong && !keepsRecord
    if !isLong, reserve.space().available > Self.roomForGroups { schedule.wake() } else { try commitGroup() }
  }

  /// Notes what was committed in its turn; returns whether that is news.
  @discardableResult
  private func noteOrdered() -> Bool {
    guard let number = recorder?.queue.committed, number > committed else { return false }
    committed = number
    return true
  }

  /// Whether SQLite gave up the open group by itself, as it does where the disk fails or memory is short.
  private var isRolledBack: Bool {
    guard isOpen, !connection.isInTransaction, !(recorder?.queue.isCommitting ?? false) else { return false }
    // A commit may have ended in between.
    return recorder?.queue.ahead { !connection.isInTransaction } ?? true
  }

  private func open() throws {
    if isLost || isRolledBack || recorder?.queue.hasFailed ?? false { try restore() }
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
    do {
      if isLost || isRolledBack { try restore() }
      guard isOpen else { return }
      try tryToCommit()
    } catch {
      // Its callers believe it done: the space held back is for this, too.
      try? reserve.release()
      try restore()
      try tryToCommit()
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
      try execute("COMMIT")
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
      // If the log cannot be synced now, the next who wants to have it synced is told.
      try? renewRecord()
    }
  }

  /// Forgets a change that came to nothing.
  private func undo(_ recorder: ChangeRecorder) throws {
    // One that is too large to be recorded is run at once.
    let hasBegun = recorder.isTooLarge || recorder.queue.hasBegun
    recorder.discard()
    if hasBegun || recorder.queue.hasFailed || isRolledBack {
      try restore()
    } else {
      // What SQLite has not run needs no undoing.
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

  /// Whether a group is open that began a moment ago with more room than ``roomForGroups``; asked without the lock.
  var hasRoomForGroup: Bool { isRoomy.load(ordering: .relaxed) }

  private func execute(_ sql: String) throws { try connection.execute(sql) }

  /// Has the bytes that changes refer to be on the disk before the changes are.
  private func syncContents() {
    // A disk that does not take them says so to who asks for durability; until then the process has them.
    try? working.sync()
  }

  // MARK: - Durability

  /// Makes every change that returned survive power loss.
  ///
  /// - Parameter log: whether SQLite's log is to hold them, rather than the record.
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
    if log.isDoubtful { try log.rewrite() }
    if promised <= logged { recorder?.reset() }
    if !wantsLog, let recorder, !keepsRecord {
      recorder.fillAhead()
      keepsRecord = true
    }
    return .log(committed)
  }

  private func syncLog() throws {
    do { try Faults.pass(.logSync) } catch {
      log.distrust()
      throw error
    }
    try log.sync()
  }

  private func syncRecord() throws {
    do {
      try Faults.pass(.changesSync)
      try recorder?.sync()
    } catch {
      // What the disk did not take must not count as there, if it takes what comes next.
      locked { recorder?.distrust() }
      throw error
    }
  }

  /// Begins the record anew, with everything committed and nothing in it that was promised to survive power loss.
  private func renewRecord() throws {
    try commitGroup()
    if promised > logged {
      if log.isDoubtful { try log.rewrite() }
      try syncLog()
      logged = committed
    }
    keepsRecord = false
    recorder?.reset()
  }

  /// Leaves nothing in the record of what was changed so far.
  func eraseRecord() throws {
    apply()
    try locked {
      try renewRecord()
      recorder?.erase()
    }
  }

  /// The number of the last change.
  var number: Int64 { recorder?.number ?? committed }

  /// Bytes of the log's file; it is used anew from its start once all of it is copied.
  var logBytes: Int64 { log.bytes }

  /// Closes the connection; what is not committed stays recorded.
  func close() {
    schedule.stop()
    locked {
      recorder?.queue.reset()
      closeGroup()
      connection.close()
    }
  }
}
