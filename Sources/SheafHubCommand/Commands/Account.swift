import ArgumentParser
import SheafHub
import SheafModel

struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Add, list and remove accounts.",
    subcommands: [Add.self, Link.self, List.self, Quota.self, Remove.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add an account, and print a link for its first machine, good for a day.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle, such as alice@hub.example.") var handle: AccountHandle
    @Option(help: "What people call the person.") var name: String?
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
      try await hub.withHub { open in
        try await open.hub.accounts.add(handle, name: name)
        try await printLink(of: handle, open, json: json)
      }
    }
  }

  struct Link: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print a link for one more machine of an account, good for a day.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle.") var handle: AccountHandle
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
      try await hub.withHub { open in try await printLink(of: handle, open, json: json) }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the accounts with the bytes that they have.")

    @OptionGroup var hub: HubOption
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
      try await hub.withHub { open in
        let accounts = try await open.hub.accounts.list()
        if json { return try JSONOutput.print(accounts) }
        for account in accounts {
          let quota = account.quota.map { " of \($0)" } ?? ""
          print("\(account.handle)\t\(account.name?.escapingControls ?? "")\t\(account.used)\(quota) bytes")
        }
      }
    }
  }

  struct Quota: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Set how many bytes of contents an account may have.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle.") var handle: AccountHandle
    @Argument(help: "Bytes, or none for no limit.") var bytes: String

    func validate() throws {
      if bytes != "none", Int64(bytes).map({ $0 < 0 }) ?? true {
        throw ValidationError("\(bytes) is no number of bytes.")
      }
    }

    func run() async throws {
      try await hub.withHub { open in
        let accounts = open.hub.accounts
        try await accounts.setQuota(Int64(bytes), of: try await accounts.zone(of: handle))
      }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove an account with everything that the hub has of it.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle.") var handle: AccountHandle
    @Flag(help: "Needed, since nothing brings it back.") var force = false

    func validate() throws {
      if !force { throw ValidationError("This destroys all that the hub has of the account; say --force.") }
    }

    func run() async throws {
      try await hub.withHub { open in
        try await open.hub.removeAccount(zone: try await open.hub.accounts.zone(of: handle))
      }
    }
  }

  private static func printLink(of handle: AccountHandle, _ open: OpenHub, json: Bool) async throws {
    let link = try await open.link(for: try await open.hub.accounts.zone(of: handle))
    if json { try JSONOutput.print(link) } else { print(link.link) }
  }
}
