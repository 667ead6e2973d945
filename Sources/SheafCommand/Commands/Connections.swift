import ArgumentParser
import Glibc
import SheafClient
import SheafModel
import SheafMount
import SheafReplication

struct Connect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "connect", abstract: "Connect an account with a hub.",
    discussion: """
      The link makes this machine a device of an account: from `sheaf-hub account add`, or from `sheaf device add` on a \
      machine that is connected. It is good once, and for a day. The account is made in the library if it is missing. What \
      it owns and what the hub has are then the same on all machines, as long as the library is mounted; without a network \
      everything that is here works, and is sent later. Connecting deletes nothing. If the account has documents here \
      already, a person is asked first. With --as, a link for another account is refused. A link that is refused is not \
      used up, and nothing is made for it.

      On a terminal it then shows what is done and left, if the library is mounted; Ctrl-C ends that alone.

      Examples:
        sheaf connect 'https://hub.example/enrol/CODE'
        sheaf connect 'https://hub.example/enrol/CODE' --as alice@hub.example
        sheaf connect 'https://192.0.2.7:8443/enrol/CODE#FINGERPRINT' --name laptop
        sheaf connect 'https://hub.example/enrol/CODE' --cache 20G
      """)

  @Argument(help: "An enrolment link.")
  var link: String

  @Option(help: "What to call this machine (default: its host name).")
  var name: String?

  @Option(
    help: ArgumentHelp(
      "Let contents of connected accounts take so much here, 10G; others come when they are read.", valueName: "size"))
  var cache: CacheArgument?

  @Flag(help: "Without a question, though the account has documents here.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file, changing: true)
    let request = ConnectionRequest(link: link, device: try name ?? Self.hostName())
    // No library is made for a link that is no good.
    if NewLibrary.wouldBeMade(at: location) { try check(try await LinkPreview.ask(request)) }
    try await LibraryConnection.with(location, creating: true) { connection in
      if connection.isNew {
        try NewLibrary.announce(at: location, output)
      } else {
        try check(try await connection.client.preview(request))
      }
      if let cache { _ = try await connection.client.change(SettingsChange(cache: cache.bytes)) }
      let others = try await connection.client.accounts().map(\.handle)
      let status = try await connection.client.connect(request)
      if output.json { return try JSON.write(status) }
      try StandardOutput.line("Connected \(status.account) with \(ConnectedAccount.hub(status)).")
      if !others.isEmpty, !others.contains(status.account) {
        try StandardOutput.line(
          "The library has \(Format.people(others)) already; \(status.account) was added to it. Name it with: "
            + "--as \(status.account)")
      }
      if !connection.isOwn, StandardError.isTerminal {
        _ = try await SyncWait.untilSettled(status, connection.client, until: nil)
      }
      try StandardOutput.line("`sheaf status` tells what is sent and fetched, while the library is mounted.")
    }
  }

  /// Refuses a link for another account than the one that was named; asks where the account has documents here.
  private func check(_ preview: ConnectionPreview) throws {
    let (account, named) = (preview.account, try library.account())
    if let named, named != account {
      throw SheafError(
        .invalid, subject: "--as \(named)", reason: "is not whom the link is for, which is \(account)",
        advice: "leave --as out, or ask for a link for \(named); this one is not used up")
    }
    guard preview.hasDocuments, named == nil, !yes else { return }
    let hub = preview.hub.printable
    guard Question.canBeAsked else {
      return StandardError.write(
        "sheaf: \(account) has documents here; they go to \(hub), and what is there comes here\n")
    }
    try Question.confirm(
      "\(account) has documents here. They go to \(hub), and what is there comes here. Connect it?",
      about: "\(account)")
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
      Everything that is here stays, and so does everything that the hub has. Documents of which nothing is here go from here; \
      `sheaf keep` fetches them before. This machine's key for the hub is removed, and the machine goes from the account's \
      list if the hub can be reached. \
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
    let location = try LibraryChoice.location(named: library.file, changing: true)
    let end = try await LibraryConnection.with(location) { connection in
      let account = try await ConnectedAccount.find(connection.client, try library.account())
      return try await connection.client.disconnect(account, discardsUnsent: discardUnsent)
    }
    if output.json { return try JSON.write(end) }
    try StandardOutput.line("\(end.account) is no longer connected. Everything that is here stays.")
    if end.removed > 0 {
      let documents = Format.count(end.removed, "document")
      try StandardOutput.line("\(documents) of which nothing was here are at the hub alone.")
    }
    if !end.isDeviceRemoved {
      try StandardOutput.line(
        "The hub did not answer, so this machine is still in the account's list of machines. Take it out on another one: "
          + "sheaf device remove NAME")
    }
  }
}

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync", abstract: "Tell what waits to be sent and fetched, wait for it, or set its pace.",
    discussion: """
      With --wait, it ends once the hub has everything that is here, and everything that the hub has is here; with status \
      1 if the time is over before. On a terminal it shows what is done and left; Ctrl-C ends the waiting alone.

      With --pause nothing is sent or fetched, from now on until --resume: what is done here waits. --limit bounds the \
      contents that are sent and fetched, in bytes a second. Both are remembered with the library.

      Examples:
        sheaf sync
        sheaf sync --wait 60
        sheaf sync --pause
        sheaf sync --resume --limit 2M
        sheaf sync --limit none
      """)

  @Option(help: ArgumentHelp("How long to wait.", valueName: "seconds"))
  var wait: Int?

  /// How long it looks what there is, where nobody waits for more.
  private static let look = Duration.seconds(1)

  @Flag(help: "Send and fetch nothing.")
  var pause = false

  @Flag(help: "Send and fetch again.")
  var resume = false

  @Option(help: ArgumentHelp("Bytes of contents in a second: 500K, 2M; none for no limit.", valueName: "rate"))
  var limit: RateArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let wait, !(1...1_000_000).contains(wait) { throw ValidationError("--wait takes 1 to 1000000 seconds.") }
    if pause, resume || wait != nil { throw ValidationError("--pause goes with neither --resume nor --wait.") }
  }

  func run() async throws {
    let location = try LibraryChoice.location(named: library.file, changing: pause || resume || limit != nil)
    let status = try await LibraryConnection.with(location) { connection in
      let (client, account) = (
        connection.client, try await ConnectedAccount.find(connection.client, try library.account())
      )
      if pause || resume || limit != nil {
        _ = try await client.change(
          ConnectionChange(isPaused: pause ? true : resume ? false : nil, limit: limit?.bytes), of: account)
      }
      let status = try await client.synchronize(account)
      guard let wait else {
        // It has just begun to look; mostly there is nothing, and that is soon known.
        return status.isPaused ? status : try await SyncWait.untilSettled(status, client, until: .now + Self.look)
      }
      if status.isPaused {
        throw SheafError(
          .unavailable, subject: "\(account)", reason: "is paused, so nothing is sent or fetched",
          advice: "sheaf sync --resume")
      }
      return try await SyncWait.untilSettled(status, client, until: .now + .seconds(wait))
    }
    try output.json ? JSON.write(status) : StandardOutput.write(ConnectedAccount.text([status]))
    if wait != nil, !SyncWait.isSettled(status) { throw ExitCode.failure }
  }
}

struct DeviceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "The machines of a connected account.",
    subcommands: [Add.self, List.self, Remove.self])

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print a link that connects another machine.",
      discussion: """
        On the other machine: sheaf connect 'LINK'. Whoever has the link gets in, once. On a terminal that is wide enough \
        the link is shown as a QR code, too. --revoke is for a link that somebody else may have read.
        """)

    @Flag(help: "Make the links useless that nobody has used, instead of a new one.")
    var revoke = false

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file, changing: true)
      if revoke {
        let revoked = try await LibraryConnection.with(location) { connection in
          let account = try await ConnectedAccount.find(connection.client, try library.account())
          return try await connection.client.revokeDeviceLinks(of: account)
        }
        if output.json { return try JSON.write(revoked) }
        return try StandardOutput.line(
          revoked.revoked == 0
            ? "Nothing changed: there is no link for a machine that nobody has used."
            : "Revoked \(Format.count(revoked.revoked, "link")) that nobody had used.")
      }
      let link = try await LibraryConnection.with(location) { connection in
        let account = try await ConnectedAccount.find(connection.client, try library.account())
        return try await connection.client.addDevice(to: account)
      }
      if output.json { return try JSON.write(link) }
      if let code = try QRCode.shown(link.link) { try StandardOutput.write(code) }
      try StandardOutput.line(link.link.printable)
      StandardError.write("Good for one machine, until \(Format.time(ofHub: link.expires)).\n")
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
          device.name.printable, Format.time(ofHub: device.added), device.seen.map(Format.time(ofHub:)) ?? "never",
          Self.state(of: device), device.id.printable,
        ])
      }
      try StandardOutput.write(table.text)
    }

    private static func state(of device: ConnectedDevice) -> String {
      if let wiped = device.wiped { return "wiped \(Format.time(ofHub: wiped))" }
      if device.wipeAsked != nil { return "to be wiped" }
      return device.isOwn ? "this machine" : ""
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Take a machine away from the account.",
      discussion: """
        Its sessions end at once. What is on that machine stays there.

        With --wipe, for a machine that was lost, it destroys what it has of the account as soon as it reaches the hub: \
        documents with their history and what was deleted, what others share with the account, events, and its key. What \
        it has not sent by then is lost. `sheaf device list` tells how far it is. Until it has begun, the same command \
        without --wipe takes that back.
        """)

    @Argument(help: "Its name, or its id where several have one name.")
    var name: String

    @Flag(help: "Has it destroy what it has of the account.")
    var wipe = false

    @Flag(help: "Without a question.")
    var yes = false

    @OptionGroup var library: LibraryOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      let location = try LibraryChoice.location(named: library.file, changing: true)
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
        if wipe, device.wipeAsked == nil { try confirm(device, account) }
        try await connection.client.removeDevice(device.id, of: account, wipes: wipe)
        return device
      }
      if output.json {
        return try JSON.write(RemovedDeviceOutput(id: removed.id, name: removed.name, wipes: wipe))
      }
      try StandardOutput.line(text(removed))
    }

    private func confirm(_ device: ConnectedDevice, _ account: AccountHandle) throws {
      if yes { return }
      let device = device.isOwn ? "This machine" : device.name.printable
      guard Question.canBeAsked else {
        throw SheafError(
          .invalid, subject: "--wipe", reason: "destroys what \(device) has of \(account), and nobody can be asked",
          advice: "add --yes")
      }
      try Question.confirm(
        "\(device) destroys what it has of \(account) once it reaches the hub, also what is not sent. Remove it?",
        about: device)
    }

    private func text(_ device: ConnectedDevice) -> String {
      let name = device.name.printable
      if device.wiped != nil { return wipe ? "\(name) is wiped already." : "Removed \(name), which is wiped." }
      if device.wipeAsked != nil {
        return wipe
          ? "\(name) is to be wiped already." : "Removed \(name). What it has and has not destroyed stays there."
      }
      return wipe
        ? "Removed \(name). It destroys what it has of the account once it reaches the hub; `sheaf device list` tells."
        : "Removed \(name). What is on that machine stays there."
          + (device.isOwn ? "" : " Links of device add that nobody has used end, too.")
    }
  }
}

/// The account that a command about a connection is about.
enum ConnectedAccount {
  /// - Parameter named: The account of `--as`; otherwise the one that is connected, or of several the one in whose mount
  ///   the command runs.
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
      if let here = try await mounted(client), connected.contains(here) { return here }
      throw SheafError(
        .invalid, subject: "library", reason: "has \(connected.count) connected accounts",
        advice: "name one: --as \(first)")
    }
    return first
  }

  /// The account of the mount that the working directory is in.
  private static func mounted(_ client: SheafClient) async throws -> AccountHandle? {
    guard let here = try? SystemPath.workingDirectory(), let mount = try? MountTable.current().entry(containing: here),
      mount.isSheaf
    else { return nil }
    return try await client.mounts().first { $0.mountpoint == mount.mountpoint.readable }?.account
  }

  /// The hub of a connection, for people.
  static func hub(_ status: ConnectionStatus) -> String { status.hub?.printable ?? "its hub" }

  static func text(_ connections: [ConnectionStatus]) -> String {
    var text = ""
    for status in connections {
      let (hub, since) = (hub(status), Format.time(status.since))
      let state =
        switch status.state {
        case .failed: "not connected"
        case _ where status.isPaused: "paused since \(since); go on with: sheaf sync --resume"
        case .connecting: "connecting with \(hub)"
        case .connected: "connected with \(hub) since \(since)"
        case .disconnected: "not connected since \(since)"
        }
      var facts = [("Account", status.account.description), ("Hub", state)]
      if let limit = status.limit { facts.append(("Limit", "\(Format.size(limit)) of contents a second")) }
      if let problem = status.problem { facts.append(("Problem", problem)) }
      facts.append(
        (
          "Waiting",
          status.isSettled && status.unsent == 0 && status.unfetched == 0
            ? "nothing"
            : status.unsent == 0 && status.unfetched == 0
              ? "looking for what changed" : "\(status.unsent) to be sent, \(status.unfetched) to be fetched"
        ))
      facts += status.notices.map { ("Notice", $0.printable) }
      text += Table.facts(facts).text
    }
    return text
  }
}
