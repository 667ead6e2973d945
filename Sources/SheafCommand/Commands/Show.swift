import ArgumentParser
import SheafModel

struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the bytes of a version to standard output.",
    discussion: """
      Examples:
        sheaf show ~/Sheaf/Documents/notes.md --version 3 | less
        sheaf show Documents/photo.jpg --version 1 > old.jpg
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Option(
    help: ArgumentHelp("The version (default: the current one).", valueName: "number"), completion: Completions.versions
  )
  var version: Int64?

  @OptionGroup var library: LibraryOptions

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      try await target.client.content(of: target.address, version: version) { bytes in
        try StandardOutput.write(bytes.readableBytesView)
      }
    }
  }
}
