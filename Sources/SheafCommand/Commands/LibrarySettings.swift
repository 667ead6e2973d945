import ArgumentParser
import SheafModel

struct LibraryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "library", abstract: "The settings of a library.", subcommands: [Set.self])

  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change the settings.",
      discussion: """
        With a public address, links to shared items are https://ADDRESS/s/…; without one they are sheaf:// links.

        Examples:
          sheaf library set --public-address files.example.com
          sheaf library set --public-address ""                 takes it away
        """)

    @Option(help: ArgumentHelp("Where links point; empty for nowhere.", valueName: "host"))
    var publicAddress: String

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let change = LibrarySettings(publicAddress: publicAddress.isEmpty ? nil : publicAddress)
      try await LibraryConnection.with(location, creating: true) { try await $0.client.change(change) }
      if output.json { try JSON.write(change) }
    }
  }
}
