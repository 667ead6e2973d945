/// Titles, names and handles that can be taken for others. People are warned of them before they trust a link.
///
/// The rules are those of Unicode Technical Standard 39 that need only one short table:
/// - Letters of several scripts in one text are suspicious, but for those that belong together (section 5.2, "Highly
///   Restrictive"): Latin with Han and the Japanese syllabaries, with Han and Bopomofo, or with Han and Hangul. The
///   script of a letter is the first word of its name.
/// - So are texts of Greek or Cyrillic letters all of which look like Latin ones (section 4.1, whole-script
///   confusables).
/// - Handles are plain ASCII; two of them are alike if they differ only in characters that look the same.
package enum Lookalikes {
  /// The reason why a text can be taken for another one; nil if it cannot.
  package static func warning(of text: String, called what: String) -> String? {
    var scripts: Set<Substring> = []
    var lookLatin = true
    var count = 0
    for scalar in text.unicodeScalars {
      guard let script = script(of: scalar) else { continue }
      count += 1
      scripts.insert(script)
      if !latinLookalikes.contains(scalar) { lookLatin = false }
    }
    if scripts.count > 1, !families.contains(where: { scripts.isSubset(of: $0) }) {
      return "\(what) mixes letters of \(scripts.map(word).sorted().joined(separator: " and ")), "
        + "so that it may be taken for another one"
    }
    if count > 1, lookLatin, scripts == ["CYRILLIC"] || scripts == ["GREEK"], let script = scripts.first {
      return
        "\(what) is of \(word(script)) letters that look like Latin ones, so that it may be taken for another one"
    }
    return nil
  }

  /// Whether two different handles look the same.
  package static func areAlike(_ handle: AccountHandle, _ other: AccountHandle) -> Bool {
    handle != other && skeleton(handle) == skeleton(other)
  }

  private static func skeleton(_ handle: AccountHandle) -> [UInt8] {
    var shown: [UInt8] = []
    for byte in handle.description.utf8 {
      switch (shown.last, byte) {
      case (UInt8(ascii: "r"), UInt8(ascii: "n")): shown[shown.count - 1] = UInt8(ascii: "m")
      case (UInt8(ascii: "v"), UInt8(ascii: "v")): shown[shown.count - 1] = UInt8(ascii: "w")
      case (_, UInt8(ascii: "0")): shown.append(UInt8(ascii: "o"))
      case (_, UInt8(ascii: "1")): shown.append(UInt8(ascii: "l"))
      default: shown.append(byte)
      }
    }
    return shown
  }

  /// The script of a letter; nil for a character that is no letter, or belongs to all scripts.
  private static func script(of scalar: Unicode.Scalar) -> Substring? {
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .otherLetter: break
    default: return nil
    }
    // The ordinal indicators and the micro sign.
    if [0xAA, 0xB5, 0xBA].contains(scalar.value) { return nil }
    guard let name = scalar.properties.name else { return "UNKNOWN" }
    return name.prefix { $0 != " " && $0 != "-" }
  }

  private static func word(_ script: Substring) -> String {
    script == "CJK" ? "Han" : script.prefix(1) + script.dropFirst().lowercased()
  }

  private static let families: [Set<Substring>] = [
    ["LATIN", "CJK", "HIRAGANA", "KATAKANA"], ["LATIN", "CJK", "BOPOMOFO"], ["LATIN", "CJK", "HANGUL"],
  ]

  private static let latinLookalikes = Set("асԁеһіјӏорԛѕԝхуАВСЕНІЈКМОРЅТХУαικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".unicodeScalars)
}
