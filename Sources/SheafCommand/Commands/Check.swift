import ArgumentParser
import SheafLibrary
import SheafModel

struct Check: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Verify every hash and every rule of a library.",
    discussion: """
      Prints what it finds, a line each, then the documents of which something cannot be read, and fails if it found \
      anything. Works while the library is mounted. Of a library \
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
      throw Self.advised(copy?.naming(location, in: error) ?? error, location)
    }
    if output.json {
      try JSON.write(report)
    } else {
      for problem in report.problems { try StandardOutput.line(problem.escapingControls) }
      for document in report.damaged { try StandardOutput.line(Self.line(document).escapingControls) }
      let checked = [
        Format.count(report.items, "item"), Format.count(report.versions, "version"),
        Format.count(report.chunks, "chunk"),
      ]
      if report.problems.isEmpty { try StandardOutput.line("Sound: \(checked.joined(separator: ", ")).") }
      if let away = report.atHub.words { try StandardOutput.line("\(away), and not verified.") }
    }
    guard report.problems.isEmpty else {
      throw SheafError(
        .corrupt, subject: location.path, reason: Format.count(report.problems.count, "problem") + " found",
        advice: "copy the library's files away, then restore what is concerned from a backup, or save what can be "
          + "read: sheaf repair \(location.path)")
    }
  }

  /// Other commands advise this one where a library is damaged.
  private static func advised(_ error: any Error, _ location: LibraryLocation) -> any Error {
    guard let error = error as? SheafError, error.kind == .corrupt, error.advice != nil else { return error }
    return error.advising(
      "copy the library's files away before anything else; go back to the last backup, or save what can be read: "
        + "sheaf repair \(location.path)")
  }

  /// What of a document cannot be read.
  private static func line(_ document: DamagedDocument) -> String {
    let others = document.versions.count - (document.isCurrent ? 1 : 0)
    let parts =
      (document.isCurrent ? ["the current version"] : [])
      + (others > 0 ? [Format.count(others, document.isCurrent ? "earlier version" : "version")] : [])
    let place = document.isDeleted ? "\(document.account), deleted" : document.account
    return "\(document.path) (\(place)): \(parts.joined(separator: " and ")) cannot be read as a whole"
  }

  /// Removes a copy that was checked; nobody else uses it.
  private static func finish(_ copy: ReadOnlyCopy?) async throws {
    guard let copy else { return }
    defer { copy.remove() }
    try await LibraryConnection.closeOwn()
  }
}
