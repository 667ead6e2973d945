import ArgumentParser
import SheafClient
import SheafModel

struct UsageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "usage", abstract: "Show what contents, history and trash take.",
    discussion: """
      A line for each folder in PATH, or in Documents, the largest first, and one for all together, with the documents that lie \
      in PATH itself. The sizes are those on the disk, compressed. What several documents or versions share counts once. \
      `sheaf purge --deleted` gives back what the trash takes, `sheaf compact` thins and packs history.

      Examples:
        sheaf usage
        sheaf usage ~/Sheaf/Documents/Films
      """)

  @Argument(help: "A folder or a document of yours.")
  var path: PathArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let report = try await ItemTarget.with(optional: path, library) { target in
      try await ProgressLine.during("Measuring") { try await target.client.usage(of: target.address, progress: $0) }
    }
    if output.json { return try JSON.write(report) }
    var table = Table([
      ("CONTENTS", .right), ("HISTORY", .right), ("TRASH", .right), ("TOTAL", .right), ("PATH", .left),
    ])
    for folder in report.folders {
      table.append(Self.sizes(folder.contents, folder.history, folder.trash, folder.total) + [folder.path])
    }
    table.append(Self.sizes(report.contents, report.history, report.trash, report.total) + [report.path])
    try StandardOutput.write(table.text)
  }

  private static func sizes(_ sizes: Int64...) -> [String] { sizes.map(Format.size) }
}
