import SheafHubStore
import SheafWire

/// Ends the tokens of long ago, so that the ids of changes are not kept for ever.
///
/// Nothing says when a change was made. So the upkeep notes once a day how far each feed is, and a token from before
/// what was noted 180 days ago is of another time: its reader reads everything anew.
extension Feeds {
  private static let day: Int64 = 86_400 * 1_000_000_000
  /// Changes that one transaction forgets.
  private static let trimStep: Int64 = 1_000

  /// Ends the old tokens of a zone's feed, and of the feeds of its shares.
  func trim(_ zone: String) async throws {
    let shares = try await database.read { connection in
      try connection.query("SELECT share FROM shared_feeds WHERE zone = $1 ORDER BY share", [.text(zone)])
        .map { try StoredZone.id($0.blob(0)) }
    }
    for share in [nil] + shares {
      while try await !trimStep(share, of: zone) {}
    }
  }

  /// - Parameter share: Nil for the zone's own feed.
  /// - Returns: whether nothing is left to forget.
  private func trimStep(_ share: WireID?, of zone: String) async throws -> Bool {
    let now = clock.now.nanoseconds
    return try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      guard let share else {
        let old = try FeedMarks.old(nil, of: zone, at: now, number: head.number, &connection)
        head.horizon = max(head.horizon, old)
        try head.write(zone, in: &connection)
        let first = try connection.query(
          "SELECT number FROM changes WHERE zone = $1 ORDER BY number LIMIT 1", [.text(zone)]
        ).first?.integer(0)
        guard let first, first < head.horizon else { return true }
        try connection.execute(
          "DELETE FROM changes WHERE zone = $1 AND number < $2",
          [.text(zone), .integer(min(head.horizon, first + Self.trimStep))])
        return false
      }
      var feed = try SharedHead.read(share, of: zone, &connection)
      let old = try FeedMarks.old(share, of: zone, at: now, number: feed.number, &connection)
      if old > feed.horizon {
        feed.horizon = old
        try feed.write(share, of: zone, &connection)
      }
      let key: [SQLValue] = [.text(zone), .blob(share.bytes)]
      let first = try connection.query(
        "SELECT number FROM shared_changes WHERE zone = $1 AND share = $2 ORDER BY number LIMIT 1", key
      ).first?.integer(0)
      guard let first, first < feed.horizon else { return true }
      try connection.execute(
        "DELETE FROM shared_changes WHERE zone = $1 AND share = $2 AND number < $3",
        key + [.integer(min(feed.horizon, first + Self.trimStep))])
      return false
    }
  }

  /// How far feeds were on the days of the last 180.
  private enum FeedMarks {
    /// Notes how far a feed is, once a day, and forgets what was noted before the last 180 days.
    ///
    /// - Returns: how far it was 180 days ago, as far as that was noted.
    static func old(
      _ share: WireID?, of zone: String, at now: Int64, number: Int64, _ connection: inout any SQLConnection
    ) throws -> Int64 {
      let key: [SQLValue] = [.text(zone), .blob(share?.bytes ?? [])]
      let newest = try connection.query(
        "SELECT MAX(time), MAX(number) FROM feed_marks WHERE zone = $1 AND share = $2", key
      ).first
      // A feed in which nothing happened needs no other mark.
      if number > (try newest?.optionalInteger(1) ?? 0),
        try newest?.optionalInteger(0).map({ now.subtractingReportingOverflow($0).partialValue >= day }) ?? true
      {
        try connection.execute(
          "INSERT INTO feed_marks (zone, share, time, number) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
          key + [.integer(now), .integer(number)])
      }
      let old =
        try connection.query(
          "SELECT MAX(number) FROM feed_marks WHERE zone = $1 AND share = $2 AND time <= $3",
          key + [.integer(now - tombstoneLifetime)]
        ).first?.optionalInteger(0) ?? 0
      try connection.execute(
        "DELETE FROM feed_marks WHERE zone = $1 AND share = $2 AND number < $3", key + [.integer(old)])
      return old
    }
  }
}
