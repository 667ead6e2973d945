/// Arguments as text that can be turned back into their bytes, since names need not be UTF-8.
///
/// A byte that is part of no UTF-8 becomes one of the last 128 code points, U+10FF80 to U+10FFFF. If an argument
/// contains one of these itself, its bytes are treated the same way, so that every argument comes back as it was.
enum RawArguments {
  private static let first: UInt32 = 0x10FF00

  /// The process's arguments without its name.
  static func strings(_ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, count: CInt) -> [String] {
    (1..<max(1, Int(count))).compactMap { index in
      arguments[index].map { pointer in
        var bytes: [UInt8] = []
        var next = pointer
        while next.pointee != 0 {
          bytes.append(UInt8(bitPattern: next.pointee))
          next += 1
        }
        return text(bytes)
      }
    }
  }

  /// Text for `bytes`.
  static func text(_ bytes: [UInt8]) -> String {
    var result = String.UnicodeScalarView()
    var rest = bytes[...]
    while let byte = rest.first {
      if let (scalar, length) = decode(rest), scalar.value < first + 0x80 {
        result.append(scalar)
        rest = rest.dropFirst(length)
      } else {
        result.append(Unicode.Scalar(first + UInt32(byte)) ?? "\u{FFFD}")
        rest = rest.dropFirst()
      }
    }
    return String(result)
  }

  /// The bytes that `text` stands for.
  static func bytes(_ text: String) -> [UInt8] {
    var result: [UInt8] = []
    for scalar in text.unicodeScalars {
      if scalar.value >= first + 0x80 {
        result.append(UInt8(truncatingIfNeeded: scalar.value))
      } else {
        result += Array(String(scalar).utf8)
      }
    }
    return result
  }

  /// The text for people, with U+FFFD for bytes that are not UTF-8.
  static func readable(_ text: String) -> String { String(decoding: bytes(text), as: UTF8.self) }

  /// The scalar at the front of `bytes` and its length; nil if there is no UTF-8.
  private static func decode(_ bytes: ArraySlice<UInt8>) -> (Unicode.Scalar, Int)? {
    var iterator = bytes.makeIterator()
    var decoder = UTF8()
    guard case .scalarValue(let scalar) = decoder.decode(&iterator) else { return nil }
    return (scalar, UTF8.width(scalar))
  }
}
