import SheafModel
import SheafWire

/// Which contents are merged line by line: text of which a line means the same wherever it stands.
enum MergeableText {
  /// Whether a document of such names may be: none is below a folder whose name begins with a dot, where programs keep
  /// what they alone understand.
  ///
  /// - Parameter ways: For each place of the document, its name and those of the folders above.
  static func allows(_ ways: [[[UInt8]]]) -> Bool {
    !ways.contains { way in
      guard let name = way.first else { return true }
      let text = String(decoding: name, as: UTF8.self).lowercased()
      return text.hasSuffix(".json") || text.hasSuffix(".xml")
        || way.dropFirst().contains { $0.first == UInt8(ascii: ".") }
    }
  }

  /// Whether bytes are UTF-8 without NUL, and neither JSON nor XML by how they begin and end.
  static func allows(_ bytes: [UInt8]) -> Bool {
    guard bytes.count <= TextMerge.byteLimit, !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
      return false
    }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
    let isSpace = { (byte: UInt8) in byte == 32 || (9...13).contains(byte) }
    guard let first = text.first(where: { !isSpace($0) }), let last = text.last(where: { !isSpace($0) }) else {
      return true
    }
    let isJSON =
      (first == UInt8(ascii: "{") && last == UInt8(ascii: "}"))
      || (first == UInt8(ascii: "[") && last == UInt8(ascii: "]"))
    return !isJSON && first != UInt8(ascii: "<")
  }

  /// The text of three that has what the sides changed, if all three may be merged.
  static func merged(base: [UInt8], _ mine: [UInt8], _ theirs: [UInt8]) -> [UInt8]? {
    guard [base, mine, theirs].allSatisfy(allows) else { return nil }
    return TextMerge.merged(base: base, mine, theirs)
  }
}
