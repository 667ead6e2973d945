/// The name of a directory entry or of an extended attribute: bytes in no particular encoding, none of them NUL.
package struct FileName: Hashable, Sendable {
  package let bytes: [UInt8]

  /// A name of these bytes, cut off at the first NUL.
  package init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes.prefix { $0 != 0 })
  }

  /// A name in UTF-8.
  package init(_ string: String) {
    self.init(string.utf8)
  }

  init(cString: UnsafePointer<CChar>) {
    var count = 0
    while cString[count] != 0 { count += 1 }
    bytes = [UInt8](UnsafeRawBufferPointer(start: cString, count: count))
  }

  /// The name as text, nil where it is not UTF-8.
  package var string: String? { String(validating: bytes, as: UTF8.self) }

  package var isDot: Bool { bytes == [UInt8(ascii: ".")] }
  package var isDotDot: Bool { bytes == [UInt8(ascii: "."), UInt8(ascii: ".")] }

  /// Calls `body` with the name and a NUL behind it.
  func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withUnsafeTemporaryAllocation(byteCount: bytes.count + 1, alignment: 1) { buffer in
      buffer.copyBytes(from: bytes)
      buffer[bytes.count] = 0
      return buffer.withMemoryRebound(to: CChar.self) { text in
        guard let start = text.baseAddress else { preconditionFailure("an allocation of one byte has an address") }
        return body(UnsafePointer(start))
      }
    }
  }
}

extension FileName: ExpressibleByStringLiteral {
  package init(stringLiteral value: String) {
    self.init(value)
  }
}

extension FileName: CustomStringConvertible {
  /// The name as text. Control characters, backslashes and bytes that are not UTF-8 show as `\xNN`, so that no two
  /// names look alike.
  package var description: String {
    if let string, !string.unicodeScalars.contains(where: { $0.value < 32 || $0.value == 127 || $0 == "\\" }) {
      return string
    }
    return bytes.reduce(into: "") { text, byte in
      if byte >= 32, byte < 127, byte != UInt8(ascii: "\\") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
  }
}
