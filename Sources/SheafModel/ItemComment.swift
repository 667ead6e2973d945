/// A comment on an item.
package struct ItemComment: Hashable, Sendable, Codable {
  /// Id of the item.
  package let item: String
  package let comment: String
  package let mentioned: [Account]

  package init(item: String, comment: String, mentioned: [Account]) {
    self.item = item
    self.comment = comment
    self.mentioned = mentioned
  }
}

/// A request to comment on an item.
package struct CommentRequest: Hashable, Sendable, Codable {
  package let text: String

  package init(text: String) { self.text = text }
}

/// The people whom a text mentions: each `@handle` that stands alone, such as `@bob@example.com`.
package enum Mentions {
  /// The handles in the order of their first mention, each once. Text without the form of a handle mentions nobody.
  package static func handles(in text: String) -> [AccountHandle] {
    var handles: [AccountHandle] = []
    var previous: Character?
    var index = text.startIndex
    while index < text.endIndex {
      defer {
        previous = text[index]
        index = text.index(after: index)
      }
      guard text[index] == "@", previous.map({ !isPart($0) }) ?? true else { continue }
      var word = text[text.index(after: index)...].prefix { isPart($0) }
      // The full stop after a mention ends the sentence.
      while let last = word.last, last == "." || last == "-" { word = word.dropLast() }
      if let handle = try? AccountHandle(String(word)), !handles.contains(handle) { handles.append(handle) }
    }
    return handles
  }

  /// Whether a character can be part of a handle.
  private static func isPart(_ character: Character) -> Bool {
    guard let byte = character.asciiValue else { return false }
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): return true
    default: return "._+-@".utf8.contains(byte)
    }
  }
}

extension String {
  /// The text without leading and trailing characters for which `isOutside` holds.
  package func trimming(_ isOutside: (Character) -> Bool) -> String {
    var rest = self[...]
    while let first = rest.first, isOutside(first) { rest = rest.dropFirst() }
    while let last = rest.last, isOutside(last) { rest = rest.dropLast() }
    return String(rest)
  }
}
