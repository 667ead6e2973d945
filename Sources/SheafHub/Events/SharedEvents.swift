import SheafHubStore
package import SheafModel
package import SheafWire

/// The log of a share as its members see it: the same events, with numbers of the share's own and paths that begin with
/// the name of what is shared.
package struct SharedEvents: Sendable {
  let database: any Database

  init(database: any Database) { self.database = database }

  /// Gives an event the next number of a share.
  static func append(
    _ told: SharedEvent, _ event: PendingEvent, of zone: String, _ connection: inout any SQLConnection
  ) throws {
    var head = try SharedHead.read(told.share, of: zone, &connection)
    head.events += 1
    try head.write(told.share, of: zone, &connection)
    // A form of another type is another event: a move from one share to another is a deletion and a creation.
    let id =
      told.type == event.type
      ? event.id : WireID(hashOf: Array("event".utf8) + told.share.bytes + Array(event.id.utf8)).description
    let form = PendingEvent(id: id, type: told.type, subject: event.subject, time: event.time, data: told.data)
    try connection.execute(
      "INSERT INTO shared_events (zone, share, number, about, event) VALUES ($1, $2, $3, $4, $5)",
      [
        .text(zone), .blob(told.share.bytes), .integer(head.events), .optional(told.about),
        .text(try StoredZone.encoded(form.numbered(head.events, of: zone))),
      ])
  }

  /// Events after a position that an account sees, oldest first: those from joining to leaving, both included. The page
  /// may be empty though more follow.
  ///
  /// - Throws: ``HubError`` of kind `notFound` for who never took part, `gone` for a position of another time.
  package func page(after position: LogPosition, limit: Int, of place: SharedPlace) async throws -> LogPage<Event> {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      let key: [SQLValue] = [.text(place.zone), .blob(place.share.bytes)]
      var rows = ShareRows(zone: place.zone, connection: connection)
      guard let share = try rows.share(place.share),
        let own = try connection.query(
          "SELECT events, ended FROM memberships WHERE zone = $1 AND share = $2 AND account = $3",
          key + [.text(place.account)]
        ).first
      else { throw HubShare.nothing }
      let head = try SharedHead.read(place.share, of: place.zone, &connection)
      let (joined, ended) = (try own.integer(0), try own.optionalInteger(1))
      // Members know how far the log goes; people who left know how far it went then.
      let last = max(joined, ended ?? head.events)
      let epoch = try ZoneHead.read(place.zone, in: &connection).epoch
      let log = EpochLog(zone: place.zone, share: place.share, epoch: epoch, last: last)
      let start = max(try log.number(of: position, &connection), joined)
      var page = LogPage<Event>(events: [], next: start, last: max(start, last), token: "")
      var room = PageRoom(limit)
      reading: while true {
        let count = room.next
        let rows = try connection.query(
          """
          SELECT number, about, event FROM shared_events
          WHERE zone = $1 AND share = $2 AND number > $3 AND number <= $4 ORDER BY number LIMIT $5
          """, key + [.integer(page.next), .integer(last), .integer(Int64(count))])
        for row in rows {
          let text = try row.text(2)
          guard room.take(text.utf8.count) else { break reading }
          page.next = try row.integer(0)
          var event: Event = try StoredZone.decoded(text)
          guard try Self.sees(place.account, event, about: row.optionalText(1), share, hasLeft: ended != nil) else {
            continue
          }
          // People who are out must not see a link that may have been made since.
          event.data.share = ended == nil ? Self.facts(share) : nil
          page.events.append(event)
        }
        if rows.count < count { break }
      }
      page.token = log.token(at: page.next).text
      return page
    }
  }

  /// A share as events tell it. Its URL is the token alone, which ``HubRoutes`` makes a URL.
  static func facts(_ share: HubShare) -> EventDetails.Share {
    EventDetails.Share(id: share.id.description, url: share.token.text, title: share.title)
  }

  private static func sees(
    _ account: String, _ event: Event, about: String?, _ share: HubShare, hasLeft: Bool
  ) throws -> Bool {
    guard let about, about != account else { return true }
    let member = share.member(account)
    switch event.type {
    case .mention: return false
    case .accessRequested, .accessDeclined: return member?.role == .owner || member?.role == .administrator
    default: return !hasLeft && member.map { $0.role != .publicUser } ?? false
    }
  }
}
