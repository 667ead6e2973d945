package import SheafHubStore
import SheafModel
package import SheafWire

/// The feed of a zone: the newest state of each item, by number.
package struct Feeds: Sendable {
  /// How long a feed reports a deletion, in nanoseconds.
  static let tombstoneLifetime: Int64 = 180 * 86_400 * 1_000_000_000
  /// Tombstones that one transaction drops.
  private static let tombstoneStep: Int64 = 64

  let database: any Database
  let clock: HubClock

  package init(database: any Database, clock: HubClock) {
    self.database = database
    self.clock = clock
  }

  /// The changes after a token; everything without one.
  ///
  /// - Throws: ``HubError`` of kind `gone` for a token of another epoch, of a change that the zone does not have, or so
  ///   old that deletions after it are forgotten: then the device reads everything anew.
  package func page(after token: FeedToken?, limit: Int, of zone: String) async throws -> FeedPage {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      let head = try ZoneHead.read(zone, in: &connection)
      if let token {
        guard token.epoch == head.epoch, token.number <= head.number, token.number >= head.horizon || token.number == 0,
          try token.change == ChangeID.at(token.number, of: zone, &connection)
        else { throw HubError(.gone, "token: of another time; read everything anew") }
      }
      let (items, hasMore) = try Self.items(after: token?.number ?? 0, limit: limit, of: zone, &connection)
      let last = hasMore ? items.last?.number ?? head.number : head.number
      let token = FeedToken(
        number: last, epoch: head.epoch, change: try ChangeID.at(last, of: zone, &connection))
      return FeedPage(
        items: items, token: token.text, hasMore: hasMore,
        retentions: try FolderRetentions.mark(of: zone, &connection))
    }
  }

  /// Items by number as a page has them, and whether more follow.
  private static func items(
    after number: Int64, limit: Int, of zone: String, _ connection: inout any SQLConnection
  ) throws -> (items: [ItemState], hasMore: Bool) {
    var items: [ItemState] = []
    var room = PageRoom(limit)
    while true {
      let count = room.next
      let rows = try connection.query(
        """
        SELECT items.item, items.number, items.device, items.others, items.kind, items.deleted, items.places, items.mode,
          items.mtime, items.target, items.attributes, items.version, items.versions, items.copy_of,
          versions.version, versions.item, versions.number, versions.base, versions.cause, versions.time,
          versions.arrived, versions.size, versions.digest, purges.versions, authors.handle,
          labelled.changes, placements.made_by, placements.made, placements.placed_by, placements.time,
          placements.placed
        FROM items LEFT JOIN versions ON versions.zone = items.zone AND versions.version = items.version
        LEFT JOIN authors ON authors.zone = items.zone AND authors.version = items.version
        LEFT JOIN purges ON purges.zone = items.zone AND purges.item = items.item
        LEFT JOIN labelled ON labelled.zone = items.zone AND labelled.item = items.item
        LEFT JOIN placements ON placements.zone = items.zone AND placements.item = items.item
        WHERE items.zone = $1 AND items.number > $2 ORDER BY items.number LIMIT $3
        """, [.text(zone), .integer(items.last?.number ?? number), .integer(Int64(count))])
      for row in rows {
        let item = try state(row)
        guard room.take(item.wireBytes) else { return (items, true) }
        items.append(item)
      }
      if rows.count < count { return (items, false) }
    }
  }

  /// The newest numbers of some zones; one that is gone has none.
  package func numbers(of zones: [String]) async throws -> [String: Int64] {
    try await database.read { connection in
      var numbers: [String: Int64] = [:]
      for zone in zones {
        let row = try connection.query("SELECT number FROM zones WHERE zone = $1", [.text(zone)]).first
        numbers[zone] = try row?.integer(0)
      }
      return numbers
    }
  }

  /// An item as it is now; nil where there never was one. An id that became another item's leads there.
  package func item(_ id: WireID, in zone: String) async throws -> ItemState? {
    try await database.read { connection in
      var stored = StoredZone(zone: zone, connection: connection)
      guard let row = try stored.item(try stored.alias(id) ?? id) else { return nil }
      return Self.state(row, try row.version.flatMap { try stored.version($0) })
    }
  }

  private static func state(_ row: SQLRow) throws -> ItemState {
    let version = try row.optionalBlob(14) == nil ? nil : StoredZone.version(row, from: 14, author: 24)
    var item = try StoredZone.item(row)
    item.purges = try row.optionalInteger(23) ?? 0
    item.labels = try row.optionalInteger(25)
    item.placement = try Placement.read(row, from: 26)
    return state(item, version)
  }

  static func state(_ row: ItemRow, _ version: VersionRow?) -> ItemState {
    ItemState(
      number: row.number, item: row.item, kind: row.kind, isDeleted: row.isDeleted, places: row.places,
      mode: row.mode, mtime: row.mtime, target: row.target.map { .init($0) }, attributes: row.attributes,
      version: version?.facts, copyOf: row.copyOf, isPurged: row.isPurged, purges: row.purges,
      labels: row.labels, deleted: row.deleted, madeBy: row.placement?.madeBy, placedBy: row.placement?.placedBy,
      placed: row.placement?.time)
  }

  /// Forgets that items were deleted 180 days ago. What was purged, and what can still come back, is told on. Where
  /// folders say for how long they keep things, all deleted folders stay for as long as anything may that was deleted:
  /// those of what can come back are found by them.
  package func forgetDeletions(in zone: String) async throws {
    let now = clock.now.nanoseconds
    let limit = now - Self.tombstoneLifetime
    while true {
      let step = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        let rules = try Retention.rules(&connection)
        let spans = try FolderSpans(of: zone, by: rules, &connection)
        let oldest = now.subtractingReportingOverflow(spans.longestDeleted)
        let folderLimit = spans.isEmpty ? limit : min(limit, oldest.overflow ? .min : oldest.partialValue)
        let rows = try connection.query(
          """
          SELECT item, number, device, others, kind, deleted, places, mode, mtime, target, attributes, version,
            versions, copy_of FROM items WHERE zone = $1 AND deleted < $2 AND version IS NULL AND places <> $3
            AND item NOT IN (SELECT item FROM purges WHERE zone = $1) AND (kind <> $4 OR deleted < $5)
            ORDER BY number LIMIT $6
          """,
          [
            .text(zone), .integer(limit), .text(StoredZone.noPlaces), .text(ItemKind.folder.rawValue),
            .integer(folderLimit), .integer(Self.tombstoneStep),
          ])
        for row in rows {
          try connection.execute(
            "DELETE FROM items WHERE zone = $1 AND item = $2", [.text(zone), .blob(row.blob(0))])
          // Whoever sends an item of this id makes a new one, whose versions begin anew.
          try connection.execute(
            "DELETE FROM version_changes WHERE zone = $1 AND item = $2", [.text(zone), .blob(row.blob(0))])
          try connection.execute(
            "DELETE FROM labels WHERE zone = $1 AND item = $2", [.text(zone), .blob(row.blob(0))])
          try connection.execute(
            "DELETE FROM labelled WHERE zone = $1 AND item = $2", [.text(zone), .blob(row.blob(0))])
          let item = try StoredZone.item(row)
          try StoredZone.forgetPlacement(of: item.item, of: zone, &connection)
          try FolderRetentions.forget(item.item, of: zone, &connection)
          head.horizon = max(head.horizon, item.number)
          head.used -= item.bytes
          try SharedRows.forget(item.item, of: zone, &connection)
        }
        try head.write(zone, in: &connection)
        return rows.count
      }
      if step < Self.tombstoneStep { return }
    }
  }
}
