import Crypto
import SheafHubStore

/// The tables of a hub, for what copies rows and does not ask what they mean.
enum HubTables {
  static let statements =
    AccountTables.statements + ZoneTables.statements + ShareTables.statements + TransferTables.statements
    + FederationTables.statements

  static let all = statements.compactMap { StoredTable($0) }

  /// Those whose rows are those of zones. `zones` and `accounts` come last, so that a copy of a zone is whole once it
  /// has them.
  static let ofZones: [StoredTable] = {
    let tables = all.filter(\.isOfZones)
    let last = ["zones", "accounts"]
    return tables.filter { !last.contains($0.name) } + last.compactMap { name in tables.first { $0.name == name } }
  }()

  /// What leads to zones.
  static let directories = all.filter { !$0.isOfZones && $0.name != "secrets" }

  /// Rows of a page. Contents are read a few at a time, since each has up to 4 MiB.
  static func pageLength(of table: StoredTable) -> Int { table.name == "chunk_bytes" ? 8 : 500 }
}

/// What is equal for equal sets of rows, in whatever order each engine has them.
struct RowDigest: Hashable, Sendable {
  private(set) var count = 0
  private var bytes = [UInt8](repeating: 0, count: SHA256.byteCount)

  mutating func add(_ row: SQLRow) {
    var hash = SHA256()
    func add(_ tag: UInt8, _ bytes: some Collection<UInt8>) {
      hash.update(data: [tag])
      withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hash.update(bufferPointer: $0) }
      hash.update(data: Array(bytes))
    }
    for value in row.all {
      switch value {
      case .null: add(0, [])
      case .integer(let value): withUnsafeBytes(of: value.bigEndian) { add(1, Array($0)) }
      case .text(let value): add(2, Array(value.utf8))
      case .blob(let value): add(3, value)
      }
    }
    for (index, byte) in hash.finalize().enumerated() { bytes[index] ^= byte }
    count += 1
  }

  /// Of the rows of a table: those of a zone, or all of a directory.
  static func of(_ table: StoredTable, zone: String?, in database: any Database) async throws -> RowDigest {
    var digest = RowDigest()
    var last: SQLRow?
    while true {
      let (after, limit) = (last, HubTables.pageLength(of: table))
      let rows = try await database.read { connection in
        try connection.page(of: table, zone: zone, after: after, limit: limit)
      }
      for row in rows { digest.add(row) }
      last = rows.last
      if rows.count < limit { return digest }
    }
  }
}
