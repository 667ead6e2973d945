import ArgumentParser
import SheafClient
import SheafModel

struct FindCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "find", abstract: "Find documents and folders by name, contents, person and time.",
    discussion: """
      Looks at all that you see, what others share with you included, or with --in at what is in a folder. Without --versions \
      and --deleted it prints a path on each line, sorted; where commands would not take it as printed, id:UUID follows, which \
      they do take. All that is given has to be so:

        TEXT     each of its words is in the name, whatever case and accents. Where the library searches contents \
      (sheaf library set --search-contents on), too: or each begins a word of the document's current text
        --name   the whole name has this form; quote it, so that the shell leaves it alone
        --by     who made the current version, or the folder or link; with --deleted who deleted it
        --since  the same, not before then: a time ('2026-11-17 18:00', 2026-11-17T18:00:00Z), the beginning of a day \
                 (2026-11-17, tuesday, yesterday), or how long ago (12h, 7d)

      --conflicts leaves the documents that have a conflict: what somebody saved was not based on the version before it. \
      Of connected accounts it also leaves what the hub put beside another document, and says beside which, after a tab.

      Of documents whose contents are at a hub alone, TEXT is looked for in the names; a line says how many there are.

      --versions lists versions, of documents that have the name or the text, with --by and --since of each version. --deleted \
      lists what was deleted and can be recovered.

      Examples:
        sheaf find budget
        sheaf find --name '*.md' --in ~/Sheaf/Documents/plans
        sheaf find --by bob@example.com --since 7d --versions
        sheaf find letter --deleted
        sheaf find --conflicts
      """)

  @Argument(help: "Words of the name, or of the contents.")
  var text: String?

  @Option(help: ArgumentHelp("A pattern of names: *, ? and […] as in the shell.", valueName: "glob"))
  var name: String?

  @Option(help: ArgumentHelp("Only what this person did.", valueName: "handle"), completion: Completions.people)
  var by: String?

  @Option(help: ArgumentHelp("Only what was done since then: a time, a day, or 12h, 7d, 2w.", valueName: "time"))
  var since: String?

  @Option(name: .customLong("in"), help: ArgumentHelp("Only what is in this folder.", valueName: "path"))
  var folder: PathArgument?

  @Flag(help: "What was deleted and can be recovered, instead of what is there.")
  var deleted = false

  @Flag(help: "Versions, instead of items.")
  var versions = false

  @Flag(help: "Only documents that have a conflict.")
  var conflicts = false

  @Option(help: "How many to show.")
  var limit = 1000

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...FindRequest.longestAnswer).contains(limit) else {
      throw ValidationError("--limit is a number from 1 to \(FindRequest.longestAnswer)")
    }
    if deleted, versions { throw ValidationError("--deleted and --versions do not go together.") }
    if deleted, conflicts { throw ValidationError("--deleted and --conflicts do not go together.") }
    if let text, text.allSatisfy(\.isWhitespace) { throw ValidationError("TEXT is empty: give words to look for.") }
  }

  func run() async throws {
    let request = try FindRequest(
      text: text, name: name, by: try by.map { try AccountHandle($0) },
      since: try since.map { try TimeArgument($0, of: "--since", beginsDays: true).start },
      deleted: deleted, versions: versions, conflicts: conflicts, limit: limit)
    try await ItemTarget.with(optional: folder, library) { target in
      let found = try await ProgressLine.during("Searching") { progress in
        try await target.client.find(in: target.address, request, progress: progress)
      }
      if found.items.isEmpty { await tellNothing(target) }
      if output.json {
        try JSON.write(found.items)
      } else if deleted || versions {
        if !found.items.isEmpty { try StandardOutput.write(table(found.items).text) }
      } else {
        let place = await Self.mountpoint(target)
        for item in found.items {
          let path = Format.path(place + item.path, id: item.id)
          guard let copy = item.beside else {
            try StandardOutput.line(path)
            continue
          }
          let other = copy.path.map { (place + $0).escapingControls } ?? "a document that is gone"
          try StandardOutput.line("\(path)\tbeside \(other)")
        }
      }
      if let count = found.notSearched, count > 0 {
        StandardError.write(
          """
          sheaf: searched the names alone of \(Format.count(count, "document")) whose contents are at the hub; to have \
          contents here: sheaf keep PATH

          """)
      }
      if found.more {
        let next = min(10 * limit, FindRequest.longestAnswer)
        let advice = next > limit ? "--limit \(next) shows more" : "ask for less, with --in, --name, --by or --since"
        StandardError.write("sheaf: there is more: \(advice)\n")
      }
    }
  }

  /// Says that nothing was found, on standard error: what is found is what scripts read.
  private func tellNothing(_ target: ItemTarget) async {
    if text != nil, let settings = try? await target.client.settings(), !settings.searchContents {
      StandardError.write(
        "sheaf: nothing found by name; contents are searched after: sheaf library set --search-contents on\n")
    } else if !output.json {
      StandardError.write("sheaf: nothing found\n")
    }
  }

  private func table(_ items: [FoundItem]) -> Table {
    var table = Table(
      deleted
        ? [("DELETED", .left), ("BY", .left), ("PATH", .left), ("ID", .left)]
        : [("TIME", .left), ("BY", .left), ("SIZE", .right), ("VERSION", .right), ("LABEL", .left), ("PATH", .left)])
    for item in items {
      let (time, by) = (Format.time(item.time), item.by.description)
      let version = item.version.map { "\($0)" } ?? ""
      table.append(
        deleted
          ? [time, by, item.path, item.id]
          : [
            time, by, item.size.map(Format.size) ?? "", version, item.label ?? "", Format.path(item.path, id: item.id),
          ])
    }
    return table
  }

  /// The mount point of the account that acts, with a `/`, so that programs can open what was found; nothing where it
  /// is not mounted.
  private static func mountpoint(_ target: ItemTarget) async -> String {
    guard let mounts = try? await target.client.mounts() else { return "" }
    var account = target.address.account ?? target.connection.info.account
    if account == nil { account = try? await target.client.settings().defaultAccount }
    return mounts.first { $0.account == account }.map { $0.mountpoint + "/" } ?? ""
  }
}
