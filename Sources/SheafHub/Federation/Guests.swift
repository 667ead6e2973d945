import Foundation
import SheafHubStore
import SheafModel
import SheafWire

/// The people of other hubs whom shares of this hub let in. A share knows a root of each, which that person's hub gave,
/// and not their devices. A guest's *account* is the handle: no zone of this hub is called so.
///
/// Rules:
/// 1. A session is of one share. It ends after ten minutes, with the root by which it began, and with the person's part
///    in the share.
/// 2. A nonce is good once, also for another root.
struct Guests: Sendable {
  /// Seconds for which a root is good. A person's hub gives a new one before, and whenever their devices change.
  static let rootLifetime: Int64 = 7 * 86_400
  /// Seconds for which a session is good.
  static let sessionLifetime: Int64 = 600
  /// Sessions of a person in a share; a new one ends the oldest.
  static let mostSessions = 64

  let database: any Database
  let clock: HubClock
  let addresses: HubAddresses
  let nonces: Nonces

  /// A guest's way in: the one share that a session is good for.
  struct Pass: Hashable, Sendable {
    let share: WireID
    /// The zone in which the share is.
    let zone: String
  }

  /// Whether the account of a participant is of another hub.
  static func isGuest(_ account: String) -> Bool { account.contains("@") }

  // MARK: - Roots

  /// Notes the root by which somebody is let in who is to be invited.
  func admit(_ root: CollaborationRoot) async throws {
    let now = clock.now
    try await database.write { connection in
      _ = try Accounts.take(root.zone.description, in: &connection)
      try Self.note(root, at: now, &connection)
    }
  }

  /// Takes a new root of somebody who takes part, or is invited. An older one changes nothing.
  ///
  /// - Returns: whether it is another one, so that sessions that began by the former one are over.
  /// - Throws: ``HubError`` of kind `forbidden` for a handle for which the sender does not speak, and `notFound` for
  ///   somebody with no part in the share.
  func renew(_ root: CollaborationRoot, from domain: String) async throws -> Bool {
    guard Federation.domain(of: root.handle) == domain else {
      throw HubError(.forbidden, "the hub does not speak for this handle")
    }
    try root.check()
    let now = clock.now
    return try await database.write { connection in
      let place: [SQLValue] = [
        .text(root.zone.description), .blob(root.share.bytes), .text(root.handle),
      ]
      // Looked at before the row is taken, so that hubs with made-up shares hold nobody up.
      guard try Self.takesPart(place, &connection) else { throw HubShare.nothing }
      _ = try Accounts.take(root.zone.description, in: &connection)
      let known = try connection.query(
        "SELECT revision, root FROM guests WHERE zone = $1 AND share = $2 AND account = $3", place)
      let former = try known.first?.blob(1)
      if let row = known.first {
        let revision = try row.integer(0)
        if root.revision < revision || root.revision == revision && former != [UInt8](root.root) { return false }
      }
      try Self.note(root, at: now, &connection)
      return former != [UInt8](root.root)
    }
  }

  private static func note(
    _ root: CollaborationRoot, at now: Timestamp, _ connection: inout any SQLConnection
  ) throws {
    let place: [SQLValue] = [
      .text(root.zone.description), .blob(root.share.bytes), .text(root.handle),
    ]
    try connection.execute(
      """
      INSERT INTO guests (zone, share, account, name, root, size, revision, expires)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (zone, share, account) DO UPDATE SET name = excluded.name, root = excluded.root,
        size = excluded.size, revision = excluded.revision, expires = excluded.expires
      """,
      place + [
        .optional(root.name), .blob([UInt8](root.root)), .integer(Int64(root.size)), .integer(root.revision),
        .integer(Timestamp(seconds: now.seconds + rootLifetime).nanoseconds),
      ])
    try connection.execute(
      "DELETE FROM guest_sessions WHERE zone = $1 AND share = $2 AND account = $3 AND root <> $4",
      place + [.blob([UInt8](root.root))])
  }

  /// Lets somebody in no more, who has no part in a share any more.
  static func remove(
    _ account: String, from share: WireID, of zone: String, _ connection: inout any SQLConnection
  ) throws {
    let place: [SQLValue] = [.text(zone), .blob(share.bytes), .text(account)]
    try connection.execute("DELETE FROM guests WHERE zone = $1 AND share = $2 AND account = $3", place)
    try connection.execute("DELETE FROM guest_sessions WHERE zone = $1 AND share = $2 AND account = $3", place)
  }

  /// Deletes all rows of a zone.
  static func destroy(_ zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute("DELETE FROM guests WHERE zone = $1", [.text(zone)])
    try connection.execute("DELETE FROM guest_sessions WHERE zone = $1", [.text(zone)])
    try connection.execute("DELETE FROM outgoing_abroad WHERE zone = $1", [.text(zone)])
  }

  /// Forgets roots that are too old.
  func upkeep(of zone: String) async throws {
    let now = SQLValue.integer(clock.now.nanoseconds)
    try await database.write { connection in
      try connection.execute("DELETE FROM guests WHERE zone = $1 AND expires <= $2", [.text(zone), now])
      try connection.execute("DELETE FROM guest_sessions WHERE zone = $1 AND expires <= $2", [.text(zone), now])
    }
  }

  /// Whether somebody is invited or takes part; the key is zone, share and account.
  private static func takesPart(_ place: [SQLValue], _ connection: inout any SQLConnection) throws -> Bool {
    let rows = try connection.query(
      "SELECT acceptance FROM participants WHERE zone = $1 AND share = $2 AND account = $3", place)
    return try rows.first.map { try $0.text(0) != Acceptance.removed.rawValue } ?? false
  }

  // MARK: - Sessions

  /// Begins a session for who proves that one of the keys under a root is their own.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized` for a nonce that was not given out here, is used or too old; `invalid`
  ///   for a proof of another form, or a signature that is none; `forbidden` for a root that lets in nobody, or nobody
  ///   any more.
  func enter(_ request: GuestRequest) async throws -> SessionToken {
    let now = clock.now
    let spent = HubError(.unauthorized, "the nonce is used, too old, or of another hub")
    guard addresses.contains(request.address), let nonce = nonces.check(request.nonce, now: now) else { throw spent }
    let (proof, message) = (
      request.proof,
      GuestRequest.message(
        share: request.share, nonce: request.nonce, address: request.address, key: request.proof.publicKey)
    )
    guard let root = IdentityRoot(above: proof), try DeviceKey(proof.publicKey).verifies(proof.signature, of: message)
    else { throw HubError(.invalid, "the proof proves nothing") }
    let (zone, share) = (request.zone.description, request.share)
    guard let device = WireID(bytes: Array(IdentityTree.leaf(proof.publicKey).prefix(16)))?.description,
      let id = UUID(uuidString: zone)
    else { throw HubError(.invalid, "the proof proves nothing") }
    let token = ZonedSecret(zone: id, length: ZonedSecret.tokenLength)
    let expires = Timestamp(seconds: now.seconds + Self.sessionLifetime)
    try await database.write { connection in
      // Looked at before the row is taken, so that strangers hold nobody up.
      _ = try Self.account(root, share, zone, at: now, &connection)
      _ = try Accounts.take(zone, in: &connection)
      let account = try Self.account(root, share, zone, at: now, &connection)
      let ended: [SQLValue] = [.text(zone), .integer(now.nanoseconds)]
      try connection.execute("DELETE FROM nonces WHERE zone = $1 AND expires <= $2", ended)
      try connection.execute("DELETE FROM guest_sessions WHERE zone = $1 AND expires <= $2", ended)
      let isNew = try connection.execute(
        "INSERT INTO nonces (zone, nonce, expires) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [.text(zone), .blob(nonce.bytes), .integer(nonce.expires.nanoseconds)])
      guard isNew == 1 else { throw spent }
      let sessions = try connection.query(
        "SELECT hash FROM guest_sessions WHERE zone = $1 AND share = $2 AND account = $3 ORDER BY expires",
        [.text(zone), .blob(share.bytes), .text(account)])
      for session in sessions.dropLast(Self.mostSessions - 1) {
        try connection.execute(
          "DELETE FROM guest_sessions WHERE zone = $1 AND hash = $2", [.text(zone), .blob(try session.blob(0))])
      }
      try connection.execute(
        """
        INSERT INTO guest_sessions (zone, hash, share, account, device, root, expires)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        [
          .text(zone), .blob(token.hash), .blob(share.bytes), .text(account), .text(device), .blob(root.hash),
          .integer(expires.nanoseconds),
        ])
    }
    return SessionToken(token: token.text, expires: expires.secondsText)
  }

  /// Whom a root lets into a share.
  ///
  /// - Throws: ``HubError`` of kind `forbidden`.
  private static func account(
    _ root: IdentityRoot, _ share: WireID, _ zone: String, at now: Timestamp, _ connection: inout any SQLConnection
  ) throws -> String {
    let rows = try connection.query(
      "SELECT account, root, size, expires FROM guests WHERE zone = $1 AND share = $2",
      [.text(zone), .blob(share.bytes)])
    for row in rows where try row.blob(1) == root.hash && row.integer(2) == Int64(root.size) {
      let account = try row.text(0)
      guard try row.integer(3) > now.nanoseconds,
        try takesPart([.text(zone), .blob(share.bytes), .text(account)], &connection)
      else { break }
      return account
    }
    throw HubError(.forbidden, "nobody is let in by this root")
  }

  /// Whose session it is; nil for none of a guest, or one that ended.
  static func caller(
    zone: String, session: [UInt8], now: Timestamp, in connection: inout any SQLConnection
  ) throws -> Caller? {
    let rows = try connection.query(
      """
      SELECT guest_sessions.share, guest_sessions.account, guest_sessions.device, guest_sessions.expires, guests.name,
        guests.expires
      FROM guest_sessions JOIN guests ON guests.zone = guest_sessions.zone AND guests.share = guest_sessions.share
        AND guests.account = guest_sessions.account AND guests.root = guest_sessions.root
      WHERE guest_sessions.zone = $1 AND guest_sessions.hash = $2
      """, [.text(zone), .blob(session)])
    guard let row = rows.first, try row.integer(5) > now.nanoseconds else { return nil }
    let (handle, device) = (try row.text(1), try row.text(2))
    let expires = Timestamp(nanoseconds: try row.integer(3))
    guard expires > now else { return nil }
    return Caller(
      zone: handle, device: device, handle: handle, name: try row.optionalText(4) ?? handle,
      deviceName: String(device.prefix(8)), session: session, expires: expires,
      guest: Pass(share: try StoredZone.id(row.blob(0)), zone: zone))
  }
}
