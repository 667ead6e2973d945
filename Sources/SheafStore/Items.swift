package import Foundation
internal import Glibc
internal import Synchronization
package import SheafModel

/// The kind of an item.
package enum ItemKind: Int64, Sendable {
  case document = 1
  case folder = 2
  case symbolicLink = 3

  /// The word of the API: `document`, `folder`, `symlink`.
  package var word: String {
    switch self {
    case .document: "document"
    case .folder: "folder"
    case .symbolicLink: "symlink"
    }
  }
}

/// A row of `items`: the identity that outlives inodes.
package struct ItemRow: Hashable, Sendable {
  package let id: Int64
  package let uuid: UUID
  package let kind: ItemKind
  package var owner: Int64
  /// The account that made it.
  package let creator: Int64
  package let created: Timestamp
  /// When it was moved into the share that it is in; nil where it was made there, or is in none.
  package var entered: Timestamp?
  /// Number of the current version; 0 before any.
  package var version: Int64
  /// Highest number ever given.
  package var lastVersion: Int64
  /// Whether it is a temporary, lock or backup file that no event speaks of.
  package var isQuiet = false
  /// Number of the version that the current one was not based on; nil where there is none.
  package var conflict: Int64?

  package init(id: Int64, uuid: UUID, kind: ItemKind, owner: Int64, creator: Int64, created: Timestamp) {
    self.id = id
    self.uuid = uuid
    self.kind = kind
    self.owner = owner
    self.creator = creator
    self.created = created
    version = 0
    lastVersion = 0
  }

  fileprivate init(_ row: Row) throws {
    id = try row[0]
    uuid = try row.uuid(1)
    guard let kind = ItemKind(rawValue: try row[2]) else {
      throw SheafError(
        .corrupt, subject: "item \(id)", reason: "has the kind \(try row[2] as Int64), which is none",
        advice: "run sheaf check")
    }
    self.kind = kind
    owner = try row[3]
    created = try Timestamp(nanoseconds: row[4])
    version = try row[5]
    lastVersion = try row[6]
    guard version >= 0, version <= lastVersion, lastVersion < StoreTransaction.numberLimit else {
      throw SheafError(
        .corrupt, subject: "item \(id)", reason: "has versions up to \(lastVersion)", advice: "run sheaf check")
    }
    isQuiet = try row[7] as Int64 != 0
    creator = try row[8]
    entered = try (row[9] as Int64?).map { Timestamp(nanoseconds: $0) }
    conflict = try row[10]
  }
}

extension ItemRow {
  /// When it was made. Older programs noted when what was made on another machine came to this one.
  package var made: Timestamp { min(created, uuid.time ?? created) }
}

extension UUID {
  /// - Parameter bytes: 16 bytes.
  package init(bytes: [UInt8]) {
    self = bytes.withUnsafeBytes { raw in
      var uuid = nullUUID
      withUnsafeMutableBytes(of: &uuid) { $0.copyBytes(from: raw.prefix(16)) }
      return UUID(uuid: uuid)
    }
  }

  /// A time-ordered UUID (RFC 9562, version 7), so that new rows of its index lie together.
  package static func timeOrdered(_ time: Timestamp) -> UUID {
    var bytes = RandomBytes.next()
    let milliseconds = UInt64(max(0, time.nanoseconds / 1_000_000))
    for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: milliseconds >> UInt64(40 - 8 * index)) }
    bytes[6] = 0x70 | (bytes[6] & 0x0F)
    bytes[8] = 0x80 | (bytes[8] & 0x3F)
    return UUID(bytes: bytes)
  }

  /// The time in a time-ordered UUID, to milliseconds; nil in others, and for a time past the year 2262.
  package var time: Timestamp? {
    let bytes = bytes
    guard bytes[6] & 0xF0 == 0x70 else { return nil }
    let milliseconds = bytes[..<6].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    let (nanoseconds, isPast) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
    return isPast ? nil : Timestamp(nanoseconds: nanoseconds)
  }

  /// The 16 bytes, as stored.
  package var bytes: [UInt8] { withUnsafeBytes(of: uuid) { Array($0) } }

  /// The text of `user.sheaf.id`: lower case.
  package var text: String {
    // Written by hand, since every new file costs one.
    String(unsafeUninitializedCapacity: 36) { buffer in
      var place = 0
      withUnsafeBytes(of: uuid) { bytes in
        for (index, byte) in bytes.enumerated() {
          if [4, 6, 8, 10].contains(index) {
            buffer[place] = UInt8(ascii: "-")
            place += 1
          }
          for digit in [byte >> 4, byte & 15] {
            buffer[place] = digit < 10 ? 48 + digit : 87 + digit
            place += 1
          }
        }
      }
      return place
    }
  }
}

/// Bytes of the system's generator, many fetched at once: getentropy(3) costs more than the rest of a UUID.
private enum RandomBytes {
  private static let stock = Mutex<ArraySlice<UInt8>>([])

  /// 16 bytes that were not given before.
  static func next() -> [UInt8] {
    stock.withLock { stock in
      if stock.count < 16 {
        stock =
          [UInt8](unsafeUninitializedCapacity: 256) { buffer, count in
            count = getentropy(buffer.baseAddress!, 256) == 0 ? 256 : 0
          }[...]
        precondition(stock.count == 256, "getentropy(3) gives up to 256 bytes whole")
      }
      defer { stock = stock.dropFirst(16) }
      return Array(stock.prefix(16))
    }
  }
}

private let nullUUID: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

extension StoreTransaction {
  private static let columns =
    "id, uuid, kind, owner, created, version, last_version, quiet, creator, entered, conflict"
  // Built once: composing a text costs as much as running it.
  private static let itemByID = "SELECT \(columns) FROM items WHERE id = ?"
  private static let itemInsertion = "INSERT INTO items (\(columns)) VALUES (?,?,?,?,?,?,?,?,?,?,?)"

  package func item(_ id: Int64) throws -> ItemRow? {
    // A change of a file asks for its item several times.
    try known(connection.known?.items, id, Self.itemByID, id, decode: ItemRow.init).map(current)
  }

  package func item(uuid: UUID) throws -> ItemRow? {
    try first("SELECT \(Self.columns) FROM items WHERE uuid = ?", uuid.bytes) { current(try ItemRow($0)) }
  }

  package func insert(_ item: ItemRow) throws {
    try change(
      Self.itemInsertion,
      item.id, item.uuid, item.kind.rawValue, item.owner, item.created.nanoseconds, item.version,
      item.lastVersion, item.isQuiet ? 1 : 0, item.creator, item.entered?.nanoseconds, item.conflict
    ) { $0.items.note(item.id, item) }
  }

  /// Ids of the documents that have a conflict, the deleted ones included.
  package func itemsWithConflicts() throws -> [Int64] {
    try all("SELECT id FROM items WHERE conflict IS NOT NULL") { try $0[0] as Int64 }
  }

  /// Writes what changes of an item. Its owner changes with those of its whole tree alone
  /// (``follow(_:inos:items:)``).
  package func update(_ item: ItemRow) throws {
    try change(
      "UPDATE items SET version = ?, last_version = ?, quiet = ?, entered = ?, conflict = ? WHERE id = ?",
      item.version, item.lastVersion, item.isQuiet ? 1 : 0, item.entered?.nanoseconds, item.conflict,
      item.id
    ) { known in known.items.noteChange(item.id) { $0 = item } }
  }

  /// Gives an item another UUID, which no item has.
  package func setUUID(_ uuid: UUID, ofItem id: Int64) throws {
    try change("UPDATE items SET uuid = ? WHERE id = ?", uuid.bytes, id) { $0.items.forget(id) }
  }

  /// Removes the item, its versions and past names; its pending events must be removed before, by their numbers.
  package func deleteItem(_ id: Int64) throws {
    try change("DELETE FROM versions WHERE item = ?", id) { known in
      if case .some(.some(let item)) = known.items[id], item.lastVersion <= 16 {
        for number in 0...item.lastVersion { known.versions.note(VersionKey(item: id, number: number), nil) }
      } else {
        known.versions.forgetAll()
      }
    }
    try change("DELETE FROM items WHERE id = ?", id) { $0.items.note(id, nil) }
    try run("DELETE FROM past_names WHERE item = ?", id)
    // The highest number is not given again: events still tell of the item that had it.
    try run(
      """
      INSERT INTO settings (key, value) SELECT 'itemsBefore', ?1 WHERE NOT EXISTS (SELECT 1 FROM items WHERE id > ?1)
        ON CONFLICT DO UPDATE SET value = max(value, excluded.value)
      """, id)
  }
}
