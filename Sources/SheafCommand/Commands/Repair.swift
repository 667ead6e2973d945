import ArgumentParser
import Glibc
import SheafLibrary
import SheafModel

struct Repair: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Save what can be read of a damaged library into a new one.",
    discussion: """
      The damaged library stays as it is; nobody may have it open. Documents, versions, names, accounts and shares come \
      to the new library as far as their rows can be read. What has lost its folder is in the folder Repaired of its \
      owner. The new library is connected with no hub. Prints what is lost, a line each. Try the last backup, too: it may \
      have what is lost here.

      Examples:
        sheaf repair ~/.local/share/sheaf/library.sqlite
        sheaf repair damaged.sqlite --to saved.sqlite
      """)

  @Argument(help: ArgumentHelp("The damaged library.", valueName: "file"), completion: .file())
  var file: PathArgument

  @Option(
    name: .customLong("to"),
    help: ArgumentHelp("The new library (default: FILE with -repaired before its extension).", valueName: "file"),
    completion: .file())
  var destination: PathArgument?

  @OptionGroup var output: OutputOptions

  func run() async throws {
    let damaged = try Self.location(file)
    let saved = try destination.map(Self.location) ?? Self.repaired(damaged)
    let report = try Library.repair(damaged, to: saved)
    if output.json {
      try JSON.write(report)
    } else {
      for line in report.lost { try StandardOutput.line("Lost: \(line)".escapingControls) }
      for line in report.problems { try StandardOutput.line("Problem: \(line)".escapingControls) }
      let counts = [
        Format.count(report.documents, "document"), Format.count(report.folders, "folder"),
        Format.count(report.versions, "version"), Format.count(report.accounts, "account"),
      ]
      let rest = report.lost.isEmpty ? "Nothing is lost." : "What is lost is above."
      try StandardOutput.line(
        "Saved \(counts.joined(separator: ", ")) to \(report.library). \(rest)".escapingControls)
    }
    guard report.problems.isEmpty else {
      throw SheafError(
        .corrupt, subject: report.library, reason: Format.count(report.problems.count, "problem") + " found in it",
        advice: "send-copy what you need out of it, and report the problems")
    }
  }

  private static func location(_ file: PathArgument) throws -> LibraryLocation {
    guard let path = String(validating: file.bytes, as: UTF8.self) else {
      throw SheafError(.invalid, subject: file.bytes.readable.printable, reason: "is not UTF-8")
    }
    return try LibraryChoice.location(path: path)
  }

  private static func repaired(_ damaged: LibraryLocation) -> LibraryLocation {
    let (folder, name) = SystemPath.split(Array(damaged.path.utf8))
    let parts = name.readable.split(separator: ".", omittingEmptySubsequences: false)
    let (stem, ending) =
      parts.count > 1 ? (parts.dropLast().joined(separator: "."), ".\(parts[parts.count - 1])") : (name.readable, "")
    return LibraryLocation(path: SystemPath.join(folder, Array("\(stem)-repaired\(ending)".utf8)).readable)
  }
}
