/// The secret of a share URL: whoever has it can ask what the link offers.
///
/// It stands in URLs and in the store, and in no log or error: its description hides it.
package struct ShareToken: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// 24 characters of base64url (RFC 4648, section 5) without padding: 143 random bits.
  package static let length = 24
  /// Characters of a token at most, in what people give.
  private static let maximumLength = 64

  /// The characters themselves.
  package let text: String

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// A new token from the system's generator.
  ///
  /// It begins and ends with a letter or a digit: commands take what begins with `-` for an option, and programs that
  /// find links in texts leave out a sign at their end.
  package static func random() -> ShareToken {
    let plain = alphabet.dropLast(2)
    let characters = (0..<length).compactMap { index in
      (index == 0 || index == length - 1 ? plain : alphabet[...]).randomElement()
    }
    return ShareToken(stored: String(decoding: characters, as: UTF8.self))
  }

  /// A token that the store holds.
  package init(stored text: String) { self.text = text }

  /// The token in a share URL of any form: `https://ADDRESS/s/TOKEN`, `sheaf://LIBRARY-ID/s/TOKEN`, `/s/TOKEN`, or the
  /// token alone.
  ///
  /// - Throws: ``SheafError`` of kind `invalid` that does not repeat what was given.
  package init(url: String) throws(SheafError) {
    guard url.utf8.count <= 4096 else { throw Self.malformed }
    var bytes = Array(url.utf8)
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: " ") { bytes.removeLast() }
    let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
    var parts = bytes[..<end].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
    if parts.last?.isEmpty ?? false { parts = parts.dropLast() }
    guard let token = parts.last, (Self.length...Self.maximumLength).contains(token.count),
      token.allSatisfy(Self.alphabet.contains)
    else { throw Self.malformed }
    if parts.count > 1 {
      guard parts.dropLast().last == Array("s".utf8)[...] else { throw Self.malformed }
    }
    text = String(decoding: token, as: UTF8.self)
  }

  /// The URL to give to people.
  ///
  /// - Parameters:
  ///   - address: The library's public address; nil for a `sheaf://` URL.
  ///   - library: The library's id.
  package func url(address: String?, library: String) -> String {
    address.map { "https://\($0)/s/\(text)" } ?? "sheaf://\(library)/s/\(text)"
  }

  package var description: String { "…" }
  package var customMirror: Mirror { Mirror(self, children: []) }

  private static let malformed = SheafError(
    .invalid, subject: "the link", reason: "is no share URL",
    advice: "it ends in /s/ and at least \(length) letters, digits, - or _; copy the whole of it")
}
