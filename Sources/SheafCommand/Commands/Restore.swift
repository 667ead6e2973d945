import ArgumentParser
import SheafModel

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make an old version of a document current again.",
    discussion: """
      Restoring makes a new version with the old contents, and loses none: it can be undone in the same way. Where the \
      contents are equal already, nothing happens.

      Example:
        sheaf restore ~/Sheaf/Documents/notes.md --version 3
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Option(help: ArgumentHelp("The version whose contents come back.", valueName: "number"))
  var version: Int64

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      let made = try await target.client.restore(target.address, version: version)
      if output.json { return try JSON.write(made) }
      guard let made else {
        let name = target.name.escapingControls
        return try StandardOutput.line("\(name) already has the contents of version \(version).")
      }
      let name = target.name.escapingControls
      try StandardOutput.line("Restored version \(version) of \(name) as version \(made.number).")
    }
  }
}
