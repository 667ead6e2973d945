internal import GRDBSQLite

/// Reads parts of a column of one row, and then of another, without the rest of it (SQLite, "Incremental Blob I/O").
struct Blob {
  private let connection: Connection
  private let handle: OpaquePointer

  /// - Throws: ``SQLiteError``, also where there is no such row.
  init(_ connection: Connection, table: String, column: String, row: Int64) throws {
    var opened: OpaquePointer?
    let code = sqlite3_blob_open(connection.handle, "main", table, column, row, 0, &opened)
    guard code == SQLITE_OK, let opened else { throw SQLiteError(code, connection.handle) }
    self.connection = connection
    handle = opened
  }

  func move(to row: Int64) throws { try check(sqlite3_blob_reopen(handle, row)) }

  /// Bytes that the column has.
  var count: Int64 { Int64(sqlite3_blob_bytes(handle)) }

  /// Fills `buffer`, which is not longer than what follows `offset`.
  func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws {
    guard let count = Int32(exactly: buffer.count), let offset = Int32(exactly: offset) else {
      throw SQLiteError(SQLITE_TOOBIG, "a part of a row is too large")
    }
    try check(sqlite3_blob_read(handle, buffer.baseAddress, count, offset))
  }

  func close() { sqlite3_blob_close(handle) }

  private func check(_ code: Int32) throws {
    guard code == SQLITE_OK else { throw SQLiteError(code, connection.handle) }
  }
}
