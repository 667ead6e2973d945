import SheafModel

/// Names and titles that devices and other hubs send.
enum CheckedText {
  /// - Parameter limit: Bytes of UTF-8.
  /// - Throws: ``HubError`` of kind `invalid` for an empty name, a long one, and one that controls the display.
  static func name(_ name: String, upTo limit: Int) throws -> String {
    guard (1...limit).contains(name.utf8.count), !name.unicodeScalars.contains(where: \.isControl) else {
      throw HubError(.invalid, "name: 1 to \(limit) bytes without control characters")
    }
    return name
  }

  /// - Throws: ``HubError`` of kind `invalid` for an empty title, a long one, and one that controls the display.
  static func title(_ title: String) throws -> String {
    guard !title.isEmpty, title.unicodeScalars.count <= 255, !title.unicodeScalars.contains(where: \.isControl) else {
      throw HubError(.invalid, "title: 1 to 255 characters without control characters")
    }
    return title
  }
}
