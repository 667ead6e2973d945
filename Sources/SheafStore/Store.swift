internal import CSQLite
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Glibc
internal import Synchronization
package import SheafModel

/// A library file: SQLite in WAL mode, one writer, and the files beside it.
///
/// Rules that never break (docs/ARCHITECTURE.md):
/// - 1. One change, one transaction: ``write(_:_:)`` commits all rows of a change or none.
/// - 3. A call that returned is safe: before ``write(_:_:)`` returns, a change is recorded (``Writer``) or committed.
///   Either way it is in the kernel, so it survives the end of the process; ``sync(log:)`` makes it survive power loss.
///   SQLite's log has a checksum for each frame, and the record one for each change, so a whole prefix of the changes
///   survives.
package final class Store: Sendable {
  package let path: String
  package let reserve: Reserve
  package let working: WorkingFile

  let writer: Writer
  /// Readers of committed states.
  let pool: DatabasePool
  /// Readers of chunks beside the writer.
  package let readers: ChunkReaders
  /// The number of the last change that stored a damaged chunk anew.
  let mended = Atomic(Int64.min)
  /// The connection that copies the log into the file without making the writer wait.
  private let checkpointer: DatabaseQueue
  /// Transactions committed, and how many of them are known to be on the disk.
  private let committed = Atomic<Int>(0)
  private let durable = Mutex<Int>(0)
  private let shrinking = Mutex<Void>(())
  private let rights: OwnerRights
  private let lock: LibraryLock

  /// Transactions that the last checkpoint took in.
  private let checkpointed = Atomic<Int>(0)

  /// The suffix of the record of changes.
  static let recordSuffix = "-changes"
  /// The suffix of the working file.
  static let workingSuffix = "-working"
  /// The suffix of the file that holds space back.
  static let reserveSuffix = "-reserve"

  /// Seconds to wait for another connection.
  private static let busySeconds = 5

  /// Bytes of the log past which writers are held off for a moment.
  ///
  /// The reserve is enough to copy a log of that length into the file.
  package let logLimit: Int64
  /// Bytes of the log past which ``checkpoint()`` has something to do.
  private var checkpointThreshold: Int64 { logLimit / 4 }
  /// Bytes of a log that is not worth emptying.
  private static let shortLog: Int64 = 128 << 10
  /// Bytes of the disk that are left alone beside the reserve.
  private static let margin: Int64 = 1 << 20

  /// Opens or makes the library file at `path` and takes its lock at `lockPath`.
  ///
  /// - Throws: ``SheafError``: `busy`, `newerFormat` (the file is not touched), `corrupt`, `noSpace`, `inputOutput`.
  package init(path: String, lockPath: String) throws(SheafError) {
    self.path = path
    _ = Self.preparedSQLite
    rights = try OwnerRights(of: path)
    try LibraryFolder.make(for: path)
    try LibraryFolder.refuseReadOnlyDisk(of: path)
    try LibraryFolder.refuseStrangers(beside: path)
    // A file that is no library stays as it is, and gets no lock beside it. If there is a lock, a process may have the
    // file open, and the file is checked under the lock. Files where no library is, the lock among them, tell of a
    // former one.
    if access(lockPath, F_OK) != 0 || access(path, F_OK) != 0 { try Self.refuseStranger(at: path, lockPath: lockPath) }
    try LibraryFolder.refuseForeignFiles(beside: path, lockPath: lockPath)
    lock = try LibraryLock(path: lockPath, library: path)
    try Self.refuseStranger(at: path, lockPath: lockPath)
    try FormerLibrary.refuseForeignChanges(beside: path)
    try LibraryFolder.makeFile(at: path)
    try LibraryFolder.markAsOpen(path, waiting: Self.busySeconds)
    reserve = Reserve(path: path + Self.reserveSuffix, of: path)
    working = WorkingFile(path: path + Self.workingSuffix, of: path)
    logLimit = reserve.size
    do throws(SheafError) {
      (pool, checkpointer, writer) = try Self.connect(to: path, reserve, working)
    } catch  where error.kind == .noSpace {
      // SQLite makes its log and the log's index anew: the reserve has room for that, or the record, of which most may
      // be empty.
      try reserve.release()
      try ChangeRecorder.shorten(path + Self.recordSuffix, of: path)
      (pool, checkpointer, writer) = try Self.connect(to: path, reserve, working)
    }
    readers = ChunkReaders(path: path)
    try LibraryFolder.sync(containing: path)
    reserve.establish()
  }

  /// Opens the folder of the library's files (O_PATH), for the caller to close. It is the one that holds the lock's
  /// file, whatever others put in its place.
  ///
  /// - Throws: ``SheafError``: `busy` where another folder is at the library's path by now.
  package func openFolder() throws(SheafError) -> Int32 {
    let folder = try LibraryFolder.openFolder(of: path)
    guard lock.lies(in: folder) else {
      Glibc.close(folder)
      throw SheafError(
        .busy, subject: path, reason: "its folder was moved away while the library was opened", advice: "try again")
    }
    return folder
  }

  /// Done before the first connection of the process; SQLite refuses it later.
  static let preparedSQLite = (csqlite_spare_memory_counts(), SQLiteFiles.areGuarded)

  /// Opens the file, making or migrating it, with connections for readers, for copying the log, and for the writer.
  private static func connect(
    to path: String, _ reserve: Reserve, _ working: WorkingFile
  ) throws(SheafError) -> (DatabasePool, DatabaseQueue, Writer) {
    try storeErrors(path) {
      // It is closed once others are open: closing the last one removes SQLite's log, and on a full disk there may be no
      // room to make it anew.
      let first = try Connection(path: path)
      defer { first.close() }
      sqlite3_busy_timeout(first.handle, Int32(busySeconds * 1000))
      try first.execute(Store.pragmas)
      try SchemaCheck.require(first, path)
      try CrashRecovery.run(first, path: path, recordPath: path + recordSuffix, workingPath: working.path)
      let pool = try DatabasePool(path: path, configuration: Self.configuration(for: path))
      try Migrator.migrate(pool, path: path)
      var configuration = Configuration()
      configuration.busyMode = .timeout(TimeInterval(Self.busySeconds))
      configuration.refuseLink(at: path)
      configuration.prepareDatabase {
        try $0.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0")
      }
      return (
        pool, try DatabaseQueue(path: path, configuration: configuration),
        try Writer(
          path: path, recordPath: path + recordSuffix, busySeconds: busySeconds, reserve: reserve, working: working)
      )
    }
  }

  /// Refuses an existing file that is no library (a database of another program bears no mark, like a new library's
  /// file), a place where a library was, and a disk that cannot be written. Nothing is made or changed.
  ///
  /// - Throws: `corrupt`, `newerFormat`; `notFound` for the remains of a former library; `readOnly`; the error of
  ///   reading the file.
  package static func refuseStranger(at path: String, lockPath: String) throws(SheafError) {
    guard access(path, F_OK) == 0 else { return try FormerLibrary.refuse(at: path, lockPath: lockPath) }
    try LibraryFolder.refuseReadOnlyDisk(of: path)
    switch try LibraryFolder.checkHeader(of: path) {
    case .library: return
    case .empty: return try FormerLibrary.refuseEmpty(path, lockPath: lockPath)
    case .unmarked: break
    }
    try storeErrors(path) {
      var configuration = Configuration()
      configuration.readonly = true
      configuration.refuseLink(at: path)
      let database = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? database.close() }
      let isOurs = try database.read {
        try Int32.fetchOne($0, sql: "PRAGMA application_id") == Schema.applicationID
          || Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_schema") == 0
      }
      guard isOurs else { throw LibraryFolder.notALibrary(path) }
    }
  }

  // NORMAL: the log is synced before a checkpoint and by sync(), not at each commit; rule 3 needs no more. FAST:
  // freeing a chunk must not write its pages once more, for which a full disk has no room.
  static let pragmas = """
    PRAGMA trusted_schema = OFF;
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA cache_size = -16384;
    PRAGMA secure_delete = FAST;
    PRAGMA temp_store = MEMORY;
    """

  private static func configuration(for path: String) -> Configuration {
    var configuration = Configuration()
    configuration.refuseLink(at: path)
    configuration.maximumReaderCount = 3
    configuration.busyMode = .timeout(TimeInterval(Self.busySeconds))
    configuration.foreignKeysEnabled = false
    configuration.prepareDatabase { database in
      // Only a file without pages takes it, and setting it again would be a write, which readers may not do.
      if try Int.fetchOne(database, sql: "PRAGMA page_count") == 0 {
        try database.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
      }
      try database.execute(sql: Self.pragmas)
    }
    return configuration
  }

  // MARK: - Transactions

  /// Makes one change, named `step`. When this returns, everything that `body` wrote survives the end of the process;
  /// when it throws, nothing of it is there.
  ///
  /// Calls must not nest. See ``sync(log:)`` for power loss.
  package func write<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws(SheafError) -> Value
  {
    let value = try Self.storeErrors(path) { try writer.change(step, body) }
    committed.add(1, ordering: .releasing)
    return value
  }

  /// Runs `body` on the writer's connection, which sees every change, the caller's own too while it makes one; it must
  /// only read.
  package func read<Value>(_ body: (StoreTransaction) throws -> Value) throws(SheafError) -> Value {
    try Self.storeErrors(path) { try writer.read(body) }
  }

  // MARK: - Durability

  /// Makes every change that returned before the call survive power loss.
  ///
  /// - Parameter log: whether SQLite's log has to hold them, for callers that are about to end or have time. Syncing
  ///   the record of changes is faster (``Writer``).
  package func sync(log: Bool = false) throws(SheafError) {
    let target = committed.load(ordering: .acquiring)
    try durable.withLock { (done) throws(SheafError) in
      guard done < target else { return }
      // Changes that others made meanwhile go along, so that waiting threads share one sync.
      let reached = committed.load(ordering: .acquiring)
      try Self.storeErrors(path) { try writer.sync(log: log) }
      done = reached
    }
  }

  /// Brings every change that returned before the call into SQLite's log, and syncs that.
  package func syncLog() throws(SheafError) { try Self.storeErrors(path) { try writer.sync(log: true) } }

  /// Whether everything committed survives power loss.
  package var isDurable: Bool { durable.withLock { $0 } >= committed.load(ordering: .acquiring) }

  /// Bytes of the log's file, which is reused from its start once all of it is copied.
  package var logBytes: Int64 { writer.logBytes }

  /// Copies a long log into the file as far as readers allow (SQLite's passive checkpoint).
  ///
  /// Writers do not wait, and their writes meanwhile are left as a rest. Past ``logLimit`` writers are held off for a
  /// moment, which leaves no rest, so that the log begins anew. Before that the rest is made short, as long as the disk
  /// has room for it.
  package func checkpoint() throws(SheafError) {
    let target = committed.load(ordering: .acquiring)
    guard logBytes > checkpointThreshold, checkpointed.load(ordering: .relaxed) < target else { return }
    try Faults.pass(.checkpoint)
    guard var rest = try copyLog() else { return }
    if hasLongLog {
      let end = ContinuousClock.now + Self.patience
      while rest > Self.shortRest, reserve.space().available > Self.ampleRoom, ContinuousClock.now < end {
        // A reader may keep the rest from getting shorter.
        guard let left = try copyLog(), left < rest else { break }
        rest = left
      }
      _ = try Self.storeErrors(path) { try writer.alone { _ in try copyLog() } }
    }
    checkpointed.store(target, ordering: .relaxed)
  }

  /// Whether the log is so long that a caller that writes much, and has time, should have it copied before it goes on.
  package var hasLongLog: Bool { logBytes > logLimit }

  /// Bytes of the log for whose copying writers may wait.
  private static let shortRest: Int64 = 512 << 10
  /// For how long the rest is made shorter: syncs wait for that, and closed documents are durable within 5 s.
  private static let patience: Duration = .seconds(1)
  /// Free bytes of the disk that allow for a log that grows for a while, and for bytes that are stored twice.
  private static let ampleRoom: Int64 = 1 << 30

  /// A passive checkpoint.
  ///
  /// - Returns: bytes of the log that are not copied yet; nil if the disk has no room for them, or another checkpoint
  ///   is running, which does the work.
  @discardableResult
  private func copyLog() throws(SheafError) -> Int64? {
    try Self.storeErrors(path) {
      try checkpointer.writeWithoutTransaction { database in
        guard try logFits(database) else { return nil }
        do {
          let result = try database.checkpoint(.passive)
          // SQLite may have cut off what a commit allocated a moment before.
          writer.room.allocate(pages: try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0)
          return Int64(max(0, result.walFrameCount - result.checkpointedFrameCount)) * 4096
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
          return nil
        }
      }
    }
  }

  /// Makes everything durable, leaves one file without a log, closes the connections and releases the lock.
  package func close() throws(SheafError) {
    readers.close()
    try Self.storeErrors(path) {
      try writer.sync(log: true)
      // Closing the last connection copies the log, too: a log that does not fit must not use up the room for the next
      // time.
      if try !checkpointer.writeWithoutTransaction(logFits) { reserve.establish() }
      try checkpointer.close()
      try writer.alone { try? $0.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
      try pool.close()
      // As the last one: a connection that only reads would leave the log.
      writer.close()
      LibraryFolder.remove(path + Self.recordSuffix)
      working.removeIfUnused()
    }
    // First the disk has to know that the record and the log are gone: they are taken for another file's otherwise.
    if (try? LibraryFolder.sync(containing: path)) != nil, let folder = try? openFolder() {
      LibraryFolder.markAsClosed((path as NSString).lastPathComponent, in: folder)
      Glibc.close(folder)
    }
    lock.release()
  }

  // MARK: - Whole-file work

  /// Bytes up to which a file is written anew as a whole. That takes no longer than a step of ``shrink()`` in a large
  /// file, and leaves no page half empty.
  private static let rewriteLimit: Int64 = 16 << 20

  /// Gives free pages back to the disk, and writes a small file anew as closely as possible.
  ///
  /// - Throws: as ``shrink()``.
  package func tighten() throws(SheafError) {
    try giveBackFreePages()
    let size = mainFileBytes.stored
    if size <= Self.rewriteLimit, hasRoom(for: 2 * size) {
      try Self.storeErrors(path) { try writer.alone { try $0.execute("VACUUM") } }
    }
    addSparePages()
    emptyLog()
  }

  /// Gives a file that became very small spare pages again, if there is room.
  private func addSparePages() {
    guard hasRoom(for: Self.margin) else { return }
    // It is as good a library without.
    try? writer.alone { try SparePages.add(to: $0) }
  }

  /// Bytes of the library's file, and of its blocks, of which some may lie behind its end (``FileRoom``).
  private var mainFileBytes: (stored: Int64, allocated: Int64) {
    var status = stat()
    return stat(path, &status) == 0 ? (Int64(status.st_size), Int64(status.st_blocks) * 512) : (0, 0)
  }

  /// Pages that ``shrink()`` moves before the log is copied: a full disk needs that much log.
  private static let shrinkPages = 128
  /// How long writers wait for a step of ``shrink()``.
  private static let shrinkStep = Duration.milliseconds(5)

  /// Bytes of free pages of which no one can say that they are soon used again.
  private static let muchFree = 64 << 20

  /// Whether free pages should go back to the disk, rather than wait for what comes next: more than half of the file is
  /// free, and much, or the disk is nearly full. There they are of no use, since what is stored takes room in the log
  /// first.
  package var shouldShrink: Bool {
    get throws(SheafError) {
      try Self.storeErrors(path) {
        try pool.read { database in
          let free = try Int.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
          let all = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
          if free > all / 2, free * 4096 > Self.muchFree { return true }
          return Int64(free) * 4096 > Self.margin && availableBytes < Self.largestTransaction
        }
      }
    }
  }

  /// Gives free pages back to the disk, some at a time.
  package func shrink() throws(SheafError) {
    try giveBackFreePages()
    addSparePages()
    emptyLog()
  }

  private func giveBackFreePages() throws(SheafError) {
    try Faults.pass(.shrink)
    if !hasRoom(for: Int64(Self.shrinkPages) * 2 * 4096) {
      // Not lent, since this takes long: whoever stores something takes the blocks back.
      try reserve.release()
      emptyLog(waiting: Self.busySeconds)
    }
    // One at a time: writers would wait behind each.
    try shrinking.withLock { _ throws(SheafError) in
      var (pages, logged) = (Self.shrinkPages / 8, 0)
      while let span = try shrinkSome(pages) {
        logged += pages
        if logged >= Self.shrinkPages {
          try copyLog()
          logged = 0
        }
        // For each page SQLite searches its list of free ones, so of a long list few pages are a step.
        if span > Self.shrinkStep {
          pages = max(1, pages / 2)
        } else if span < Self.shrinkStep / 4 {
          pages = min(Self.shrinkPages, pages * 2)
        }
        // Whoever waits comes first.
        Thread.sleep(forTimeInterval: min(span, Self.shrinkStep) / .seconds(1))
      }
      try copyLog()
    }
  }

  /// Copies all of the log into the file and gives its room back to the disk, as far as that works.
  ///
  /// - Parameter seconds: How long readers that are in the way are waited for. Writers wait as long.
  private func emptyLog(waiting seconds: Int = 0) {
    try? writer.eraseRecord()
    try? writer.alone { _ in
      // By the connection that also copies otherwise: SQLite refuses two checkpoints at once, and a running one is soon
      // done.
      try checkpointer.writeWithoutTransaction { database in
        guard try logFits(database) else { return }
        try database.execute(sql: "PRAGMA busy_timeout = \(seconds * 1000)")
        defer { try? database.execute(sql: "PRAGMA busy_timeout = \(Self.busySeconds * 1000)") }
        _ = try database.checkpoint(.truncate)
      }
    }
  }

  // MARK: - A disk that fills up

  /// Bytes of the log that one transaction writes at most, a little more than a document keeps unsaved.
  private static let largestTransaction: Int64 = 16 << 20

  /// Bytes that can still be stored. The writes of a transaction take room first in the log and then in the file.
  package var availableBytes: Int64 {
    let (stored, allocated) = mainFileBytes
    // What the file has behind its end is for copying the log.
    let growth = max(0, logBytes - max(0, allocated - stored))
    let free = max(0, reserve.space().available - growth - Self.margin)
    return free - min(free / 2, Self.largestTransaction)
  }

  /// Whether `bytes` more can be stored, and copied from the log into the file; makes room by emptying the log.
  ///
  /// A change that lacks room is refused before anything is written. So the log can always be copied, and its room can
  /// be had back.
  package func hasRoom(for bytes: Int64) -> Bool {
    // Looked at lately, and far from full.
    if bytes < Writer.roomForGroups / 2, writer.hasRoomForGroup { return true }
    if availableBytes >= bytes { return true }
    guard logBytes > Self.shortLog else { return false }
    emptyLog()
    return availableBytes >= bytes
  }

  /// Whether `bytes` more can be written to the working file and then be stored, with room to spare.
  package func hasAmpleRoom(for bytes: Int64) -> Bool {
    reserve.space().available > 2 * bytes + working.liveBytes + Self.ampleRoom
  }

  /// Leaves room for operations that free space, where the disk is too full for the reserve to be held.
  ///
  /// The log gets no longer than ``shortLog`` then: what the reserve had is for the growth of the file, without which
  /// the log could not be copied. The last third is not for steps that only remove names: emptying the trash needs it.
  ///
  /// - Throws: `noSpace` for such a step, where only that third is left.
  package func spareReserve(for step: DurableStep) throws(SheafError) {
    guard !reserve.establish() else { return }
    if logBytes > Self.shortLog { emptyLog() }
    guard !step.onlyRemovesNames || reserve.hasRoom(for: reserve.size / 3) else {
      throw SheafError(.noSpace, subject: path)
    }
  }

  /// Runs an operation that frees space with the room of the reserve, and with the log emptied. Otherwise the log would
  /// use up the reserve, so readers that are in the way are waited for.
  ///
  /// - Throws: what `body` throws.
  package func withReleasedRoom<Value>(_ body: () throws -> Value) throws -> Value {
    try reserve.lend {
      emptyLog(waiting: Self.busySeconds)
      return try body()
    }
  }

  /// Whether the disk has room for the growth of the file when the log is copied into it: copying more would use up the
  /// room and then fail.
  ///
  /// Blocks that ext4 keeps for itself count as free, too, and even root cannot use them. Those that it keeps for root do
  /// not count, and root can.
  private func logFits(_ database: Database) throws -> Bool {
    let room = reserve.space().available - Self.shortLog
    if room >= logBytes { return true }
    let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let growth = max(0, pages * 4096 - mainFileBytes.allocated)
    // The file has blocks for all of it by now (``FileRoom``).
    if growth == 0 || growth <= room { return true }
    return growth <= Self.triedRoom && reserve.hasRoom(for: growth + Self.shortLog / 2)
  }

  /// Bytes for which it is tried whether the disk has room for them.
  private static let triedRoom: Int64 = 16 << 20

  /// Gives some free pages back.
  ///
  /// - Returns: how long that kept writers; nil if there are no more.
  private func shrinkSome(_ pages: Int) throws(SheafError) -> Duration? {
    try Self.storeErrors(path) {
      try writer.alone { connection in
        func number(_ sql: String) throws -> Int { try StoreTransaction(connection).first(sql) { try $0[0] } ?? 0 }
        let start = ContinuousClock.now
        guard try number("PRAGMA freelist_count") > 0 else { return nil }
        let before = try number("PRAGMA page_count")
        try connection.execute("PRAGMA incremental_vacuum(\(pages))")
        return try number("PRAGMA page_count") < before ? .now - start : nil
      }
    }
  }

  /// Copies the state of one moment to a new SQLite file at `destination`, which appears only once it is whole, and
  /// makes it durable.
  ///
  /// - Throws: ``SheafError`` that names the copy if writing that failed.
  package func backup(to destination: String, progress: (SheafModel.Progress) -> Void) throws(SheafError) {
    let file = try BackupFile(becoming: destination)
    do throws(SheafError) {
      try Self.storeErrors(path) { try writer.commit() }
      try Self.storeErrors(path, writing: destination) {
        var configuration = Configuration()
        configuration.prepareDatabase { try $0.execute(sql: BackupFile.pragmas) }
        let copy = try DatabaseQueue(path: file.path, configuration: configuration)
        try withoutActuallyEscaping(progress) { progress in
          try pool.backup(to: copy, pagesPerStep: 1000) {
            progress(SheafModel.Progress(done: Int64($0.completedPageCount), total: Int64($0.totalPageCount)))
          }
        }
        try copy.close()
        try file.markAsWithoutLog()
        // The copy does not have the bytes of the working file.
        let whole = try DatabaseQueue(path: file.path, configuration: configuration)
        try whole.writeWithoutTransaction {
          try $0.execute(
            sql: "DELETE FROM working_copies WHERE writes <> ?", arguments: [Data(WriteLog.emptied.encoded)])
        }
        try whole.close()
      }
    } catch {
      file.discard()
      throw error
    }
    try file.finish()
  }

  /// Bytes that the library's files take on the disk.
  package var fileBytes: Int64 {
    ["", "-wal", "-shm", "-reserve", Self.recordSuffix, Self.workingSuffix].reduce(0) { total, suffix in
      var status = stat()
      return stat(path + suffix, &status) == 0 ? total + Int64(status.st_blocks) * 512 : total
    }
  }
}
