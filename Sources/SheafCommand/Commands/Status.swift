import ArgumentParser
import SheafClient
import SheafLibrary
import SheafModel
import SheafMount

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell the state of a library, or of one item.",
    discussion: """
      Without PATH, or with a mount point: who has the library open, which account acts, its mounts, counts and sizes. \
      With another PATH: the item, the people who share it, the latest changes, and what you can do. With `Shared`: what \
      others share with you, invitations, and what you are offered.

      Examples:
        sheaf status
        sheaf status ~/Sheaf/Documents/notes.md --json
      """)

  @Argument(help: "A document or folder.")
  var path: PathArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    let mounted = try path.flatMap { try Self.mount(at: $0) }
    if let path, mounted == nil {
      return try await ItemTarget.with(path, library) { target in
        if let others = try await Self.shared(target) {
          return try others.show(output, orNothing: "Nothing is shared with you.")
        }
        let status = try await target.client.status(of: target.address)
        if output.json { return try JSON.write(status) }
        try StandardOutput.write(Self.text(status, offered: try await Self.offered(status, target)))
      }
    }
    let location = try mounted?.location ?? LibraryChoice.location(named: library.file)
    let report = try await LibraryConnection.with(location) { connection in
      let status = try await connection.client.status()
      return LibraryReport(
        status: status, isRunning: !connection.isOwn, isSameProgram: RunningProgram.isOwn(of: status.pid),
        you: await Self.actor(connection.client, status, mounted?.entry))
    }
    try output.json ? JSON.write(report) : StandardOutput.write(report.text)
  }

  /// Who acts where commands name no account, and why.
  ///
  /// - Parameter named: The mount whose mount point was given; otherwise the one counts in which the command runs.
  private static func actor(
    _ client: SheafClient, _ status: LibraryStatus, _ named: MountTable.Entry?
  ) async -> String? {
    func here() -> MountTable.Entry? {
      (try? SystemPath.workingDirectory()).flatMap { try? MountTable.current().entry(containing: $0) }
    }
    if let entry = named ?? here(),
      let mount = status.mounts.first(where: { $0.mountpoint == entry.mountpoint.readable })
    {
      return "\(mount.account), whose mount this is"
    }
    // A user to whom root gave a mount may not ask.
    return (try? await client.settings().defaultAccount).map { "\($0), the default account" }
  }

  /// The library that is mounted at a path, and its mount there; nil if that is no mount point of one.
  private static func mount(at path: PathArgument) throws -> (location: LibraryLocation, entry: MountTable.Entry)? {
    guard let place = try? Mountpoint(given: path, user: nil),
      let entry = try MountTable.current().entry(at: Array(place.path.utf8)), entry.isSheaf
    else { return nil }
    return (LibraryLocation(path: entry.source.readable), entry)
  }

  /// The shares of others that the account joined, if the target is `Shared` or `Shared/OWNER`; nil for anything else.
  private static func shared(_ target: ItemTarget) async throws -> AccountShares? {
    let names = (target.address.path ?? []).split(separator: UInt8(ascii: "/"))
    guard names.count <= 2, names.first?.elementsEqual("Shared".utf8) ?? false else { return nil }
    let owner = names.count == 2 ? String(decoding: names[1], as: UTF8.self) : nil
    let others = try await target.client.shares(of: target.address.account).fromOthers(owner: owner)
    // An owner who does not exist, or shares nothing, has no folder there.
    return owner == nil || !others.isEmpty ? others : nil
  }

  /// What it means for an item.
  private static let ignored = "by a .sheafignore or by default: no versions, no events, and deleting it is final"

  /// Warns whoever shares an ignored item, or offers it, of what that means.
  static func warn(ofIgnored target: ItemTarget) async {
    // Who may share it may see it; what was done is done.
    guard let status = try? await target.client.status(of: target.address), status.ignored else { return }
    StandardError.write("sheaf: beware: it is ignored, \(ignored)\n")
  }

  /// To whom the owner offers an item; nil where nobody is offered it.
  private static func offered(_ status: ItemStatus, _ target: ItemTarget) async throws -> String? {
    do {
      let offers = try await target.client.transfers(of: target.address.account).byMe
      return offers.first { $0.id == status.id }.map { "to \($0.recipient) since \(Format.time($0.time))" }
    } catch let error as SheafError {
      return "not known, since the hub cannot be asked: \(error)"
    }
  }

  /// - Parameter offered: To whom the owner offers it.
  private static func text(_ status: ItemStatus, offered: String?) -> String {
    var facts = [("Path", status.path), ("Kind", status.kind), ("Owner", status.owner.description)]
    if status.ignored {
      facts.append(("Ignored", ignored))
    } else if let version = status.version {
      facts.append(("Version", version == 0 ? "none yet" : "\(version)"))
      facts.append(("State", status.state == "edited" ? "edited, and not autosaved yet" : status.state))
    }
    if let conflict = status.conflict {
      facts.append(
        ("Conflict", "the current version was not based on version \(conflict); see: sheaf diff, sheaf resolve"))
    }
    if let copy = status.beside {
      let other = copy.path?.escapingControls ?? "a document that is gone"
      facts.append(
        ("Conflict", "it was saved at once with \(other); look at both, then delete this one or rename it"))
    }
    if let share = status.share {
      facts += [("Share", "\"\(share.title)\": \(share.summary)"), ("Link", share.url)]
      if let end = share.expires { facts.append(("", Format.linkEnd(end))) }
      facts += share.warnings.map { ("Beware", $0) }
    } else {
      facts.append(("Share", "not shared"))
    }
    if let offered { facts.append(("Offered", offered)) }
    facts.append(("Id", status.id))
    var text = Table.facts(facts).text
    if !status.people.isEmpty { text += "\nPeople\n" + people(status.people) }
    if !status.changes.isEmpty { text += "\nLatest changes\n" + changes(status.changes) }
    return text + "\nYou can " + actions(status) + ".\n"
  }

  private static func people(_ people: [Collaborator]) -> String {
    var table = Table([("", .left), ("", .left), ("", .left), ("", .left), ("", .left)])
    for person in people {
      let standing = person.acceptance == .pending ? "invited" : "since"
      table.append([
        "  \(person.handle)", person.name, "\(person.role.word), can \(person.permission.word)",
        "\(standing) \(Format.time(person.since))",
        person.lastEdited.map { "last edited \(Format.time($0))" } ?? "",
      ])
    }
    return table.text
  }

  private static func changes(_ changes: [LatestChange]) -> String {
    var table = Table([("", .left), ("", .left), ("", .left), ("", .left)])
    for change in changes {
      table.append(["  \(Format.time(change.time))", change.actor.description, action(change), change.name])
    }
    return table.text
  }

  /// A change in a word for people.
  private static func action(_ change: LatestChange) -> String {
    let whom = change.participant ?? "someone"
    let isAboutActor = whom == change.actor.description
    return switch EventType(rawValue: change.type) {
    case .edit: "edited"
    case .comment: "commented"
    case .memberAdded: isAboutActor ? "joined" : "added \(whom)"
    case .memberRemoved where change.wasInvited ?? false:
      isAboutActor ? "declined the invitation" : "took back the invitation of \(whom)"
    case .memberRemoved: isAboutActor ? "left" : "removed \(whom)"
    case .accessRequested: "asked for access"
    case .accessDeclined: "declined a request"
    case .mention: "mentioned someone"
    case .created: change.recovered ? "recovered" : "created"
    case .deleted: "deleted"
    case .renamed: "renamed"
    case .moved: "moved"
    case .shareCreated: "shared"
    case .shareUpdated: "changed the share"
    case .shareStopped: "stopped sharing"
    case nil: change.type
    }
  }

  private static func actions(_ status: ItemStatus) -> String {
    let words: [(ShareOperation, String)] = [
      (.read, "view it"), (.write, "edit it"), (.comment, "comment on it"), (.restore, "restore versions"),
      (.managePeople, "add and remove people"), (.changeShare, "change how it is shared"),
      (.unshare, "stop sharing it"),
      (.leave, "leave"),
    ]
    // Whatever the account may do, a plain file has no versions, and no events, which comments are.
    let impossible: [ShareOperation] = status.ignored && status.kind != "folder" ? [.comment, .restore] : []
    return Format.list(
      words.filter { status.can.contains($0.0.rawValue) && !impossible.contains($0.0) }.map(\.1))
  }
}

/// The state of a library, and whether a process has it open for longer than this command.
struct LibraryReport: Encodable {
  let status: LibraryStatus
  let isRunning: Bool
  /// Whether that process runs the same program as this command; nil where this user may not know.
  let isSameProgram: Bool?
  /// Who acts where commands name no account.
  let you: String?

  private enum Keys: String, CodingKey { case pid, isSameProgram }

  /// The status, with a pid that is null if no process has the library open.
  func encode(to encoder: any Encoder) throws {
    try status.encode(to: encoder)
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(isRunning ? status.pid : nil, forKey: .pid)
    try container.encode(isRunning ? isSameProgram : nil, forKey: .isSameProgram)
  }

  var text: String {
    let build = isSameProgram == false ? ", which runs another build than this command until it is mounted anew" : ""
    var facts = [("Library", status.library), ("Process", isRunning ? "\(status.pid)\(build)" : "not running")]
    if let you { facts.append(("You", you)) }
    if status.mounts.isEmpty, status.notMounted.isEmpty {
      facts.append(("Mounts", "none; mount it with: sheaf mount"))
    }
    let delivery =
      status.sinks.isEmpty ? "" : status.undelivered == 0 ? ", all delivered" : ", \(status.undelivered) undelivered"
    let mounts =
      status.mounts.map { "\($0.mountpoint) for \($0.account)" + ($0.readOnly ? ", read-only" : "") }
      + status.notMounted.map { "\($0.mountpoint) for \($0.account), not mounted any more, though nobody unmounted it" }
    facts += mounts.enumerated().map { ($0 == 0 ? "Mounts" : "", $1) }
    if !status.notMounted.isEmpty {
      facts.append(("", "bring them back with: sheaf mount --all --library \(status.library.shellWord)"))
    }
    guard let counts = status.counts else {
      if !status.sinks.isEmpty { facts.append(("Events", String(delivery.dropFirst(2)))) }
      return Table.facts(facts + sinks).text
    }
    let documents = Format.count(counts.documents, "document") + " in " + Format.count(counts.folders, "folder")
    let sizes = "\(Format.size(counts.contentBytes)) of contents, stored in \(Format.size(counts.storedBytes))"
    let deleted = Format.count(counts.deleted, "item") + " that can come back"
    facts.append(("Accounts", "\(counts.accounts)"))
    facts.append(("Contents", documents + ", " + Format.count(counts.versions, "version")))
    facts.append(("Deleted", counts.deleted == 0 ? "nothing" : deleted))
    facts.append(("Size", sizes + "; files of \(Format.size(counts.fileBytes))"))
    facts.append(("Free", Format.size(counts.availableBytes)))
    if let conflicts = counts.conflicts, conflicts > 0 {
      facts.append(("Conflicts", Format.count(conflicts, "document") + "; see: sheaf find --conflicts"))
    }
    if counts.notSaved > 0 {
      let documents = Format.count(counts.notSaved, "document")
      facts.append(("Not saved", "changes of \(documents), which are kept once there is room: free some on the disk"))
    }
    facts.append(("Events", "\(counts.events)" + delivery))
    let connections = status.connections.isEmpty ? "" : "\n" + ConnectedAccount.text(status.connections)
    return Table.facts(facts + sinks).text + connections
  }

  private var sinks: [(String, String)] {
    status.sinks.enumerated().map { ($0 == 0 ? "Sinks" : "", Self.text($1)) }
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
