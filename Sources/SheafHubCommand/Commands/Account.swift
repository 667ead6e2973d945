import ArgumentParser
import Foundation
import Glibc
import SheafHub
import SheafModel
import SheafWire

struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account", abstract: "Add, list, move and remove accounts.",
    subcommands: [Add.self, Link.self, Links.self, List.self, Quota.self, Export.self, Import.self, Remove.self])

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

  struct Links: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Tell which links of an account nobody has used yet, or make them useless.",
      discussion: "The hub has no link itself, and so tells only until when each is good.")

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle.") var handle: AccountHandle
    @Flag(help: "Make all of them useless.") var revoke = false
    @Flag(help: "Print JSON.") var json = false

    private struct Open: Encodable {
      let expires: String
    }

    private struct Revoked: Encodable {
      let revoked: Int
    }

    func run() async throws {
      try await hub.withHub { open in
        let accounts = open.hub.accounts
        let zone = try await accounts.zone(of: handle)
        if revoke {
          let count = try await accounts.revokeCodes(of: zone)
          if json { return try JSONOutput.print(Revoked(revoked: count)) }
          return print(count == 0 ? "\(handle) has no link that nobody has used." : Self.ended(count))
        }
        let ends = try await accounts.openCodes(of: zone)
        if json { return try JSONOutput.print(ends.map(Open.init)) }
        if ends.isEmpty { print("\(handle) has no link that nobody has used.") }
        for end in ends { print("a link for one machine, good until \(end)") }
      }
    }

    /// What is said of links that are good no more.
    static func ended(_ count: Int) -> String {
      count == 1
        ? "One link that nobody had used is good no more." : "\(count) links that nobody had used are good no more."
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
        print("\(handle) has \(bytes == "none" ? "no limit" : "room for \(bytes) bytes").")
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
        print("Removed \(handle) with everything that the hub had of it.")
      }
    }
  }

  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write an account to a file: its documents, all their versions, and its events.",
      discussion: """
        The file is that of one moment, while the hub is served. The people with whom it shares and its machines are not \
        in it.
        """)

    @OptionGroup var hub: HubOption
    @Argument(help: "The handle.") var handle: AccountHandle
    @Argument(help: "A file that is not there yet.") var file: String
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
      try await hub.withHub { open in
        let zone = try await open.hub.accounts.zone(of: handle)
        let made = try OwnFile(file)
        defer { withExtendedLifetime(made) {} }
        let target = FileHandle(fileDescriptor: made.descriptor, closeOnDealloc: false)
        do {
          let facts = try await open.hub.exportAccount(zone: zone, to: target)
          if json { return try JSONOutput.print(facts) }
          print("Wrote \(facts.rows) rows with \(facts.bytes) bytes of contents.")
        } catch {
          made.remove()
          throw error
        }
      }
    }
  }

  struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Make an account of a file that export wrote, and print a link for its first machine.",
      discussion: """
        The account is there when all of it has been stored and checked, or not at all. It shares nothing yet, and its \
        machines join by new links.
        """)

    @OptionGroup var hub: HubOption
    @Argument(help: "The file.") var file: String
    @Option(help: ArgumentHelp("The account's handle here; otherwise that of the file.", valueName: "handle"))
    var `as`: AccountHandle?
    @Flag(help: "Print JSON.") var json = false

    private struct Facts: Encodable {
      let account: AccountFileFacts
      let link: LinkFacts
    }

    func run() async throws {
      try await hub.withHub { open in
        let descriptor = Glibc.open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SheafError(systemError: errno, subject: file.printable) }
        let source = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let facts = try await open.hub.importAccount(from: source, as: self.as)
        let link = try await open.link(for: facts.zone)
        if json { return try JSONOutput.print(Facts(account: facts, link: link)) }
        print(link.link)
      }
    }
  }

  private static func printLink(of handle: AccountHandle, _ open: OpenHub, json: Bool) async throws {
    let link = try await open.link(for: try await open.hub.accounts.zone(of: handle))
    if json { try JSONOutput.print(link) } else { print(link.link) }
  }
}
