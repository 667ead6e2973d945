import ArgumentParser
import SheafModel

/// The command that a person may have meant by a word that is none.
enum CommandHint {
  /// The most letters that are wrong, missing, too many or in each other's place.
  private static let farthest = 2

  /// Commands by what other programs call such a one.
  private static let elsewhere = [
    "umount": "unmount", "history": "versions", "log": "activity", "trash": "deleted", "undelete": "recover",
    "search": "find", "du": "usage", "fsck": "check", "whoami": "status", "ls": "status", "tag": "label",
  ]

  /// A line about the first word that is no command, where one is needed; nil if all are.
  static func line(for arguments: [String]) -> String? {
    var command: any ParsableCommand.Type = Sheaf.self
    var words = ["sheaf"]
    // `sheaf help WORD` is about that word.
    for argument in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
      let children = command.configuration.subcommands
      if argument.hasPrefix("-") || children.isEmpty || argument == "help" { return nil }
      if let child = children.first(where: { $0._commandName == argument }) {
        command = child
        words.append(argument)
        continue
      }
      let names = children.map { $0._commandName }
      let near = elsewhere[argument].flatMap { names.contains($0) ? $0 : nil } ?? nearest(argument, among: names)
      // A word after a group of commands may be an argument of the one that it means without a name.
      if near == nil, command.configuration.defaultSubcommand != nil { return nil }
      let hint =
        near.map { "did you mean: \((words + [$0]).joined(separator: " "))" }
        ?? "see: \((words + ["--help"]).joined(separator: " "))"
      return
        "sheaf: there is no command \((words.dropFirst() + [argument]).joined(separator: " ").printable); \(hint)\n"
    }
    return nil
  }

  /// The name that is nearest to a word, if one is near.
  static func nearest(_ word: String, among names: [String]) -> String? {
    let distances = names.map { (distance(Array(word.utf8.prefix(64)), Array($0.utf8)), $0) }
    guard let best = distances.min(by: { $0.0 < $1.0 }) else { return nil }
    return best.0 <= min(farthest, max(1, word.utf8.count / 3)) ? best.1 : nil
  }

  /// How many letters are wrong, missing, too many, or exchanged with the next (optimal string alignment).
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var (before, last) = ([Int](), Array(0...right.count))
    for (row, letter) in left.enumerated() {
      var next = [row + 1]
      for (column, other) in right.enumerated() {
        var best = min(last[column] + (letter == other ? 0 : 1), last[column + 1] + 1, next[column] + 1)
        if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
          best = min(best, before[column - 1] + 1)
        }
        next.append(best)
      }
      (before, last) = (last, next)
    }
    return last[right.count]
  }
}
