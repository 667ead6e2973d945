import FoundationEssentials
import SheafModel

/// Facts as JSON (docs/REFERENCE.md, "JSON").
enum JSON {
  /// Prints a value and a newline.
  static func write(_ value: some Encodable) throws {
    try StandardOutput.line(text(value, [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]))
  }

  /// Prints a value on one line.
  static func writeLine(_ value: some Encodable) throws {
    try StandardOutput.line(text(value, [.sortedKeys, .withoutEscapingSlashes]))
  }

  /// The value's JSON, with `\u009b` and the like for characters in strings that act on a terminal.
  static func text(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting
    // An empty list has no lines; a line feed is in no string.
    let text = String(decoding: try encoder.encode(value), as: UTF8.self).replacing(/\[\s*\n\s*\]/, with: "[]")
    // The encoder has escaped characters below U+0020 in strings, and writes only line feeds outside of them.
    guard text.unicodeScalars.contains(where: { $0.isControl && $0 != "\n" }) else { return text }
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      guard scalar.isControl, scalar != "\n" else {
        result.append(scalar)
        continue
      }
      // As UTF-16, which is how JSON escapes (RFC 8259, section 7).
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        result.append(contentsOf: ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).unicodeScalars)
      }
    }
    return String(result)
  }
}
