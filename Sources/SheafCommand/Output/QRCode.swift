import CQRCode
import Glibc
import SheafModel

/// A text as a QR code (ISO/IEC 18004), which a phone or another machine's camera reads from a terminal.
struct QRCode {
  /// Modules of light around the code, which readers need.
  private static let margin = 4
  /// Black on white, whatever the terminal's colours are.
  private static let (begin, end) = ("\u{1B}[30;107m", "\u{1B}[0m")

  /// Modules of a side, without the margin.
  private let side: Int
  /// Whether each module is dark, row by row.
  private let modules: [Bool]

  /// - Throws: ``SheafError`` of kind `tooLarge` for a text that is too long for a code.
  init(_ text: String) throws(SheafError) {
    let bytes = Array(text.utf8)
    // Whoever reads it from a screen has it whole, so the least correction of errors will do, and it is smallest.
    guard let code = QRcode_encodeData(CInt(clamping: bytes.count), bytes, 0, QR_ECLEVEL_L) else {
      throw SheafError(.tooLarge, subject: "a text of \(bytes.count) bytes", reason: "is too long for a QR code")
    }
    defer { QRcode_free(code) }
    side = Int(code.pointee.width)
    // The lowest bit is the colour; the others say what the module is for.
    modules = UnsafeBufferPointer(start: code.pointee.data, count: side * side).map { $0 & 1 == 1 }
  }

  /// Characters of a line.
  var width: Int { side + 2 * Self.margin }

  private func isDark(_ row: Int, _ column: Int) -> Bool {
    (0..<side).contains(row) && (0..<side).contains(column) && modules[row * side + column]
  }

  /// Lines of half blocks, two rows of modules each.
  var text: String {
    var text = ""
    for row in stride(from: -Self.margin, to: side + Self.margin, by: 2) {
      text += Self.begin
      for column in -Self.margin..<side + Self.margin {
        switch (isDark(row, column), isDark(row + 1, column)) {
        case (true, true): text += "█"
        case (true, false): text += "▀"
        case (false, true): text += "▄"
        case (false, false): text += " "
        }
      }
      text += Self.end + "\n"
    }
    return text
  }

  /// What shows a text as a code; nil where standard output is no terminal, or one that is not wide enough.
  static func shown(_ text: String) throws -> String? {
    var size = winsize()
    guard isatty(STDOUT_FILENO) == 1, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
    let code = try QRCode(text)
    return code.width <= Int(size.ws_col) ? code.text : nil
  }
}
