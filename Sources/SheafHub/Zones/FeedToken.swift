import SheafWire

/// A position in a zone's feed, opaque to devices: number, epoch, and the id of the change that has the number.
package struct FeedToken: Hashable, Sendable {
  private static let length = 32

  let number: Int64
  let epoch: [UInt8]
  /// A zone that went back, and then on otherwise, has another one at this number.
  let change: ChangeID

  init(number: Int64, epoch: [UInt8], change: ChangeID) {
    self.number = number
    self.epoch = epoch
    self.change = change
  }

  /// - Throws: ``HubError`` of kind `invalid` for a text that is no token.
  package init(_ text: String) throws {
    let invalid = HubError(.invalid, "token: none of this hub's")
    guard let bytes = Hexadecimal.bytes(of: text), bytes.count == Self.length else { throw invalid }
    number = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    epoch = Array(bytes[8..<24])
    change = ChangeID(bytes: Array(bytes[24...]))
    guard number >= 0 else { throw invalid }
  }

  package var text: String {
    Hexadecimal.text(of: withUnsafeBytes(of: number.bigEndian) { Array($0) } + epoch + change.bytes)
  }
}
