import ArgumentParser
import SheafModel

struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write the bytes of a version to standard output.",
    discussion: """
      Examples:
        sheaf show ~/Sheaf/Documents/notes.md --version 3 | less
        sheaf show Documents/photo.jpg --version 1 > old.jpg
        sheaf show Documents/photo.jpg --version 'sent to Bob' > sent.jpg
        sheaf show Documents/notes.md --time 'yesterday 18:00'
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @Option(
    help: ArgumentHelp("The version, by its number or label (default: the current one).", valueName: "version"),
    completion: Completions.versions)
  var version: VersionArgument?

  @Option(help: ArgumentHelp("The version that was current then.", valueName: "time"))
  var time: String?

  @OptionGroup var library: LibraryOptions

  func validate() throws {
    if version != nil, time != nil { throw ValidationError("Give one of --version and --time.") }
  }

  func run() async throws {
    let moment = try time.map { try TimeArgument($0).time }
    try await ItemTarget.with(path, library) { target in
      var number = try await version?.number(of: target)
      if let moment { number = try await target.version(at: moment).number }
      try await target.client.content(of: target.address, version: number) { bytes in
        try StandardOutput.write(bytes.readableBytesView)
      }
    }
  }
}
