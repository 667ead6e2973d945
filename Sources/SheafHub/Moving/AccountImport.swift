import Crypto
package import Foundation
import SheafHubStore
package import SheafModel
import SheafWire

extension Hub {
  /// Makes an account of a file that ``exportAccount(zone:to:)`` wrote, here or on another hub. It is there when all of
  /// it is and has been checked, or not at all.
  ///
  /// - Parameter handle: The account's handle; nil for the one in the file.
  /// - Throws: ``HubError`` of kind `conflict` if the account or the handle is there, and of kind `invalid` for a file
  ///   that is none, or damaged.
  package func importAccount(from file: FileHandle, as handle: AccountHandle?) async throws -> AccountFileFacts {
    var reader = AccountFileReader(file: file)
    let head = try reader.head()
    guard let handle = handle ?? (try? AccountHandle(head.handle)) else {
      throw AccountFileReader.damaged("its handle is none")
    }
    let zone = head.zone
    if let name = head.name { _ = try CheckedText.name(name, upTo: 255) }
    try await database.write { connection in
      let known = try connection.query("SELECT zone FROM accounts WHERE zone = $1", [.text(zone)])
      guard known.isEmpty else { throw HubError(.conflict, "the account is on this hub already") }
      let taken = try connection.query(
        "SELECT zone FROM handles WHERE handle = $1", [.text(handle.description)])
      guard taken.isEmpty else { throw HubError(.conflict, "the handle \(handle) is taken; give another one") }
      // What an import left that was interrupted.
      try Zone.destroy(zone, in: &connection)
    }
    do {
      let chunks = try await importRows(of: head, &reader)
      let used = try await finish(head, handle, chunks)
      return AccountFileFacts(handle: handle.description, zone: zone, rows: reader.rows, bytes: used)
    } catch {
      try await database.write { connection in try Zone.destroy(zone, in: &connection) }
      throw error
    }
  }

  /// - Returns: the bytes of chunks.
  private func importRows(of head: AccountFile.Head, _ reader: inout AccountFileReader) async throws -> Int64 {
    var used: Int64 = 0
    while let step = try reader.step() {
      for (table, row) in step where table.name == "chunks" {
        guard let column = table.columns.firstIndex(of: "length"), case .integer(let length) = row[column],
          (1...Int64(WireLimits.chunkBytes)).contains(length)
        else { throw AccountFileReader.damaged("a chunk has no length") }
        used += length
      }
      for (table, row) in step where table.name == "epochs" {
        guard row[2] == .blob([]), case .integer(let events) = row[3], (0...head.events).contains(events) else {
          throw AccountFileReader.damaged("an epoch is of another log")
        }
      }
      do {
        try await database.write { connection in
          for (table, row) in step { try connection.insert(row, into: table) }
        }
      } catch HubStoreError.refused {
        throw AccountFileReader.damaged("a row is there twice, or lacks what it needs")
      }
    }
    return used
  }

  /// Makes the zone and checks it, and then makes the account.
  ///
  /// - Parameter chunks: Bytes of chunks.
  /// - Returns: the bytes that the zone has.
  private func finish(_ head: AccountFile.Head, _ handle: AccountHandle, _ chunks: Int64) async throws -> Int64 {
    let (zone, now) = (head.zone, clock.now)
    let used: Int64
    do {
      used = try await database.write { connection in chunks + (try DerivedRows.make(zone, &connection)) }
    } catch HubStoreError.corrupt(let reason) {
      throw AccountFileReader.damaged(reason)
    }
    _ = try await database.write { connection in
      // An epoch of its own: tokens of the hub that it comes from are of another time.
      try connection.execute(
        """
        INSERT INTO zones (zone, added, quota, used, number, horizon, events, epoch)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
          .text(zone), .integer(now.nanoseconds), .optional(head.quota), .integer(used), .integer(head.number),
          .integer(head.horizon), .integer(head.events), .blob(WireID().bytes),
        ])
      // Positions in the log of the hub that it comes from lead on here.
      try connection.execute(
        "INSERT INTO epochs (zone, epoch, share, events) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        [.text(zone), .blob([UInt8](head.epoch ?? Data())), .blob([]), .integer(head.events)])
    }
    let findings: [String]
    do {
      findings = try await Zone.check(zone, database)
      _ = try await events.page(after: .number(max(0, head.events - 1)), limit: 1, of: zone)
    } catch HubStoreError.corrupt(let reason) {
      throw AccountFileReader.damaged(reason)
    }
    if let finding = findings.first { throw AccountFileReader.damaged(finding) }
    try await database.write { connection in
      try Accounts.insert(handle, name: head.name, zone: zone, now: now, in: &connection)
    }
    return used
  }
}

/// Reads the lines of an account's file, and trusts none of them.
private struct AccountFileReader {
  /// Rows and bytes that one transaction stores.
  private static let stepRows = 500
  private static let stepBytes = 8 << 20

  private let file: FileHandle
  private let tables = Dictionary(uniqueKeysWithValues: AccountFile.tables.map { ($0.name, $0) })
  private var zone = ""
  private var buffer = Data()
  private var hash = SHA256()
  private var isEnded = false
  private(set) var rows = 0

  init(file: FileHandle) { self.file = file }

  static func damaged(_ reason: String) -> HubError {
    HubError(.invalid, "the file is no account's, or damaged: \(reason)")
  }

  mutating func head() throws -> AccountFile.Head {
    guard let line = try line() else { throw Self.damaged("it is empty") }
    let head: AccountFile.Head = try Self.decode(line)
    guard head.format == AccountFile.format, head.version == AccountFile.version,
      head.tables == tables.mapValues(\.columns)
    else { throw Self.damaged("another version of the program wrote it") }
    guard UUID(uuidString: head.zone)?.uuidString.lowercased() == head.zone,
      (0...ImportedRow.highest).contains(head.number), (0...head.number).contains(head.horizon),
      (0...ImportedRow.highest).contains(head.events), head.quota ?? 0 >= 0, head.epoch?.count == 16
    else { throw Self.damaged("its head is nonsense") }
    hash.update(data: line)
    zone = head.zone
    return head
  }

  /// Rows to store in one transaction; nil at the end, which has been compared with all before it.
  mutating func step() throws -> [(table: StoredTable, row: [SQLValue])]? {
    if isEnded { return nil }
    var step: [(table: StoredTable, row: [SQLValue])] = []
    var bytes = 0
    while step.count < Self.stepRows, bytes < Self.stepBytes {
      guard let line = try line() else { throw Self.damaged("its end is missing") }
      if line.starts(with: Data("{\"rows\"".utf8)) {
        try finish(try Self.decode(line))
        break
      }
      let row: AccountFile.Row = try Self.decode(line)
      let values = row.values.map(\.value)
      guard let table = tables[row.table], table.fits(values), values.first == .text(zone) else {
        throw Self.damaged("a row fits no table")
      }
      do {
        try ImportedRow.check(values, of: table)
      } catch let error as HubError {
        throw Self.damaged("a row of \(table.name) has \(error.detail)")
      } catch HubStoreError.corrupt(let reason) {
        throw Self.damaged("a row of \(table.name): \(reason)")
      }
      hash.update(data: line)
      bytes += line.count
      rows += 1
      step.append((table, values))
    }
    return step
  }

  private mutating func finish(_ end: AccountFile.End) throws {
    let text = Hexadecimal.text(of: hash.finalize())
    guard end.rows == rows, end.sha256 == text, try line() == nil else {
      throw Self.damaged("it is not what was written")
    }
    isEnded = true
  }

  private static func decode<Value: Decodable>(_ line: Data) throws -> Value {
    do {
      return try JSONText.decode(Value.self, line)
    } catch is HubError {
      throw damaged("a line is not what it should be")
    }
  }

  /// The next line with its newline; nil at the end.
  private mutating func line() throws -> Data? {
    var searched = buffer.startIndex
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(buffer[...end])
        buffer = buffer[buffer.index(after: end)...]
        return line
      }
      guard buffer.count <= AccountFile.longestLine else { throw Self.damaged("a line is too long") }
      searched = buffer.endIndex
      let read: Data?
      do {
        read = try file.read(upToCount: 1 << 20)
      } catch {
        throw Self.damaged("it cannot be read")
      }
      guard let more = read, !more.isEmpty else {
        if buffer.isEmpty { return nil }
        throw Self.damaged("its last line is not whole")
      }
      // Indices begin anew, since what is read is cut off at the front.
      let offset = buffer.distance(from: buffer.startIndex, to: searched)
      buffer = Data(buffer) + more
      searched = buffer.index(buffer.startIndex, offsetBy: offset)
    }
  }
}
