import Crypto
package import Foundation
import SheafHubStore
import SheafWire

extension Hub {
  /// Writes an account as it is at one moment to a file, from its beginning.
  ///
  /// - Throws: ``HubError`` of kind `notFound`; what writing throws.
  package func exportAccount(zone: String, to file: FileHandle) async throws -> AccountFileFacts {
    let now = clock.now
    try await transfers.settle(zone)
    return try await database.read { connection in
      // The engine may have the body run again.
      try file.truncate(atOffset: 0)
      var writer = AccountFileWriter(file: file)
      let head = try ZoneHead.read(zone, in: &connection)
      let rows = try connection.query("SELECT handle, name FROM accounts WHERE zone = $1", [.text(zone)])
      guard let row = rows.first else { throw HubError(.notFound, "there is no such account") }
      let handle = try row.text(0)
      try writer.write(
        AccountFile.Head(
          format: AccountFile.format, version: AccountFile.version, handle: handle, name: try row.optionalText(1),
          zone: zone, quota: head.quota, number: head.number, horizon: head.horizon, events: head.events,
          epoch: Data(head.epoch), exported: now.secondsText,
          tables: Dictionary(uniqueKeysWithValues: AccountFile.tables.map { ($0.name, $0.columns) })))
      for table in AccountFile.tables {
        var last: SQLRow?
        while true {
          let limit = HubTables.pageLength(of: table)
          let page = try connection.page(of: table, zone: zone, after: last, limit: limit)
          // Shares stay, and so do the epochs of their logs.
          for row in page where try table.name != "epochs" || row.blob(2).isEmpty {
            try writer.write(AccountFile.Row(table: table.name, values: row.all.map(AccountFile.Value.init)))
          }
          last = page.last
          if page.count < limit { break }
        }
      }
      try writer.end()
      return AccountFileFacts(handle: handle, zone: zone, rows: writer.rows, bytes: head.used)
    }
  }
}

/// Writes the lines of an account's file.
private struct AccountFileWriter {
  private static let bufferLimit = 1 << 20

  private let file: FileHandle
  private let encoder = JSONEncoder()
  private var hash = SHA256()
  private var buffer = Data()
  private(set) var rows = 0

  init(file: FileHandle) {
    self.file = file
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  }

  mutating func write(_ head: AccountFile.Head) throws { try line(head) }

  mutating func write(_ row: AccountFile.Row) throws {
    try line(row)
    rows += 1
  }

  /// Writes the end; nothing comes after it.
  mutating func end() throws {
    let text = Hexadecimal.text(of: hash.finalize())
    try line(AccountFile.End(rows: rows, sha256: text))
    try file.write(contentsOf: buffer)
    try file.synchronize()
  }

  private mutating func line(_ value: some Encodable) throws {
    var data = try encoder.encode(value)
    data.append(UInt8(ascii: "\n"))
    hash.update(data: data)
    buffer += data
    if buffer.count >= Self.bufferLimit {
      try file.write(contentsOf: buffer)
      buffer = Data()
    }
  }
}
