internal import Foundation
internal import GRDBSQLite
internal import Glibc
internal import SheafModel

/// Does again the changes that the record holds after a process was killed, or a machine lost power.
enum CrashRecovery {
  /// Does the changes in the record at `recordPath` that the library file at `path` does not hold, and makes everything
  /// in the file survive power loss, so that the record can be used anew.
  ///
  /// Before the file is migrated: the statements are those of its format.
  ///
  static func run(_ connection: Connection, path: String, recordPath: String, workingPath: String) throws {
    guard access(recordPath, F_OK) == 0 || errno != ENOENT, let last = try connection.lastChange() else { return }
    connection.restrictToRows()
    // Bytes that the disk lost end the prefix of changes that is left.
    let changes = try ChangeRecorder.read(path: recordPath, after: last)
      .prefix { change in try !change.contains { try $0.lacksContents(in: workingPath) } }
    if !changes.isEmpty {
      try connection.execute("BEGIN IMMEDIATE")
      var done = try connection.runAccepted(changes)
      if !connection.isInTransaction {
        // SQLite undid all of them when one took too long (sqlite3_interrupt).
        try connection.execute("BEGIN IMMEDIATE")
        connection.renewEffort()
        done = try connection.runAccepted(changes.prefix(done))
      }
      if done < changes.count { try keep(recordPath) }
      try connection.setLastChange(last + Int64(done))
      try connection.execute("COMMIT")
    }
    // The last process may have written bytes that the disk does not have.
    try sync(workingPath)
    if access(WALFile.path(of: path), F_OK) == 0 { try WALFile(of: path).secure() }
  }

  /// The path under which a record is kept if SQLite refused one of its changes.
  static func refusedPath(of recordPath: String) -> String { recordPath + "-refused" }

  /// Keeps a copy of the record, which is about to be used anew; an earlier one stays.
  private static func keep(_ recordPath: String) throws(SheafError) {
    let path = refusedPath(of: recordPath)
    guard access(path, F_OK) != 0 else { return }
    try LibraryFolder.copy(recordPath, to: path)
  }

  /// Makes a file that may not be there survive power loss.
  private static func sync(_ path: String) throws(SheafError) {
    guard let descriptor = try LibraryFolder.openExisting(at: path) else { return }
    defer { close(descriptor) }
    guard fdatasync(descriptor) == 0 else { throw SheafError(systemError: errno, subject: path) }
  }
}

extension Store {
  /// The file with changes that were answered as done and that SQLite then refused to store, which only a mistake of
  /// Sheaf's can cause; nil if there is none.
  package var refusedChanges: String? {
    let kept = CrashRecovery.refusedPath(of: path + Self.recordSuffix)
    return access(kept, F_OK) == 0 ? kept : nil
  }
}

extension Connection {
  /// The number of the last change that the file holds; nil for a file without any.
  func lastChange() throws -> Int64? {
    var hasSettings = false
    try run(statement("SELECT 1 FROM sqlite_schema WHERE name = 'settings'")) { _ in
      hasSettings = true
      return false
    }
    guard hasSettings else { return nil }
    var number: Int64?
    try run(statement("SELECT value FROM settings WHERE key = 'change'")) {
      number = try $0[0]
      return false
    }
    return number
  }

  /// Notes the number of the last change that the file holds, in that change's transaction.
  func setLastChange(_ number: Int64) throws { try run(lastChangeStatement, number) { _ in true } }

  /// The statement that sets the number of the last change that the file holds, its only argument.
  var lastChangeStatement: Statement {
    get throws {
      try statement(
        "INSERT INTO settings (key, value) VALUES ('change', ?) ON CONFLICT DO UPDATE SET value = excluded.value")
    }
  }

  /// Does recorded changes.
  func run(_ changes: some Sequence<[ChangeRecorder.Recorded]>) throws {
    for statement in changes.joined() { try run(statement) }
  }

  /// Does recorded changes in the open transaction, up to one whose statement SQLite refuses. Its caller was answered
  /// before SQLite saw it, and such a mistake of Sheaf's must not keep the library from opening.
  ///
  /// - Returns: how many are done; if the transaction is not open any more, how many could be.
  /// - Throws: the error of the disk or the file.
  fileprivate func runAccepted(_ changes: some Sequence<[ChangeRecorder.Recorded]>) throws -> Int {
    var done = 0
    for change in changes {
      try execute("SAVEPOINT change")
      do {
        try run(CollectionOfOne(change))
      } catch let error as SQLiteError where error.isRefusal {
        if isInTransaction { try execute("ROLLBACK TO change; RELEASE change") }
        return done
      }
      try execute("RELEASE change")
      done += 1
    }
    return done
  }
}
