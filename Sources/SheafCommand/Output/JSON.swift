import FoundationEssentials

/// Facts as JSON, in the words of CONTRACT.md.
enum JSON {
  /// Prints a value and a newline.
  static func write(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try StandardOutput.write(try encoder.encode(value) + [UInt8(ascii: "\n")])
  }

  /// Prints a value on one line.
  static func writeLine(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try StandardOutput.write(try encoder.encode(value) + [UInt8(ascii: "\n")])
  }
}
