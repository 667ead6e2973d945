import Foundation
import SheafHubStore
import SheafModel
package import SheafWire

extension Accounts {
  /// Makes an enrolment code, good for one device and a day.
  ///
  /// - Returns: the code, and when it ends.
  /// - Throws: ``HubError`` of kind `tooMany` if the account has too many that are not spent.
  package func makeCode(for zone: String) async throws -> (code: String, expires: String) {
    guard let id = UUID(uuidString: zone) else { throw HubError(.notFound, "there is no such account") }
    let (secret, now) = (ZonedSecret(zone: id, length: ZonedSecret.codeLength), clock.now)
    let expires = Timestamp(seconds: now.seconds + Self.codeLifetime)
    try await database.write { connection in
      _ = try Self.take(zone, in: &connection)
      try connection.execute(
        "DELETE FROM codes WHERE zone = $1 AND expires <= $2", [.text(zone), .integer(now.nanoseconds)])
      let rows = try connection.query(
        "SELECT COUNT(*) FROM codes WHERE zone = $1 AND device IS NULL", [.text(zone)])
      guard try rows.first?.integer(0) ?? 0 < Self.mostCodes else {
        throw HubError(.tooMany, "the account has \(Self.mostCodes) links that are not used yet, which is the most")
      }
      try connection.execute(
        "INSERT INTO codes (zone, hash, expires) VALUES ($1, $2, $3)",
        [.text(zone), .blob(secret.hash), .integer(expires.nanoseconds)])
    }
    return (secret.text, expires.secondsText)
  }

  /// When the codes end that are good and not spent, the next one first.
  package func openCodes(of zone: String) async throws -> [String] {
    let now = clock.now
    return try await database.read { connection in
      try connection.query(
        "SELECT expires FROM codes WHERE zone = $1 AND device IS NULL AND expires > $2 ORDER BY expires",
        [.text(zone), .integer(now.nanoseconds)]
      ).map { Timestamp(nanoseconds: try $0.integer(0)).secondsText }
    }
  }

  /// Makes an account's codes that are not spent useless; returns how many were good.
  package func revokeCodes(of zone: String) async throws -> Int {
    let now = clock.now
    return try await database.write { connection in
      _ = try Self.take(zone, in: &connection)
      return try Self.revokeCodes(of: zone, at: now, in: &connection)
    }
  }

  private static func revokeCodes(
    of zone: String, at now: Timestamp, in connection: inout any SQLConnection
  ) throws -> Int {
    try connection.execute(
      "DELETE FROM codes WHERE zone = $1 AND device IS NULL AND expires <= $2",
      [.text(zone), .integer(now.nanoseconds)])
    return try connection.execute("DELETE FROM codes WHERE zone = $1 AND device IS NULL", [.text(zone)])
  }

  /// Spends an enrolment code. The device that spent it may ask again, and gets the same answer.
  ///
  /// - Throws: ``HubError`` of kind `invalid` for a request that proves nothing, of kind `forbidden` for a code that is
  ///   none, too old, or spent by another device, and of kind `conflict` for an account with as many devices as it may
  ///   have.
  package func enroll(_ request: DeviceRequest) async throws -> EnrolledDevice {
    let (key, code) = try proven(request)
    let (device, now, zone) = (UUID().uuidString.lowercased(), clock.now, code.zone)
    return try await database.write { connection in
      // Looked at before the row is taken, so that strangers with made-up codes hold nobody up.
      _ = try Self.spender(of: code, key, at: now, in: &connection)
      let handle = try Self.take(zone, in: &connection)
      if let device = try Self.spender(of: code, key, at: now, in: &connection) {
        return EnrolledDevice(device: device, handle: handle, zone: zone)
      }
      try connection.execute(
        "INSERT INTO devices (zone, device, name, key, added) VALUES ($1, $2, $3, $4, $5)",
        [.text(zone), .text(device), .text(request.name), .blob(key.bytes), .integer(now.nanoseconds)])
      try connection.execute(
        "UPDATE codes SET device = $1 WHERE zone = $2 AND hash = $3", [.text(device), .text(zone), .blob(code.hash)])
      return EnrolledDevice(device: device, handle: handle, zone: zone)
    }
  }

  /// Of whom a machine would become a device by a request. Nothing is spent: the machine can say so before it makes
  /// anything.
  ///
  /// - Throws: ``HubError`` as ``enroll(_:)`` does.
  package func preview(_ request: DeviceRequest) async throws -> EnrollmentPreview {
    let (key, code) = try proven(request)
    let (now, zone) = (clock.now, code.zone)
    return try await database.read { connection in
      _ = try Self.spender(of: code, key, at: now, in: &connection)
      let rows = try connection.query("SELECT handle FROM accounts WHERE zone = $1", [.text(zone)])
      guard let row = rows.first else { throw Self.unusable }
      return EnrollmentPreview(handle: try row.text(0), zone: zone)
    }
  }

  private static let unusable = HubError(.forbidden, "the link is used, too old, or none of this hub")

  /// The key and the code of a request that was signed with that key.
  private func proven(_ request: DeviceRequest) throws -> (key: DeviceKey, code: ZonedSecret) {
    _ = try CheckedText.name(request.name, upTo: DeviceRequest.longestName)
    let key = try DeviceKey(request.key)
    guard addresses.contains(request.address) else { throw HubError(.invalid, "address: this hub has another") }
    guard key.verifies(request.signature, of: .enroll, address: request.address, secret: request.code) else {
      throw HubError(.invalid, "signature: not the key's, or of something else")
    }
    guard let code = ZonedSecret(request.code, length: ZonedSecret.codeLength) else { throw Self.unusable }
    return (key, code)
  }

  /// The device that spent a code with this key; nil if nobody has spent it, and the account may have one more device.
  private static func spender(
    of code: ZonedSecret, _ key: DeviceKey, at now: Timestamp, in connection: inout any SQLConnection
  ) throws -> String? {
    let rows = try connection.query(
      "SELECT expires, device FROM codes WHERE zone = $1 AND hash = $2", [.text(code.zone), .blob(code.hash)])
    guard let row = rows.first, try row.integer(0) > now.nanoseconds else { throw unusable }
    if let device = try row.optionalText(1) {
      guard try Self.key(of: device, zone: code.zone, in: &connection) == key.bytes else { throw unusable }
      return device
    }
    let count = try connection.query("SELECT COUNT(*) FROM devices WHERE zone = $1", [.text(code.zone)])
    guard try count.first?.integer(0) ?? 0 < mostDevices else {
      throw HubError(.conflict, "the account has \(mostDevices) devices, which is the most; remove one")
    }
    return nil
  }

  /// The devices of an account, the oldest first, and then those that were removed to destroy what they have of it.
  package func devices(of zone: String) async throws -> [DeviceFacts] {
    try await database.read { connection in
      let devices = try connection.query(
        "SELECT device, name, added, seen FROM devices WHERE zone = $1 ORDER BY added", [.text(zone)]
      ).map { try Self.facts($0, wipe: nil) }
      return try devices + Wipes.list(zone, in: &connection)
    }
  }

  /// - Parameter row: Begins with id, name, and when it was added and seen.
  static func facts(_ row: SQLRow, wipe: WipeFacts?) throws -> DeviceFacts {
    DeviceFacts(
      id: try row.text(0), name: try row.text(1), added: Timestamp(nanoseconds: try row.integer(2)).secondsText,
      seen: try row.optionalInteger(3).map { Timestamp(nanoseconds: $0).secondsText }, wipe: wipe)
  }

  /// Removes a device, which ends its sessions. One that was removed to be wiped is forgotten; what it has and has not
  /// destroyed yet stays there, if it does not ask before.
  ///
  /// The account's codes that are not spent end with it, unless the device removes itself: it may have made one, and
  /// whoever has the machine would come back by that.
  ///
  /// - Parameters:
  ///   - caller: The device that asks; nil for the administrator.
  ///   - wipes: Whether it is to destroy what it has of the account once it asks for a session.
  /// - Returns: How many codes ended.
  /// - Throws: ``HubError`` of kind `notFound`, and of kind `conflict` if too many are to be wiped already.
  @discardableResult
  package func removeDevice(
    _ device: String, of zone: String, by caller: String? = nil, wipes: Bool = false
  ) async throws -> Int {
    let now = clock.now
    return try await database.write { connection in
      _ = try Self.take(zone, in: &connection)
      let values: [SQLValue] = [.text(zone), .text(device)]
      if try Wipes.isKnown(device, of: zone, in: &connection) {
        if !wipes { try Wipes.forget(device, of: zone, in: &connection) }
        return 0
      }
      if wipes { try Wipes.ask(device, of: zone, at: now, in: &connection) }
      guard try connection.execute("DELETE FROM devices WHERE zone = $1 AND device = $2", values) == 1 else {
        throw HubError(.notFound, "the account has no such device")
      }
      try connection.execute("DELETE FROM sessions WHERE zone = $1 AND device = $2", values)
      try Zone.forget(device: device, of: zone, in: &connection)
      try Collaborations.forget(device: device, of: zone, at: now, &connection)
      return caller == device ? 0 : try Self.revokeCodes(of: zone, at: now, in: &connection)
    }
  }

  /// The public key of a device; nil where there is no such device.
  static func key(of device: String, zone: String, in connection: inout any SQLConnection) throws -> [UInt8]? {
    try connection.query("SELECT key FROM devices WHERE zone = $1 AND device = $2", [.text(zone), .text(device)])
      .first?.blob(0)
  }
}
