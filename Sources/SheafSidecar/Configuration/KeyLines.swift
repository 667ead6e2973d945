/// The lines of a TOML file on which its keys stand, for messages: the parser tells lines only for its own errors.
struct KeyLines {
  /// A table, by its number among the `[[sink]]`; nil for the keys above them.
  private struct Key: Hashable {
    let sink: Int?
    /// Nil for the table's head.
    let name: String?
  }

  private var lines: [Key: Int] = [:]

  init(_ text: String) {
    var sink: Int?
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = line.drop(while: \.isWhitespace)
      if line.hasPrefix("[[") {
        sink = (sink ?? -1) + 1
        lines[Key(sink: sink, name: nil)] = index + 1
      } else if let end = line.firstIndex(of: "="), !line.hasPrefix("#") {
        let name = line[..<end].filter { !$0.isWhitespace && $0 != "\"" && $0 != "'" }
        let key = Key(sink: sink, name: String(name))
        if lines[key] == nil { lines[key] = index + 1 }
      }
    }
  }

  /// The line of a key, otherwise of its table.
  func line(of key: String?, inSink sink: Int?) -> Int? {
    lines[Key(sink: sink, name: key)] ?? lines[Key(sink: sink, name: nil)]
  }
}
