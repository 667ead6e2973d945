import SheafModel

/// A line on a terminal that shows the progress of long work; nothing in a pipe.
final class ProgressLine {
  private let title: String
  private let shown = StandardError.isTerminal

  /// - Parameter title: The work: `Checking`.
  init(_ title: String) { self.title = title }

  func show(_ progress: Progress) { show(Self.text(progress)) }

  /// How far work is: a part of all, or how many items are done where nobody knows how many there are.
  static func text(_ progress: Progress) -> String {
    guard progress.total > 0 else { return Format.count(Int(max(0, progress.done)), "item") }
    return "\(Int(min(1, max(0, Double(progress.done) / Double(progress.total))) * 100)) %"
  }

  /// - Parameter part: How far the work is.
  func show(_ part: String) {
    if shown { StandardError.write("\r\u{1B}[K\(title)… \(part)") }
  }

  /// Clears the line.
  func clear() {
    if shown { StandardError.write("\r\u{1B}[K") }
  }

  /// Runs `work` with a line that is cleared when the work is done or fails.
  static func during<Value>(
    _ title: String, _ work: ((Progress) -> Void) async throws -> Value
  ) async throws -> Value {
    let line = ProgressLine(title)
    defer { line.clear() }
    return try await work(line.show)
  }
}
