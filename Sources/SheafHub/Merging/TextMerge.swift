/// Merges two texts that were made from a third one, line by line (as `diff3` does).
///
/// - A part that one side alone changed is as that side has it; a part that both changed alike is once as they have it.
///   Where they changed the same lines, or lines next to each other, in different ways, nothing is merged.
/// - So a line of either side is missing in the outcome only where the other side deleted it.
/// - The order of the sides makes no difference.
/// - Line endings, and whether the last line has one, are merged apart from the lines.
enum TextMerge {
  /// Bytes of a text.
  static let byteLimit = 1 << 20
  /// Lines of a text.
  static let lineLimit = 1 << 18

  /// The text with what both sides changed.
  ///
  /// - Returns: nil where they cannot be merged, or that would be too much work.
  static func merged(base: [UInt8], _ mine: [UInt8], _ theirs: [UInt8]) -> [UInt8]? {
    guard [base, mine, theirs].allSatisfy({ $0.count <= byteLimit }) else { return nil }
    if mine == theirs || theirs == base { return mine }
    if mine == base { return theirs }
    guard let (start, one, other) = texts(base, mine, theirs),
      let ending = ending(start.ending, one.ending, other.ending),
      let endsWithNewline = Sides(start.endsWithNewline, one.endsWithNewline, other.endsWithNewline).merged
    else { return nil }
    var names = LineNames()
    let lines = Sides(names.names(of: start), names.names(of: one), names.names(of: other))
    guard let found = merged(lines) else { return nil }
    var bytes: [UInt8] = []
    for (index, name) in found.enumerated() {
      bytes += names.line(name)
      if index < found.count - 1 || endsWithNewline { bytes += ending.rawValue.utf8 }
    }
    return bytes.count <= byteLimit ? bytes : nil
  }

  /// The three texts in lines. Where each of them has one kind of line ending throughout, the lines are without it.
  private static func texts(_ base: [UInt8], _ mine: [UInt8], _ theirs: [UInt8]) -> (Text, Text, Text)? {
    for hasEndings in [false, true] {
      let texts = [base, mine, theirs].compactMap { Text($0, endingsInLines: hasEndings) }
      if texts.count == 3 { return (texts[0], texts[1], texts[2]) }
    }
    return nil
  }

  /// How lines end; a text in which none ends has nothing to say about it.
  private static func ending(_ base: Ending?, _ mine: Ending?, _ theirs: Ending?) -> Ending? {
    guard let usual = base else {
      guard let mine, let theirs else { return mine ?? theirs ?? .unix }
      return mine == theirs ? mine : nil
    }
    return Sides(usual, mine ?? usual, theirs ?? usual).merged
  }

  // MARK: - Lines

  /// The merged lines, from those of three texts by equal names for equal lines.
  private static func merged(_ lines: Sides<[Int32]>) -> [Int32]? {
    var effort = LineDiff.effort
    guard let mine = LineDiff.matches(lines.base, lines.mine, &effort),
      let theirs = LineDiff.matches(lines.base, lines.theirs, &effort)
    else { return nil }
    var merged: [Int32] = []
    var next = Sides(0, 0, 0)
    for index in 0...lines.base.count {
      let isEnd = index == lines.base.count
      let ends = isEnd ? (lines.mine.count, lines.theirs.count) : (Int(mine[index]), Int(theirs[index]))
      // A line that all three have ends a part.
      guard ends.0 >= 0, ends.1 >= 0 else { continue }
      let part = Sides(
        lines.base[next.base..<index], lines.mine[next.mine..<ends.0], lines.theirs[next.theirs..<ends.1])
      guard let chosen = part.merged else { return nil }
      merged += chosen
      if !isEnd { merged.append(lines.base[index]) }
      next = Sides(index + 1, ends.0 + 1, ends.1 + 1)
    }
    return merged
  }

  /// Something as the base and two sides have it.
  fileprivate struct Sides<Value> {
    let base: Value
    let mine: Value
    let theirs: Value

    init(_ base: Value, _ mine: Value, _ theirs: Value) {
      self.base = base
      self.mine = mine
      self.theirs = theirs
    }
  }

  // MARK: - Texts

  private enum Ending: String {
    case unix = "\n"
    case windows = "\r\n"
  }

  /// A text in lines.
  private struct Text {
    private let bytes: [UInt8]
    /// The bytes of each line, without what ends it.
    private(set) var lines: [Range<Int>] = []
    /// Nil where no line ends, or lines have their endings.
    private(set) var ending: Ending?
    private(set) var endsWithNewline = false

    /// - Parameter endingsInLines: Whether a carriage return at the end of a line is a part of the line.
    /// - Returns: nil for too many lines; without endings in lines, where not all lines end alike.
    init?(_ bytes: [UInt8], endingsInLines: Bool) {
      self.bytes = bytes
      var start = 0
      while start < bytes.count {
        let newline = bytes[start...].firstIndex(of: UInt8(ascii: "\n"))
        var end = newline ?? bytes.count
        endsWithNewline = newline != nil
        if newline != nil, !endingsInLines {
          let isWindows = end > start && bytes[end - 1] == UInt8(ascii: "\r")
          let found = isWindows ? Ending.windows : .unix
          guard ending ?? found == found else { return nil }
          ending = found
          if isWindows { end -= 1 }
        }
        guard lines.count < lineLimit else { return nil }
        lines.append(start..<end)
        start = (newline ?? bytes.count) + 1
      }
    }

    subscript(line: Range<Int>) -> ArraySlice<UInt8> { bytes[line] }
  }

  /// Equal names for equal lines.
  private struct LineNames {
    private var names: [ArraySlice<UInt8>: Int32] = [:]
    private var lines: [ArraySlice<UInt8>] = []

    mutating func names(of text: Text) -> [Int32] {
      text.lines.map { line in
        let bytes = text[line]
        if let name = names[bytes] { return name }
        let name = Int32(lines.count)
        names[bytes] = name
        lines.append(bytes)
        return name
      }
    }

    func line(_ name: Int32) -> ArraySlice<UInt8> { lines[Int(name)] }
  }
}

extension TextMerge.Sides where Value: Equatable {
  /// What is left of a thing that both may have changed; nil where both did, in different ways.
  fileprivate var merged: Value? {
    if mine == theirs || theirs == base { return mine }
    return mine == base ? theirs : nil
  }
}
