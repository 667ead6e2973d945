import SheafHubStore
import SheafModel
import SheafWire

/// The zone of an account, as `Accounts` uses it: it is made and destroyed with the account.
enum Zone {
  /// Makes an empty zone.
  static func make(_ zone: String, now: Timestamp, in connection: inout any SQLConnection) throws {
    try connection.execute(
      """
      INSERT INTO zones (zone, added, used, number, horizon, events, epoch) VALUES ($1, $2, 0, 0, 0, 0, $3)
      """, [.text(zone), .integer(now.nanoseconds), .blob(WireID().bytes)])
  }

  /// Sets how many bytes of contents a zone may have; nil for no limit.
  static func setQuota(_ quota: Int64?, of zone: String, in connection: inout any SQLConnection) throws {
    try connection.execute("UPDATE zones SET quota = $1 WHERE zone = $2", [.optional(quota), .text(zone)])
  }

  /// The quota of a zone, and the bytes of contents that it has.
  static func space(of zone: String, in connection: inout any SQLConnection) throws -> (quota: Int64?, used: Int64) {
    guard let row = try connection.query("SELECT quota, used FROM zones WHERE zone = $1", [.text(zone)]).first else {
      throw HubStoreError.corrupt("an account has no zone")
    }
    return (try row.optionalInteger(0), try row.integer(1))
  }

  /// Drops the verdicts of a device that was removed.
  static func forget(device: String, of zone: String, in connection: inout any SQLConnection) throws {
    let values: [SQLValue] = [.text(zone), .text(device)]
    try connection.execute("DELETE FROM verdicts WHERE zone = $1 AND device = $2", values)
    try connection.execute("DELETE FROM watermarks WHERE zone = $1 AND device = $2", values)
  }

  /// Begins an epoch in every zone of a store that is a copy of another one: every token that was given out is of
  /// another time. How far the logs of events went is noted: so much they have in common with those of the other store.
  static func beginEpochs(in connection: inout any SQLConnection) throws {
    for row in try connection.query("SELECT zone, epoch, events FROM zones") {
      let (zone, epoch) = (SQLValue.text(try row.text(0)), SQLValue.blob(try row.blob(1)))
      let shares = try connection.query("SELECT share, events FROM shared_feeds WHERE zone = $1", [zone])
      let logs = [([], try row.integer(2))] + (try shares.map { (try $0.blob(0), try $0.integer(1)) })
      for (share, events) in logs {
        try connection.execute(
          "INSERT INTO epochs (zone, epoch, share, events) VALUES ($1, $2, $3, $4)",
          [zone, epoch, .blob(share), .integer(events)])
      }
      try connection.execute("UPDATE zones SET epoch = $1 WHERE zone = $2", [.blob(WireID().bytes), zone])
    }
  }

  /// Deletes every row of a zone.
  static func destroy(_ zone: String, in connection: inout any SQLConnection) throws {
    let values = [SQLValue.text(zone)]
    try connection.execute("DELETE FROM arrivals WHERE zone = $1", values)
    try connection.execute("DELETE FROM transfer_offers WHERE zone = $1", values)
    try connection.execute("DELETE FROM transfers WHERE zone = $1", values)
    try connection.execute("DELETE FROM changes WHERE zone = $1", values)
    try connection.execute("DELETE FROM feed_marks WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_changes WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_verdicts WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_watermarks WHERE zone = $1", values)
    try connection.execute("DELETE FROM uploads WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_events WHERE zone = $1", values)
    try connection.execute("DELETE FROM memberships WHERE zone = $1", values)
    try connection.execute("DELETE FROM version_changes WHERE zone = $1", values)
    try connection.execute("DELETE FROM entries WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_rows WHERE zone = $1", values)
    try connection.execute("DELETE FROM shared_feeds WHERE zone = $1", values)
    try connection.execute("DELETE FROM links WHERE zone = $1", values)
    try connection.execute("DELETE FROM link_ends WHERE zone = $1", values)
    try connection.execute("DELETE FROM inboxes WHERE zone = $1", values)
    try connection.execute("DELETE FROM inbox WHERE zone = $1", values)
    try connection.execute("DELETE FROM outgoing WHERE zone = $1", values)
    try connection.execute("DELETE FROM invitations WHERE zone = $1", values)
    try connection.execute("DELETE FROM requests WHERE zone = $1", values)
    try connection.execute("DELETE FROM participants WHERE zone = $1", values)
    try connection.execute("DELETE FROM shares WHERE zone = $1", values)
    try connection.execute("DELETE FROM chunk_bytes WHERE zone = $1", values)
    try connection.execute("DELETE FROM chunks WHERE zone = $1", values)
    try connection.execute("DELETE FROM read_marks WHERE zone = $1", values)
    try connection.execute("DELETE FROM comments WHERE zone = $1", values)
    try connection.execute("DELETE FROM epochs WHERE zone = $1", values)
    try connection.execute("DELETE FROM events WHERE zone = $1", values)
    try connection.execute("DELETE FROM watermarks WHERE zone = $1", values)
    try connection.execute("DELETE FROM verdicts WHERE zone = $1", values)
    try connection.execute("DELETE FROM purges WHERE zone = $1", values)
    try connection.execute("DELETE FROM authors WHERE zone = $1", values)
    try connection.execute("DELETE FROM placements WHERE zone = $1", values)
    try connection.execute("DELETE FROM retentions WHERE zone = $1", values)
    try connection.execute("DELETE FROM labelled WHERE zone = $1", values)
    try connection.execute("DELETE FROM labels WHERE zone = $1", values)
    try connection.execute("DELETE FROM versions WHERE zone = $1", values)
    try connection.execute("DELETE FROM aliases WHERE zone = $1", values)
    try connection.execute("DELETE FROM linked_items WHERE zone = $1", values)
    try connection.execute("DELETE FROM names WHERE zone = $1", values)
    try connection.execute("DELETE FROM items WHERE zone = $1", values)
    try connection.execute("DELETE FROM zones WHERE zone = $1", values)
  }
}
