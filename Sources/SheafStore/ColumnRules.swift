internal import GRDBSQLite
internal import SheafModel

/// What a table's statement says of its rows: types, NOT NULL and CHECK.
///
/// SQLite sees to it when it writes a row, so only a damaged or crafted file breaks it. Its `integrity_check` names no
/// rows, and passes over CHECK on a connection that only reads: such a connection does not even parse it.
struct ColumnRules {
  private struct Rule {
    let name: String
    /// The condition of a row that breaks it.
    let isBroken: String
    /// Whether a row that breaks it has values that cannot be read.
    let isOfType: Bool
  }

  /// What was found.
  struct Findings {
    var problems: [String] = []
    /// Whether every value has the type of its column.
    var isReadable = true
  }

  private let table: String
  private let rules: [Rule]
  /// The expression for the text that names a row.
  private let subject: String

  /// Looks for rows of all tables; of each rule some of those that break it are told.
  static func findings(_ rows: StoreTransaction) throws -> Findings {
    var findings = Findings()
    for table in try tables() {
      do {
        try table.look(rows, &findings)
      } catch let error as SQLiteError where error.code & 0xFF == SQLITE_CORRUPT {
        findings.problems.append("\(table.table): a part of the table cannot be read")
      }
    }
    return findings
  }

  /// The tables of a new library, whose statements a library has that was opened.
  private static func tables() throws -> [ColumnRules] {
    let connection = try Connection(path: ":memory:")
    defer { connection.close() }
    for migration in Schema.migrations { try connection.execute(migration) }
    let rows = StoreTransaction(connection)
    return try rows.all("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid") {
      (name: try $0[0] as String, statement: try $0[1] as String)
    }.map { try ColumnRules($0.name, $0.statement, rows) }
  }

  private init(_ table: String, _ statement: String, _ rows: StoreTransaction) throws {
    let columns = try rows.all(
      "SELECT name, type, \"notnull\" OR pk, pk FROM pragma_table_info(?) ORDER BY pk", table
    ) { (name: try $0[0] as String, type: try $0[1] as String, isNeeded: try $0[2] as Bool, key: try $0[3] as Int) }
    self.table = table
    let types = columns.compactMap { column -> Rule? in
      // NULL is a type as well.
      let type = "typeof(\"\(column.name)\")"
      let condition: String? =
        switch (column.type, column.isNeeded) {
        case ("ANY", true): "\(type) = 'null'"
        case ("ANY", false): nil
        case (_, true): "\(type) <> '\(column.type.lowercased())'"
        case (_, false): "\(type) NOT IN ('\(column.type.lowercased())', 'null')"
        }
      let name = "\(table).\(column.name) is \(column.type)\(column.isNeeded ? "" : " or NULL")"
      return condition.map { Rule(name: name, isBroken: $0, isOfType: true) }
    }
    let checks = Self.constraints(of: statement).map {
      Rule(name: "\(table): CHECK (\($0))", isBroken: "NOT (\($0))", isOfType: false)
    }
    rules = types + checks
    // Who knows a token may join, so a link is told by its share.
    let key = columns.filter { $0.key > 0 }.map { $0.name == "token" ? "share" : $0.name }
    // A damaged value may be of any length.
    subject =
      key.map { "CASE typeof(\"\($0)\") WHEN 'integer' THEN \"\($0)\" ELSE quote(substr(\"\($0)\", 1, 64)) END" }
      .joined(separator: " || ', ' || ")
  }

  /// The expressions of the CHECK constraints in a table's statement, which quotes nothing.
  private static func constraints(of statement: String) -> [String] {
    statement.split(separator: "CHECK (").dropFirst().map { rest in
      var depth = 1
      let expression = rest.prefix { character in
        if character == "(" { depth += 1 }
        if character == ")" { depth -= 1 }
        return depth > 0
      }
      return String(expression)
    }
  }

  private func look(_ rows: StoreTransaction, _ findings: inout Findings) throws {
    // One pass is enough for a sound table. An index may have other values than the table.
    let isAnyBroken = rules.map { "(\($0.isBroken))" }.joined(separator: " OR ")
    guard try rows.first("SELECT 1 FROM \(table) NOT INDEXED WHERE \(isAnyBroken)", decode: { _ in true }) != nil
    else { return }
    for rule in rules {
      let broken = try rows.all(
        "SELECT '(' || \(subject) || ')' FROM \(table) NOT INDEXED WHERE \(rule.isBroken) LIMIT 20"
      ) { try $0[0] as String }
      findings.problems += broken.map { "\(rule.name): not so for \($0)" }
      if rule.isOfType, !broken.isEmpty { findings.isReadable = false }
    }
  }
}
