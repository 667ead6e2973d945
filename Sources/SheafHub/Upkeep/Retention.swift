package import SheafHubStore
import SheafModel
import SheafWire

/// For how long a hub keeps what is not current; nil for ever.
package struct RetentionRules: Hashable, Sendable, Codable {
  /// Days of versions.
  package var versionDays: Int64?
  /// Days of items that were deleted.
  package var deletedDays: Int64?

  /// Those of a hub that nobody told otherwise.
  package init(versionDays: Int64? = 365, deletedDays: Int64? = 30) {
    self.versionDays = versionDays
    self.deletedDays = deletedDays
  }

  /// The days that can be set.
  package static let days: ClosedRange<Int64> = 1...36_500
}

/// Thins versions, and lets deleted items expire, by the hub's clock.
package struct Retention: Sendable {
  private static let day: Int64 = 86_400 * 1_000_000_000
  private static let page: Int64 = 500
  /// Items that one transaction looks at, and versions of each.
  private static let step = 128
  private static let setting = "retention"

  /// All versions for a day, hourly ones for a week, daily ones for a month, and weekly ones for as long as any.
  private static let spans: [(age: Int64, interval: Int64)] = [
    (day, 0), (7 * day, day / 24), (30 * day, day), (.max, 7 * day),
  ]

  let database: any Database
  let clock: HubClock

  package init(database: any Database, clock: HubClock) {
    self.database = database
    self.clock = clock
  }

  // MARK: - Rules

  package func rules() async throws -> RetentionRules {
    try await database.read { connection in
      try connection.query("SELECT value FROM settings WHERE name = $1", [.text(Self.setting)]).first.map {
        try StoredZone.decoded($0.text(0))
      } ?? RetentionRules()
    }
  }

  /// - Throws: ``HubError`` of kind `invalid` for days that cannot be set.
  package func set(_ rules: RetentionRules) async throws {
    for days in [rules.versionDays, rules.deletedDays].compactMap({ $0 }) where !RetentionRules.days.contains(days) {
      throw HubError(.invalid, "\(days) days: 1 to \(RetentionRules.days.upperBound)")
    }
    let text = try StoredZone.encoded(rules)
    _ = try await database.write { connection in
      try connection.execute(
        """
        INSERT INTO settings (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """, [.text(Self.setting), .text(text)])
    }
  }

  // MARK: - Versions

  /// Forgets the versions of a zone that the rules do not keep.
  ///
  /// - Returns: how many.
  @discardableResult package func thin(_ zone: String, by rules: RetentionRules) async throws -> Int {
    var surplus = Surplus(now: clock.now.nanoseconds, span: rules.versionDays.map { $0 * Self.day })
    var last: (item: [UInt8], number: Int64) = ([], 0)
    var thinned = 0
    while true {
      let after = last
      let page = try await database.read { connection in
        try connection.query(
          """
          SELECT version, item, number, base, cause, time, arrived, size, digest FROM versions
          WHERE zone = $1 AND (item > $2 OR (item = $2 AND number > $3)) ORDER BY item, number LIMIT $4
          """, [.text(zone), .blob(after.item), .integer(after.number), .integer(Self.page)]
        ).map { try StoredZone.version($0, from: 0) }
      }
      for version in page { surplus.add(version) }
      var found = surplus.take()[...]
      while !found.isEmpty {
        let batch = Array(found)
        let (passed, count) = try await database.write { connection in
          try Self.forget(batch, of: zone, connection)
        }
        found = found.dropFirst(passed)
        thinned += count
      }
      guard page.count == Self.page, let end = page.last else { return thinned }
      last = (end.item.bytes, end.number)
    }
  }

  /// Forgets the first ones of some versions.
  ///
  /// - Returns: how many it has passed, and how many of those it forgot.
  private static func forget(
    _ versions: [WireID], of zone: String, _ connection: any SQLConnection
  ) throws -> (passed: Int, count: Int) {
    var connection = connection
    var head = try ZoneHead.take(zone, in: &connection)
    var stored = StoredZone(zone: zone, connection: connection)
    var finder = try ShareFinder(zone: zone, connection: connection)
    var (passed, count, budget) = (0, 0, StoredZone.chunkStep)
    for id in versions where budget > 0 {
      passed += 1
      budget -= 1
      guard let version = try stored.version(id), !version.isPurged, let row = try stored.item(version.item),
        row.version != id, try stored.labels(of: row.item)[id] == nil
      else { continue }
      // What members see as the oldest stays.
      if let standing = try finder.standing(of: row, in: &stored),
        version.number == (try SharedRows.firstVersion(of: row, standing, in: zone, &stored.connection))
      {
        continue
      }
      try stored.thin(version, &head, &budget)
      count += 1
    }
    try head.write(zone, in: &connection)
    return (passed, count)
  }

  /// Finds which versions are more than the rules keep, as they come in order.
  struct Surplus {
    private let now: Int64
    /// For how long any are kept; nil for ever.
    private let span: Int64?
    private var found: [WireID] = []
    private var item: WireID?
    /// When the version before was made.
    private var time: Int64 = .min
    /// The version before, which the next one of its time replaces, with that time.
    private var kept: (version: WireID, slot: [Int64])?
    private var previous: WireID?

    init(now: Int64, span: Int64?) {
      self.now = now
      self.span = span
    }

    /// - Parameter version: The next one of its item, or the first one of another item.
    mutating func add(_ version: VersionRow) {
      if item != version.item { (item, time, kept) = (version.item, .min, nil) }
      // No author's clock makes a version older than the one before it, or newer than its arrival.
      time = max(time, min(version.time, version.arrived))
      if version.isPurged { return }
      let age = now.subtractingReportingOverflow(time)
      if age.overflow || (span.map { age.partialValue >= $0 } ?? false) {
        found.append(version.id)
        return kept = nil
      }
      let index = Retention.spans.firstIndex { age.partialValue < $0.age } ?? Retention.spans.count - 1
      let interval = Retention.spans[index].interval
      guard interval > 0 else { return kept = nil }
      let slot = [Int64(index), time / interval]
      // Of each time the newest one is kept.
      if let kept, kept.slot == slot { found.append(kept.version) }
      kept = (version.id, slot)
    }

    /// What was found since the last time.
    mutating func take() -> [WireID] {
      defer { found = [] }
      return found
    }
  }

  // MARK: - Deleted items

  /// Forgets the contents of items that were deleted longer ago than the rules keep such.
  package func expire(_ zone: String, by rules: RetentionRules) async throws {
    guard let days = rules.deletedDays else { return }
    let limit = clock.now.nanoseconds - days * Self.day
    while true {
      let isDone = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        let isDone = try Self.expire(zone, before: limit, &head, &connection)
        try head.write(zone, in: &connection)
        return isDone
      }
      if isDone { return }
    }
  }

  /// - Returns: whether nothing is left that expired.
  private static func expire(
    _ zone: String, before limit: Int64, _ head: inout ZoneHead, _ connection: inout any SQLConnection
  ) throws -> Bool {
    var stored = StoredZone(zone: zone, connection: connection)
    var budget = StoredZone.chunkStep
    let items = try connection.query(
      "SELECT item FROM items WHERE zone = $1 AND deleted < $2 AND version IS NOT NULL ORDER BY number LIMIT $3",
      [.text(zone), .integer(limit), .integer(Int64(Self.step))]
    ).map { try StoredZone.id($0.blob(0)) }
    for item in items {
      // The current one, with which it could come back, goes last.
      let versions = try stored.contents(of: item, limit: Int64(Self.step))
      for version in versions {
        guard budget > 0 else { return false }
        try stored.thin(version, &head, &budget)
      }
      guard versions.count < Self.step else { return false }
      try connection.execute(
        "UPDATE items SET version = NULL WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.bytes)])
    }
    return items.count < Self.step
  }
}
