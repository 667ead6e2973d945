import ArgumentParser
import SheafModel

struct Versions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the versions of a document.",
    discussion: """
      Oldest first; the last one is current. A document that was deleted is named by the path where it was.

      Examples:
        sheaf versions ~/Sheaf/Documents/notes.md
        sheaf versions Documents/notes.md --json
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let versions = try await ItemTarget.with(path, library) { try await $0.client.versions(of: $0.address) }
    if output.json { return try JSON.write(versions) }
    guard !versions.isEmpty else { return try StandardOutput.line("No versions yet.") }
    var table = Table([
      ("VERSION", .right), ("TIME", .left), ("SIZE", .right), ("AUTHOR", .left), ("CAUSE", .left), ("LABEL", .left),
    ])
    for version in versions {
      table.append([
        "\(version.number)", Format.time(version.time), Format.size(version.size), version.author.description,
        version.cause.rawValue + (version.open ? ", open" : ""), version.label ?? "",
      ])
    }
    try StandardOutput.write(table.text)
  }
}
