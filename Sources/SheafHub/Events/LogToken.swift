import SheafWire

/// A position in a log of events, opaque to devices: a number, and a mark of the log and its epoch.
package struct LogToken: Hashable, Sendable {
  private static let length = 24

  let number: Int64
  let mark: [UInt8]

  init(number: Int64, mark: [UInt8]) { (self.number, self.mark) = (number, mark) }

  /// - Throws: ``HubError`` of kind `invalid` for a text that is no token.
  package init(_ text: String) throws {
    guard let bytes = Hexadecimal.bytes(of: text), bytes.count == Self.length, bytes[0] < 0x80 else {
      throw HubError(.invalid, "token: none of this log's")
    }
    number = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    mark = Array(bytes[8...])
  }

  package var text: String {
    Hexadecimal.text(of: withUnsafeBytes(of: number.bigEndian) { Array($0) } + mark)
  }
}
