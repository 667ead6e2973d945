import Foundation
internal import GRDB
import Glibc
import Synchronization

/// SQLite in one file, for a hub of one process.
///
/// A durable commit costs a sync of the disk, so the writes that wait while one is committed share the next
/// transaction. Each is a savepoint of its own.
package final class SQLiteDatabase: Database {
  /// Writes that share a transaction at most.
  private static let groupLimit = 256
  /// How long a transaction waits for those of other processes.
  private static let busySeconds = 10

  private let pool: DatabasePool
  private let room: StoreRoom
  private let queue = Mutex(Queue())

  private struct Queue {
    var waiting: [WaitingWrite] = []
    var isRunning = false
    var isClosed = false
    /// Callers of `close` that wait for the last write.
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private struct WaitingWrite: Sendable {
    /// Does the write's work; says what will be its answer once the transaction is committed.
    let run: @Sendable (GRDB.Database) throws -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void
  }

  /// Opens the file at `path`, and makes it where there is none, for its owner alone.
  ///
  /// - Throws: ``HubStoreError`` where it is no database, or cannot be opened durably.
  package init(path: String) throws {
    room = StoreRoom(path: path)
    do {
      if !FileManager.default.fileExists(atPath: path) {
        _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
      }
      var configuration = Configuration()
      configuration.foreignKeysEnabled = true
      configuration.busyMode = .timeout(Double(Self.busySeconds))
      configuration.maximumReaderCount = 8
      configuration.prepareDatabase { database in
        try database.execute(sql: "PRAGMA secure_delete = ON")
        try database.execute(sql: "PRAGMA trusted_schema = OFF")
      }
      pool = try DatabasePool(path: path, configuration: configuration)
      // GRDB sets NORMAL when it opens the pool, which loses acknowledged commits with the power.
      let level = try pool.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA synchronous = FULL")
        return try Int.fetchOne(database, sql: "PRAGMA synchronous")
      }
      guard level == 2 else { throw HubStoreError.unavailable("SQLite does not sync its commits") }
    } catch {
      throw Self.storeError(error)
    }
  }

  package func write<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<T, any Error>) in
      enqueue(
        WaitingWrite(
          run: { [room] database in
            FaultPoint.begin.pass()
            var connection: any SQLConnection = SQLiteConnection(database: database, store: room, writes: true)
            let value = try body(&connection)
            return { continuation.resume(returning: value) }
          }, fail: { continuation.resume(throwing: Self.storeError($0)) }))
    }
  }

  package func read<T: Sendable>(
    _ body: @escaping @Sendable (inout any SQLConnection) throws -> T
  ) async throws -> T {
    if queue.withLock({ $0.isClosed }) { throw HubStoreError.unavailable("the store is closed") }
    do {
      return try await pool.read { [room] database in
        var connection: any SQLConnection = SQLiteConnection(database: database, store: room, writes: false)
        return try body(&connection)
      }
    } catch {
      throw Self.storeError(error)
    }
  }

  package func emptyLog() async {
    try? await pool.writeWithoutTransaction { database in
      // Writers would wait behind it for a reader.
      try database.execute(sql: "PRAGMA busy_timeout = 0")
      defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Self.busySeconds * 1_000)") }
      _ = try database.checkpoint(.truncate)
    }
  }

  package func close() async {
    let refused = queue.withLock { queue in
      queue.isClosed = true
      defer { queue.waiting = [] }
      return queue.waiting
    }
    for write in refused { write.fail(HubStoreError.unavailable("the store is closed")) }
    await withCheckedContinuation { continuation in
      let isIdle = queue.withLock { queue in
        if queue.isRunning { queue.closers.append(continuation) }
        return !queue.isRunning
      }
      if isIdle { continuation.resume() }
    }
    await emptyLog()
    // A reader that is still at work makes GRDB refuse; its connection closes with the last reference to the pool.
    try? pool.close()
  }

  /// Copies the rows as they are at one moment into a new file.
  package func backup(to path: String) async throws {
    // SQLite takes a file that is there if it is empty, and would make one that others can read.
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw HubStoreError.unavailable("\(path): \(String(cString: strerror(errno)))")
    }
    Glibc.close(descriptor)
    do {
      try await pool.writeWithoutTransaction { database in
        try database.execute(sql: "VACUUM INTO ?", arguments: [path])
      }
    } catch {
      throw Self.storeError(error)
    }
  }

  private func enqueue(_ write: WaitingWrite) {
    let (isClosed, starts) = queue.withLock { queue in
      if queue.isClosed { return (true, false) }
      queue.waiting.append(write)
      defer { queue.isRunning = true }
      return (false, !queue.isRunning)
    }
    if isClosed { return write.fail(HubStoreError.unavailable("the store is closed")) }
    if starts { runNext() }
  }

  /// Runs what waits as one transaction, and then what came meanwhile.
  private func runNext() {
    pool.asyncWriteWithoutTransaction { database in
      let group = self.queue.withLock { queue in
        let group = Array(queue.waiting.prefix(Self.groupLimit))
        queue.waiting.removeFirst(group.count)
        return group
      }
      Self.run(group, in: database)
      let closers: [CheckedContinuation<Void, Never>]? = self.queue.withLock { queue in
        if !queue.waiting.isEmpty { return nil }
        queue.isRunning = false
        defer { queue.closers = [] }
        return queue.closers
      }
      guard let closers else { return self.runNext() }
      for closer in closers { closer.resume() }
    }
  }

  private static func run(_ group: [WaitingWrite], in database: GRDB.Database) {
    if group.isEmpty { return }
    var outcomes: [Result<@Sendable () -> Void, any Error>] = []
    do {
      try database.inTransaction(.immediate) {
        // Alone, a write needs no transaction of its own in this one.
        if group.count == 1 { outcomes.append(.success(try group[0].run(database))) }
        for write in group where group.count > 1 {
          var outcome: Result<@Sendable () -> Void, any Error>?
          do {
            try database.inSavepoint {
              outcome = .success(try write.run(database))
              return .commit
            }
          } catch {
            // A full disk ends the whole transaction; the writes after it must not be done one by one.
            guard database.isInsideTransaction else { throw error }
            outcome = .failure(error)
          }
          if let outcome { outcomes.append(outcome) }
        }
        FaultPoint.commit.pass()
        return .commit
      }
      FaultPoint.committed.pass()
    } catch {
      for write in group { write.fail(error) }
      return
    }
    for (write, outcome) in zip(group, outcomes) {
      switch outcome {
      case .success(let answer): answer()
      case .failure(let error): write.fail(error)
      }
    }
  }

  /// The error that a caller gets for an error of GRDB; other errors pass unchanged.
  private static func storeError(_ error: any Error) -> any Error {
    guard let error = error as? DatabaseError else { return error }
    let text = "SQLite: \(error.message ?? "error \(error.resultCode.rawValue)")"
    return switch error.resultCode {
    case .SQLITE_FULL: HubStoreError.full(text)
    case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_NOMEM,
      .SQLITE_INTERRUPT, .SQLITE_MISUSE, .SQLITE_PERM, .SQLITE_AUTH:
      HubStoreError.unavailable(text)
    case .SQLITE_CORRUPT, .SQLITE_NOTADB: HubStoreError.corrupt(text)
    default: HubStoreError.refused(text)
    }
  }
}

/// A transaction of GRDB's as a body sees it.
private struct SQLiteConnection: SQLConnection {
  let database: GRDB.Database
  let store: StoreRoom
  let writes: Bool

  func room(for bytes: Int64) -> RoomLeft {
    store.left(for: bytes) {
      try Int64.fetchOne(
        database.cachedStatement(
          sql: "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")) ?? 0
    }
  }

  mutating func query(_ sql: StaticString, _ values: [SQLValue]) throws -> [SQLRow] {
    try fetch(try prepare(sql.description, values))
  }

  mutating func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow] {
    try fetch(try prepare(statement.text, values))
  }

  mutating func columns(of table: String) throws -> Set<String> {
    Set(try query("SELECT name FROM pragma_table_info($1)", [.text(table)]).map { try $0.text(0) })
  }

  private func fetch(_ statement: Statement) throws -> [SQLRow] {
    let rows = try Row.fetchCursor(statement)
    var found: [SQLRow] = []
    while let row = try rows.next() {
      found.append(SQLRow(try row.databaseValues.map(Self.value)))
    }
    return found
  }

  mutating func execute(_ sql: StaticString, _ values: [SQLValue]) throws -> Int {
    try prepare(sql.description, values).execute()
    return database.changesCount
  }

  private func prepare(_ sql: String, _ values: [SQLValue]) throws -> Statement {
    if writes { FaultPoint.statement.pass() }
    let statement = try database.cachedStatement(sql: sql)
    // As values of the database: other ones are converted at some cost, and empty data would become NULL.
    let arguments = try values.map { value in
      try value.check()
      return switch value {
      case .null: DatabaseValue.null
      case .integer(let value): value.databaseValue
      case .text(let value): value.databaseValue
      case .blob(let value): Data(value).databaseValue
      }
    }
    try statement.setArguments(StatementArguments(arguments))
    return statement
  }

  private static func value(_ value: DatabaseValue) throws -> SQLValue {
    switch value.storage {
    case .null: .null
    case .int64(let value): .integer(value)
    case .string(let value): .text(value)
    case .blob(let value): .blob([UInt8](value))
    case .double: throw HubStoreError.corrupt("a row has a number that is not whole")
    }
  }
}
