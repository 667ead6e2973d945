/// Names that a hub gives to what it puts beside a document: `NAME (HANDLE DATE DEVICE).EXT`.
package enum HubCopyName {
  /// Whether a name has the form. A person may give a file such a name, too.
  package static func isOne(_ name: [UInt8]) -> Bool {
    name.indices.dropFirst().contains { index in
      guard name[index] == UInt8(ascii: "("), name[index - 1] == UInt8(ascii: " ") else { return false }
      let word = name[(index + 1)...].prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: ")") }
      return word.contains(UInt8(ascii: "@")) && word.endIndex < name.endIndex
    }
  }
}

/// That a hub put a document beside another one, and that nobody has given it a name of its own since.
package struct HubCopy: Hashable, Sendable, Codable {
  /// Where the other one is; nil where it is gone, or not for whoever asks.
  @OrNull package var path: String?

  package init(path: String?) { self.path = path }
}
