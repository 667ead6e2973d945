internal import GRDBSQLite
internal import SheafModel

/// A connection to the library file through SQLite's C interface, with statements that are prepared once.
///
/// A save is a dozen statements, and each costs more in GRDB than in SQLite; GRDB serves readers. One thread at a time
/// uses it, under a lock.
final class Connection {
  let handle: OpaquePointer
  private let isOwned: Bool
  private var statements: [StatementText: Statement] = [:]
  /// Records the statements that change the file; nil if nobody will do them again.
  var recorder: ChangeRecorder?
  /// Recorded statements that wait to be run; nil if all run at once.
  var queue: ApplyQueue?
  /// Whether statements are run only while a transaction is open. SQLite ends a transaction by itself if the disk
  /// fails. The statements that follow must not be committed one by one, nor see the state before it.
  var needsTransaction = false
  /// The rows that it remembers; nil for a connection that only reads, while another one makes changes.
  var known: KnownRows?
  /// The tree whose rows may still name a former owner.
  var given: GivenTree?
  /// Where commits allocate what the file grows by, and the query for its pages; nil for a connection without that.
  private var growth: (room: FileRoom, pages: Statement)?

  /// Opens the file at `path`, which exists.
  init(path: String) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteError(code, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    isOwned = true
  }

  /// Uses a connection that belongs to another owner and outlives this object.
  init(borrowing handle: OpaquePointer) {
    self.handle = handle
    isOwned = false
  }

  deinit { close() }

  private var isClosed = false

  /// Closes; an open transaction is rolled back.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for statement in statements.values { statement.finalize() }
    statements = [:]
    growth?.pages.finalize()
    growth = nil
    if isOwned { sqlite3_close_v2(handle) }
  }

  /// From here on statements can only read and change rows: none makes or opens another file, and none takes longer, or
  /// more memory, than those that Sheaf records.
  func restrictToRows() {
    sqlite3_set_authorizer(
      handle,
      { _, action, _, _, _, _ in
        switch action {
        case SQLITE_SELECT, SQLITE_READ, SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE, SQLITE_FUNCTION,
          SQLITE_TRANSACTION, SQLITE_SAVEPOINT:
          SQLITE_OK
        default: SQLITE_DENY
        }
      }, nil)
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.longestValue)
    let effort = Effort()
    self.effort = effort
    sqlite3_progress_handler(
      handle, 1_000_000,
      { context in
        guard let context else { return 0 }
        return Unmanaged<Effort>.fromOpaque(context).takeUnretainedValue().isExhausted() ? 1 : 0
      }, Unmanaged.passUnretained(effort).toOpaque())
  }

  /// Bytes of a value in a recorded statement at most, several times what a chunk or a list of them has.
  private static let longestValue: Int32 = 64 << 20

  /// What recorded statements cost, in millions of steps of SQLite's virtual machine.
  private final class Effort {
    private static let most = (run: 300, all: 2000)

    /// Of the statement that runs.
    var run = 0
    private var all = 0

    func renew() { (run, all) = (0, 0) }

    func isExhausted() -> Bool {
      (run, all) = (run + 1, all + 1)
      return run > Self.most.run || all > Self.most.all
    }
  }

  /// Nil where statements cost whatever they do.
  private var effort: Effort?

  /// Has what recorded statements cost count from here on.
  func renewEffort() { effort?.renew() }

  /// Runs statements that return nothing of interest.
  func execute(_ sql: String) throws {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteError(code, handle) }
  }

  /// The statement of this text, ready to be bound.
  func statement(_ sql: String) throws -> Statement {
    let text = StatementText(sql: sql)
    if let known = statements[text] { return known }
    let made = try prepare(sql)
    statements[text] = made
    return made
  }

  /// A statement of its own, for a caller that runs others before it is done, and that finalizes it.
  func prepare(_ sql: String) throws -> Statement {
    try queue?.drain(self)
    return try compile(sql)
  }

  private func compile(_ sql: String) throws -> Statement {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(self.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK else { throw SQLiteError(code, self.handle) }
    guard let handle else { throw SQLiteError(SQLITE_ERROR, "there is no statement") }
    return Statement(handle, sql)
  }

  /// Binds the arguments and steps to the end, or to the row at which `row` returns false. A recorded statement waits
  /// in ``queue`` for its run; any other one runs after those that wait there.
  ///
  /// Arguments are a parameter pack: an array of them would cost more than SQLite's work on most statements.
  ///
  /// - Parameter setting: the row, if the statement only sets columns of one row that no other statement reads.
  func run<each Argument: Bindable>(
    _ statement: Statement, setting: Int64? = nil, _ arguments: repeat each Argument,
    row: (Row) throws -> Bool = { _ in true }
  ) throws {
    var count = 0
    for _ in repeat each arguments { count += 1 }
    if !statement.isReadOnly, let recorder, let start = recorder.record(statement, count: count) {
      repeat (each arguments).record(in: recorder)
      if !recorder.isTooLarge, let queue {
        return queue.append(ApplyQueue.Waiting(statement: statement, arguments: start, count: count, row: setting))
      }
    }
    try queue?.drain(self)
    try runNow(statement, repeat each arguments, row: row)
  }

  /// Runs a query at once, before the waiting statements, none of which changes its result.
  func runAhead<each Argument: Bindable>(
    _ statement: Statement, _ arguments: repeat each Argument, row: (Row) throws -> Bool
  ) throws {
    guard let queue else { return try runNow(statement, repeat each arguments, row: row) }
    try queue.ahead { try runNow(statement, repeat each arguments, row: row) }
  }

  private func runNow<each Argument: Bindable>(
    _ statement: Statement, _ arguments: repeat each Argument, row: (Row) throws -> Bool
  ) throws {
    try requireTransaction()
    defer { sqlite3_reset(statement.handle) }
    var place: Int32 = 0
    repeat try bind(each arguments, to: statement, after: &place)
    try step(statement, row)
  }

  /// Runs a statement that waited.
  func run(_ waiting: ApplyQueue.Waiting) throws {
    try requireTransaction()
    let handle = waiting.statement.handle
    defer { sqlite3_reset(handle) }
    var position = waiting.arguments
    for index in 0..<Int32(waiting.count) {
      let code = ChangeRecorder.bind(from: &position, to: handle, at: index + 1)
      guard code == SQLITE_OK else { throw SQLiteError(code, self.handle) }
    }
    try step(waiting.statement) { _ in true }
  }

  /// Commits, after `statement` has noted `number` as that of the last change; more may be recorded meanwhile.
  func commit(_ statement: Statement, _ number: Int64) throws {
    try requireTransaction()
    do {
      defer { sqlite3_reset(statement.handle) }
      var place: Int32 = 0
      try bind(number, to: statement, after: &place)
      try step(statement) { _ in true }
    }
    try commit()
  }

  /// Has each commit allocate in `room` what the file grows by.
  func allocateGrowth(in room: FileRoom) throws { growth = (room, try compile("PRAGMA page_count")) }

  /// Commits.
  func commit() throws {
    try execute("COMMIT")
    // After it, so that the log has its room first.
    guard let growth else { return }
    // Not as other queries, which wait for the statements that are still to run.
    if sqlite3_step(growth.pages.handle) == SQLITE_ROW {
      growth.room.allocate(pages: sqlite3_column_int64(growth.pages.handle, 0))
    }
    sqlite3_reset(growth.pages.handle)
  }

  /// Does a recorded statement again.
  func run(_ recorded: ChangeRecorder.Recorded) throws {
    let statement = try statement(recorded.sql)
    // Those that only read are never recorded; those that end transactions count as such.
    guard !statement.isReadOnly else { throw SQLiteError(SQLITE_AUTH, "no change of rows") }
    try requireTransaction()
    defer { sqlite3_reset(statement.handle) }
    var place: Int32 = 0
    for argument in recorded.arguments { try bind(argument, to: statement, after: &place) }
    effort?.run = 0
    try step(statement) { _ in true }
  }

  private func requireTransaction() throws {
    if needsTransaction, !isInTransaction {
      throw SQLiteError(SQLITE_ABORT, "the transaction was rolled back")
    }
  }

  private func bind(_ argument: some Bindable, to statement: Statement, after place: inout Int32) throws {
    place += 1
    let code = argument.bind(to: statement.handle, at: place)
    guard code == SQLITE_OK else { throw SQLiteError(code, handle) }
  }

  private func step(_ statement: Statement, _ row: (Row) throws -> Bool) throws {
    while true {
      switch sqlite3_step(statement.handle) {
      case SQLITE_DONE: return
      case SQLITE_ROW: if try !row(Row(statement: statement.handle)) { return }
      case let code: throw SQLiteError(code, handle)
      }
    }
  }

  /// Rows that the last statement changed.
  var changes: Int {
    get throws {
      try queue?.drain(self)
      return Int(sqlite3_changes(handle))
    }
  }

  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }
}

/// The text of a statement as a key: there are few, and hashing all of it costs more than comparing it once.
private struct StatementText: Hashable {
  let sql: String

  func hash(into hasher: inout Hasher) {
    hasher.combine(sql.utf8.count)
    let end = sql.utf8.withContiguousStorageIfAvailable { text in
      text.count < 8 ? 0 : UnsafeRawBufferPointer(text).loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self)
    }
    if let end { hasher.combine(end) }
  }
}

/// A prepared statement.
final class Statement {
  let handle: OpaquePointer
  let sql: String
  let isReadOnly: Bool
  /// Whether it changes rows that ``KnownRows`` remembers.
  let changesKnownRows: Bool
  /// The group of changes in whose record its text stands, and its number there.
  var recorded: (group: UInt64, number: UInt32) = (0, 0)

  fileprivate init(_ handle: OpaquePointer, _ sql: String) {
    self.handle = handle
    self.sql = sql
    isReadOnly = sqlite3_stmt_readonly(handle) != 0
    changesKnownRows = !isReadOnly && KnownRows.areChanged(by: sql)
  }

  func finalize() { sqlite3_finalize(handle) }
}

/// An error of SQLite.
struct SQLiteError: Error, CustomStringConvertible {
  /// The extended result code.
  let code: Int32
  let description: String

  init(_ code: Int32, _ handle: OpaquePointer?) {
    self.code = handle.map(sqlite3_extended_errcode) ?? code
    description = handle.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "SQLite error \(code)"
  }

  init(_ code: Int32, _ description: String) {
    self.code = code
    self.description = description
  }

  /// Whether SQLite refuses the statement itself, as it would on any disk.
  var isRefusal: Bool {
    [SQLITE_AUTH, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_ERROR, SQLITE_RANGE, SQLITE_TOOBIG, SQLITE_INTERRUPT]
      .contains(code & 0xFF)
  }
}
