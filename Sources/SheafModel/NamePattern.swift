/// A pattern of names as the shell has it (glob(7)): `*` any characters, `?` one, `[…]` one of a set, `\` takes away
/// the meaning of the next one. It is compared with the whole name.
///
/// A name is compared character by character if it is UTF-8, else byte by byte. Comparing takes as many steps as name
/// and pattern are long together, multiplied: none of the patterns for which fnmatch(3) takes years.
package struct NamePattern: Hashable, Sendable {
  /// Bytes of the longest pattern.
  package static let longest = 1024

  private enum Token: Hashable, Sendable {
    case character(UInt32)
    case anyOne
    case anyNumber
    case oneOf([ClosedRange<UInt32>], negated: Bool)
  }

  private let tokens: [Token]

  /// - Throws: ``SheafError`` of kind `invalid` for a pattern that is empty or too long, and for a set without an end.
  package init(_ pattern: String) throws(SheafError) {
    guard (1...Self.longest).contains(pattern.utf8.count) else {
      throw Self.refusal(pattern, "is empty or longer than \(Self.longest) bytes")
    }
    var tokens: [Token] = []
    var rest = pattern.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "*": if tokens.last != .anyNumber { tokens.append(.anyNumber) }
      case "?": tokens.append(.anyOne)
      case "[": tokens.append(try Self.set(&rest, of: pattern))
      case "\\":
        guard let next = rest.popFirst() else { throw Self.refusal(pattern, "ends with a \\") }
        tokens.append(.character(next.value))
      default: tokens.append(.character(scalar.value))
      }
    }
    self.tokens = tokens
  }

  private static func refusal(_ pattern: String, _ reason: String) -> SheafError {
    SheafError(
      .invalid, subject: "pattern \(pattern.printable)", reason: reason,
      advice: "write one as the shell has it, such as '*.md'")
  }

  /// The characters after `[`, up to `]`.
  private static func set(
    _ rest: inout Substring.UnicodeScalarView, of pattern: String
  ) throws(SheafError) -> Token {
    var (ranges, negated, isFirst) = ([ClosedRange<UInt32>](), false, true)
    if rest.first == "!" || rest.first == "^" {
      negated = true
      rest.removeFirst()
    }
    while var scalar = rest.popFirst() {
      if scalar == "]", !isFirst { return .oneOf(ranges, negated: negated) }
      isFirst = false
      if scalar == "\\", let next = rest.popFirst() { scalar = next }
      var last = scalar
      if rest.first == "-", rest.dropFirst().first.map({ $0 != "]" }) ?? false {
        rest.removeFirst()
        if rest.first == "\\" { rest.removeFirst() }
        guard let end = rest.popFirst() else { break }
        last = end
      }
      // As in the shell, nothing lies between an end and a beginning.
      if scalar <= last { ranges.append(scalar.value...last.value) }
    }
    throw refusal(pattern, "has a [ without its ]")
  }

  /// Whether a name has this form.
  package func matches(_ name: [UInt8]) -> Bool {
    // Bytes that are no characters are compared with nothing but `?`, `*` and negated sets.
    let characters = String(validating: name, as: UTF8.self)?.unicodeScalars.map(\.value) ?? name.map { UInt32($0) }
    var (place, token) = (0, 0)
    // Where the last `*` stands, and up to where it goes for now.
    var star: (token: Int, place: Int)?
    while place < characters.count {
      if token < tokens.count, tokens[token] == .anyNumber {
        star = (token, place)
        token += 1
      } else if token < tokens.count, Self.fits(characters[place], tokens[token]) {
        place += 1
        token += 1
      } else if let last = star {
        star = (last.token, last.place + 1)
        (token, place) = (last.token + 1, last.place + 1)
      } else {
        return false
      }
    }
    return tokens[token...].allSatisfy { $0 == .anyNumber }
  }

  private static func fits(_ character: UInt32, _ token: Token) -> Bool {
    switch token {
    case .character(let wanted): character == wanted
    case .anyOne: true
    case .anyNumber: false
    case .oneOf(let ranges, let negated): ranges.contains { $0.contains(character) } != negated
    }
  }
}
