import SheafModel

/// Rows in aligned columns.
struct Table {
  enum Alignment {
    case left, right
  }

  private var rows: [[String]]
  private let alignments: [Alignment]

  /// - Parameter columns: Heading and alignment of each column; headings may be empty.
  init(_ columns: [(heading: String, alignment: Alignment)]) {
    alignments = columns.map(\.alignment)
    let headings = columns.map(\.heading)
    rows = headings.allSatisfy(\.isEmpty) ? [] : [headings]
  }

  /// A table of names and values, without headings.
  static func facts(_ facts: [(String, String)]) -> Table {
    var table = Table([("", .left), ("", .left)])
    for (name, value) in facts { table.append([name, value]) }
    return table
  }

  mutating func append(_ row: [String]) { rows.append(row.map(\.escapingControls)) }

  /// The rows, each with a newline, without blanks at their ends.
  var text: String {
    var widths = alignments.map { _ in 0 }
    for row in rows {
      for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
    }
    var result = ""
    for row in rows {
      var line = ""
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        line += alignments[column] == .left ? cell + padding : padding + cell
        line += "  "
      }
      while line.last == " " { line.removeLast() }
      result += line + "\n"
    }
    return result
  }
}
