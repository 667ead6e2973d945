import SheafLibrary
import SheafModel

/// Completes the commands that errors advise, so that they mean the same library and account when somebody pastes them.
/// A library gives advice without knowing where its caller stands.
enum AdvisedCommand {
  /// Commands that act on a library and take `--library` and `--as`.
  private static let commands: Set = [
    "accept", "account", "invite", "leave", "participant", "purge", "recover", "requests", "share", "transfer",
    "unshare", "versions",
  ]

  /// - Parameters:
  ///   - location: of the library that the error is from.
  ///   - account: the acting account, where a command needs `--as` to mean it; nil where none does.
  static func completed(_ error: any Error, _ location: LibraryLocation, as account: AccountHandle? = nil) -> any Error
  {
    guard let error = error as? SheafError, let advice = error.advice, let command = command(endingIn: advice) else {
      return error
    }
    var advised = advice
    if let account, !command.contains("--as") { advised += " --as \("\(account)".shellWord)" }
    if !command.contains("--library"), (try? LibraryChoice.location(named: nil)) != location {
      advised += " --library \(location.path.shellWord)"
    }
    return error.advising(advised)
  }

  /// The words of the command with which some advice ends; nil where it ends otherwise.
  static func command(endingIn advice: String) -> [Substring]? {
    guard let begin = advice.range(of: "sheaf ", options: .backwards)?.lowerBound else { return nil }
    let command = advice[begin...]
    // Text that follows, or an example.
    guard !command.contains(where: { ";`…".contains($0) }), !command.contains(", ") else { return nil }
    let words = command.split(separator: " ")
    return words.count > 1 && commands.contains(String(words[1])) ? words : nil
  }
}
