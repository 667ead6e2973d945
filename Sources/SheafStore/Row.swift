internal import Foundation
internal import GRDBSQLite

/// A row of a query, valid until the statement moves on.
struct Row {
  let statement: OpaquePointer

  subscript<Value: ColumnValue>(index: Int) -> Value { Value(statement, Int32(index)) }

  /// The bytes of a blob column; empty for NULL.
  func bytes(_ index: Int) throws -> [UInt8] {
    let count = Int(sqlite3_column_bytes(statement, Int32(index)))
    guard count > 0, let start = sqlite3_column_blob(statement, Int32(index)) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// What a column can be read as.
protocol ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32)
}

extension Int64: ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32) { self = sqlite3_column_int64(statement, column) }
}

extension Int: ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32) { self = Int(sqlite3_column_int64(statement, column)) }
}

extension Bool: ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32) { self = sqlite3_column_int64(statement, column) != 0 }
}

extension String: ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32) {
    let count = Int(sqlite3_column_bytes(statement, column))
    guard count > 0, let start = sqlite3_column_text(statement, column) else {
      self = ""
      return
    }
    self = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
  init(_ statement: OpaquePointer, _ column: Int32) {
    self = sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : Wrapped(statement, column)
  }
}

/// What a parameter of a statement can be given.
protocol Bindable {
  /// Writes itself behind the others of a recorded change where `recorder` is given, and binds itself: that copy of its
  /// bytes, which stays where it is until the statement is done, or one that SQLite makes.
  ///
  /// - Returns: SQLite's result code.
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32
}

/// Has SQLite copy what is bound.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

extension Int64: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    recorder?.append(self)
    return sqlite3_bind_int64(statement, index, self)
  }
}

extension Int: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    Int64(self).bind(to: statement, at: index, recordingIn: recorder)
  }
}

extension String: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    var text = self
    return text.withUTF8 { bytes in
      guard let copy = recorder?.append(UnsafeRawBufferPointer(bytes), as: .text) else {
        return sqlite3_bind_text(statement, index, bytes.baseAddress, Int32(bytes.count), transient)
      }
      return sqlite3_bind_text(statement, index, copy.assumingMemoryBound(to: CChar.self), Int32(bytes.count), nil)
    }
  }
}

extension [UInt8]: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    withUnsafeBytes { bindBlob($0, to: statement, at: index, recordingIn: recorder) }
  }
}

/// The 16 bytes.
extension UUID: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    withUnsafeBytes(of: uuid) { bindBlob($0, to: statement, at: index, recordingIn: recorder) }
  }
}

extension Data: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    withUnsafeBytes { bindBlob($0, to: statement, at: index, recordingIn: recorder) }
  }
}

/// Bytes that stay where they are until the statement is done.
extension UnsafeRawBufferPointer: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    bindBlob(self, to: statement, at: index, recordingIn: recorder, nil)
  }
}

/// NULL where there is none.
extension Optional: Bindable where Wrapped: Bindable {
  func bind(to statement: OpaquePointer, at index: Int32, recordingIn recorder: ChangeRecorder?) -> Int32 {
    if let self { return self.bind(to: statement, at: index, recordingIn: recorder) }
    recorder?.appendNull()
    return sqlite3_bind_null(statement, index)
  }
}

/// - Parameter destructor: what SQLite does with bytes that are not recorded.
private func bindBlob(
  _ bytes: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32,
  recordingIn recorder: ChangeRecorder?, _ destructor: sqlite3_destructor_type? = transient
) -> Int32 {
  let copy = recorder?.append(bytes, as: .blob)
  // Without an address it would be NULL.
  guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
  return sqlite3_bind_blob(statement, index, copy ?? start, Int32(bytes.count), copy == nil ? destructor : nil)
}
