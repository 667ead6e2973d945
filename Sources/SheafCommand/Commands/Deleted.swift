import ArgumentParser
import SheafClient
import SheafModel

struct Deleted: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List what was deleted and can come back.",
    discussion: """
      Without PATH everything; with the path of a folder what was deleted from it; with the path of a deleted item all \
      that was deleted there.

      Examples:
        sheaf deleted
        sheaf deleted ~/Sheaf/Documents/Letters
      """)

  @Argument(help: "A folder, or the path of what was deleted.")
  var path: PathArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let items = try await ItemTarget.with(optional: path, library) { try await $0.client.deleted($0.address) }
    if output.json { return try JSON.write(items) }
    guard !items.isEmpty else { return try StandardOutput.line("Nothing deleted that can come back.") }
    var table = Table([("DELETED", .left), ("BY", .left), ("PATH", .left), ("ID", .left)])
    for item in items { table.append([Format.time(item.time), item.actor.description, item.path, item.id]) }
    try StandardOutput.write(table.text)
  }
}
