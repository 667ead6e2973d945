import ArgumentParser
import SheafModel

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify every hash and every rule of a library.",
    discussion: """
      Prints what it finds, a line each, and fails if that is anything. Works while the library is mounted. Of a library \
      on read-only media it checks a copy in TMPDIR, or else in /var/tmp.

      Example:
        sheaf check
      """)

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file)
    let copy = ReadOnlyCopy.isNeeded(for: location) ? try ReadOnlyCopy(of: location) : nil
    let report: CheckReport
    do {
      report = try await LibraryConnection.with(copy?.location ?? location) { connection in
        try await ProgressLine.during("Checking") { try await connection.client.check(progress: $0) }
      }
      try await Self.finish(copy)
    } catch {
      try? await Self.finish(copy)
      throw copy?.naming(location, in: error) ?? error
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
        advice: "copy the library's files away, then restore what is concerned from a backup, or save what can be "
          + "read: sheaf repair \(location.path)")
    }
  }

  /// Removes a copy that was checked; nobody else uses it.
  private static func finish(_ copy: ReadOnlyCopy?) async throws {
    guard let copy else { return }
    defer { copy.remove() }
    try await LibraryConnection.closeOwn()
  }
}
