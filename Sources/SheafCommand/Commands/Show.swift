import ArgumentParser
import SheafModel

struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the bytes of a version to standard output.",
    discussion: """
      Examples:
        sheaf show ~/Sheaf/Documents/notes.md --version 3 | less
        sheaf show Documents/photo.jpg --version 1 > old.jpg
        sheaf show Documents/photo.jpg --version 'sent to Bob' > sent.jpg
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Option(
    help: ArgumentHelp("The version, by its number or label (default: the current one).", valueName: "version"),
    completion: Completions.versions)
  var version: VersionArgument?

  @OptionGroup var library: LibraryOptions

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      let number = try await version?.number(of: target)
      try await target.client.content(of: target.address, version: number) { bytes in
        try StandardOutput.write(bytes.readableBytesView)
      }
    }
  }
}
