/// Bytes as hexadecimal digits in lower case, two for each.
package enum Hexadecimal {
  package static func text(of bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    return String(unsafeUninitializedCapacity: bytes.count * 2) { digits in
      var end = 0
      for byte in bytes { write(byte, to: digits, &end) }
      return end
    }
  }

  /// - Returns: nil where the text is empty, or anything else than two such digits for each byte.
  package static func bytes(of text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { digits in
      guard !digits.isEmpty, digits.count.isMultiple(of: 2) else { return nil }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(digits.count / 2)
      for index in stride(from: 0, to: digits.count, by: 2) {
        guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
        bytes.append(high << 4 | low)
      }
      return bytes
    }
  }

  /// Writes the digits of a byte behind those that are there.
  static func write(_ byte: UInt8, to digits: UnsafeMutableBufferPointer<UInt8>, _ end: inout Int) {
    digits[end] = digit(byte >> 4)
    digits[end + 1] = digit(byte & 15)
    end += 2
  }

  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }

  /// - Returns: nil where it is no such digit.
  static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 48...57: digit - 48
    case 97...102: digit - 87
    default: nil
    }
  }
}
