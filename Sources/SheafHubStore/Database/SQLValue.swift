/// A value of a row or of a placeholder.
package enum SQLValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case text(String)
  case blob([UInt8])

  package static func optional(_ value: Int64?) -> SQLValue { value.map { .integer($0) } ?? .null }
  package static func optional(_ value: String?) -> SQLValue { value.map { .text($0) } ?? .null }
  package static func optional(_ value: [UInt8]?) -> SQLValue { value.map { .blob($0) } ?? .null }

  /// - Throws: ``HubStoreError/nulInText``, on every engine alike.
  func check() throws {
    if case .text(let text) = self, text.utf8.contains(0) { throw HubStoreError.nulInText }
  }
}

/// One row of a result. Its getters throw ``HubStoreError/corrupt(_:)`` where a value is of another type.
package struct SQLRow: Sendable, Hashable {
  private let values: [SQLValue]

  package init(_ values: [SQLValue]) { self.values = values }

  package var count: Int { values.count }

  /// All its values in order.
  package var all: [SQLValue] { values }

  package func value(_ index: Int) throws -> SQLValue {
    guard values.indices.contains(index) else { throw HubStoreError.corrupt("a row has no column \(index)") }
    return values[index]
  }

  package func integer(_ index: Int) throws -> Int64 {
    guard case .integer(let value) = try value(index) else { throw wrongType(index, "an integer") }
    return value
  }

  package func text(_ index: Int) throws -> String {
    guard case .text(let value) = try value(index) else { throw wrongType(index, "a text") }
    return value
  }

  package func blob(_ index: Int) throws -> [UInt8] {
    guard case .blob(let value) = try value(index) else { throw wrongType(index, "a blob") }
    return value
  }

  package func optionalInteger(_ index: Int) throws -> Int64? { try isNull(index) ? nil : integer(index) }
  package func optionalText(_ index: Int) throws -> String? { try isNull(index) ? nil : text(index) }
  package func optionalBlob(_ index: Int) throws -> [UInt8]? { try isNull(index) ? nil : blob(index) }

  private func isNull(_ index: Int) throws -> Bool { try value(index) == .null }

  private func wrongType(_ index: Int, _ wanted: String) -> HubStoreError {
    .corrupt("column \(index) of a row is not \(wanted)")
  }
}
