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
  /// Binds itself; bytes are copied by SQLite.
  ///
  /// - Returns: SQLite's result code.
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32

  /// Writes itself behind the others of a recorded statement.
  func record(in recorder: ChangeRecorder)
}

/// Has SQLite copy what is bound.
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

/// - Parameter destructor: what SQLite does with the bytes.
private func bindBlob(
  _ bytes: UnsafeRawBufferPointer, to statement: OpaquePointer, at index: Int32,
  _ destructor: sqlite3_destructor_type? = transient
) -> Int32 {
  // Without an address it would be NULL.
  guard let start = bytes.baseAddress, !bytes.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
  return sqlite3_bind_blob(statement, index, start, Int32(bytes.count), destructor)
}

extension ChangeRecorder {
  /// Binds the recorded argument at `position`, which moves behind it; its bytes stay where they are until the statement is
  /// done.
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
