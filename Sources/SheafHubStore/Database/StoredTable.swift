import Foundation

/// A table as its `CREATE TABLE` defines it, for what copies rows and does not ask what they mean.
///
/// ```swift
/// var page = try connection.page(of: table, zone: zone, after: nil, limit: 500)
/// ```
package struct StoredTable: Sendable, Hashable {
  package enum ColumnType: String, Sendable {
    case integer = "BIGINT"
    case text = "TEXT"
    case blob = "BYTEA"

    /// What comes before every other value.
    fileprivate var least: SQLValue {
      switch self {
      case .integer: .integer(.min)
      case .text: .text("")
      case .blob: .blob([])
      }
    }
  }

  package let name: String
  package let columns: [String]
  private let types: [ColumnType]
  /// The columns of the key, as indices.
  private let key: [Int]
  private let statements: Statements

  private struct Statements: Sendable, Hashable {
    let page: TableStatement
    let insert: TableStatement
  }

  /// Whether its rows are those of zones: then `zone` is its first column.
  package var isOfZones: Bool { columns.first == "zone" }

  /// - Returns: nil for a statement that makes no table.
  package init?(_ definition: StaticString) {
    let text = definition.description
    guard let head = text.prefixMatch(of: /CREATE TABLE IF NOT EXISTS (\w+) \(/) else { return nil }
    name = String(head.1)
    var (columns, types, key): ([String], [ColumnType], [String]) = ([], [], [])
    for match in text[head.range.upperBound...].matches(of: /(?m)^\s*([a-z]\w*) (BIGINT|TEXT|BYTEA)\b([^,]*)/) {
      guard let type = ColumnType(rawValue: String(match.2)) else { return nil }
      columns.append(String(match.1))
      types.append(type)
      if match.3.contains("PRIMARY KEY") { key = [String(match.1)] }
    }
    if let match = text.firstMatch(of: /PRIMARY KEY \(([\w, ]+)\)/) {
      key = match.1.split(separator: ", ").map(String.init)
    }
    let indices = key.compactMap { columns.firstIndex(of: $0) }
    guard !indices.isEmpty, indices.count == key.count else { return nil }
    (self.columns, self.types, self.key) = (columns, types, indices)
    statements = Self.statements(name, columns, key)
  }

  private static func statements(_ name: String, _ columns: [String], _ key: [String]) -> Statements {
    let list = columns.joined(separator: ", ")
    let places = columns.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
    let insert = "INSERT INTO \(name) (\(list)) VALUES (\(places))"
    // Rows of a zone, after one of them by the rest of the key; rows of no zone, after one by the whole key.
    let isOfZones = columns.first == "zone"
    let rest = isOfZones ? Array(key.dropFirst()) : key
    var (conditions, next) = (isOfZones ? ["zone = $1"] : [], isOfZones ? 2 : 1)
    if !rest.isEmpty {
      let values = rest.indices.map { "$\(next + $0)" }.joined(separator: ", ")
      conditions.append("(\(rest.joined(separator: ", "))) > (\(values))")
      next += rest.count
    }
    let order = rest.isEmpty ? "" : " ORDER BY \(rest.joined(separator: ", "))"
    let page = "SELECT \(list) FROM \(name) WHERE \(conditions.joined(separator: " AND "))\(order) LIMIT $\(next)"
    return Statements(page: TableStatement(page), insert: TableStatement(insert))
  }

  /// Whether a row's values can stand in the columns.
  package func fits(_ row: [SQLValue]) -> Bool {
    row.count == types.count
      && zip(row, types).allSatisfy { value, type in
        switch (value, type) {
        case (.null, _), (.integer, .integer), (.text, .text), (.blob, .blob): true
        default: false
        }
      }
  }

  fileprivate func page(
    zone: String?, after row: SQLRow?, limit: Int, _ connection: inout some SQLConnection
  ) throws -> [SQLRow] {
    let rest = isOfZones ? Array(key.dropFirst()) : key
    // A table with one row a zone has no second page.
    if row != nil, rest.isEmpty { return [] }
    let start = try rest.map { try row?.value($0) ?? types[$0].least }
    let values = (isOfZones ? [.text(zone ?? "")] : []) + start + [.integer(Int64(limit))]
    return try connection.query(statements.page, values)
  }

  fileprivate func insert(_ row: [SQLValue], _ connection: inout some SQLConnection) throws {
    try connection.query(statements.insert, row)
  }
}

/// A statement that a ``StoredTable`` has made of its own names: nothing from outside is part of it.
package struct TableStatement: Sendable, Hashable {
  let text: String

  fileprivate init(_ text: String) { self.text = text }
}

extension SQLConnection {
  /// Rows of a table in the order of their keys: those of a zone, or all of a table that has no zones.
  ///
  /// - Parameter row: The row that they come after; nil for the first ones.
  package mutating func page(
    of table: StoredTable, zone: String?, after row: SQLRow?, limit: Int
  ) throws -> [SQLRow] {
    try table.page(zone: zone, after: row, limit: limit, &self)
  }

  /// Stores a row that is not there yet.
  package mutating func insert(_ row: [SQLValue], into table: StoredTable) throws {
    try table.insert(row, &self)
  }
}
