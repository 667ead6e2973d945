internal import Foundation
internal import GRDBSQLite

extension Store {
  /// A text setting of a library's file that is not opened as a library; nil where it cannot be read.
  ///
  /// Takes no lock and makes no file, so that a process that has it open does not notice, and leaves out what is in its
  /// log alone (`immutable` of SQLite, "URI Filenames").
  package static func setting(_ key: String, ofFileAt path: String) -> String? {
    var allowed = CharacterSet.urlPathAllowed
    allowed.remove(charactersIn: "?#%;")
    guard let escaped = path.addingPercentEncoding(withAllowedCharacters: allowed) else { return nil }
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    guard
      sqlite3_open_v2("file:\(escaped)?immutable=1", &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil) == SQLITE_OK
    else { return nil }
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard sqlite3_prepare_v2(handle, "SELECT value FROM settings WHERE key = ?", -1, &statement, nil) == SQLITE_OK,
      sqlite3_bind_text(statement, 1, key, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self)) == SQLITE_OK,
      sqlite3_step(statement) == SQLITE_ROW, let text = sqlite3_column_text(statement, 0)
    else { return nil }
    return String(cString: text)
  }
}
