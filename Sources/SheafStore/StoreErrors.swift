internal import GRDB
internal import GRDBSQLite
internal import SheafModel

extension Store {
  /// Turns SQLite's errors into ``SheafError``.
  ///
  /// - Parameter copy: the file that is written, if `path` is only read.
  static func storeErrors<Value>(
    _ path: String, writing copy: String? = nil, _ body: () throws -> Value
  ) throws(SheafError) -> Value {
    do {
      return try body()
    } catch let error as SheafError {
      throw error
    } catch let error as SQLiteError {
      throw storeError(path, copy, error.code, error.description)
    } catch let error as DatabaseError {
      throw storeError(path, copy, error.extendedResultCode.rawValue, error.message)
    } catch {
      throw SheafError(.inputOutput, subject: path, reason: "\(error)")
    }
  }

  /// Codes that concern the file that is read, even while another one is written: it is damaged, cannot be read, or
  /// holds what its tables cannot hold.
  private static let readFailures: Set<Int32> = [
    SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH,
    ResultCode.SQLITE_IOERR_READ.rawValue, ResultCode.SQLITE_IOERR_SHORT_READ.rawValue,
  ]

  /// - Parameter code: the extended result code.
  private static func storeError(_ path: String, _ copy: String?, _ code: Int32, _ message: String?) -> SheafError {
    let kind: SheafError.Kind =
      switch (code & 0xFF, code) {
      // The index of the log, which every opening makes anew, could not grow (SQLite, "Result and Error Codes").
      case (SQLITE_FULL, _), (_, ResultCode.SQLITE_IOERR_SHMSIZE.rawValue): .noSpace
      case (SQLITE_CORRUPT, _), (SQLITE_NOTADB, _): .corrupt
      case (SQLITE_READONLY, _): .readOnly
      default: .inputOutput
      }
    if let copy, readFailures.isDisjoint(with: [code, code & 0xFF]) {
      guard kind == .noSpace else { return SheafError(kind, subject: copy, reason: message) }
      return SheafError(
        kind, subject: copy, reason: "no space left on the disk of the copy",
        advice: "name a file on another disk; the library is as it was")
    }
    if kind == .noSpace { return SheafError(kind, subject: path) }
    guard kind == .corrupt else { return SheafError(kind, subject: path, reason: message) }
    return SheafError(
      kind, subject: path, reason: "is damaged: \(message ?? "SQLite cannot read it")",
      advice: "copy the library's files away before anything else; see what is concerned with sheaf check; go back to "
        + "the last backup, or save what can be read: sheaf repair \(path)")
  }
}
