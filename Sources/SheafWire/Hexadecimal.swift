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
