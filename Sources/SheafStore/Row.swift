internal import Foundation
internal import GRDBSQLite
internal import SheafModel

/// A row of a query, valid until the statement moves on.
struct Row {
  let statement: OpaquePointer

  /// The value of a column.
  ///
  /// - Throws: `corrupt` if the column holds a value of another type, as only a damaged or crafted file has it.
  subscript<Value: ColumnValue>(index: Int) -> Value {
    get throws(SheafError) { try Value(self, Int32(index)) }
  }

  /// The bytes of a blob column; empty for NULL.
  ///
  /// - Throws: `corrupt` as for the others.
  func bytes(_ index: Int) throws(SheafError) -> [UInt8] {
    let column = Int32(index)
    guard sqlite3_column_type(statement, column) != SQLITE_NULL else { return [] }
    try expect(SQLITE_BLOB, at: column)
    let count = Int(sqlite3_column_bytes(statement, column))
    guard count > 0, let start = sqlite3_column_blob(statement, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  /// The UUID of a blob column.
  ///
  /// - Throws: `corrupt` also if it does not have 16 bytes.
  func uuid(_ index: Int) throws(SheafError) -> UUID {
    let bytes = try bytes(index)
    guard bytes.count == 16 else { throw unexpected(Int32(index)) }
    return UUID(bytes: bytes)
  }

  /// The name of a file.
  ///
  /// - Throws: `corrupt` also if no file can have it: callers take it for one component of a path.
  func name(_ index: Int) throws(SheafError) -> [UInt8] {
    let name = try bytes(index)
    guard (1...255).contains(name.count), !name.contains(where: { $0 == 0 || $0 == UInt8(ascii: "/") }),
      name != [UInt8(ascii: ".")], name != [UInt8(ascii: "."), UInt8(ascii: ".")]
    else { throw unexpected(Int32(index)) }
    return name
  }

  fileprivate func expect(_ type: Int32, at column: Int32) throws(SheafError) {
    guard sqlite3_column_type(statement, column) == type else { throw unexpected(column) }
  }

  /// The error for a column with a value that it cannot hold.
  private func unexpected(_ column: Int32) -> SheafError {
    let name = sqlite3_column_name(statement, column).map { String(cString: $0) } ?? "\(column)"
    return SheafError(
      .corrupt, subject: "a row", reason: "holds in \(name.printable) what cannot be there", advice: "run sheaf check")
  }
}

/// A type that a column can be read as.
protocol ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError)
}

extension Int64: ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError) {
    try row.expect(SQLITE_INTEGER, at: column)
    self = sqlite3_column_int64(row.statement, column)
  }
}

extension Int: ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError) { self = Int(try Int64(row, column)) }
}

extension Bool: ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError) { self = try Int64(row, column) != 0 }
}

extension String: ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError) {
    try row.expect(SQLITE_TEXT, at: column)
    let count = Int(sqlite3_column_bytes(row.statement, column))
    guard count > 0, let start = sqlite3_column_text(row.statement, column) else {
      self = ""
      return
    }
    self = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
  init(_ row: Row, _ column: Int32) throws(SheafError) {
    self = sqlite3_column_type(row.statement, column) == SQLITE_NULL ? nil : try Wrapped(row, column)
  }
}

/// A type that a parameter of a statement can take.
protocol Bindable {
  /// Binds itself; bytes are copied by SQLite.
  ///
  /// - Returns: SQLite's result code.
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32

  /// Appends itself to the arguments of a recorded statement.
  func record(in recorder: ChangeRecorder)
}

/// Makes SQLite copy the bound bytes.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

extension Int64: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 { sqlite3_bind_int64(statement, index, self) }
  func record(in recorder: ChangeRecorder) { recorder.append(self) }
}

extension Int: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 { Int64(self).bind(to: statement, at: index) }
  func record(in recorder: ChangeRecorder) { recorder.append(Int64(self)) }
}

extension String: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    var text = self
    return text.withUTF8 { sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), transient) }
  }

  func record(in recorder: ChangeRecorder) {
    var text = self
    text.withUTF8 { recorder.append(UnsafeRawBufferPointer($0), as: .text) }
  }
}

extension [UInt8]: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    withUnsafeBytes { bindBlob($0, to: statement, at: index) }
  }

  func record(in recorder: ChangeRecorder) { withUnsafeBytes { recorder.append($0, as: .blob) } }
}

/// The 16 bytes.
extension UUID: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    withUnsafeBytes(of: uuid) { bindBlob($0, to: statement, at: index) }
  }

  func record(in recorder: ChangeRecorder) { withUnsafeBytes(of: uuid) { recorder.append($0, as: .blob) } }
}

extension Data: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    withUnsafeBytes { bindBlob($0, to: statement, at: index) }
  }

  func record(in recorder: ChangeRecorder) { withUnsafeBytes { recorder.append($0, as: .blob) } }
}

/// Bytes that stay where they are until the statement is done.
extension UnsafeRawBufferPointer: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    bindBlob(self, to: statement, at: index, nil)
  }

  func record(in recorder: ChangeRecorder) { recorder.append(self, as: .blob) }
}

/// NULL where there is none.
extension Optional: Bindable where Wrapped: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    self?.bind(to: statement, at: index) ?? sqlite3_bind_null(statement, index)
  }

  func record(in recorder: ChangeRecorder) {
    if let self { self.record(in: recorder) } else { recorder.appendNull() }
  }
}

/// - Parameter destructor: how SQLite treats the bytes.
private func bindBlob(
  _ bytes: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32,
  _ destructor: sqlite3_destructor_type? = transient
) -> Int32 {
  // Without an address it would be NULL.
  guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
  return sqlite3_bind_blob(statement, index, start, Int32(bytes.count), destructor)
}

extension ChangeRecorder {
  /// Binds the recorded argument at `position`, which moves behind it; its bytes stay where they are until the
  /// statement is done.
  ///
  /// - Returns: SQLite's result code.
  static func bind(from position: inout UnsafeRawPointer, to statement: OpaquePointer, at index: Int32) -> Int32 {
    let kind = Kind(rawValue: position.load(as: UInt8.self))
    position += 1
    switch kind {
    case .integer:
      defer { position += 8 }
      return sqlite3_bind_int64(statement, index, position.loadUnaligned(as: Int64.self))
    case .text, .blob:
      let count = position.loadUnaligned(as: UInt32.self)
      let bytes = position + 4
      position = bytes + Int(count)
      if kind == .text {
        return sqlite3_bind_text(statement, index, bytes.assumingMemoryBound(to: CChar.self), Int32(count), nil)
      }
      return sqlite3_bind_blob(statement, index, bytes, Int32(count), nil)
    case .null, nil: return sqlite3_bind_null(statement, index)
    }
  }
}
