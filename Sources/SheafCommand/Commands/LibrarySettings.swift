import ArgumentParser
import SheafModel

struct LibraryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "library", abstract: "Show and change the settings of a library.", subcommands: [Show.self, Set.self],
    defaultSubcommand: Show.self)

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the settings.",
      discussion: """
        Examples:
          sheaf library
          sheaf library show --json
        """)

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let (settings, connected) = try await LibraryConnection.with(location) {
        (try await $0.client.settings(), try await $0.client.connectedAccounts())
      }
      if output.json { return try JSON.write(settings) }
      let links = connected.isEmpty ? "" : "; those of \(Format.people(connected)) are their hub's"
      let rapid = settings.rapidSaves == .keep ? "all are kept" : "some are kept (thin)"
      try StandardOutput.write(
        Table.facts([
          ("Library", location.path),
          ("Public address", (settings.publicAddress ?? "none: links are sheaf://…") + links),
          ("Default account", settings.defaultAccount?.description ?? "none"), ("Rapid saves", rapid),
          ("Deleted items", "kept for \(Format.span(settings.keepDeleted))"),
          ("Versions", "kept for \(Format.span(settings.keepVersions))"),
          (
            "Contents", settings.cache.map { "of connected accounts \(Format.size($0)) at most" } ?? "all are kept here"
          ),
          ("Texts", settings.searchContents ? "searched by sheaf find" : "not searched by sheaf find"),
        ]).text)
    }
  }

  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change the settings.",
      discussion: """
        With a public address, links to shared items are https://ADDRESS/s/…; without one they are sheaf:// links. The default \
        account is mounted, and acts, where no account is named: at first the one that was made first. Deleted items are kept for 30 \
        days and versions for a year, unless this, or `sheaf retain` for a folder, says otherwise; before they are kept for a \
        shorter time, it asks on a terminal, and needs --yes in a script. Of versions that a program saves within a second of each \
        other the first ten stay, the last, and one a minute, unless rapid saves are to be kept.

        With --search-contents on, `sheaf find` looks into texts, too. Their words are kept in a file beside the library, which \
        takes about twice what the texts take, up to 256 MB of them; off removes it.

        Contents of connected accounts all come to this machine, unless --cache limits what they may take here. Then they come \
        when a program reads them, and those that nobody has used for longest go again. What `sheaf keep` names stays, and so \
        does what the hub does not have yet.

        Examples:
          sheaf library set --public-address files.example.com
          sheaf library set --public-address ""                 takes it away
          sheaf library set --default-account bob@example.com
          sheaf library set --rapid-saves keep                  keeps every version
          sheaf library set --keep-deleted 90d --keep-versions 2y
          sheaf library set --search-contents on                lets sheaf find look into texts
          sheaf library set --cache 20G                         what a hub has comes when it is read
        """)

    @Option(help: ArgumentHelp("Where links point; empty for nowhere.", valueName: "host"))
    var publicAddress: String?

    @Option(
      help: ArgumentHelp("The account where none is named.", valueName: "handle"), completion: Completions.accounts)
    var defaultAccount: String?

    @Option(help: ArgumentHelp("Whether versions within a second of each other are thinned.", valueName: "thin|keep"))
    var rapidSaves: RapidSavesSetting?
    @Option(help: ArgumentHelp("For how long what is deleted can come back: 7d, 2w, 1y.", valueName: "span"))
    var keepDeleted: SpanArgument?

    @Option(help: ArgumentHelp("For how long versions stay: 7d, 2w, 1y.", valueName: "span"))
    var keepVersions: SpanArgument?

    @Option(help: ArgumentHelp("Whether `sheaf find` looks into texts, too.", valueName: "on|off"))
    var searchContents: SwitchArgument?

    @Option(
      help: ArgumentHelp("What contents of connected accounts may take here: 20G, none.", valueName: "size|none"))
    var cache: CacheArgument?

    @Flag(help: "Yes, keep things for a shorter time; without that a terminal asks, and a script is refused.")
    var yes = false

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
      if publicAddress == nil, defaultAccount == nil, rapidSaves == nil, keepDeleted == nil, keepVersions == nil,
        searchContents == nil, cache == nil
      {
        throw ValidationError(
          "Give --public-address, --default-account, --rapid-saves, --keep-deleted, --keep-versions, --search-contents or "
            + "--cache.")
      }
    }

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file, changing: true)
      let change = SettingsChange(
        publicAddress: publicAddress, defaultAccount: try defaultAccount.map { try AccountHandle($0) },
        rapidSaves: rapidSaves, keepDeleted: keepDeleted?.seconds, keepVersions: keepVersions?.seconds,
        searchContents: searchContents.map { $0 == .on }, cache: cache?.bytes)
      let isMade = publicAddress != nil && defaultAccount == nil
      let (before, settings) = try await LibraryConnection.with(location, creating: isMade) { connection in
        if connection.isNew { try NewLibrary.announce(at: location, output) }
        let before = try await connection.client.settings()
        let spans: [(String, Int64, Int64?)] = [
          ("deleted items", before.keepDeleted, change.keepDeleted),
          ("versions", before.keepVersions, change.keepVersions),
        ]
        try Retain.confirm(spans, of: location.path, yes: yes || connection.isNew)
        return (before, try await connection.client.change(change))
      }
      if output.json { return try JSON.write(settings) }
      if settings == before { try StandardOutput.line("Nothing changed.") }
      if publicAddress != nil {
        try StandardOutput.line("Links point to \(settings.publicAddress ?? "this library: sheaf://…").")
      }
      if defaultAccount != nil, let account = settings.defaultAccount {
        try StandardOutput.line("\(account) is the default account.")
      }
      switch rapidSaves {
      case .thin: try StandardOutput.line("Of versions within a second of each other some are kept.")
      case .keep: try StandardOutput.line("All versions are kept, however fast they follow each other.")
      case nil: break
      }
      if keepDeleted != nil {
        try StandardOutput.line("Deleted items are kept for \(Format.span(settings.keepDeleted)).")
      }
      if keepVersions != nil {
        try StandardOutput.line("Versions are kept for \(Format.span(settings.keepVersions)).")
      }
      if settings.keepDeleted < before.keepDeleted || settings.keepVersions < before.keepVersions {
        try StandardOutput.line(Retain.warning)
      }
      if cache != nil {
        try StandardOutput.line(
          settings.cache.map { "Contents of connected accounts take \(Format.size($0)) here at most." }
            ?? "All contents of connected accounts are kept here.")
      }
      switch searchContents {
      case .on: try StandardOutput.line("`sheaf find` looks into texts, too.")
      case .off: try StandardOutput.line("`sheaf find` looks at names alone; the words of texts are removed.")
      case nil: break
      }
    }
  }
}

extension RapidSavesSetting: ExpressibleByArgument {}

/// Whether something is so.
enum SwitchArgument: String, ExpressibleByArgument, CaseIterable {
  case on, off
}
