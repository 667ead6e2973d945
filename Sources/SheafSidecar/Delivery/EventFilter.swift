import Foundation
package import SheafModel

/// Which events a sink wants; what is left out wants all.
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
    // What a folder took along is in it.
    let items = [event.data.item] + (event.data.contents ?? [])
    let paths = items.map(\.path) + (event.data.previousPath.map { [$0] } ?? [])
    return documents.contains { pattern in
      let id = pattern.lowercased()
      return items.contains { $0.id == id } || paths.contains { Self.matches(pattern, $0, separator: "/") }
    }
  }

  /// Whether `text` is one that `pattern` describes: `*` stands for anything but the separator, `**` for anything.
  static func matches(_ pattern: String, _ text: String, separator: Character?) -> Bool {
    matches(Array(pattern)[...], Array(text)[...], separator)
  }

  private static func matches(
    _ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>, _ separator: Character?
  ) -> Bool {
    guard let first = pattern.first else { return text.isEmpty }
    guard first == "*" else {
      return text.first == first && matches(pattern.dropFirst(), text.dropFirst(), separator)
    }
    let stars = pattern.prefix { $0 == "*" }
    let rest = pattern.dropFirst(stars.count)
    let stop = stars.count > 1 ? nil : separator
    var tail = text
    while true {
      if matches(rest, tail, separator) { return true }
      guard let next = tail.first, next != stop else { return false }
      tail = tail.dropFirst()
    }
  }
}
