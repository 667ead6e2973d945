import SheafHubStore
import SheafWire

/// From where a reader goes on in a log of events.
package enum LogPosition: Hashable, Sendable {
  /// After a number, whatever the epoch is.
  case number(Int64)
  /// After a token, or after a number that was read with it.
  case token(LogToken, after: Int64?)
  /// The same in an epoch before: where the log of then and the log of now part, or before that.
  case former(LogToken, after: Int64?)
}

/// A log of events, of a zone or of a share, in the epoch of its zone.
struct EpochLog {
  let zone: String
  /// Nil for the zone's own log.
  let share: WireID?
  let epoch: [UInt8]
  /// The number of the newest event.
  let last: Int64

  /// What tokens of the log bear in an epoch: nobody takes one for another log's.
  private func mark(_ epoch: [UInt8]) -> [UInt8] { share.map { SharedToken.mark($0, epoch: epoch) } ?? epoch }

  func token(at number: Int64) -> LogToken { LogToken(number: number, mark: mark(epoch)) }

  /// The number after which a reader goes on.
  ///
  /// - Throws: ``HubError`` of kind `gone` for a position of another epoch, or after a number that the log does not
  ///   have.
  func number(of position: LogPosition, _ connection: inout any SQLConnection) throws -> Int64 {
    switch position {
    case .number(let number): return number
    case .token(let token, let after):
      let number = after ?? token.number
      guard token.mark == mark(epoch), number <= last else {
        throw HubError(.gone, "token: of another time; ask by it as former where the log goes on")
      }
      return number
    case .former(let token, let after):
      let number = after ?? token.number
      if token.mark == mark(epoch) { return min(number, last) }
      let rows = try connection.query(
        "SELECT epoch, events FROM epochs WHERE zone = $1 AND share = $2", [.text(zone), .blob(share?.bytes ?? [])])
      for row in rows where try mark(row.blob(0)) == token.mark { return min(number, try row.integer(1)) }
      throw HubError(.gone, "former: of a time that the hub does not know; read the log from its beginning")
    }
  }
}
