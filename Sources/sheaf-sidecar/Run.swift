import ArgumentParser
import Glibc
import Logging
import ServiceLifecycle
import SheafModel
import SheafSidecar
import UnixSignals

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deliver events until interrupted (the default).",
    discussion: """
      Secrets on a command line are seen by everyone who may list processes: SHEAF_WEBHOOK_SECRET, or a file that the \
      configuration names, hides them. A second --secret is for the time in which the receiver changes to the first.
      """)

  @Option(
    help: ArgumentHelp("The library (default: SHEAF_LIBRARY, else the person's own).", valueName: "file"))
  var library: String?

  @Option(help: ArgumentHelp("A TOML file with sinks; examples/sidecar.toml explains it.", valueName: "file"))
  var config: String?

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

  @OptionGroup var state: StateOptions

  func run() async throws {
    let configuration = try configuration()
    let location = try libraryLocation(configuration)
    let path = try state.path(configured: configuration.state)
    let log = Logger(label: "sheaf-sidecar") { StreamLogHandler.standardError(label: $0) }
    let lock = try StateLock(path)
    let store = try SidecarState(path: path)
    let service = SidecarService(configuration, library: location, state: store, log: log)
    let signals = await UnixSignalsSequence(trapping: .sighup)
    let listening = Task { for await _ in signals { service.poked() } }
    log.notice(
      "delivering", metadata: ["library": "\(location.path)", "sinks": "\(configuration.sinks.map(\.name))"])
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
        gracefulShutdownSignals: [.sigterm, .sigint], logger: log))
    try await group.run()
    listening.cancel()
    try store.close()
    withExtendedLifetime(lock) {}
  }

  /// What file and flags say together.
  private func configuration() throws -> SidecarConfiguration {
    var configuration = try config.map { try ConfigurationFile.read($0) } ?? SidecarConfiguration()
    var secrets = secret
    if secrets.isEmpty, let hidden = Environment.value("SHEAF_WEBHOOK_SECRET") {
      secrets = hidden.split(separator: " ").map(String.init)
    }
    let keys = try secrets.map { try WebhookSecret($0) }
    var sinks = webhook.map { SinkConfiguration(name: "webhook \($0)", target: .webhook(url: $0, secrets: keys)) }
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
    try configuration.check()
    return configuration
  }

  private func libraryLocation(_ configuration: SidecarConfiguration) throws -> LibraryLocation {
    let path =
      try library ?? Environment.value("SHEAF_LIBRARY") ?? configuration.library
      ?? LibraryLocation.ownPath(data: Environment.value("XDG_DATA_HOME"), home: try Environment.home())
    // The socket lies beside the file itself, not beside a link to it, which need not be there yet.
    guard let resolved = realpath(path, nil) else { return LibraryLocation(path: path) }
    defer { free(resolved) }
    return LibraryLocation(path: String(cString: resolved))
  }
}

/// Keeps a second sidecar from the same state, where each would deliver what the other does.
private final class StateLock: Sendable {
  private let descriptor: Int32

  /// - Throws: `busy` where another sidecar has it.
  init(_ state: String) throws(SheafError) {
    let path = state + "-lock"
    try SidecarProcess.makeFolder(of: path)
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw SheafError(.inputOutput, subject: path.printable, reason: String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let owner = SidecarProcess.running(state).map { "process \($0)" } ?? "another process"
      close(descriptor)
      throw SheafError(
        .busy, subject: state.printable, reason: "is used by \(owner)", advice: "end it, or name another file: --state")
    }
    self.descriptor = descriptor
    ftruncate(descriptor, 0)
    let text = "\(getpid())\n"
    pwrite(descriptor, text, text.utf8.count, 0)
  }

  deinit { close(descriptor) }
}
