import Crypto
import SheafWire

/// A position in a share's feed, opaque to devices.
package struct SharedToken: Hashable, Sendable {
  /// The number up to which the reader has read.
  let number: Int64
  /// The number at which it was last complete: items that entered since are new to it.
  let since: Int64
  /// Of the share and the epoch of its zone.
  let mark: [UInt8]
  /// The id of the change that has the number.
  let change: ChangeID

  init(number: Int64, since: Int64, mark: [UInt8], change: ChangeID) {
    self.number = number
    self.since = since
    self.mark = mark
    self.change = change
  }

  static func mark(_ share: WireID, epoch: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(data: share.bytes + epoch).prefix(16))
  }

  /// - Throws: ``HubError`` of kind `invalid` for a text that is no token.
  package init(_ text: String) throws {
    let invalid = HubError(.invalid, "token: none of this share's")
    guard let bytes = Hexadecimal.bytes(of: text), bytes.count == 40 else { throw invalid }
    number = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    since = bytes[8..<16].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    mark = Array(bytes[16..<32])
    change = ChangeID(bytes: Array(bytes[32...]))
    guard number >= 0, (0...number).contains(since) else { throw invalid }
  }

  package var text: String {
    let numbers = [number, since].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
    return Hexadecimal.text(of: numbers + mark + change.bytes)
  }
}
