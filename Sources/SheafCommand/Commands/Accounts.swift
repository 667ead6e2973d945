import ArgumentParser
import SheafLibrary
import SheafModel

struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "The accounts of a library.",
    discussion: """
      An account is a person, known by a handle such as alice@example.com. Each has documents of its own.

      Examples:
        sheaf account add alice@example.com --name "Alice Doe"
        sheaf account list
      """,
    subcommands: [Add.self, List.self, Remove.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add an account.", discussion: "The library is made where there is none yet.")

    @Argument(help: "Such as alice@example.com: [a-z0-9._+-]+@[a-z0-9.-]+")
    var handle: String

    @Option(help: "The person's name, for others to see.")
    var name: String?

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let handle = try AccountHandle(handle)
      let location = try LibraryChoice.location(named: library.file, changing: true)
      let account = try await LibraryConnection.with(location, creating: true) { connection in
        if connection.isNew { try NewLibrary.announce(at: location, output) }
        return try await connection.client.addAccount(handle, name: name)
      }
      if output.json { return try JSON.write(account) }
      try StandardOutput.line("Added \(account.handle) to \(location.path.escapingControls).")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the accounts.",
      discussion: "The default account acts where no other is named; `sheaf library set --default-account` changes it.")

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let (all, chosen, connected) = try await LibraryConnection.with(location) {
        (
          try await $0.client.accounts(), try await $0.client.settings().defaultAccount,
          try await $0.client.connectedAccounts()
        )
      }
      let accounts = all.map {
        ListedAccount(
          handle: $0.handle, name: $0.name, isDefault: $0.handle == chosen, isConnected: connected.contains($0.handle))
      }
      if output.json { return try JSON.write(accounts) }
      guard !accounts.isEmpty else {
        return try StandardOutput.line("No accounts yet. Add one with: sheaf account add HANDLE")
      }
      var table = Table([("HANDLE", .left), ("NAME", .left), ("", .left)])
      for account in accounts {
        let marks = [account.isDefault ? "default" : nil, account.isConnected ? "connected" : nil].compactMap { $0 }
        table.append([account.handle.description, account.name, marks.joined(separator: ", ")])
      }
      try StandardOutput.write(table.text)
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove an account that owns no documents.",
      discussion: """
        It leaves every share; what it wrote there keeps its name. An account that is mounted or still owns documents \
        stays, with an error.
        """)

    @Argument(help: "Whom to remove.", completion: Completions.accounts)
    var handle: String

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let handle = try AccountHandle(handle)
      let location = try LibraryChoice.location(named: library.file, changing: true)
      let account = try await LibraryConnection.with(location) { connection in
        let account = try await connection.client.accounts().first { $0.handle == handle }
        try await connection.client.removeAccount(handle)
        return account ?? Account(handle: handle, name: handle.description)
      }
      if output.json { return try JSON.write(account) }
      try StandardOutput.line("Removed \(account.handle) from \(location.path.escapingControls).")
    }
  }
}
