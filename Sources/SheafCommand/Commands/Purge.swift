import ArgumentParser
import SheafClient
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

  @Flag(help: "Yes, destroy it; without that a terminal asks, and a script is refused.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if !yes, !Question.canBeAsked {
      throw ValidationError("Purging destroys for good and cannot be undone: confirm it with --yes.")
    }
  }

  func run() async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      let what = version.map { "version \($0) of \(target.name)" } ?? target.name
      var extent: PurgeExtent?
      if version == nil {
        // A confirmed purge goes ahead even if its extent cannot be counted, as on a full disk.
        extent =
          yes
          ? try? await target.client.purgeExtent(of: target.address)
          : try await target.client.purgeExtent(of: target.address)
      }
      if !yes {
        let others = (extent?.people).flatMap { $0.isEmpty ? nil : " \(Format.people($0)) will lose it." } ?? ""
        try Question.confirm("Destroy \(what)\(Self.inside(extent)) for good?" + others, about: target.name)
      }
      try await target.client.purge(target.address, version: version)
      if output.json { return try JSON.write(PurgeOutput(path: target.name, version: version, items: extent?.items)) }
      try StandardOutput.line("Destroyed \(what)\(Self.inside(extent)).".escapingControls)
    }
  }

  /// ` with 58 items in it`.
  private static func inside(_ extent: PurgeExtent?) -> String {
    guard let count = extent?.items, count > 0 else { return "" }
    let items = count >= PurgeExtent.limit ? "more than \(PurgeExtent.limit) items" : Format.count(count, "item")
    return " with \(items) in it"
  }
}
