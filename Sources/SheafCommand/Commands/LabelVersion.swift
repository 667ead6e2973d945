import ArgumentParser
import SheafModel

struct LabelVersion: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "label", abstract: "Give a version of a document a name.",
    discussion: """
      A labelled version is kept for good. A version has one label; another one takes its place. A label is unique in its \
      document, and moves when it is given again.

      Examples:
        sheaf label ~/Sheaf/Documents/notes.md "sent to Bob"
        sheaf label ~/Sheaf/Documents/notes.md draft --version 3
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Argument(help: "The label.", completion: Completions.labels)
  var name: String

  @Option(
    help: ArgumentHelp("The version, by its number or label (default: the current one).", valueName: "version"),
    completion: Completions.versions)
  var version: VersionArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    guard String(validating: RawArguments.bytes(name), as: UTF8.self) != nil, !name.isEmpty else {
      throw SheafError(.invalid, subject: "NAME", reason: "is empty or not UTF-8", advice: "give the label a name")
    }
    try await ItemTarget.with(path, library, changing: true) { target in
      let before = try await target.client.versions(of: target.address)
      let labelled = try await target.client.label(
        target.address, name: name, version: try await version?.number(of: target))
      if output.json { return try JSON.write(labelled) }
      let former = before.first { $0.number == labelled.number }?.label
      let (begin, when) = former == name ? ("Nothing changed: version", "already") : ("Version", "now")
      let end = former.map { $0 == name ? "" : ", and no longer \"\($0)\"" } ?? ""
      let moved = before.first { $0.label == name && $0.number != labelled.number }
      let rest = moved.map { " Version \($0.number), which had that label, has none now." } ?? ""
      try StandardOutput.line(
        "\(begin) \(labelled.number) of \(target.name) is \(when) \"\(name)\"\(end).\(rest)".escapingControls)
    }
  }
}
