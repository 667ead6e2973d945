internal import CLinux
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Glibc
package import SheafModel

/// Saving what can be read of a damaged library.
extension Store {
  /// What the tables hold, for people; nothing is said of those that tell nothing by themselves.
  private static let contentsOfTables = [
    "settings": "settings", "accounts": "accounts", "inodes": "files and folders", "xattrs": "extended attributes",
    "versions": "versions", "shares": "shares", "participants": "participants", "one_time_links": "one-time links",
    "access_requests": "requests for access", "events": "events", "webhooks": "webhooks",
    "past_names": "former names", "waiting_events": "events that no hub had yet",
    "replica_logs": "places up to which logs of hubs were read", "replica_events": "events of hubs",
    "replica_comments": "comments that no hub had yet",
  ]

  /// Makes a sound library at `destination` of what can be read of the one at `path`, which stays as it is.
  ///
  /// - Throws: ``SheafError``: `notFound`; `busy` while a process has the library open; `exists` where the destination
  ///   is there, or changes of another file lie beside the library; `corrupt` where nothing can be read; `newerFormat`; `noSpace`.
  package static func repair(
    _ path: String, lockPath: String, to destination: String, destinationLockPath: String
  ) throws(SheafError) -> RepairReport {
    _ = preparedSQLite
    guard access(path, F_OK) == 0 else { throw SheafError(systemError: errno, subject: path) }
    guard !LibraryLock.isHeld(path: lockPath) else {
      throw SheafError(
        .busy, subject: path, reason: "is in use by process \(LibraryLock.owner(path: lockPath) ?? 0)",
        advice: "unmount it first; where it is mounted, says: sheaf status --library \(path.shellWord)")
    }
    try FormerLibrary.refuseForeignChanges(beside: path)
    try refuseAnything(at: destination, destinationLockPath)
    let rights = try OwnerRights(of: destination)
    defer { withExtendedLifetime(rights) {} }
    // Nothing is removed but this folder, whatever else lies beside the two libraries.
    let parent = (destination as NSString).deletingLastPathComponent
    let folder = try OwnFolder(".sheaf-repair-", in: parent.isEmpty ? "." : parent) {
      OwnerRights.acting(on: destination, $0)
    }
    defer { folder.remove { OwnerRights.acting(on: destination, $0) } }
    do {
      // What SQLite opens lies beside the destination, the copy of the damaged library as well.
      return try storeErrors(path, writing: destination) { try repair(path, to: destination, in: folder) }
    } catch {
      // Whatever is damaged, others advise a repair.
      throw error.kind == .corrupt ? error.advising("go back to the last backup") : error
    }
  }

  /// Refuses a place where a library is, or where something is left of one: it may hold the last saves.
  private static func refuseAnything(at destination: String, _ lockPath: String) throws(SheafError) {
    let beside = ["-wal", recordSuffix, "-shm", "-journal", workingSuffix, reserveSuffix]
    for path in [destination] + beside.map({ destination + $0 }) + [lockPath] {
      var status = stat()
      guard lstat(path, &status) != 0 else {
        throw SheafError(.exists, subject: path, reason: "is there already", advice: "name another file with --to")
      }
      guard errno == ENOENT else { throw SheafError(systemError: errno, subject: path) }
    }
  }

  private static func repair(_ path: String, to destination: String, in folder: OwnFolder) throws -> RepairReport {
    // SQLite changes a file when it reads its log, and the damaged one is to stay as it is.
    let (copy, saved) = ("\(folder.path)/damaged", "\(folder.path)/saved")
    let rights = [try OwnerRights(of: copy), try OwnerRights(of: saved)]
    defer { withExtendedLifetime(rights) {} }
    try LibraryFolder.copy(path, to: copy, upTo: length(of: path))
    for suffix in ["-wal", recordSuffix] { try LibraryFolder.copy(path + suffix, to: copy + suffix) }
    lengthen(copy)
    let losses = try salvage(copy, of: path, to: saved, saved + "-lock")
    let store = try Store(path: saved, lockPath: saved + "-lock")
    let problems = try store.integrityProblems() + store.snapshot { try $0.check { _ in } }.problems
    let counts = try store.snapshot { try $0.counts() }
    try store.close()
    try publish(saved, as: destination)
    return RepairReport(
      library: destination, accounts: counts.accounts, documents: counts.documents, folders: counts.folders,
      versions: counts.versions, deleted: counts.deleted, lost: losses, problems: problems)
  }

  /// How many bytes of a library SQLite reads, whatever comes behind them; nil where it reads all.
  private static func length(of path: String) -> Int64? {
    let file = LibraryFolder.open(path, O_RDONLY)
    guard file >= 0 else { return nil }
    defer { Glibc.close(file) }
    guard let header = SQLiteHeader(file), header.isCounted else { return nil }
    return Int64(header.pageSize) * header.pageCount
  }

  /// Makes a copy that has lost its end as long as its header says (SQLite file format, 1.3): SQLite reads nothing of a
  /// shorter one.
  private static func lengthen(_ copy: String) {
    let file = LibraryFolder.open(copy, O_RDWR)
    guard file >= 0 else { return }
    defer { Glibc.close(file) }
    var status = stat()
    guard let header = SQLiteHeader(file), fstat(file, &status) == 0 else { return }
    let length = Int64(header.pageSize) * header.pageCount
    if length > Int64(status.st_size), length - Int64(status.st_size) <= 1 << 30 { ftruncate(file, Int(length)) }
  }

  /// Copies what can be read of the copy of a damaged library to a new one, and makes that sound.
  ///
  /// - Returns: What is lost, a line each.
  private static func salvage(
    _ copy: String, of path: String, to destination: String, _ destinationLockPath: String
  ) throws -> [String] {
    var losses: [String] = []
    try TableList.mend(copy)
    do {
      let first = try Connection(path: copy)
      defer { first.close() }
      try first.execute(pragmas)
      try SchemaCheck.removeForeign(first)
      try CrashRecovery.run(first, path: copy, recordPath: copy + recordSuffix, workingPath: copy + workingSuffix)
    } catch {
      if access(copy + recordSuffix, F_OK) == 0 {
        losses.append("the changes of the last moments, which are in \(path)\(recordSuffix)")
      }
    }
    try bringUp(copy, path)
    try Store(path: destination, lockPath: destinationLockPath).close()
    let source = try Connection(path: copy)
    defer { source.close() }
    let lookups = try Connection(path: copy)
    defer { lookups.close() }
    let target = try Connection(path: destination)
    defer { target.close() }
    try target.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE")
    // Pages are read from the file alone.
    sqlite3_wal_checkpoint_v2(source.handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    let file = LibraryFolder.open(copy, O_RDONLY)
    guard file >= 0 else { throw SheafError(systemError: errno, subject: path) }
    defer { Glibc.close(file) }
    let pages = SQLitePages(file)
    var map: PointerMap?
    var readTables = 0
    var repetitions: [Salvage.Repetition] = []
    for table in Salvage.tables {
      let what = contentsOfTables[table.name]
      guard var salvage = try? Salvage(table, from: source.handle, lookups.handle, to: target.handle) else {
        if let what { losses.append("all \(what)") }
        continue
      }
      readTables += 1
      try salvage.run()
      if salvage.hasGap, let pages {
        if map == nil { map = PointerMap(of: pages) }
        if let map { try salvage.run(pages, map) }
      }
      repetitions += salvage.repetitions
      for (meaning, rows) in salvage.mended {
        losses.append("\(meaning.name) of \(rows) of the \(what ?? table.name), which is \(meaning.instead) now")
      }
      guard let what else { continue }
      if salvage.hasGap { losses.append("some \(what), for a part of their table cannot be read") }
      if salvage.lost > 0 { losses.append("\(salvage.lost) of the \(what), whose rows cannot be read") }
    }
    guard readTables > 0 else { throw nothingReadable(path) }
    var mending = Mending(target, repetitions: repetitions)
    try mending.run()
    losses += try mending.losses + endedConnections(StoreTransaction(source), StoreTransaction(target))
    // The tables that it used for a while pushed others' pages to the end of the file.
    try target.execute("COMMIT; PRAGMA incremental_vacuum")
    try SparePages.add(to: target)
    return losses
  }

  /// Tells which accounts are not connected any more.
  ///
  /// What ties a library to its hub does not come along: the hub went on from all that the library had, and not from what
  /// could be read of it.
  private static func endedConnections(_ damaged: StoreTransaction, _ saved: StoreTransaction) throws -> [String] {
    let advice = "what is at the hub alone comes when the account is connected anew: sheaf connect LINK"
    guard let replicas = try? damaged.replicas() else {
      return ["the connections of accounts with their hubs, if there were any; \(advice)"]
    }
    return try replicas.filter { $0.reader == nil }.compactMap { replica -> String? in
      let handle = try saved.first("SELECT handle FROM accounts WHERE id = ?", replica.account) {
        (try $0[0] as String).printable
      }
      let hub = replica.hub.map { " with \($0.printable)" } ?? ""
      return handle.map { "the connection of \($0)\(hub); \(advice)" }
    }
  }

  /// Brings the copy of a damaged library to the newest format, in which it is read.
  private static func bringUp(_ copy: String, _ path: String) throws {
    let source = try Connection(path: copy)
    var version = (try? StoreTransaction(source).first("PRAGMA user_version") { try $0[0] as Int64 }) ?? nil
    // The number may be what is damaged.
    if let number = version, number < Schema.version, (try? SchemaCheck.hasNewestTables(source)) ?? false {
      try source.execute("PRAGMA user_version = \(Schema.version)")
      version = Int64(Schema.version)
    }
    source.close()
    guard let version, version > 0 else { throw nothingReadable(path) }
    guard version <= Int64(Schema.version) else {
      throw SheafError(
        .newerFormat, subject: path, reason: "was written by a newer version of Sheaf (format \(version))",
        advice: "update Sheaf")
    }
    guard version < Int64(Schema.version) else { return }
    var configuration = Configuration()
    // What breaks a constraint is mended later.
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA ignore_check_constraints = ON") }
    let pool = try DatabasePool(path: copy, configuration: configuration)
    try Migrator.migrate(pool, path: copy)
    try pool.close()
  }

  private static func nothingReadable(_ path: String) -> SheafError {
    SheafError(
      .corrupt, subject: path,
      reason: "nothing of it can be read: its first page, or the list of its tables, is damaged")
  }
}

extension Store {
  /// Gives a library that is closed its name, durably.
  ///
  /// - Throws: `exists` where something has the name by now.
  private static func publish(_ library: String, as destination: String) throws {
    var status = stat()
    guard lstat(library + "-wal", &status) != 0 || status.st_size == 0 else {
      throw SheafError(.inputOutput, subject: destination, reason: "its log could not be emptied")
    }
    let file = LibraryFolder.open(library, O_RDONLY)
    guard file >= 0 else { throw SheafError(systemError: errno, subject: library) }
    let synced = fsync(file) == 0
    Glibc.close(file)
    guard synced else { throw SheafError(systemError: errno, subject: library) }
    let isRenamed = OwnerRights.acting(on: destination) {
      if renameat2(AT_FDCWD, library, AT_FDCWD, destination, UInt32(RENAME_NOREPLACE)) == 0 { return 0 }
      // Not every file system can do that; link(2) does not replace, either.
      return errno == EINVAL ? link(library, destination) : -1
    }
    guard isRenamed == 0 else { throw SheafError(systemError: errno, subject: destination) }
    try LibraryFolder.sync(containing: destination)
  }
}
