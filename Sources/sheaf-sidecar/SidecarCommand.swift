import ArgumentParser
import Glibc
import Logging
import ServiceLifecycle
import SheafHubClient
import SheafModel
import SheafSidecar
import UnixSignals

/// The command `sheaf-sidecar`.
@main
struct SidecarCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sheaf-sidecar",
    abstract: "Deliver the events of a library or a hub: webhooks, standard output, the desktop, commands.",
    discussion: """
      Runs beside a mount and posts every event, in order, at least once; after any crash of either side it goes on where it \
      stopped. It waits for a library that is not mounted yet. Told to stop, it finishes what it is delivering; told \
      again, it ends at once.

      With --hub it delivers what an account of a hub sees: its own events and those of the shares in which it takes \
      part. No library is needed for that; `sheaf-sidecar connect` makes the machine a device of the account before.

      Secrets on a command line are seen by everyone who may list processes: SHEAF_WEBHOOK_SECRET, or a file that the \
      configuration names, hides them. A second --secret is for the time in which the receiver changes to the first.

      Examples:
        sheaf-sidecar --webhook https://example.com/hook --secret whsec_…
        sheaf-sidecar --stdout --types 'sheaf.change.*'
        sheaf-sidecar --config ~/.config/sheaf/sidecar.toml
        sheaf-sidecar dead-letters --retry
        sheaf-sidecar connect 'https://hub.example/enrol/CODE#FINGERPRINT'
        sheaf-sidecar --hub --webhook https://example.com/hook
      """,
    version: "0.1.0",
    subcommands: [Connect.self, DeadLetters.self, Resume.self])

  @Option(
    help: ArgumentHelp("The library (default: SHEAF_LIBRARY, else the person's own).", valueName: "file"))
  var library: String?

  @Flag(help: "Deliver the events of the hub to which `connect` connected this machine, rather than a library's.")
  var hub = false

  @OptionGroup var device: DeviceOption

  @Option(help: ArgumentHelp("Post events to a URL (Standard Webhooks); may be repeated.", valueName: "url"))
  var webhook: [String] = []

  @Option(help: ArgumentHelp("Sign what is posted; up to two.", valueName: "whsec_…"))
  var secret: [String] = []

  @Flag(help: "Write each event as a line of JSON.")
  var stdout = false

  @Flag(help: "Show what others did as notifications of the desktop.")
  var desktop = false

  @Option(
    help: ArgumentHelp("Run a command for each event, with the event on its standard input.", valueName: "command"))
  var exec: [String] = []

  @Flag(help: "Serve the webhooks that accounts registered through the API, at public addresses alone.")
  var accountWebhooks = false

  @Option(
    help: ArgumentHelp(
      "Deliver these types only, such as 'sheaf.change.*'; may be repeated. For the sinks named by flags.",
      valueName: "pattern"))
  var types: [String] = []

  @Option(
    name: .customLong("as"),
    help: ArgumentHelp(
      "Deliver what this account sees, with its paths. For the sinks named by flags.", valueName: "handle"))
  var handle: String?

  @Flag(
    help: "Begin with the next event where nothing was delivered yet, rather than with the oldest one that is kept.")
  var fromNow = false

  @OptionGroup var files: FileOptions

  private static let secretVariable = "SHEAF_WEBHOOK_SECRET"

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let error as any Error & CustomStringConvertible where error is SheafError || error is HubFailure {
      report("sheaf-sidecar: \(error)")
      Glibc.exit(1)
    } catch {
      let code = exitCode(for: error)
      guard code != .success else { exit(withError: error) }
      let message = fullMessage(for: error).escapingControls(of: CommandLine.arguments)
      if !message.isEmpty { report(message) }
      Glibc.exit(code.rawValue)
    }
  }

  private static func report(_ message: String) {
    _ = (message + "\n").withCString { write(STDERR_FILENO, $0, strlen($0)) }
  }

  func run() async throws {
    let configuration = try configuration()
    let source = try source(configuration)
    let path = try files.state(configuration)
    let log = Logger(label: "sheaf-sidecar") { StreamLogHandler.standardError(label: $0) }
    // Once it has the lock, `dead-letters` and `resume` signal to it.
    let signals = await UnixSignalsSequence(trapping: .sighup, .sigterm, .sigint)
    let lock = try StateLock(path)
    let store = try SidecarState(path: path)
    for sink in configuration.sinks {
      if let former = sink.formerName { try store.rename(former, to: sink.name) }
    }
    let service = source.service(configuration, store, log)
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)], logger: log))
    let listening = Task {
      var isStopping = false
      for await signal in signals {
        if signal == .sighup {
          service.poked()
        } else if isStopping {
          _exit(1)
        } else {
          isStopping = true
          await group.triggerGracefulShutdown()
        }
      }
    }
    log.notice(
      "delivering", metadata: [source.kind: "\(source.name)", "sinks": "\(configuration.sinks.map(\.name))"])
    try await group.run()
    listening.cancel()
    try store.close()
    withExtendedLifetime(lock) {}
  }

  /// The configuration of file and flags together.
  private func configuration() throws -> SidecarConfiguration {
    var configuration = try files.configuration()
    var secrets = secret
    if secrets.isEmpty, let hidden = Environment.value(Self.secretVariable) {
      secrets = hidden.split(separator: " ").map(String.init)
    }
    // The commands of --exec inherit the environment of this process.
    unsetenv(Self.secretVariable)
    let keys = try secrets.map { try WebhookSecret($0) }
    var sinks = webhook.map { SinkConfiguration(webhook: $0, secrets: keys) }
    sinks += exec.map { SinkConfiguration(name: "exec \($0)", target: .exec(command: $0)) }
    if stdout { sinks.append(SinkConfiguration(name: "stdout", target: .output)) }
    if desktop { sinks.append(SinkConfiguration(name: "desktop", target: .desktop)) }
    for var sink in sinks {
      sink.filter.types = types
      sink.account = try handle.map { try AccountHandle($0) }
      if fromNow { sink.beginsNow = true }
      configuration.sinks.append(sink)
    }
    if accountWebhooks { configuration.servesAccounts = true }
    if hub { configuration.isOfHub = true }
    if library != nil { configuration.library = library }
    try configuration.check()
    return configuration
  }

  /// Where the events come from.
  private enum Source {
    case library(LibraryLocation)
    case hub(Device)

    /// The word of the log.
    var kind: String {
      switch self {
      case .library: "library"
      case .hub: "hub"
      }
    }

    var name: String {
      switch self {
      case .library(let location): location.path
      case .hub(let device): "\(device.hub) as \(device.handle)"
      }
    }

    func service(_ configuration: SidecarConfiguration, _ state: SidecarState, _ log: Logger) -> SidecarService {
      switch self {
      case .library(let location): SidecarService(configuration, library: location, state: state, log: log)
      case .hub(let device): SidecarService(configuration, device: device, state: state, log: log)
      }
    }
  }

  private func source(_ configuration: SidecarConfiguration) throws -> Source {
    if configuration.isOfHub { return .hub(try DeviceFile(try device.path(configuration)).read()) }
    return .library(try libraryLocation(configuration))
  }

  private func libraryLocation(_ configuration: SidecarConfiguration) throws -> LibraryLocation {
    let path =
      try library ?? Environment.value("SHEAF_LIBRARY") ?? configuration.library
      ?? LibraryLocation.ownPath(data: Environment.value("XDG_DATA_HOME"), home: try Environment.home())
    // The socket lies beside the file itself, not beside a link to it. The file may not exist yet.
    guard let resolved = realpath(path, nil) else { return LibraryLocation(path: path) }
    defer { free(resolved) }
    return LibraryLocation(path: String(cString: resolved))
  }
}

/// The options for a sidecar's configuration file and its state file.
struct FileOptions: ParsableArguments {
  @Option(help: ArgumentHelp("A TOML file with sinks; examples/sidecar.toml explains it.", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "Where positions and dead letters are kept (default: ~/.local/state/sheaf/sidecar.sqlite).", valueName: "file"))
  var state: String?

  /// The configuration of the file; an empty one without a file.
  func configuration() throws -> SidecarConfiguration {
    try config.map { try ConfigurationFile.read($0) } ?? SidecarConfiguration()
  }

  /// The file of positions and dead letters: that of the flag, otherwise of the configuration, otherwise the person's
  /// own (XDG Base Directory Specification).
  func state(_ configuration: SidecarConfiguration) throws -> String {
    if let path = state ?? configuration.state { return path }
    return try Environment.stateFolder() + "/sidecar.sqlite"
  }

  /// The same file, for a command that only looks at what a sidecar has kept.
  ///
  /// - Throws: ``SheafError`` of kind `notFound` for a named file that is not there.
  func stateOfSidecar() throws -> String {
    let configuration = try configuration()
    let path = try state(configuration)
    guard state ?? configuration.state != nil, access(path, F_OK) != 0, errno == ENOENT else { return path }
    throw SheafError(
      .notFound, subject: path.printable, reason: "there is no such file",
      advice: "name the one that the sidecar has: --state, or --config with its file")
  }
}

/// The option for the file that makes this machine a device of a hub.
struct DeviceOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The device's key, which `connect` makes (default: ~/.local/state/sheaf/sidecar-device.json).", valueName: "file")
  )
  var device: String?

  /// The file of the flag, otherwise of the configuration, otherwise the person's own.
  func path(_ configuration: SidecarConfiguration = SidecarConfiguration()) throws -> String {
    try device ?? configuration.device ?? Environment.stateFolder() + "/sidecar-device.json"
  }
}

extension Environment {
  /// The folder of what the sidecar keeps (XDG Base Directory Specification).
  fileprivate static func stateFolder() throws(SheafError) -> String {
    if let folder = value("XDG_STATE_HOME"), folder.hasPrefix("/") { return folder + "/sheaf" }
    return try home() + "/.local/state/sheaf"
  }

  fileprivate static func home() throws(SheafError) -> String {
    guard let home = value("HOME") else {
      throw SheafError(
        .notFound, subject: "HOME", reason: "is not set", advice: "name the files: --library and --state")
    }
    return home
  }
}
