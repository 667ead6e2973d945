import ArgumentParser
import SheafClient
import SheafModel

struct Purge: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Destroy an item with its history, or one version, or what is in the trash, for good.",
    discussion: """
      The only command that destroys anything; it cannot be undone. A version that is current cannot be purged.

      With --deleted it empties the trash: destroys what was deleted at or below PATH, or anywhere in your Documents, and \
      nothing else. --older-than and --larger-than leave the rest. A deleted folder goes with all that was deleted from it, or \
      not at all. Only the owner can do so. If it is interrupted, repeat it.

      Examples:
        sheaf purge ~/Sheaf/Documents/secret.txt --yes
        sheaf purge ~/Sheaf/Documents/notes.md --version 3 --yes
        sheaf purge --deleted
        sheaf purge --deleted --older-than 7d --larger-than 1G ~/Sheaf/Documents/Films --yes
      """)

  @Argument(help: "A document or folder, existing or deleted.", completion: Completions.anyPaths)
  var path: PathArgument?

  @Option(
    help: ArgumentHelp("Only this version, by its number or label.", valueName: "version"),
    completion: Completions.versions)
  var version: VersionArgument?

  @Flag(help: "What was deleted, at or below PATH, or all of it.")
  var deleted = false

  @Option(help: ArgumentHelp("Only what was deleted longer ago: 12h, 7d, 2w, 1y.", valueName: "span"))
  var olderThan: SpanArgument?

  @Option(
    help: ArgumentHelp("Only what is larger: 800K, 5M, 1G; a folder with all that is in it.", valueName: "size"))
  var largerThan: SizeArgument?

  @Flag(help: "Yes, destroy it; without that a terminal asks, and a script is refused.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if path == nil, !deleted { throw ValidationError("Name what to destroy, or empty the trash with --deleted.") }
    if deleted, version != nil { throw ValidationError("--version is of an item, and --deleted is of the trash.") }
    if !deleted, olderThan != nil || largerThan != nil {
      throw ValidationError("--older-than and --larger-than go with --deleted.")
    }
  }

  func run() async throws {
    if deleted { return try await emptyTrash() }
    guard let path else { return }
    try await ItemTarget.with(path, library, changing: true) { target in
      let version = try await self.version?.number(of: target)
      var what = target.name
      if let version {
        // A label says that somebody wants to keep it.
        let label = try await target.client.versions(of: target.address).first { $0.number == version }?.label
        what = "version \(version)\(label.map { ", labelled \"\($0)\"," } ?? "") of \(what)"
      }
      var extent: PurgeExtent?
      if version == nil {
        // A confirmed purge goes ahead even if its extent cannot be counted, as on a full disk.
        extent =
          yes
          ? try? await target.client.purgeExtent(of: target.address)
          : try await target.client.purgeExtent(of: target.address)
      }
      if !yes { try Self.confirm(what + Self.inside(extent), losing: extent?.people ?? [], about: target.name) }
      try await target.client.purge(target.address, version: version)
      if output.json { return try JSON.write(PurgeOutput(path: target.given, version: version, items: extent?.items)) }
      let people = extent?.people ?? []
      let others = people.isEmpty ? "" : " \(Format.people(people)) lost access."
      try StandardOutput.line("Destroyed \(what)\(Self.inside(extent)).\(others)".escapingControls)
    }
  }

  private func emptyTrash() async throws {
    let selection = TrashSelection(olderThan: olderThan?.seconds, largerThan: largerThan?.bytes)
    try await ItemTarget.with(optional: path, library, changing: true) { target in
      // Without a path nothing else says whose trash it is.
      let place = path == nil ? " in \(target.connection.info.library)" : ""
      if !yes {
        let extent = try await ProgressLine.during("Looking through the trash") {
          try await target.client.trashExtent(target.address, selection, progress: $0)
        }
        if extent.items > 0 {
          let subject = target.address.path == nil ? "the trash" : target.name
          try Self.confirm(Self.items(extent) + place, about: subject)
        }
      }
      let destroyed = try await ProgressLine.during("Destroying") {
        try await target.client.emptyTrash(target.address, selection, progress: $0)
      }
      if output.json {
        return try JSON.write(
          PurgeOutput(
            path: path.map { _ in target.address.path == nil ? target.name : target.given }, items: destroyed.items,
            bytes: destroyed.bytes))
      }
      try StandardOutput.line(
        destroyed.items == 0
          ? "Nothing was destroyed: the trash has nothing of that."
          : "Destroyed \(Self.items(destroyed))\(place).".escapingControls)
    }
  }

  /// Asks before something is destroyed; in a script that needs `--yes`.
  private static func confirm(
    _ what: String, losing people: [AccountHandle] = [], about subject: String
  ) throws(SheafError) {
    guard Question.canBeAsked else {
      let others = people.isEmpty ? "" : ", \(Format.people(people)) would lose it"
      throw SheafError(
        .invalid, subject: what, reason: "would be destroyed for good\(others), and nobody can be asked",
        advice: "add --yes")
    }
    let others = people.isEmpty ? "" : " \(Format.people(people)) will lose it."
    try Question.confirm("Destroy \(what) for good?" + others, about: subject)
  }

  /// `58 deleted items of 3.2 MB`.
  private static func items(_ extent: TrashExtent) -> String {
    "\(Format.count(extent.items, "deleted item")) of \(Format.size(extent.bytes))"
  }

  /// ` with 58 items in it`.
  private static func inside(_ extent: PurgeExtent?) -> String {
    guard let count = extent?.items, count > 0 else { return "" }
    let items = count >= PurgeExtent.limit ? "more than \(PurgeExtent.limit) items" : Format.count(count, "item")
    return " with \(items) in it"
  }
}
