import Foundation
package import SheafModel

/// The events that a sink wants; an empty list wants all.
package struct EventFilter: Sendable, Equatable {
  /// Patterns of types, in which `*` stands for any text.
  package var types: [String]
  /// Ids of items, or patterns of paths: `*` within a name, `**` across folders.
  package var documents: [String]

  package init(types: [String] = [], documents: [String] = []) {
    self.types = types
    self.documents = documents
  }

  package func includes(_ event: Event) -> Bool {
    guard types.isEmpty || types.contains(where: { Self.matches($0, event.type.rawValue, separator: nil) }) else {
      return false
    }
    guard !documents.isEmpty else { return true }
    // A folder's event also concerns the items that the folder took along.
    let items = [event.data.item] + (event.data.contents ?? [])
    let paths = items.map(\.path) + (event.data.previousPath.map { [$0] } ?? [])
    return documents.contains { pattern in
      let id = pattern.lowercased()
      return items.contains { $0.id == id } || paths.contains { Self.matches(pattern, $0, separator: "/") }
    }
  }

  /// Whether a pattern of types describes any type that there is.
  static func isOfAType(_ pattern: String) -> Bool {
    EventType.allCases.contains { matches(pattern, $0.rawValue, separator: nil) }
  }

  /// Whether `text` is one that `pattern` describes: `*` stands for anything but the separator, `**` for anything.
  ///
  /// It takes time in proportion to both lengths, since other people choose the names that a pattern meets.
  static func matches(_ pattern: String, _ text: String, separator: Character?) -> Bool {
    let text = Array(text)
    // For each count of characters, whether the part of the pattern seen so far describes that many.
    var reached = [Bool](repeating: false, count: text.count + 1)
    reached[0] = true
    var rest = pattern[...]
    while let first = rest.first {
      if first == "*" {
        let stars = rest.prefix { $0 == "*" }
        rest = rest.dropFirst(stars.count)
        let stop = stars.count > 1 ? nil : separator
        for index in text.indices where reached[index] && text[index] != stop { reached[index + 1] = true }
      } else {
        rest = rest.dropFirst()
        for index in text.indices.reversed() { reached[index + 1] = reached[index] && text[index] == first }
        reached[0] = false
      }
    }
    return reached[text.count]
  }
}
