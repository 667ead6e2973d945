/// The name by which people know an account, such as `alice@example.com`.
///
/// A handle matches `[a-z0-9._+-]+@[a-z0-9.-]+` and has at most ``maximumLength`` bytes, so that it can name a folder.
package struct AccountHandle: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The longest handle in bytes: a handle names a folder below `Shared/`, and a name has at most 255 bytes.
  package static let maximumLength = 255

  package let description: String

  /// Checks and wraps `text`.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` that names the text and the form of a handle.
  package init(_ text: String) throws(SheafError) {
    guard Self.isValid(text) else {
      throw SheafError(
        .invalid, subject: text.isEmpty ? "an empty text" : text.printable, reason: "is not a handle",
        advice: "a handle looks like alice@example.com: a-z, 0-9 and ._+-, then @, then a-z, 0-9 and .-")
    }
    description = text
  }

  package init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }

  private static func isValid(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count <= maximumLength, let at = bytes.firstIndex(of: UInt8(ascii: "@")) else { return false }
    let local = bytes[..<at]
    let host = bytes[(at + 1)...]
    func isCommon(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
        UInt8(ascii: "-"):
        true
      default: false
      }
    }
    return !local.isEmpty && !host.isEmpty && host.allSatisfy(isCommon)
      && local.allSatisfy { isCommon($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "+") }
  }
}
