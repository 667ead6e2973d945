import Foundation
import SheafHubStore
import SheafModel
package import SheafWire

/// Devices that were removed to destroy what they have of the account.
///
/// Rules:
/// 1. Such a device is none any more: its sessions end, and it begins no others.
/// 2. The hub keeps its public key, and tells nobody but the device that has the private one what it is to do.
/// 3. It stays among the account's devices, with how far it is, until somebody removes it from there.
enum Wipes {
  /// Devices of an account that are to be wiped, or were.
  static let most = 64

  /// Those of an account, the oldest first.
  static func list(_ zone: String, in connection: inout any SQLConnection) throws -> [DeviceFacts] {
    try connection.query(
      "SELECT device, name, added, seen, asked, done FROM wipes WHERE zone = $1 ORDER BY asked, device", [.text(zone)]
    ).map { row in
      try Accounts.facts(
        row,
        wipe: WipeFacts(
          asked: Timestamp(nanoseconds: try row.integer(4)).secondsText,
          done: try row.optionalInteger(5).map { Timestamp(nanoseconds: $0).secondsText }))
    }
  }

  static func isKnown(_ device: String, of zone: String, in connection: inout any SQLConnection) throws -> Bool {
    try key(of: device, zone: zone, in: &connection) != nil
  }

  /// The public key of such a device; nil where there is none.
  static func key(of device: String, zone: String, in connection: inout any SQLConnection) throws -> [UInt8]? {
    try connection.query("SELECT key FROM wipes WHERE zone = $1 AND device = $2", [.text(zone), .text(device)])
      .first?.blob(0)
  }

  /// Notes that a device is to be wiped, before it is removed.
  ///
  /// - Throws: ``HubError`` of kind `notFound`, and of kind `conflict` if too many are to be wiped already.
  static func ask(
    _ device: String, of zone: String, at now: Timestamp, in connection: inout any SQLConnection
  ) throws {
    let known = try connection.query(
      "SELECT name, key, added, seen FROM devices WHERE zone = $1 AND device = $2", [.text(zone), .text(device)])
    guard let row = known.first else { throw HubError(.notFound, "the account has no such device") }
    let rows = try connection.query("SELECT COUNT(*) FROM wipes WHERE zone = $1", [.text(zone)])
    if try rows.first?.integer(0) ?? 0 >= most {
      // Those that told that they are done are of the least use.
      let done = try connection.query(
        "SELECT device FROM wipes WHERE zone = $1 AND done IS NOT NULL ORDER BY done LIMIT 1", [.text(zone)])
      guard let oldest = done.first else {
        throw HubError(.conflict, "\(most) devices are to be wiped already, which is the most; remove one of those")
      }
      try forget(try oldest.text(0), of: zone, in: &connection)
    }
    try connection.execute(
      "INSERT INTO wipes (zone, device, name, key, added, seen, asked) VALUES ($1, $2, $3, $4, $5, $6, $7)",
      [
        .text(zone), .text(device), .text(try row.text(0)), .blob(try row.blob(1)), .integer(try row.integer(2)),
        .optional(try row.optionalInteger(3)), .integer(now.nanoseconds),
      ])
  }

  static func forget(_ device: String, of zone: String, in connection: inout any SQLConnection) throws {
    try connection.execute(
      "DELETE FROM wipes WHERE zone = $1 AND device = $2", [.text(zone), .text(device)])
  }

  /// Forgets all of an account.
  static func destroy(_ zone: String, in connection: inout any SQLConnection) throws {
    try connection.execute("DELETE FROM wipes WHERE zone = $1", [.text(zone)])
  }
}

extension Accounts {
  /// Notes that a device destroyed what it had of the account. It may say so again, as where it got no answer.
  ///
  /// - Throws: ``HubError`` of kind `unauthorized`, whatever was wrong with the proof.
  package func noteWiped(_ request: SessionRequest) async throws {
    let (now, refusal) = (clock.now, Self.refusal)
    guard nonces.check(request.nonce, now: now) != nil, addresses.contains(request.address),
      WireID(request.zone)?.description == request.zone, WireID(request.device)?.description == request.device
    else { throw refusal }
    let (zone, device) = (request.zone, request.device)
    let known = try await database.read { connection in try Wipes.key(of: device, zone: zone, in: &connection) }
    guard let known, Self.isProven(request, .wipe, by: known) else { throw refusal }
    try await database.write { connection in
      _ = try Self.take(zone, in: &connection)
      try connection.execute(
        "UPDATE wipes SET done = $1 WHERE zone = $2 AND device = $3 AND done IS NULL",
        [.integer(now.nanoseconds), .text(zone), .text(device)])
    }
  }

  /// Whether a request is signed with a key.
  static func isProven(_ request: SessionRequest, _ purpose: DeviceProof.Purpose, by key: [UInt8]) -> Bool {
    guard let key = try? DeviceKey(key) else { return false }
    return key.verifies(request.signature, of: purpose, address: request.address, secret: request.nonce)
  }
}
