/// A share URL as people give it: `https://ADDRESS/s/TOKEN`, `sheaf://LIBRARY-ID/s/TOKEN`, `/s/TOKEN`, or the token
/// alone.
package struct ShareURL: Hashable, Sendable {
  /// The part of a URL before its token.
  package enum Place: Hashable, Sendable {
    /// A library, by its id.
    case library(String)
    /// A library's public address, in lower case and without the port of https.
    case address(String)
    /// Any library: the one that is asked.
    case any
  }

  package let place: Place
  package let token: ShareToken

  /// - Throws: ``SheafError`` of kind `invalid`, which does not repeat the given text.
  package init(_ url: String) throws(SheafError) {
    guard url.utf8.count <= 4096 else { throw Self.malformed }
    var bytes = Array(url.utf8)
    while bytes.last == UInt8(ascii: "\n") || bytes.last == UInt8(ascii: " ") { bytes.removeLast() }
    let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
    var parts = bytes[..<end].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    if parts.last?.isEmpty ?? false { parts.removeLast() }
    guard let last = parts.last, let token = ShareToken(given: last) else { throw Self.malformed }
    let texts = parts.dropLast().map { String(decoding: $0, as: UTF8.self) }
    switch (texts.count, texts.first?.lowercased(), texts.last) {
    case (0, _, _): place = .any
    case (2, "", "s"): place = .any
    case (4, "sheaf:", "s") where texts[1].isEmpty: place = .library(texts[2].lowercased())
    case (4, "https:", "s") where texts[1].isEmpty && Self.hasOnePort(texts[2]): place = .address(Self.plain(texts[2]))
    default: throw Self.malformed
    }
    self.token = token
  }

  /// Whether at most one port follows a host; in brackets, colons are of an IPv6 address (RFC 3986, 3.2.2).
  private static func hasOnePort(_ host: String) -> Bool {
    let end = host.lastIndex(of: "]") ?? host.startIndex
    return host[end...].count { $0 == ":" } <= 1
  }

  /// A host in the form for comparing: in lower case, without the port of https.
  package static func plain(_ host: String) -> String {
    let host = host.lowercased()
    return host.hasSuffix(":443") ? String(host.dropLast(4)) : host
  }

  private static let malformed = SheafError(
    .invalid, subject: "the link", reason: "is no share URL",
    advice: "it ends in /s/ and at least \(ShareToken.length) letters, digits, - or _; copy the whole of it")
}
