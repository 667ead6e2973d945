/// The secret of a share URL: with it one can ask what the link offers.
///
/// It stands only in URLs and in the store, never in a log or error: its description hides it.
package struct ShareToken: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// 24 characters of base64url (RFC 4648, section 5) without padding: 143 random bits.
  package static let length = 24
  /// Most characters of a token that people give.
  private static let maximumLength = 64

  /// The characters themselves.
  package let text: String

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// A new token from the system's generator.
  ///
  /// It begins and ends with a letter or a digit: commands take an argument that begins with `-` for an option, and
  /// programs that find links in texts leave out a sign at their end.
  package static func random() -> ShareToken {
    let plain = alphabet.dropLast(2)
    let characters = (0..<length).compactMap { index in
      (index == 0 || index == length - 1 ? plain : alphabet[...]).randomElement()
    }
    return ShareToken(stored: String(decoding: characters, as: UTF8.self))
  }

  /// A token that the store holds.
  package init(stored text: String) { self.text = text }

  /// - Parameter text: 24 to 64 characters of base64url.
  init?(given text: ArraySlice<UInt8>) {
    guard (Self.length...Self.maximumLength).contains(text.count), text.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    self.text = String(decoding: text, as: UTF8.self)
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
}
