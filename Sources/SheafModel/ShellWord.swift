extension String {
  /// The text as one word of a shell's command line, whatever it holds (POSIX.1-2024, Shell Command Language, 2.2).
  ///
  /// Control characters are written as `$'…'` has them.
  package var shellWord: String {
    let plain = UInt8(ascii: "a")...UInt8(ascii: "z")
    let isPlain = utf8.allSatisfy { byte in
      plain.contains(byte | 0x20) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte >= 0x80
        || "/._-:@%+,=".utf8.contains(byte)
    }
    let scalars = unicodeScalars
    if isPlain, !isEmpty, scalars.allSatisfy({ $0.properties.generalCategory != .format && !Self.isControl($0) }) {
      return self
    }
    guard scalars.contains(where: { Self.isControl($0) || $0.properties.generalCategory == .format }) else {
      return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
    var word = "$'"
    for scalar in scalars {
      if scalar == "'" || scalar == "\\" {
        word += "\\\(scalar)"
      } else if Self.isControl(scalar) || scalar.properties.generalCategory == .format {
        for byte in String(scalar).utf8 { word += Self.escaped(byte) }
      } else {
        word.unicodeScalars.append(scalar)
      }
    }
    return word + "'"
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }

  /// A byte as `$'…'` has it.
  fileprivate static func escaped(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16)
    return "\\x" + (digits.count < 2 ? "0" : "") + digits
  }
}

extension [UInt8] {
  /// The bytes as one word of a shell's command line, also those that are no UTF-8.
  package var shellWord: String {
    if let text = String(validating: self, as: UTF8.self) { return text.shellWord }
    let parts = map { byte in
      let isPlain = (0x20...0x7E).contains(byte) && !"'\\".utf8.contains(byte)
      return isPlain ? String(Unicode.Scalar(byte)) : String.escaped(byte)
    }
    return "$'" + parts.joined() + "'"
  }
}

extension ItemPath {
  /// The path as one word of a shell's command line.
  package var shellWord: String { bytes.shellWord }
}
