import ArgumentParser
import Foundation
import Logging
import SheafHub
import SheafHubStore
import SheafModel

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Tell what the hub is and how much is in it.")

  private struct Facts: Encodable {
    let folder: String
    let store: String
    let addresses: [String]
    let domains: [String]
    let accounts: Int
    let devices: Int
    let bytes: Int64
    /// Nil for plain HTTP.
    let certificate: Certificate?
    let warnings: [String]
  }

  private struct Certificate: Encodable {
    let file: String
    /// RFC 3339.
    let ends: String
    /// Nil for one that the hub has not made itself.
    let fingerprint: String?
  }

  @OptionGroup var hub: HubOption
  @Flag(help: "Print JSON.") var json = false

  private func certificateText(_ certificate: Certificate?, _ settings: HubSettings) -> String {
    if let certificate { return "\(certificate.file.printable), until \(certificate.ends)" }
    return settings.security == .plain ? "none: plain HTTP" : "cannot be read"
  }

  func run() async throws {
    try await hub.withHub { open in
      let accounts = try await open.hub.accounts.list()
      var devices = 0
      for account in accounts { devices += try await open.hub.accounts.devices(of: account.zone).count }
      var warnings = try await (open.hub.database as? PostgresDatabase)?.durabilityWarning().map { [$0] } ?? []
      var (found, fingerprint): ((file: String, end: Timestamp)?, String?)
      do {
        found = try open.folder.certificateFacts(open.settings)
        fingerprint = try open.folder.fingerprint(open.settings)
      } catch let error as SheafError {
        warnings.append("\(error)")
      }
      do {
        // As `serve` does: the key has to be there, and to be the certificate's.
        _ = try open.folder.certificate(
          open.settings, logger: Logger(label: "status") { _ in SwiftLogNoOpLogHandler() })
      } catch let error as SheafError {
        if !warnings.contains("\(error)") { warnings.append("\(error)") }
      }
      if let end = found?.end, let warning = HubCertificate.warning(end: end, now: HubClock.system.now) {
        warnings.append(warning)
      }
      if open.folder.isKeyExposed(open.settings) {
        warnings.append("every user of this machine can read the key of the certificate: chmod o-r")
      }
      let facts = Facts(
        folder: open.folder.path, store: open.settings.store == "sqlite" ? "sqlite" : "postgresql",
        addresses: open.settings.addresses, domains: open.settings.domains ?? [], accounts: accounts.count,
        devices: devices,
        bytes: accounts.reduce(0) { $0 + $1.used },
        certificate: found.map { Certificate(file: $0.file, ends: $0.end.secondsText, fingerprint: fingerprint) },
        warnings: warnings)
      if json { return try JSONOutput.print(facts) }
      print(
        """
        Folder:      \(facts.folder)
        Store:       \(facts.store)
        Addresses:   \(facts.addresses.joined(separator: ", "))
        Domains:     \(facts.domains.isEmpty ? "none" : facts.domains.joined(separator: ", "))
        Certificate: \(certificateText(facts.certificate, open.settings))
        """)
      if let fingerprint { print("Fingerprint: \(fingerprint)") }
      print(
        """
        Accounts:    \(facts.accounts) with \(facts.devices) machines
        Contents:    \(facts.bytes) bytes
        """)
      for warning in facts.warnings { print("Warning:     \(warning)") }
    }
  }
}

struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Check every row and every hash of the store. Status 1 if anything is wrong.")

  @OptionGroup var hub: HubOption

  func run() async throws {
    try await hub.withHub { open in
      let findings = try await open.hub.check()
      for finding in findings { print(finding.escapingControls) }
      if !findings.isEmpty {
        throw SheafError(.corrupt, subject: open.folder.path.printable, reason: "has \(findings.count) findings")
      }
      print("Nothing is wrong.")
    }
  }
}

struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Copy a hub on SQLite into a new folder, while it is served.",
    discussion: """
      The copy is a hub of its own: serve it in place of the first one, and machines notice that it is older and send \
      again what it does not have. A hub on PostgreSQL is backed up by PostgreSQL's own means.
      """)

  @OptionGroup var hub: HubOption
  @Argument(help: "A folder that is not there yet.") var folder: String

  func run() async throws {
    try await hub.withHub { open in
      guard let database = open.hub.database as? SQLiteDatabase else {
        throw SheafError(
          .notSupported, subject: "backup", reason: "is for hubs on SQLite",
          advice: "use pg_dump or what your server has")
      }
      let copy = HubFolder(folder)
      var files: [(path: String, text: String)] = []
      if open.settings.security == .own {
        for (from, to) in [
          (open.folder.certificateFile, copy.certificateFile), (open.folder.keyFile, copy.keyFile),
        ] {
          guard let data = FileManager.default.contents(atPath: from) else {
            throw SheafError(.notFound, subject: from.printable, reason: "cannot be read")
          }
          files.append((to, String(decoding: data, as: UTF8.self)))
        }
      }
      try await copy.make(open.settings, files: files) {
        try await database.backup(to: copy.databaseFile)
        try await Hub.beginEpoch(inCopy: try SQLiteDatabase(path: copy.databaseFile))
      }
      print(
        "Copied the hub to \(copy.path.printable). In place of the first one: sheaf-hub serve --hub \(copy.path.shellWord)"
      )
    }
  }
}
