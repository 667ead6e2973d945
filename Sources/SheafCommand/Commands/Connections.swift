import ArgumentParser
import Glibc
import SheafClient
import SheafModel

struct Connect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "connect", abstract: "Connect an account with a hub.",
    discussion: """
      The link makes this machine a device of an account: from `sheaf-hub account add`, or from `sheaf device add` on a \
      machine that is connected. It is good once, and for a day. The account is made in the library if it is missing. What \
      it owns and what the hub has are then the same on all machines, as long as the library is mounted; without a network \
      everything that is here works, and is sent later. Connecting deletes nothing.

      Examples:
        sheaf connect 'https://hub.example/enrol/CODE'
        sheaf connect 'https://192.0.2.7:8443/enrol/CODE#FINGERPRINT' --name laptop
      """)

  @Argument(help: "An enrolment link.")
  var link: String

  @Option(help: "What to call this machine (default: its host name).")
  var name: String?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file)
    let request = ConnectionRequest(link: link, device: try name ?? Self.hostName())
    let status = try await LibraryConnection.with(location, creating: true) { connection in
      if connection.isNew { try NewLibrary.announce(at: location, output) }
      return try await connection.client.connect(request)
    }
    if output.json { return try JSON.write(status) }
    try StandardOutput.line("Connected \(status.account) with \(status.hub.printable).")
    try StandardOutput.line("`sheaf status` tells what is sent and fetched, while the library is mounted.")
  }

  private static func hostName() throws(SheafError) -> String {
    var name = [CChar](repeating: 0, count: 65)
    guard gethostname(&name, 64) == 0 else { throw SheafError(systemError: errno, subject: "host name") }
    let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.isEmpty ? "machine" : text
  }
}

struct Disconnect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "disconnect", abstract: "End the connection of an account with its hub.",
    discussion: """
      Everything that is here stays, and so does everything that the hub has. This machine's key for the hub is removed. \
      While something is not sent, this is refused.

      Examples:
        sheaf disconnect
        sheaf disconnect --as alice@hub.example --discard-unsent
      """)

  @Flag(help: "Though something is not sent. It stays here.")
  var discardUnsent = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file)
    let account = try await LibraryConnection.with(location) { connection in
      let account = try await ConnectedAccount.find(connection.client, try library.account())
      try await connection.client.disconnect(account, discardsUnsent: discardUnsent)
      return account
    }
    if output.json { return try JSON.write(DisconnectOutput(account: account)) }
    try StandardOutput.line("\(account) is no longer connected. Everything that is here stays.")
  }
}

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync", abstract: "Tell what waits to be sent and fetched, or wait for it.",
    discussion: """
      With --wait, it ends once the hub has everything that is here, and everything that the hub has is here; with status \
      1 if the time is over before.

      Examples:
        sheaf sync
        sheaf sync --wait 60
      """)

  @Option(help: ArgumentHelp("How long to wait.", valueName: "seconds"))
  var wait: Int?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let wait, !(1...1_000_000).contains(wait) { throw ValidationError("--wait takes 1 to 1000000 seconds.") }
  }

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file)
    let status = try await LibraryConnection.with(location) { connection in
      let account = try await ConnectedAccount.find(connection.client, try library.account())
      var status = try await connection.client.synchronize(account)
      let end = ContinuousClock.now + .seconds(wait ?? 0)
      while wait != nil, !status.isSettled || status.state != .connected, ContinuousClock.now < end {
        try await Task.sleep(for: .milliseconds(100))
        status = try await connection.client.connections().first { $0.account == account } ?? status
      }
      return status
    }
    try output.json ? JSON.write(status) : StandardOutput.write(ConnectedAccount.text([status]))
    if wait != nil, !status.isSettled || status.state != .connected { throw ExitCode.failure }
  }
}

struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "The machines of a connected account.",
    subcommands: [Add.self, List.self, Remove.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print a link that connects another machine.",
      discussion: "On the other machine: sheaf connect 'LINK'. Whoever has the link gets in, once.")

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let link = try await LibraryConnection.with(location) { connection in
        let account = try await ConnectedAccount.find(connection.client, try library.account())
        return try await connection.client.addDevice(to: account)
      }
      if output.json { return try JSON.write(link) }
      try StandardOutput.line(link.link.printable)
      StandardError.write("Good for one machine, until \(link.expires.printable).\n")
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the machines.")

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let devices = try await LibraryConnection.with(location) { connection in
        let account = try await ConnectedAccount.find(connection.client, try library.account())
        return try await connection.client.devices(of: account)
      }
      if output.json { return try JSON.write(devices) }
      var table = Table([("NAME", .left), ("ADDED", .left), ("SEEN", .left), ("", .left), ("ID", .left)])
      for device in devices {
        table.append([
          device.name.printable, device.added.printable, device.seen?.printable ?? "never",
          device.isOwn ? "this machine" : "", device.id.printable,
        ])
      }
      try StandardOutput.write(table.text)
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Take a machine away from the account.",
      discussion: "Its sessions end at once. What is on that machine stays there.")

    @Argument(help: "Its name, or its id where several have one name.")
    var name: String

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file)
      let removed = try await LibraryConnection.with(location) { connection in
        let account = try await ConnectedAccount.find(connection.client, try library.account())
        let devices = try await connection.client.devices(of: account)
        let meant = devices.filter { $0.id == name || $0.name == name }
        guard let device = meant.first else {
          throw SheafError(
            .notFound, subject: "device \(name)".printable, reason: "is none of \(account)'s",
            advice: "`sheaf device list` shows them")
        }
        guard meant.count == 1 else {
          throw SheafError(
            .invalid, subject: "device \(name)".printable, reason: "is the name of \(meant.count) machines",
            advice: "give its id; `sheaf device list` shows it")
        }
        try await connection.client.removeDevice(device.id, of: account)
        return device
      }
      if output.json { return try JSON.write(RemovedDeviceOutput(id: removed.id, name: removed.name)) }
      try StandardOutput.line("Removed \(name.printable).")
    }
  }
}

/// The account that a command about a connection is about.
enum ConnectedAccount {
  /// - Parameter named: The account of `--as`; otherwise the one that is connected.
  /// - Throws: ``SheafError``: `notFound` where none is connected, `invalid` where several are.
  static func find(_ client: SheafClient, _ named: AccountHandle?) async throws -> AccountHandle {
    if let named { return named }
    let connected = try await client.connectedAccounts()
    guard let first = connected.first else {
      throw SheafError(
        .notFound, subject: "library", reason: "has no account that is connected to a hub",
        advice: "sheaf connect LINK, with a link from the hub's administrator or from another device")
    }
    guard connected.count == 1 else {
      throw SheafError(
        .invalid, subject: "library", reason: "has \(connected.count) connected accounts",
        advice: "name one: --as \(first)")
    }
    return first
  }

  static func text(_ connections: [ConnectionStatus]) -> String {
    var text = ""
    for status in connections {
      let state =
        switch status.state {
        case .connecting: "connecting with \(status.hub.printable)"
        case .connected: "connected with \(status.hub.printable) since \(Format.time(status.since))"
        case .disconnected: "not connected since \(Format.time(status.since))"
        case .failed: "not connected"
        }
      var facts = [("Account", status.account.description), ("Hub", state)]
      if let problem = status.problem { facts.append(("Problem", problem.printable)) }
      facts.append(
        (
          "Waiting",
          status.isSettled && status.unsent == 0 && status.unfetched == 0
            ? "nothing" : "\(status.unsent) to be sent, \(status.unfetched) to be fetched"
        ))
      facts += status.notices.map { ("Notice", $0.printable) }
      text += Table.facts(facts).text
    }
    return text
  }
}
