import ArgumentParser
import SheafModel

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify every hash and every rule of a library.",
    discussion: """
      Prints what it finds, a line each, and fails if that is anything. Works while the library is mounted.

      Example:
        sheaf check
      """)

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file)
    let report = try await LibraryConnection.with(location) { connection in
      try await ProgressLine.during("Checking") { try await connection.client.check(progress: $0) }
    }
    if output.json {
      try JSON.write(report)
    } else {
      for problem in report.problems { try StandardOutput.line(problem.escapingControls) }
      let checked = [
        Format.count(report.items, "item"), Format.count(report.versions, "version"),
        Format.count(report.chunks, "chunk"),
      ]
      if report.problems.isEmpty { try StandardOutput.line("Sound: \(checked.joined(separator: ", ")).") }
    }
    guard report.problems.isEmpty else {
      throw SheafError(
        .corrupt, subject: location.path, reason: Format.count(report.problems.count, "problem") + " found",
        advice: "copy the library's files away, then restore what is concerned from a backup")
    }
  }
}
