extension Unicode.Scalar {
  /// Whether it controls the display of a text instead of being visible in it: controls of terminals (C0 and C1), ends
  /// of lines, and, with which a name looks like another one, controls of writing direction (Unicode, Bidi_Control) and
  /// what nobody sees and hardly any writing needs: spaces without width, fillers, annotations, tags. Joiners and
  /// variation selectors are part of writing.
  package var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0xAD, 0x061C, 0x115F, 0x1160, 0x180E, 0x200B, 0x200E, 0x200F, 0x2028...0x202E,
      0x2060...0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF9...0xFFFB, 0x1D173...0x1D17A, 0xE0000...0xE007F:
      true
    default: false
    }
  }
}

extension String {
  /// The text with control characters made visible, so that other people's text controls no terminal and shows as it
  /// is.
  package var escapingControls: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar.isControl {
        result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }

  /// A message of several lines about a program's arguments, with their control characters made visible, the ends of lines
  /// in them too: names of files are other people's text.
  package func escapingControls(of arguments: [String]) -> String {
    var message = self
    for argument in Set(arguments) where argument.unicodeScalars.contains(where: \.isControl) {
      message = message.replacing(argument, with: argument.escapingControls)
    }
    return message.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).escapingControls }
      .joined(separator: "\n")
  }

  /// The text with control characters made visible and its length bounded, fit for an error of one line.
  package var printable: String {
    let start = String(unicodeScalars.prefix(200)).escapingControls
    return unicodeScalars.count > 200 ? start + "…" : start
  }
}
