package import SheafModel

/// A row of `past_names`: a name that an item has no longer.
package struct PastNameRow: Hashable, Sendable {
  package let parent: Int64
  package let name: [UInt8]
  /// When the item lost the name.
  package let until: Timestamp
  package let item: Int64
  /// Since when the item had had it; 1970 where that was before anybody noted it.
  package let since: Timestamp
  /// The account that took the name from the item.
  package let actor: Int64

  package init(parent: Int64, name: [UInt8], until: Timestamp, item: Int64, since: Timestamp, actor: Int64) {
    self.parent = parent
    self.name = name
    self.until = until
    self.item = item
    self.since = since
    self.actor = actor
  }

  fileprivate init(_ row: Row) throws {
    parent = try row[0]
    name = try row.name(1)
    until = try Timestamp(nanoseconds: row[2])
    item = try row[3]
    since = try Timestamp(nanoseconds: row[4])
    actor = try row[5]
  }

  /// Whether the item had the name at `time`, after all changes of that moment.
  package func holds(at time: Timestamp) -> Bool { since <= time && time < until }
}

extension StoreTransaction {
  private static let columns = "parent, name, until, item, since, actor"
  // Built once: composing a text costs as much as running it.
  private static let insertion = "INSERT OR REPLACE INTO past_names (\(columns)) VALUES (?,?,?,?,?,?)"

  package func insert(_ name: PastNameRow) throws {
    try run(
      Self.insertion, name.parent, name.name, name.until.nanoseconds, name.item, name.since.nanoseconds, name.actor)
  }

  package func removePastName(_ parent: Int64, _ name: [UInt8], until: Timestamp, item: Int64) throws {
    try run(
      "DELETE FROM past_names WHERE parent = ? AND name = ? AND until = ? AND item = ?", parent, name,
      until.nanoseconds, item)
  }

  /// Names that items lost in a folder, by name and time, after `last` (nil for the first), `limit` of them at most.
  package func pastNames(in parent: Int64, after last: PastNameRow?, limit: Int) throws -> [PastNameRow] {
    try all(
      """
      SELECT \(Self.columns) FROM past_names WHERE parent = ? AND (name, until, item) > (?, ?, ?)
      ORDER BY name, until, item LIMIT ?
      """, parent, last?.name ?? [], last?.until.nanoseconds ?? .min, last?.item ?? .min, limit,
      decode: PastNameRow.init)
  }

  /// The first items that lost a name in a folder after `time`, `limit` of them at most.
  package func pastNames(
    in parent: Int64, name: [UInt8], after time: Timestamp, limit: Int
  ) throws -> [PastNameRow] {
    try all(
      "SELECT \(Self.columns) FROM past_names WHERE parent = ? AND name = ? AND until > ? ORDER BY until, item LIMIT ?",
      parent, name, time.nanoseconds, limit, decode: PastNameRow.init)
  }

  /// Names that an item lost after `time`, the latest first, `limit` of them at most.
  package func pastNames(of item: Int64, after time: Timestamp, limit: Int) throws -> [PastNameRow] {
    try all(
      "SELECT \(Self.columns) FROM past_names WHERE item = ? AND until > ? ORDER BY until DESC LIMIT ?", item,
      time.nanoseconds, limit, decode: PastNameRow.init)
  }

  /// As ``pastNames(of:after:limit:)``, the first ones first.
  package func pastNames(of item: Int64, firstAfter time: Timestamp, limit: Int) throws -> [PastNameRow] {
    try all(
      "SELECT \(Self.columns) FROM past_names WHERE item = ? AND until > ? ORDER BY until LIMIT ?", item,
      time.nanoseconds, limit, decode: PastNameRow.init)
  }

  /// The name that an item lost last up to `time`.
  package func lastPastName(of item: Int64, upTo time: Timestamp) throws -> PastNameRow? {
    try first(
      "SELECT \(Self.columns) FROM past_names WHERE item = ? AND until <= ? ORDER BY until DESC LIMIT 1", item,
      time.nanoseconds, decode: PastNameRow.init)
  }

  /// Passes all names that items lost to `body`.
  package func pastNames(_ body: (PastNameRow) throws -> Void) throws {
    try each("SELECT \(Self.columns) FROM past_names") {
      try body(PastNameRow($0))
      return true
    }
  }
}
