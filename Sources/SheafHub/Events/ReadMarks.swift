package import SheafHubStore
package import SheafWire

/// How far an account has read its notices, in each log that it may read, so that all its machines know.
package struct ReadMarks: Sendable {
  /// Logs of a request, and of an account: its own, and those of as many shares as an inbox has.
  static let limit = Inboxes.mostEntries + 1

  let database: any Database

  package init(database: any Database) { self.database = database }

  /// Notes how far some logs were read. A mark never goes back.
  ///
  /// - Throws: ``HubError`` of kind `invalid` for too many of them.
  package func set(_ marks: [SentReadMarks.Mark], of zone: String) async throws {
    guard marks.count <= Self.limit, marks.allSatisfy({ $0.number >= 0 }) else {
      throw HubError(.invalid, "marks: \(Self.limit) at most, with numbers from 0 on")
    }
    try await database.write { connection in
      let head = try ZoneHead.take(zone, in: &connection)
      var isNews = false
      for mark in marks {
        let last: Int64
        if let share = mark.share {
          let known = try connection.query(
            "SELECT share FROM inbox WHERE zone = $1 AND share = $2", [.text(zone), .blob(share.bytes)])
          guard !known.isEmpty else { continue }
          last = mark.number
        } else {
          last = min(mark.number, head.events)
        }
        guard try last > Self.number(of: mark.share, in: zone, &connection) else { continue }
        isNews = true
        try connection.execute(
          """
          INSERT INTO read_marks (zone, log, number) VALUES ($1, $2, $3)
          ON CONFLICT (zone, log) DO UPDATE SET number = excluded.number
          """, [.text(zone), .blob(mark.share?.bytes ?? []), .integer(last)])
      }
      // The account's streams of events hear of it as of anything new in its inbox.
      if isNews { try Inboxes.advance(zone, &connection) }
    }
  }

  /// How far an account has read a log: its own, or that of a share of somebody else's.
  static func number(of share: WireID?, in zone: String, _ connection: inout any SQLConnection) throws -> Int64 {
    try connection.query(
      "SELECT number FROM read_marks WHERE zone = $1 AND log = $2", [.text(zone), .blob(share?.bytes ?? [])]
    ).first?.integer(0) ?? 0
  }
}
