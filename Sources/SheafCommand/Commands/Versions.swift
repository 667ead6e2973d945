import ArgumentParser
import SheafModel

struct Versions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the versions of a document.",
    discussion: """
      Oldest first; the last one is current. A document that was deleted is named by the path where it was.

      Examples:
        sheaf versions ~/Sheaf/Documents/notes.md
        sheaf versions Documents/notes.md --json
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let (versions, isIgnored) = try await ItemTarget.with(path, library) { target in
      let versions = try await target.client.versions(of: target.address)
      let asks = versions.isEmpty && !output.json
      return (versions, asks ? try await target.client.status(of: target.address).ignored : false)
    }
    if output.json { return try JSON.write(versions) }
    guard !versions.isEmpty else {
      return try StandardOutput.line(
        isIgnored ? "No versions: it is ignored, by a .sheafignore or by default." : "No versions yet.")
    }
    var table = Table([
      ("VERSION", .right), ("TIME", .left), ("SIZE", .right), ("AUTHOR", .left), ("CAUSE", .left), ("LABEL", .left),
    ])
    let numbers = Set(versions.map(\.number))
    for version in versions {
      table.append([
        "\(version.number)", Format.time(version.time), Format.size(version.size), version.author.description,
        version.cause.rawValue + (version.open ? ", open" : "") + Self.base(of: version, numbers), version.label ?? "",
      ])
    }
    try StandardOutput.write(table.text)
  }

  /// What a version was made from, where that is not the version before it.
  private static func base(of version: Version, _ numbers: Set<Int64>) -> String {
    guard let base = version.base, version.cause.isSave, base < version.number - 1,
      numbers.contains(version.number - 1)
    else { return "" }
    return ", based on \(base)"
  }
}
