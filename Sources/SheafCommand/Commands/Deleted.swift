import ArgumentParser
import SheafClient
import SheafModel

struct Deleted: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List what was deleted and can come back.",
    discussion: """
      Latest first. A folder is one line with all that was in it; its path, as PATH, lists that. Without PATH everything; with \
      the path of a folder what was deleted from it; with that of a deleted item all that was deleted there. With --json each \
      item is told of, also those in deleted folders.

      Each folder's trash can be opened, too, and is not listed: ls .deleted shows what was deleted from the folder, any \
      program can read it there, and mv .deleted/notes.md . recovers it.

      Examples:
        sheaf deleted
        sheaf deleted ~/Sheaf/Documents/Letters
        sheaf deleted --limit 1000
      """)

  @Argument(help: "A folder, or the path of what was deleted.", completion: Completions.deletedPaths)
  var path: PathArgument?

  @Option(help: "How many lines to show; 50 if not given, and with --json all.")
  var limit: Int?

  private static let usualLimit = 50

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...100_000).contains(limit ?? 1) else { throw ValidationError("--limit is a number from 1 to 100000") }
  }

  func run() async throws {
    try await ItemTarget.with(optional: path, library) { target in
      // A typing error is no empty trash.
      func verify() async throws {
        if target.address.path != nil { _ = try await target.client.status(of: target.address) }
      }
      if output.json {
        let items = try await target.client.deleted(target.address)
        if items.isEmpty { try await verify() }
        return try JSON.write(limit.map { Array(items.prefix($0)) } ?? items)
      }
      let deleted = try await target.client.deletedTrees(target.address, limit: limit ?? Self.usualLimit)
      guard !deleted.trees.isEmpty else {
        try await verify()
        return try StandardOutput.line("Nothing deleted that can come back.")
      }
      var table = Table([("DELETED", .left), ("BY", .left), ("PATH", .left), ("", .left), ("ID", .left)])
      for tree in deleted.trees {
        let item = tree.item
        table.append([Format.time(item.time), item.actor.description, item.path, Self.contents(tree), item.id])
      }
      try StandardOutput.write(table.text)
      if deleted.more > 0 {
        let all = deleted.trees.count + deleted.more
        try StandardOutput.line("and \(deleted.more) more: --limit \(all) shows them, PATH those of a folder")
      }
      if let advice = await target.pathAdvice() { try StandardOutput.line(advice) }
    }
  }

  /// `58 items`.
  private static func contents(_ tree: DeletedTree) -> String {
    switch tree.items {
    case 0: ""
    case PurgeExtent.limit...: "more than \(PurgeExtent.limit) items"
    default: Format.count(tree.items, "item")
    }
  }
}
