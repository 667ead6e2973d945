import ArgumentParser
import SheafModel

struct Purge: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Destroy an item with its history, or one version, for good.",
    discussion: """
      The only command that destroys anything; it cannot be undone. A version that is current cannot be purged.

      Examples:
        sheaf purge ~/Sheaf/Documents/secret.txt --yes
        sheaf purge ~/Sheaf/Documents/notes.md --version 3 --yes
      """)

  @Argument(help: "A document or folder, existing or deleted.")
  var path: PathArgument

  @Option(help: ArgumentHelp("Only this version.", valueName: "number"))
  var version: Int64?

  @Flag(help: "Yes, destroy it.")
  var yes = false

  @OptionGroup var library: LibraryOptions

  func validate() throws {
    if !yes { throw ValidationError("Purging destroys for good and cannot be undone: confirm it with --yes.") }
  }

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      try await target.client.purge(target.address, version: version)
      let what = version.map { "version \($0) of " } ?? ""
      try StandardOutput.line("Destroyed \(what)\(target.name.escapingControls).")
    }
  }
}
