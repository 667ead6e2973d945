import Glibc
import SheafModel

/// A question to the person at the terminal, before a command that cannot be undone or concerns many people.
enum Question {
  /// Whether a person can be asked.
  static var canBeAsked: Bool { isatty(STDIN_FILENO) == 1 && StandardError.isTerminal }

  /// Asks, and returns if the answer is yes.
  ///
  /// - Throws: ``SheafError`` of kind `notPermitted` for any other answer.
  static func confirm(_ question: String, about subject: String) throws(SheafError) {
    StandardError.write("\(question.escapingControls) [y/N] ")
    let answer = readLine(strippingNewline: true) ?? ""
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw SheafError(.notPermitted, subject: subject, reason: "was left as it is, since the answer was not yes")
    }
  }
}
