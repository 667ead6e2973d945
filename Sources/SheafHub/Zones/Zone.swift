import SheafHubStore
import SheafModel

/// What an account's room is for those who keep accounts: it is made and destroyed with the account.
enum Zone {
  static let statements: [StaticString] = [
    """
    CREATE TABLE IF NOT EXISTS zones (
      zone TEXT NOT NULL PRIMARY KEY,
      added BIGINT NOT NULL,
      quota BIGINT,
      used BIGINT NOT NULL)
    """
  ]

  /// Makes an empty zone.
  static func make(_ zone: String, now: Timestamp, in connection: inout any SQLConnection) throws {
    try connection.execute(
      "INSERT INTO zones (zone, added, used) VALUES ($1, $2, 0)", [.text(zone), .integer(now.nanoseconds)])
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
  static func forget(device: String, of zone: String, in connection: inout any SQLConnection) throws {}

  /// Begins an epoch in every zone of a store that is a copy of another one.
  static func beginEpochs(in connection: inout any SQLConnection) throws {}

  /// Checks the rows and the contents of every zone; one line for each finding.
  static func check(_ database: any Database) async throws -> [String] { [] }

  /// Deletes every row of a zone.
  static func destroy(_ zone: String, in connection: inout any SQLConnection) throws {
    try connection.execute("DELETE FROM zones WHERE zone = $1", [.text(zone)])
  }
}
