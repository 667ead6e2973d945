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
    "past_names": "former names",
  ]

  /// Makes a sound library at `destination` of what can be read of the one at `path`, which stays as it is.
  ///
  /// - Throws: ``SheafError``: `notFound`; `busy` while a process has the library open; `exists` where the destination
  ///   is there; `corrupt` where nothing can be read; `newerFormat`; `noSpace`.
  package static func repair(
    _ path: String, lockPath: String, to destination: String, destinationLockPath: String
  ) throws(SheafError) -> RepairReport {
    _ = preparedSQLite
    guard access(path, F_OK) == 0 else { throw SheafError(systemError: errno, subject: path) }
    guard !LibraryLock.isHeld(path: lockPath) else {
      throw SheafError(
        .busy, subject: path, reason: "is in use by process \(LibraryLock.owner(path: lockPath) ?? 0)",
        advice: "unmount it first: sheaf unmount")
    }
    guard access(destination, F_OK) != 0 else {
      throw SheafError(.exists, subject: destination, reason: "is there already", advice: "name another file with --to")
    }
    // SQLite changes a file when it reads its log, and this one is to stay as it is.
    let copy = destination + "-damaged"
    let files = ["", "-wal", recordSuffix, "-shm", "-journal"]
    for suffix in files { LibraryFolder.remove(copy + suffix) }
    defer { for suffix in files { LibraryFolder.remove(copy + suffix) } }
    for suffix in ["", "-wal", recordSuffix] { try LibraryFolder.copy(path + suffix, to: copy + suffix) }
    do {
      let losses = try storeErrors(path) { try salvage(copy, of: path, to: destination, destinationLockPath) }
      let store = try Store(path: destination, lockPath: destinationLockPath)
      let problems = try store.integrityProblems() + store.snapshot { try $0.check { _ in } }.problems
      let counts = try store.snapshot { try $0.counts() }
      try store.close()
      return RepairReport(
        library: destination, accounts: counts.accounts, documents: counts.documents, folders: counts.folders,
        versions: counts.versions, deleted: counts.deleted, lost: losses, problems: problems)
    } catch {
      for suffix in files + [workingSuffix, reserveSuffix] { LibraryFolder.remove(destination + suffix) }
      LibraryFolder.remove(destinationLockPath)
      throw error
    }
  }

  /// Copies what can be read of the copy of a damaged library to a new one, and makes that sound.
  ///
  /// - Returns: What is lost, a line each.
  private static func salvage(
    _ copy: String, of path: String, to destination: String, _ destinationLockPath: String
  ) throws -> [String] {
    var losses: [String] = []
    if access(copy + recordSuffix, F_OK) == 0 {
      do {
        try CrashRecovery.run(
          path: copy, recordPath: copy + recordSuffix, workingPath: copy + workingSuffix, busySeconds: 5)?.close()
      } catch {
        losses.append("the changes of the last moments, which are in \(path)\(recordSuffix)")
      }
    }
    try bringUp(copy, path)
    try Store(path: destination, lockPath: destinationLockPath).close()
    let source = try Connection(path: copy)
    defer { source.close() }
    let target = try Connection(path: destination)
    defer { target.close() }
    try target.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE")
    var readTables = 0
    for table in Salvage.tables {
      let what = contentsOfTables[table.name]
      guard var salvage = try? Salvage(table, from: source.handle, to: target.handle) else {
        if let what { losses.append("all \(what)") }
        continue
      }
      readTables += 1
      try salvage.run(from: source.handle)
      guard let what else { continue }
      if salvage.hasGap { losses.append("some \(what), for a part of their table cannot be read") }
      if salvage.lost > 0 { losses.append("\(salvage.lost) rows of \(what), which cannot be read") }
    }
    guard readTables > 0 else { throw nothingReadable(path) }
    var mending = Mending(target)
    try mending.run()
    try target.execute("COMMIT")
    return losses + mending.losses
  }

  /// Brings the copy of a damaged library to the newest format, in which it is read.
  private static func bringUp(_ copy: String, _ path: String) throws {
    let source = try Connection(path: copy)
    let version = try? StoreTransaction(source).first("PRAGMA user_version") { try $0[0] as Int64 }
    source.close()
    guard let version = version ?? nil, version > 0 else { throw nothingReadable(path) }
    guard version <= Int64(Schema.version) else {
      throw SheafError(
        .newerFormat, subject: path, reason: "was written by a newer version of Sheaf (format \(version))",
        advice: "update Sheaf")
    }
    guard version < Int64(Schema.version) else { return }
    let pool = try DatabasePool(path: copy)
    try Migrator.migrate(pool, path: copy)
    try pool.close()
  }

  private static func nothingReadable(_ path: String) -> SheafError {
    SheafError(
      .corrupt, subject: path, reason: "nothing of it can be read: its first page is damaged",
      advice: "go back to the last backup")
  }
}
