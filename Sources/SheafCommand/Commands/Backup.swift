import ArgumentParser
import SheafModel

struct Backup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copy a library to a file, consistent while it is in use.",
    discussion: """
      The copy is a library of its own: mount it with --library FILE. FILE must not exist.

      Example:
        sheaf backup /media/usb/library-backup.sqlite
      """)

  @Argument(help: ArgumentHelp("Where the copy goes.", valueName: "file"), completion: .file())
  var file: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let target = try SystemPath.trusted(SystemPath.absolute(file.bytes))
    guard let path = String(validating: target, as: UTF8.self), !file.bytes.isEmpty else {
      throw SheafError(.invalid, subject: file.bytes.readable.printable, reason: "is empty or not UTF-8")
    }
    let location = try LibraryChoice.location(named: library.file)
    let report = try await LibraryConnection.with(location) { connection in
      try await ProgressLine.during("Copying") { try await connection.client.backup(to: path, progress: $0) }
    }
    if output.json { return try JSON.write(report) }
    try StandardOutput.line("Copied \(location.path.escapingControls) to \(path.escapingControls).")
    guard let away = report.atHub.words else { return }
    try StandardOutput.line("\(away), and not in the copy. To fetch what is current: sheaf keep Documents")
  }
}

extension ContentsAtHub {
  /// How much there is, the beginning of a sentence; nil where there is nothing.
  var words: String? {
    guard documents > 0 else { return nil }
    return "Contents of \(Format.count(documents, "document")) (\(Format.size(bytes))) are at the hub only"
  }
}
