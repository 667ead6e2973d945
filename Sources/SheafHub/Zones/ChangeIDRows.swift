import SheafHubStore
import SheafWire

extension ChangeID {
  /// The id of the change of a zone that has this number.
  static func at(_ number: Int64, of zone: String, _ connection: inout any SQLConnection) throws -> ChangeID {
    if number == 0 { return none }
    let rows = try connection.query(
      "SELECT id FROM changes WHERE zone = $1 AND number >= $2 ORDER BY number LIMIT 1",
      [.text(zone), .integer(number)])
    return try rows.first.map { ChangeID(bytes: try $0.blob(0)) } ?? none
  }

  /// The id of the change of a share's feed that has this number.
  static func at(
    _ number: Int64, in share: WireID, of zone: String, _ connection: inout any SQLConnection
  ) throws -> ChangeID {
    if number == 0 { return none }
    let rows = try connection.query(
      "SELECT id FROM shared_changes WHERE zone = $1 AND share = $2 AND number >= $3 ORDER BY number LIMIT 1",
      [.text(zone), .blob(share.bytes), .integer(number)])
    return try rows.first.map { ChangeID(bytes: try $0.blob(0)) } ?? none
  }

  /// Notes that the transaction's changes of a zone end at this number.
  func note(_ number: Int64, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      "INSERT INTO changes (zone, number, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
      [.text(zone), .integer(number), .blob(bytes)])
  }

  func note(_ number: Int64, in share: WireID, of zone: String, _ connection: inout any SQLConnection) throws {
    try connection.execute(
      "INSERT INTO shared_changes (zone, share, number, id) VALUES ($1, $2, $3, $4)",
      [.text(zone), .blob(share.bytes), .integer(number), .blob(bytes)])
  }
}
