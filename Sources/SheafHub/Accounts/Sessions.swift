import Foundation
import SheafHubStore
import SheafModel
package import SheafWire

/// Whose request it is.
package struct Caller: Hashable, Sendable {
  package let zone: String
  package let device: String
  package let handle: String
  /// The person's display name; the handle if nobody gave one.
  let name: String
  let deviceName: String
  /// The hash of the session's token.
  let session: [UInt8]
  let expires: Timestamp
  /// The one share that the session is good for, of an account of another hub. Its zone is the handle then.
  var guest: Guests.Pass?

  func author(now: Timestamp) -> SendAuthor {
    SendAuthor(device: device, deviceName: deviceName, handle: handle, name: name, now: now)
  }
}

extension Accounts {
  static let refusal = HubError(.unauthorized, "the device is unknown, or what it signed is something else")

  /// A nonce for one session. It costs the store nothing.
  package func challenge() -> Challenge { nonces.make(now: clock.now) }

  /// Begins a session of an hour for a device that proves itself.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`, whatever was wrong with the proof, and of kind `wiped` for a device
  ///   that is to destroy what it has.
  package func beginSession(_ request: SessionRequest) async throws -> SessionToken {
    let (now, refusal) = (clock.now, Self.refusal)
    guard addresses.contains(request.address), let nonce = nonces.check(request.nonce, now: now),
      let id = UUID(uuidString: request.zone), id.uuidString.lowercased() == request.zone,
      UUID(uuidString: request.device) != nil
    else { throw refusal }
    let (zone, device) = (request.zone, request.device)
    let (known, wiped) = try await database.read { connection in
      (
        try Self.key(of: device, zone: zone, in: &connection),
        try Wipes.key(of: device, zone: zone, in: &connection)
      )
    }
    if known == nil, let wiped, Self.isProven(request, .session, by: wiped) {
      throw HubError(.wiped, "the device was removed from the account, and is to destroy what it has of it")
    }
    guard let known, Self.isProven(request, .session, by: known) else { throw refusal }
    let token = ZonedSecret(zone: id, length: ZonedSecret.tokenLength)
    let expires = Timestamp(seconds: now.seconds + Self.sessionLifetime)
    try await database.write { connection in
      _ = try Self.take(zone, in: &connection)
      // Looked at again now that nobody removes it meanwhile.
      guard try Self.key(of: device, zone: zone, in: &connection) == known else { throw refusal }
      let ended: [SQLValue] = [.text(zone), .integer(now.nanoseconds)]
      try connection.execute("DELETE FROM nonces WHERE zone = $1 AND expires <= $2", ended)
      try connection.execute("DELETE FROM sessions WHERE zone = $1 AND expires <= $2", ended)
      let isNew = try connection.execute(
        "INSERT INTO nonces (zone, nonce, expires) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [.text(zone), .blob(nonce.bytes), .integer(nonce.expires.nanoseconds)])
      guard isNew == 1 else { throw refusal }
      let sessions = try connection.query(
        "SELECT hash FROM sessions WHERE zone = $1 AND device = $2 ORDER BY expires", [.text(zone), .text(device)])
      for session in sessions.dropLast(Self.mostSessions - 1) {
        try connection.execute(
          "DELETE FROM sessions WHERE zone = $1 AND hash = $2", [.text(zone), .blob(try session.blob(0))])
      }
      try connection.execute(
        "INSERT INTO sessions (zone, hash, device, expires) VALUES ($1, $2, $3, $4)",
        [.text(zone), .blob(token.hash), .text(device), .integer(expires.nanoseconds)])
      try connection.execute(
        "UPDATE devices SET seen = $1 WHERE zone = $2 AND device = $3",
        [.integer(now.nanoseconds), .text(zone), .text(device)])
    }
    return SessionToken(token: token.text, expires: expires.secondsText)
  }

  /// Whose session a token is; nil for one that ended, and for any other text.
  func caller(token: String) async throws -> Caller? {
    guard let secret = ZonedSecret(token, length: ZonedSecret.tokenLength) else { return nil }
    let now = clock.now
    return try await database.read { connection in
      try Self.caller(zone: secret.zone, session: secret.hash, now: now, in: &connection)
    }
  }

  /// Which of some callers still have their session and device.
  func valid(_ callers: [Caller]) async throws -> Set<Caller> {
    let now = clock.now
    return try await database.read { connection in
      var valid: Set<Caller> = []
      for caller in callers
      where try Self.caller(
        zone: caller.guest?.zone ?? caller.zone, session: caller.session, now: now, in: &connection) == caller
      {
        valid.insert(caller)
      }
      return valid
    }
  }

  /// Notes that the devices of some callers are there now.
  func noteSeen(_ callers: Set<Caller>) async throws {
    let now = clock.now
    // In one order, so that two processes never wait for each other.
    let devices = callers.filter { $0.guest == nil }.sorted { ($0.zone, $0.device) < ($1.zone, $1.device) }
    if devices.isEmpty { return }
    try await database.write { connection in
      for caller in devices {
        try connection.execute(
          "UPDATE devices SET seen = $1 WHERE zone = $2 AND device = $3",
          [.integer(now.nanoseconds), .text(caller.zone), .text(caller.device)])
      }
    }
  }

  func endSession(of caller: Caller) async throws {
    _ = try await database.write { connection in
      try connection.execute(
        "DELETE FROM sessions WHERE zone = $1 AND hash = $2", [.text(caller.zone), .blob(caller.session)])
    }
  }

  private static func caller(
    zone: String, session: [UInt8], now: Timestamp, in connection: inout any SQLConnection
  ) throws -> Caller? {
    let rows = try connection.query(
      """
      SELECT sessions.device, sessions.expires, accounts.handle, accounts.name, devices.name FROM sessions
      JOIN devices ON devices.zone = sessions.zone AND devices.device = sessions.device
      JOIN accounts ON accounts.zone = sessions.zone
      WHERE sessions.zone = $1 AND sessions.hash = $2
      """, [.text(zone), .blob(session)])
    guard let row = rows.first else {
      return try Guests.caller(zone: zone, session: session, now: now, in: &connection)
    }
    let expires = Timestamp(nanoseconds: try row.integer(1))
    guard expires > now else { return nil }
    let handle = try row.text(2)
    return Caller(
      zone: zone, device: try row.text(0), handle: handle, name: try row.optionalText(3) ?? handle,
      deviceName: try row.text(4), session: session, expires: expires)
  }
}
