import ArgumentParser
import SheafLibrary
import SheafModel

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell the state of a library, or of one item.",
    discussion: """
      Without PATH: who has the library open, its mounts, counts and sizes. With PATH: the item's version, owner and \
      share.

      Examples:
        sheaf status
        sheaf status ~/Sheaf/Documents/notes.md --json
      """)

  @Argument(help: "A document or folder.")
  var path: PathArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    if let path {
      let status = try await ItemTarget.with(path, library) { try await $0.client.status(of: $0.address) }
      return try output.json ? JSON.write(status) : StandardOutput.write(Self.text(status))
    }
    let location = try LibraryChoice.location(named: library.file)
    let report = try await LibraryConnection.with(location) { connection in
      LibraryReport(status: try await connection.client.status(), isRunning: !connection.isOwn)
    }
    try output.json ? JSON.write(report) : StandardOutput.write(report.text)
  }

  private static func text(_ status: ItemStatus) -> String {
    var facts = [("Path", status.path), ("Kind", status.kind), ("Owner", status.owner.description)]
    if let version = status.version {
      facts.append(("Version", version == 0 ? "none yet" : "\(version)"))
      facts.append(("State", status.state == "edited" ? "edited, and not autosaved yet" : status.state))
    }
    facts += [("Share", status.share ?? "not shared"), ("Id", status.id)]
    return Table.facts(facts).text
  }
}

/// The state of a library with whether a process has it open for longer than this command.
struct LibraryReport: Encodable {
  let status: LibraryStatus
  let isRunning: Bool

  private enum Keys: String, CodingKey { case pid }

  /// The status, with a pid that is null where no process has the library open.
  func encode(to encoder: any Encoder) throws {
    try status.encode(to: encoder)
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(isRunning ? status.pid : nil, forKey: .pid)
  }

  var text: String {
    var facts = [("Library", status.library), ("Process", isRunning ? "\(status.pid)" : "not running")]
    if status.mounts.isEmpty { facts.append(("Mounts", "none; mount it with: sheaf mount")) }
    let delivery =
      status.sinks.isEmpty ? "" : status.undelivered == 0 ? ", all delivered" : ", \(status.undelivered) undelivered"
    for (index, mount) in status.mounts.enumerated() {
      facts.append((index == 0 ? "Mounts" : "", "\(mount.mountpoint) for \(mount.account)"))
    }
    let documents = Format.count(status.documents, "document") + " in " + Format.count(status.folders, "folder")
    let sizes = "\(Format.size(status.contentBytes)) of contents, stored in \(Format.size(status.storedBytes))"
    let deleted = Format.count(status.deleted, "item") + " that can come back"
    facts.append(("Accounts", "\(status.accounts)"))
    facts.append(("Contents", documents + ", " + Format.count(status.versions, "version")))
    facts.append(("Deleted", status.deleted == 0 ? "nothing" : deleted))
    facts.append(("Size", sizes + "; files of \(Format.size(status.fileBytes))"))
    facts.append(("Free", Format.size(status.availableBytes)))
    facts.append(("Events", "\(status.events)" + delivery))
    for (index, sink) in status.sinks.enumerated() { facts.append((index == 0 ? "Sinks" : "", Self.text(sink))) }
    return Table.facts(facts).text
  }

  private static func text(_ sink: SinkStatus) -> String {
    var text = "\(sink.name): \(sink.delivered) delivered"
    if let undelivered = sink.undelivered, undelivered > 0 { text += ", \(undelivered) behind" }
    if sink.deadLetters > 0 { text += ", \(sink.deadLetters) given up (sheaf-sidecar dead-letters)" }
    if let reason = sink.disabled { return text + "; disabled: \(reason) (sheaf-sidecar resume)" }
    guard let failure = sink.failure else { return text }
    return text + "; failing: \(failure)" + (sink.nextAttempt.map { ", next attempt \(Format.time($0))" } ?? "")
  }
}
