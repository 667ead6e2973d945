package import SheafHubStore
package import SheafModel
package import SheafWire

/// The log of a zone: CloudEvents, numbered without gaps (docs/REFERENCE.md, "Events").
package struct ZoneEvents: Sendable {
  let database: any Database

  package init(database: any Database) { self.database = database }

  /// Events after a position, `limit` of them at most.
  ///
  /// - Throws: ``HubError`` of kind `gone` for a position of another time.
  package func page(after position: LogPosition, limit: Int, of zone: String) async throws -> LogPage<Event> {
    try await database.read { connection in
      let head = try ZoneHead.read(zone, in: &connection)
      let log = EpochLog(zone: zone, share: nil, epoch: head.epoch, last: head.events)
      let number = try log.number(of: position, &connection)
      var shares = ShareRows(zone: zone, connection: connection)
      var known: [String: EventDetails.Share] = [:]
      var events: [Event] = []
      var room = PageRoom(min(max(1, limit), WireLimits.rowsPerPage))
      reading: while true {
        let count = room.next
        let rows = try connection.query(
          "SELECT event FROM events WHERE zone = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
          [.text(zone), .integer(events.last?.sequence ?? number), .integer(Int64(count))])
        for row in rows {
          let text = try row.text(0)
          guard room.take(text.utf8.count) else { break reading }
          var event: Event = try StoredZone.decoded(text)
          if let id = event.data.share?.id {
            if known[id] == nil, let share = WireID(id) {
              known[id] =
                try shares.share(share).map(SharedEvents.facts) ?? Inboxes.facts(of: share, in: zone, &connection)
            }
            event.data.share = known[id]
          }
          events.append(event)
        }
        if rows.count < count { break }
      }
      let next = events.last?.sequence ?? number
      return LogPage(events: events, next: next, last: head.events, token: log.token(at: next).text)
    }
  }
}
