import ArgumentParser
import SheafModel

struct Compact: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Thin out old history and give space back.",
    discussion: """
      Keeps all versions of a day, hourly ones of a week, daily ones of a month, weekly ones of a year; current and \
      labelled versions always. What is left is stored as small as it goes. Works while the library is mounted, and on a full disk.

      Example:
        sheaf compact
      """)

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file, changing: true)
    let report = try await LibraryConnection.with(location) { connection in
      try await ProgressLine.during("Compacting") { try await connection.client.compact(progress: $0) }
    }
    if output.json { return try JSON.write(report) }
    let thinned = Format.count(report.versionsThinned, "version")
    let packed = Format.count(report.versionsPacked, "version")
    let freed = Format.count(report.chunksFreed, "chunk")
    let size = Format.size(report.bytesFreed)
    try StandardOutput.line("Thinned \(thinned), packed \(packed), freed \(freed); gave back \(size).")
    if report.isClockDoubted {
      try StandardOutput.line(
        "Nothing was removed for its age: the clock is far ahead of all that is in the library. If it is "
          + "right, compact again in a day.")
    }
  }
}
