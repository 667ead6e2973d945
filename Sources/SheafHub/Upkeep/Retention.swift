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

/// Thins versions, and lets deleted items expire, by the hub's clock and by what their folders say (``FolderSpans``).
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
    try await database.read { connection in try Self.rules(&connection) }
  }

  static func rules(_ connection: inout any SQLConnection) throws -> RetentionRules {
    try connection.query("SELECT value FROM settings WHERE name = $1", [.text(Self.setting)]).first.map {
      try StoredZone.decoded($0.text(0))
    } ?? RetentionRules()
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

  /// Forgets the versions of a zone that neither their folders keep nor, where those say nothing, the rules.
  ///
  /// - Returns: how many.
  @discardableResult package func thin(_ zone: String, by rules: RetentionRules) async throws -> Int {
    let span = rules.versionDays.map { $0 * Self.day }
    var surplus = Surplus(now: clock.now.nanoseconds, span: span)
    var last: (item: [UInt8], number: Int64) = ([], 0)
    var thinned = 0
    while true {
      let after = last
      let (page, said) = try await database.read { connection in
        let page = try connection.query(
          """
          SELECT version, item, number, base, cause, time, arrived, size, digest FROM versions
          WHERE zone = $1 AND (item > $2 OR (item = $2 AND number > $3)) ORDER BY item, number LIMIT $4
          """, [.text(zone), .blob(after.item), .integer(after.number), .integer(Self.page)]
        ).map { try StoredZone.version($0, from: 0) }
        return (page, try Self.keptSpans(of: page, in: zone, by: rules, &connection))
      }
      for version in page {
        surplus.span = said[version.item] ?? span
        surplus.add(version)
      }
      var found = surplus.take()[...]
      while !found.isEmpty {
        let batch = Array(found)
        let (passed, count) = try await database.write { connection in
          try Self.forget(batch, of: zone, by: rules, said, connection)
        }
        found = found.dropFirst(passed)
        thinned += count
      }
      guard page.count == Self.page, let end = page.last else { return thinned }
      last = (end.item.bytes, end.number)
    }
  }

  /// For how long the versions of some items are kept; empty where no folder of the zone says anything.
  private static func keptSpans(
    of versions: [VersionRow], in zone: String, by rules: RetentionRules, _ connection: inout any SQLConnection
  ) throws -> [WireID: Int64] {
    var spans = try FolderSpans(of: zone, by: rules, &connection)
    if spans.isEmpty { return [:] }
    var stored = StoredZone(zone: zone, connection: connection)
    var found: [WireID: Int64] = [:]
    for version in versions where found[version.item] == nil {
      guard let row = try stored.item(version.item) else { continue }
      found[version.item] = try spans.versions(row, &stored)
    }
    return found
  }

  /// Forgets the first ones of some versions, but none of an item that is to be kept for another time than it was when
  /// they were found.
  ///
  /// - Parameter said: For how long that was, where a folder said so.
  /// - Returns: how many it has passed, and how many of those it forgot.
  private static func forget(
    _ versions: [WireID], of zone: String, by rules: RetentionRules, _ said: [WireID: Int64],
    _ connection: any SQLConnection
  ) throws -> (passed: Int, count: Int) {
    var connection = connection
    var head = try ZoneHead.take(zone, in: &connection)
    var spans = try FolderSpans(of: zone, by: rules, &connection)
    let rule = rules.versionDays.map { $0 * day } ?? FolderSpans.forever
    var stored = StoredZone(zone: zone, connection: connection)
    var finder = try ShareFinder(zone: zone, connection: connection)
    var (passed, count, budget) = (0, 0, StoredZone.chunkStep)
    for id in versions where budget > 0 {
      passed += 1
      budget -= 1
      guard let version = try stored.version(id), !version.isPurged, let row = try stored.item(version.item),
        row.version != id, try stored.labels(of: row.item)[id] == nil,
        try spans.versions(row, &stored) == said[row.item] ?? rule
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
    /// For how long any of the item that comes next are kept; nil for ever.
    var span: Int64?
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

  /// Forgets the contents of items that were deleted longer ago than their folders keep such or, where those say nothing,
  /// the rules.
  package func expire(_ zone: String, by rules: RetentionRules) async throws {
    let now = clock.now.nanoseconds
    var last: Int64? = 0
    while let after = last {
      last = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        let last = try Self.expire(zone, by: rules, at: now, after: after, &head, &connection)
        try head.write(zone, in: &connection)
        return last
      }
    }
  }

  /// - Parameter number: Items up to this number are done.
  /// - Returns: the number up to which they are done then; nil if nothing is left that expired.
  private static func expire(
    _ zone: String, by rules: RetentionRules, at now: Int64, after number: Int64, _ head: inout ZoneHead,
    _ connection: inout any SQLConnection
  ) throws -> Int64? {
    var spans = try FolderSpans(of: zone, by: rules, &connection)
    let limit = now.subtractingReportingOverflow(spans.shortestDeleted)
    if limit.overflow || spans.shortestDeleted == FolderSpans.forever { return nil }
    var stored = StoredZone(zone: zone, connection: connection)
    var budget = StoredZone.chunkStep
    let items = try connection.query(
      """
      SELECT item, number FROM items WHERE zone = $1 AND deleted < $2 AND version IS NOT NULL AND number > $3
      ORDER BY number LIMIT $4
      """, [.text(zone), .integer(limit.partialValue), .integer(number), .integer(Int64(step))]
    ).map { (id: try StoredZone.id($0.blob(0)), number: try $0.integer(1)) }
    var done = number
    for item in items {
      var isDue = true
      if !spans.isEmpty { isDue = try hasExpired(item.id, at: now, &spans, &stored) }
      if isDue {
        // The current one, with which it could come back, goes last.
        let versions = try stored.contents(of: item.id, limit: Int64(step))
        for version in versions {
          guard budget > 0 else { return done }
          try stored.thin(version, &head, &budget)
        }
        guard versions.count < step else { return done }
        try connection.execute(
          "UPDATE items SET version = NULL WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.id.bytes)])
      }
      done = item.number
    }
    return items.count < step ? nil : done
  }

  /// Whether an item was deleted longer ago than its folder keeps it.
  private static func hasExpired(
    _ item: WireID, at now: Int64, _ spans: inout FolderSpans, _ stored: inout StoredZone
  ) throws -> Bool {
    guard let row = try stored.item(item), let deleted = row.deleted else { return false }
    let span = try spans.deleted(row, &stored)
    let limit = now.subtractingReportingOverflow(span)
    return span != FolderSpans.forever && !limit.overflow && deleted < limit.partialValue
  }
}
