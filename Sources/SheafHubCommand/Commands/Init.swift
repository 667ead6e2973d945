import ArgumentParser
import Foundation
import Logging
import SheafHub
import SheafModel

struct InitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Make a hub's folder.",
    discussion: """
      Without --certificate and --plain the hub makes a certificate for itself, and links have the fingerprint of its \
      key. --plain is for a hub behind a proxy on the same machine, which has a certificate.

      With --domain, other hubs dial this one at its first address, at port 443, and trust no certificate that a hub made \
      for itself. https://DOMAIN/.well-known/sheaf has to be the hub's, or to name it: {"hub": "https://ADDRESS"}.
      """)

  @OptionGroup var hub: HubOption

  @Option(
    help: ArgumentHelp("Where everything is kept: sqlite, or a connection string of PostgreSQL.", valueName: "store"))
  var store = "sqlite"

  @Option(
    help: ArgumentHelp("Where machines dial the hub; repeat it for further ones.", valueName: "name[:port]"))
  var address: [String]

  @Option(
    help: ArgumentHelp(
      "A domain for which the hub speaks to other hubs; repeat it for further ones.", valueName: "domain"))
  var domain: [String] = []

  @Option(help: ArgumentHelp("A certificate with its chain, PEM. It is read again when it changes.", valueName: "file"))
  var certificate: String?

  @Option(help: ArgumentHelp("The certificate's key, PEM.", valueName: "file"))
  var key: String?

  @Flag(help: "Serve with a certificate that the hub makes for itself (the default).")
  var selfSigned = false

  @Flag(help: "Serve plain HTTP, on this machine only.")
  var plain = false

  func validate() throws {
    if address.isEmpty { throw ValidationError("Give at least one --address.") }
    if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key belong together.") }
    if [plain, selfSigned, certificate != nil].count(where: { $0 }) > 1 {
      throw ValidationError("Give one of --certificate, --self-signed and --plain.")
    }
    if !domain.isEmpty {
      guard plain || certificate != nil else {
        throw ValidationError(
          "--domain needs a certificate that other hubs trust: --certificate and --key, or --plain.")
      }
      guard let first = HubAddress(parsing: address[0]), first.port == 443 else {
        throw ValidationError("With --domain, the first --address has no port: other hubs dial 443.")
      }
      for domain in domain where !Federation.isDomain(domain) {
        throw ValidationError("\(domain) is no domain in lower case, such as hub.example.")
      }
    }
    if store != "sqlite", !HubSettings.isPostgres(store) {
      throw ValidationError("--store is sqlite, or a connection string such as postgresql://host/name.")
    }
  }

  func run() async throws {
    let folder = HubFolder(hub.hub)
    let addresses = try address.map { try HubAddress($0) }
    var settings = HubSettings(
      store: store, addresses: addresses.map(\.description),
      security: plain ? .plain : certificate == nil ? .own : .files)
    settings.certificate = certificate.map { absolute($0) }
    settings.key = key.map { absolute($0) }
    settings.domains = domain.isEmpty ? nil : domain
    // Before anything is made: a hub that cannot serve would seem to be ready.
    if settings.security == .files { _ = try folder.certificate(settings, logger: Logger(label: "sheaf-hub")) }
    var files: [(path: String, text: String)] = []
    if settings.security == .own {
      let made = try HubCertificate.make(for: addresses, now: HubClock.system.now)
      files = [(folder.certificateFile, made.certificate), (folder.keyFile, made.key)]
    }
    try await folder.make(settings, files: files) {
      // The tables are made now, so that a store that cannot be used is noticed here.
      let database = try folder.newDatabase(settings)
      let result = await Result {
        try await Hub.prepare(database)
        guard try await !StoreMove.isUnfinished(database) else { throw StoreMove.unfinished }
        // By its secret, migrate knows a hub that has no account yet.
        _ = try await Accounts.secret(in: database)
      }
      await database.close()
      try result.get()
    }
    print("Made a hub in \(folder.path). Next: sheaf-hub account add, sheaf-hub serve")
  }

  private func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }
}
