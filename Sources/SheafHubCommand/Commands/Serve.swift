import ArgumentParser
import Glibc
import Logging
import SheafHub
import SheafModel
import UnixSignals

struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serve the hub, in the foreground, until SIGTERM or SIGINT.")

  @OptionGroup var hub: HubOption

  @Option(
    help: ArgumentHelp(
      "Where to listen; otherwise at all IPv4 addresses of the machine, or with --plain at 127.0.0.1.",
      valueName: "address:port|unix:path"))
  var listen: String?

  @Option(help: ArgumentHelp("What is logged to standard error.", valueName: "debug|info|notice|warning|error"))
  var logLevel = "notice"

  func validate() throws {
    if Logger.Level(rawValue: logLevel) == nil { throw ValidationError("\(logLevel) is no level of a log.") }
  }

  func run() async throws {
    Self.raiseDescriptorLimit()
    var logger = Logger(label: "sheaf-hub") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = Logger.Level(rawValue: logLevel) ?? .notice
    // The first signal ends the hub gracefully, whenever it comes.
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    let folder = HubFolder(hub.hub)
    let settings = try folder.settings()
    if settings.store == "sqlite" { try folder.lock() }
    let address = try listenAddress(settings)
    let certificate = try folder.certificate(settings, logger: logger)
    let fingerprint = try folder.fingerprint(settings)
    try await hub.withHub { open in
      let server = try HubServer(
        hub: open.hub, listen: address, certificate: certificate, fingerprint: fingerprint, logger: logger)
      try await server.start()
      let scheme = certificate == nil ? "http" : "https"
      print("Serving \(scheme)://\(open.hub.addresses.first?.description ?? "")")
      fflush(nil)
      for await _ in signals { break }
      logger.notice("ending")
      await server.stop()
    }
  }

  /// Lets the process open as many files as the hard limit allows: each connection takes one, and the usual limit is
  /// for programs that call select(2).
  private static func raiseDescriptorLimit() {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }

  private func listenAddress(_ settings: HubSettings) throws -> ListenAddress {
    if let listen { return try ListenAddress(listen) }
    let port = try settings.addresses.first.map { try HubAddress($0).port } ?? 443
    return try ListenAddress("\(settings.security == .plain ? "127.0.0.1" : "0.0.0.0"):\(port)")
  }
}
