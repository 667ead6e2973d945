import SheafHubStore
import SheafModel
import SheafWire

/// The logs of events that an account may read: its own, and those of the shares in which it takes part, or took part
/// in, with how far each goes.
struct EventLogs: Sendable {
  struct Log: Hashable, Sendable {
    /// Nil for the account's own.
    let place: SharedPlace?
    let last: Int64
    /// Of the last event and the epoch.
    let token: LogToken
    /// Whether more may come: the account did not leave.
    let isOpen: Bool
    /// How far the account has read its notices in it.
    let read: Int64
  }

  let database: any Database

  /// All of them, in one snapshot; the account's own first.
  func all(of zone: String) async throws -> [Log] {
    try await database.read { connection in
      var logs = [try Self.own(zone, &connection)]
      for place in try Self.places(of: zone, acceptance: nil, &connection) {
        if let log = try Self.log(place, &connection) { logs.append(log) }
      }
      return logs
    }
  }

  /// The shares of others that an account joined, as its inbox has them.
  func joined(by zone: String) async throws -> [SharedPlace] {
    try await database.read { connection in try Self.places(of: zone, acceptance: .accepted, &connection) }
  }

  /// The shares of others in an account's inbox.
  ///
  /// - Parameter acceptance: Of those with this alone; nil for all.
  private static func places(
    of zone: String, acceptance: Acceptance?, _ connection: inout any SQLConnection
  ) throws -> [SharedPlace] {
    let abroad = try Collaborations.shares(of: zone, &connection)
    var owners: [String: String] = [:]
    var places: [SharedPlace] = []
    let rows = try connection.query(
      "SELECT share, owner, acceptance FROM inbox WHERE zone = $1 ORDER BY share", [.text(zone)])
    for row in rows {
      if let acceptance, try row.text(2) != acceptance.rawValue { continue }
      let share = try StoredZone.id(row.blob(0))
      // Devices read those at their own hub.
      if abroad.contains(share) { continue }
      let owner = try row.text(1)
      if owners[owner] == nil, let handle = try? AccountHandle(owner) {
        owners[owner] = try ShareRows.person(handle, in: &connection)?.zone
      }
      // What the account itself shares is its own.
      guard let other = owners[owner], other != zone else { continue }
      places.append(SharedPlace(share: share, zone: other, account: zone))
    }
    return places
  }

  /// The account's own.
  func own(of zone: String) async throws -> Log {
    try await database.read { connection in try Self.own(zone, &connection) }
  }

  /// One of a share; nil for who never took part.
  func log(of place: SharedPlace) async throws -> Log? {
    try await database.read { connection in try Self.log(place, &connection) }
  }

  private static func own(_ zone: String, _ connection: inout any SQLConnection) throws -> Log {
    let head = try ZoneHead.read(zone, in: &connection)
    let log = EpochLog(zone: zone, share: nil, epoch: head.epoch, last: head.events)
    return Log(
      place: nil, last: log.last, token: log.token(at: log.last), isOpen: true,
      read: try ReadMarks.number(of: nil, in: zone, &connection))
  }

  private static func log(_ place: SharedPlace, _ connection: inout any SQLConnection) throws -> Log? {
    let rows = try connection.query(
      "SELECT ended FROM memberships WHERE zone = $1 AND share = $2 AND account = $3",
      [.text(place.zone), .blob(place.share.bytes), .text(place.account)])
    guard let row = rows.first else { return nil }
    let ended = try row.optionalInteger(0)
    let last = if let ended { ended } else { try SharedHead.read(place.share, of: place.zone, &connection).events }
    let epoch = try ZoneHead.read(place.zone, in: &connection).epoch
    let log = EpochLog(zone: place.zone, share: place.share, epoch: epoch, last: last)
    return Log(
      place: place, last: last, token: log.token(at: last), isOpen: ended == nil,
      read: try ReadMarks.number(of: place.share, in: place.account, &connection))
  }
}
