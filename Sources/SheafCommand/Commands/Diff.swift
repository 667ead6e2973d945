import ArgumentParser
import Glibc
import SheafModel

struct Diff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show what changed between two versions of a document.",
    discussion: """
      A unified diff of two versions; without options, of the last save. The first version is compared with nothing.

      Examples:
        sheaf diff ~/Sheaf/Documents/notes.md                     the last save
        sheaf diff ~/Sheaf/Documents/notes.md --from 3            since version 3
        sheaf diff ~/Sheaf/Documents/notes.md --from 3 --to final
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Option(
    help: ArgumentHelp(
      "The older version, by its number or label (default: the one before --to).", valueName: "version"),
    completion: Completions.versions)
  var from: VersionArgument?

  @Option(
    help: ArgumentHelp(
      "The newer version, by its number or label (default: the current one).", valueName: "version"),
    completion: Completions.versions)
  var to: VersionArgument?

  @OptionGroup var library: LibraryOptions

  func run() async throws {
    try await ItemTarget.with(path, library) { target in
      let versions = try await target.client.versions(of: target.address)
      let newest = versions.last
      guard let last = try await to?.number(of: target) ?? newest?.number else {
        throw SheafError(.notFound, subject: target.name, reason: "has no versions yet")
      }
      let first = try await from?.number(of: target) ?? versions.last { $0.number < last }?.number
      let comparison = VersionComparison(target: target, versions: versions)
      let old = try await comparison.take(first)
      defer { close(old.descriptor) }
      let new = try await comparison.take(last)
      defer { close(new.descriptor) }
      if old.isBinary || new.isBinary {
        guard try comparison.areEqual(old, new) else {
          return try StandardOutput.line(
            "Binary versions \(old.title) and \(new.title) of \(target.name.escapingControls) differ")
        }
        return
      }
      try comparison.printDifference(old, new)
    }
  }
}
