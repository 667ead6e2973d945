internal import CPostgres
import Glibc

/// Why a transaction was not done, where it is not the body's own doing.
enum PostgresFailure: Error {
  /// The engine refused it for another transaction's sake; it may run again.
  case again
  /// The connection was lost before the commit was asked for, so nothing is done.
  case lost(String)
  /// The connection was lost while it was committed; it may be done.
  case lostAtCommit(String)
}

/// One connection to the engine, used by one thread at a time.
final class PostgresSession: @unchecked Sendable {
  /// A statement and the types that it was prepared with.
  private struct Key: Hashable {
    let text: UInt
    let types: [Oid]
  }

  private enum Types {
    static let integer: Oid = 20
    static let text: Oid = 25
    static let blob: Oid = 17
    /// The engine infers it.
    static let unknown: Oid = 0
  }

  /// What a transaction does.
  enum Access {
    case read
    case write

    fileprivate var begin: StaticString {
      switch self {
      case .read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
      case .write: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
      }
    }
  }

  private let handle: OpaquePointer
  private var prepared: [Key: String] = [:]
  /// The engine's error in the open transaction, even if the body caught it.
  private var failure: (any Error)?
  /// What the engine warned of since this was emptied.
  private var warning: String?

  /// - Throws: ``HubStoreError/unavailable(_:)`` where no connection can be made.
  init(target: String) throws {
    // Later parameters have precedence: the caller's string over the first ones, the encoding over that.
    let parameters: [(String, String)] = [
      ("application_name", "sheaf-hub"), ("connect_timeout", "5"), ("keepalives_idle", "5"),
      ("keepalives_interval", "5"), ("keepalives_count", "3"), ("tcp_user_timeout", "15000"), ("dbname", target),
      ("client_encoding", "UTF8"),
    ]
    let names = parameters.map { strdup($0.0) }
    let values = parameters.map { strdup($0.1) }
    defer { for text in names + values { free(text) } }
    let opened = PQconnectdbParams(
      names.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil], 1)
    guard let opened else { throw HubStoreError.unavailable("there is no memory for a connection") }
    guard PQstatus(opened) == CONNECTION_OK else {
      let reason = Self.line(PQerrorMessage(opened))
      PQfinish(opened)
      throw HubStoreError.unavailable(reason)
    }
    guard PQparameterStatus(opened, "server_encoding").map({ String(cString: $0) }) == "UTF8" else {
      PQfinish(opened)
      throw HubStoreError.unavailable("the database does not store UTF-8")
    }
    handle = opened
    // Otherwise the engine's remarks go to standard error.
    PQsetNoticeReceiver(
      opened,
      { session, result in
        guard let session else { return }
        Unmanaged<PostgresSession>.fromOpaque(session).takeUnretainedValue().hear(result)
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { PQfinish(handle) }

  /// Whether another transaction can begin on it.
  var isUsable: Bool { PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE }

  /// - Throws: ``PostgresFailure``, ``HubStoreError``, or what `body` throws; the transaction is rolled back.
  func transact<T>(_ access: Access, _ body: (inout any SQLConnection) throws -> T) throws -> T {
    failure = nil
    if access == .write { FaultPoint.begin.pass() }
    try run(access.begin)
    let value: T
    do {
      var connection: any SQLConnection = PostgresConnection(session: self, writes: access == .write)
      value = try body(&connection)
      // A body that went on after a failure must not be taken for done.
      if let failure { throw failure }
    } catch {
      let cause = failure ?? error
      if PQtransactionStatus(handle) != PQTRANS_IDLE { try? run("ROLLBACK") }
      throw cause
    }
    if access == .write { FaultPoint.commit.pass() }
    warning = nil
    do {
      try run("COMMIT")
    } catch PostgresFailure.lost(let reason) {
      throw PostgresFailure.lostAtCommit(reason)
    }
    // A commit whose wait for the standby was cancelled succeeds with a warning, and a standby that takes over may not
    // have it.
    if access == .write, let warning { throw PostgresFailure.lostAtCommit("PostgreSQL: \(warning)") }
    if access == .write { FaultPoint.committed.pass() }
    return value
  }

  /// Notes what the engine says beside its results.
  private func hear(_ result: OpaquePointer?) {
    let severity = PQresultErrorField(result, Int32(UInt8(ascii: "V"))).map { String(cString: $0) }
    if severity == "WARNING" { warning = Self.line(PQresultErrorField(result, Int32(UInt8(ascii: "M")))) }
  }

  fileprivate func query(_ sql: StaticString, _ values: [SQLValue]) throws -> (rows: [SQLRow], changed: Int) {
    try attempt { try perform(sql, values) }
  }

  fileprivate func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow] {
    try attempt {
      let types = values.map(Self.type)
      let result = try Self.withParameters(values) { pointers, lengths, formats in
        PQexecParams(handle, statement.text, Int32(values.count), types, pointers, lengths, formats, 1)
      }
      defer { PQclear(result) }
      try check(result)
      return try rows(of: result)
    }
  }

  private func attempt<T>(_ body: () throws -> T) throws -> T {
    if let failure { throw failure }
    do {
      return try body()
    } catch {
      failure = error
      throw error
    }
  }

  private func perform(_ sql: StaticString, _ values: [SQLValue]) throws -> (rows: [SQLRow], changed: Int) {
    let name = try prepare(sql, values.map(Self.type))
    let result = try Self.withParameters(values) { pointers, lengths, formats in
      PQexecPrepared(handle, name, Int32(values.count), pointers, lengths, formats, 1)
    }
    defer { PQclear(result) }
    try check(result)
    let changed = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    return (try rows(of: result), changed)
  }

  private func rows(of result: OpaquePointer?) throws -> [SQLRow] {
    let columns = PQnfields(result)
    return try (0..<PQntuples(result)).map { row in
      SQLRow(try (0..<columns).map { try Self.value(result, row, $0) })
    }
  }

  private func run(_ sql: StaticString) throws {
    let result = PQexec(handle, sql.description)
    defer { PQclear(result) }
    try check(result)
  }

  private func prepare(_ sql: StaticString, _ types: [Oid]) throws -> String {
    let key = Key(text: UInt(bitPattern: sql.utf8Start), types: types)
    if let name = prepared[key] { return name }
    let name = "s\(prepared.count)"
    let result = PQprepare(handle, name, sql.description, Int32(types.count), types)
    defer { PQclear(result) }
    try check(result)
    prepared[key] = name
    return name
  }

  private func check(_ result: OpaquePointer?) throws {
    let status = PQresultStatus(result)
    if status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK { return }
    let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))).map { String(cString: $0) } ?? ""
    let reason =
      "PostgreSQL: " + Self.line(PQresultErrorField(result, Int32(UInt8(ascii: "M"))) ?? PQerrorMessage(handle))
    switch state {
    case "40001", "40P01": throw PostgresFailure.again
    // Shutting down, starting up, or no longer the one that takes writes.
    case "57P01", "57P02", "57P03", "57P05", "25006": throw PostgresFailure.lost(reason)
    case "XX001", "XX002": throw HubStoreError.corrupt("\(reason) (\(state))")
    case _ where state.hasPrefix("08") || PQstatus(handle) != CONNECTION_OK: throw PostgresFailure.lost(reason)
    case "53100": throw HubStoreError.full("\(reason) (\(state))")
    // No connections, no memory, timed out, I/O errors.
    case _ where ["53", "55", "57", "58"].contains(String(state.prefix(2))):
      throw HubStoreError.unavailable("\(reason) (\(state))")
    default: throw HubStoreError.refused("\(reason) (\(state))")
    }
  }

  private static func line(_ text: UnsafePointer<CChar>?) -> String {
    let words = text.map { String(cString: $0) } ?? ""
    return words.split(separator: "\n").joined(separator: " ")
  }

  private static func type(_ value: SQLValue) -> Oid {
    switch value {
    case .null: Types.unknown
    case .integer: Types.integer
    case .text: Types.text
    case .blob: Types.blob
    }
  }

  /// The values in PostgreSQL's binary form.
  ///
  /// - Throws: as ``SQLValue/check()``.
  private static func withParameters<T>(
    _ values: [SQLValue],
    _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<Int32>, UnsafePointer<Int32>) -> T
  ) throws -> T {
    for value in values { try value.check() }
    var bytes: [UInt8] = []
    var places: [Range<Int>?] = []
    for value in values {
      let start = bytes.count
      switch value {
      case .null:
        places.append(nil)
        continue
      case .integer(let number): withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
      case .text(let text): bytes += text.utf8
      case .blob(let blob): bytes += blob
      }
      places.append(start..<bytes.count)
    }
    // An empty value needs a place, too.
    bytes.append(0)
    let lengths = places.map { Int32($0?.count ?? 0) }
    let formats = [Int32](repeating: 1, count: values.count)
    return bytes.withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { characters in
        let pointers = places.map { place in place.map { characters.baseAddress! + $0.lowerBound } }
        return body(pointers, lengths, formats)
      }
    }
  }

  private static func value(_ result: OpaquePointer?, _ row: Int32, _ column: Int32) throws -> SQLValue {
    if PQgetisnull(result, row, column) != 0 { return .null }
    let bytes = UnsafeRawBufferPointer(
      start: PQgetvalue(result, row, column), count: Int(PQgetlength(result, row, column)))
    switch PQftype(result, column) {
    case 20, 23, 21, 16:
      guard let first = bytes.first else { throw HubStoreError.corrupt("a number has no bytes") }
      let sign: Int64 = PQftype(result, column) != 16 && first >= 0x80 ? -1 : 0
      return .integer(bytes.reduce(sign) { $0 << 8 | Int64($1) })
    case 25, 1043, 19: return .text(String(decoding: bytes, as: UTF8.self))
    case 17: return .blob([UInt8](bytes))
    case let type: throw HubStoreError.corrupt("a row has a value of type \(type)")
    }
  }
}

/// A session's transaction as a body sees it.
private struct PostgresConnection: SQLConnection {
  let session: PostgresSession
  let writes: Bool

  mutating func query(_ sql: StaticString, _ values: [SQLValue]) throws -> [SQLRow] {
    if writes { FaultPoint.statement.pass() }
    return try session.query(sql, values).rows
  }

  mutating func execute(_ sql: StaticString, _ values: [SQLValue]) throws -> Int {
    if writes { FaultPoint.statement.pass() }
    return try session.query(sql, values).changed
  }

  mutating func query(_ statement: TableStatement, _ values: [SQLValue]) throws -> [SQLRow] {
    if writes { FaultPoint.statement.pass() }
    return try session.query(statement, values)
  }
  mutating func columns(of table: String) throws -> Set<String> {
    let rows = try query(
      """
      SELECT column_name::text FROM information_schema.columns
      WHERE table_schema = current_schema() AND table_name = $1
      """, [.text(table)])
    return Set(try rows.map { try $0.text(0) })
  }
}
