import Crypto
import Foundation
import SheafHubStore
package import SheafWire

/// What a send asks for, as far as it tells one from another: a device whose disk was put back to an earlier state gives
/// its serials again, to other sends.
package struct SendDigest: Hashable, Sendable {
  let text: String

  package init(_ send: Send) throws {
    var asked = send
    asked.serial = 0
    // These may come in one way, and then in the other.
    asked.version?.contents = nil
    asked.version?.extents = []
    text = Hexadecimal.text(of: SHA256.hash(data: Data(try StoredZone.encoded(asked).utf8)).prefix(16))
  }
}

/// The verdicts that a device has not confirmed: of its own zone, or of a share that its account takes part in.
struct VerdictBook {
  let zone: String
  let device: String
  /// Nil for the zone's own devices.
  let place: SharedPlace?

  private var shared: [SQLValue] {
    [.text(zone), .blob(place?.share.bytes ?? []), .text(place?.account ?? "")]
  }

  private var key: [SQLValue] {
    place == nil ? [.text(zone), .text(device)] : shared + [.text(device)]
  }

  /// Every verdict up to this serial has arrived.
  func confirmed(_ connection: inout any SQLConnection) throws -> Int64 {
    let rows =
      place == nil
      ? try connection.query("SELECT confirmed FROM watermarks WHERE zone = $1 AND device = $2", key)
      : try connection.query(
        """
        SELECT confirmed FROM shared_watermarks WHERE zone = $1 AND share = $2 AND account = $3 AND device = $4
        """, key)
    return try rows.first?.integer(0) ?? 0
  }

  /// How many there are; in a share, of all devices of the account.
  func count(_ connection: inout any SQLConnection) throws -> Int64 {
    let rows =
      place == nil
      ? try connection.query("SELECT COUNT(*) FROM verdicts WHERE zone = $1 AND device = $2", key)
      : try connection.query(
        "SELECT COUNT(*) FROM shared_verdicts WHERE zone = $1 AND share = $2 AND account = $3", shared)
    return try rows.first?.integer(0) ?? 0
  }

  /// A verdict with what it answers.
  private struct Entry: Codable {
    let asked: String
    let verdict: Verdict
  }

  /// The verdict that a serial has; if that answers another send, one that refuses this one. Nil for a new serial.
  func verdict(on send: Send, _ connection: inout any SQLConnection) throws -> Verdict? {
    let values = key + [.integer(send.serial)]
    let rows =
      place == nil
      ? try connection.query("SELECT verdict FROM verdicts WHERE zone = $1 AND device = $2 AND serial = $3", values)
      : try connection.query(
        """
        SELECT verdict FROM shared_verdicts
        WHERE zone = $1 AND share = $2 AND account = $3 AND device = $4 AND serial = $5
        """, values)
    guard let entry: Entry = try rows.first.map({ try StoredZone.decoded($0.text(0)) }) else { return nil }
    return try entry.asked == SendDigest(send).text ? entry.verdict : Verdict(confirmed: send)
  }

  func keep(_ verdict: Verdict, on send: Send, _ connection: inout any SQLConnection) throws {
    let entry = Entry(asked: try SendDigest(send).text, verdict: verdict)
    let values = key + [.integer(verdict.serial), .text(try StoredZone.encoded(entry))]
    if place == nil {
      try connection.execute("INSERT INTO verdicts (zone, device, serial, verdict) VALUES ($1, $2, $3, $4)", values)
    } else {
      try connection.execute(
        """
        INSERT INTO shared_verdicts (zone, share, account, device, serial, verdict) VALUES ($1, $2, $3, $4, $5, $6)
        """, values)
    }
  }

  func forget(through watermark: Int64, _ connection: inout any SQLConnection) throws {
    let values = key + [.integer(watermark)]
    if place == nil {
      try connection.execute(
        """
        INSERT INTO watermarks (zone, device, confirmed) VALUES ($1, $2, $3)
        ON CONFLICT (zone, device) DO UPDATE SET confirmed = excluded.confirmed
        """, values)
      try connection.execute("DELETE FROM verdicts WHERE zone = $1 AND device = $2 AND serial <= $3", values)
    } else {
      try connection.execute(
        """
        INSERT INTO shared_watermarks (zone, share, account, device, confirmed) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (zone, share, account, device) DO UPDATE SET confirmed = excluded.confirmed
        """, values)
      try connection.execute(
        """
        DELETE FROM shared_verdicts
        WHERE zone = $1 AND share = $2 AND account = $3 AND device = $4 AND serial <= $5
        """, values)
    }
  }
}

extension Verdict {
  /// Refuses a send whose serial was used before.
  init(confirmed send: Send) {
    self.init(serial: send.serial, outcome: .refused, reason: .confirmed, item: send.item)
  }
}
