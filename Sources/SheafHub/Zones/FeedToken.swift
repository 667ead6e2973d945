import SheafWire

/// A position in a zone's feed, opaque to devices: number and epoch.
package struct FeedToken: Hashable, Sendable {
  let number: Int64
  let epoch: [UInt8]

  init(number: Int64, epoch: [UInt8]) {
    self.number = number
    self.epoch = epoch
  }

  /// - Throws: ``HubError`` of kind `invalid` for a text that is no token.
  package init(_ text: String) throws {
    let digits = Array(text.utf8)
    guard digits.count == 48, digits.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
      throw HubError(.invalid, "token: none of this hub's")
    }
    let bytes = stride(from: 0, to: 48, by: 2).map { place in
      digits[place...(place + 1)].reduce(UInt8(0)) { $0 << 4 | ($1 < 97 ? $1 - 48 : $1 - 87) }
    }
    number = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    epoch = Array(bytes[8...])
    guard number >= 0 else { throw HubError(.invalid, "token: none of this hub's") }
  }

  package var text: String {
    let bytes = withUnsafeBytes(of: number.bigEndian) { Array($0) } + epoch
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
