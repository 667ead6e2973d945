package import SheafModel

/// A row of `working_copies`: a document's contents that will become a version, and are not stored yet.
package struct WorkingCopyRow: Hashable, Sendable {
  package let ino: Int64
  package let author: Int64
  /// When they were kept.
  package let time: Timestamp
  /// The cause that the version will have.
  package let cause: VersionCause
  package let writes: WriteLog

  package init(ino: Int64, author: Int64, time: Timestamp, cause: VersionCause, writes: WriteLog) {
    self.ino = ino
    self.author = author
    self.time = time
    self.cause = cause
    self.writes = writes
  }
}

extension StoreTransaction {
  static let workingCopyInsertion =
    "INSERT OR REPLACE INTO working_copies (ino, author, time, cause, writes) VALUES (?,?,?,?,?)"

  /// Writes the row of an inode's working copy, in place of an earlier one.
  package func set(_ copy: WorkingCopyRow) throws {
    try run(
      Self.workingCopyInsertion, copy.ino, copy.author, copy.time.nanoseconds, copy.cause.code, copy.writes.encoded)
  }

  package func deleteWorkingCopy(_ ino: Int64) throws { try run("DELETE FROM working_copies WHERE ino = ?", ino) }

  /// All working copies.
  ///
  /// - Throws: ``SheafError`` of kind `corrupt`.
  package func workingCopies() throws -> [WorkingCopyRow] {
    try all("SELECT ino, author, time, cause, writes FROM working_copies ORDER BY time") { row in
      try WorkingCopyRow(
        ino: row[0], author: row[1], time: Timestamp(nanoseconds: row[2]), cause: VersionCause(code: row[3]),
        writes: WriteLog(encoded: row.bytes(4)))
    }
  }
}

extension ChangeRecorder.Recorded {
  /// Whether this keeps a working copy whose bytes the working file at `path` does not hold: the disk lost them with
  /// the power, so no later change may be done, either.
  func lacksContents(in path: String) throws(SheafError) -> Bool {
    guard sql == StoreTransaction.workingCopyInsertion, arguments.count == 5, let writes = arguments[4] as? [UInt8],
      let log = try? WriteLog(encoded: writes)
    else { return false }
    return try !WorkingFile.holds(log, path: path)
  }
}
