import ArgumentParser
import SheafClient
import SheafModel

struct ShareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share", abstract: "Share a document or a folder, or change how it is shared.",
    discussion: """
      Prints the link and who may do what. An invited person joins with `sheaf accept` and finds the item under \
      Shared/OWNER/. Sharing again changes the share that is there, and keeps its link and its people.

      Examples:
        sheaf share ~/Sheaf/Documents/plans --with bob@example.com --can edit
        sheaf share ~/Sheaf/Documents/plans --anyone view       whoever has the link can read
        sheaf share ~/Sheaf/Documents/plans --anyone none       nobody joins by the link any more
        sheaf share ~/Sheaf/Documents/plans --new-link          the old link is dead
        sheaf share ~/Sheaf/Documents/plans --expires 7d        nobody new joins by the link then; people stay
      """)

  @Argument(help: "A document, a folder, or a whole Documents.")
  var path: PathArgument

  @Option(
    name: .customLong("with"), help: ArgumentHelp("Invite this account; may be repeated.", valueName: "handle"),
    completion: Completions.people)
  var people: [String] = []

  @Option(
    help: ArgumentHelp("What those invited may do; without --with, those invited from now on.", valueName: "view|edit"))
  var can: Can?

  @Option(help: ArgumentHelp("What anyone who has the link may do.", valueName: "none|view|edit"))
  var anyone: Anyone?

  @Option(help: "What it is called for people (default: the name, of a document without its extension).")
  var title: String?

  @Flag(inversion: .prefixedNo, help: "Let participants invite others, with no more than they have.")
  var allowInvites: Bool?

  @Flag(inversion: .prefixedNo, help: "Let people who have the link ask for access.")
  var allowRequests: Bool?

  @Flag(help: "Replace a link that got out.")
  var newLink = false

  @Option(
    help: ArgumentHelp("For how long strangers can join by the link: 12h, 7d, 2w, or never.", valueName: "span"))
  var expires: ExpiryArgument?

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    var change = ShareChange()
    change.linkSeconds = expires?.seconds
    change.with = try people.map { try AccountHandle($0) }
    change.permission = can?.permission
    change.anyone = anyone?.permission
    change.title = title
    change.allowInvites = allowInvites
    change.allowRequests = allowRequests
    change.newLink = newLink
    let request = change
    try await ItemTarget.with(path, library, changing: true) { target in
      if request.anyone == PublicPermission.none { try await tellWhoGoes(target) }
      let before = try await target.client.share(of: target.address)
      let share = try await target.client.share(target.address, request)
      if output.json { return try JSON.write(share) }
      try StandardOutput.line(share.url.escapingControls)
      try StandardOutput.line(share.summary.escapingControls + ".")
      if let end = share.expires { try StandardOutput.line(Format.linkEnd(end) + ".") }
      for sentence in furtherSettings(of: share) { try StandardOutput.line(sentence.escapingControls) }
      if share == before { try StandardOutput.line("Nothing changed.") }
      await Status.warn(ofIgnored: target)
    }
  }

  /// What the command was told to set and the summary of the share does not say.
  private func furtherSettings(of share: Share) -> [String] {
    var sentences: [String] = []
    if newLink { sentences.append("The link before it is dead.") }
    if let can, people.isEmpty {
      sentences.append("Those invited from now on can \(can.rawValue); others stay as they are.")
    }
    if title != nil { sentences.append("It is called \"\(share.title)\".") }
    if allowInvites != nil { sentences.append("Participants \(share.allowInvites ? "can" : "cannot") invite others.") }
    if allowRequests != nil {
      sentences.append("People who have the link \(share.allowRequests ? "can" : "cannot") ask for access.")
    }
    return sentences
  }

  /// Prints who loses access once nobody joins by the link any more.
  private func tellWhoGoes(_ target: ItemTarget) async throws {
    guard let share = try await target.client.share(of: target.address) else { return }
    for person in share.participants where person.role == .publicUser {
      StandardError.write("\(person.handle) joined by the link and loses access.\n")
    }
  }
}

/// The permission of an invited person, in a command's words.
enum Can: String, ExpressibleByArgument, CaseIterable {
  case view, edit

  var permission: SharePermission { self == .view ? .readOnly : .readWrite }
}

/// For how long a link is good: a span, or `never` for one that does not end.
struct ExpiryArgument: ExpressibleByArgument {
  let seconds: Int64

  init?(argument: String) {
    if argument == "never" {
      seconds = 0
    } else {
      guard let span = SpanArgument(argument: argument), span.seconds > 0 else { return nil }
      seconds = span.seconds
    }
  }
}

/// The permission of anyone with the link, in a command's words.
enum Anyone: String, ExpressibleByArgument, CaseIterable {
  case none, view, edit

  var permission: PublicPermission {
    switch self {
    case .none: .none
    case .view: .readOnly
    case .edit: .readWrite
    }
  }
}

extension SharePermission {
  /// The word of `--can`.
  var word: String { self == .readOnly ? "view" : "edit" }
}

struct Unshare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Stop sharing an item.",
    discussion: """
      The documents stay where they are; it is gone for everyone else at once, and the link answers as if it never \
      existed. Shared again, the item gets the same link, and nobody takes part. On a terminal it asks first, \
      and in a script it needs --yes, if anybody takes part.

      Example:
        sheaf unshare ~/Sheaf/Documents/plans
      """)

  @Argument(help: "The shared item.")
  var path: PathArgument

  @Flag(help: "Ask nothing.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      let share = try await target.client.share(of: target.address)
      let people = (share?.participants ?? []).filter { $0.role != .owner && $0.acceptance != .removed }.map(\.handle)
      let status = try await target.client.status(of: target.address)
      // Who may not do it, or names a part of what is shared, is told so, and not asked.
      if !yes, !people.isEmpty, status.path == share?.path, status.can.contains(ShareOperation.unshare.rawValue) {
        guard Question.canBeAsked else {
          throw SheafError(
            .invalid, subject: target.name,
            reason: "is shared with \(Format.people(people)), who would lose it, and nobody can be asked",
            advice: "add --yes")
        }
        try Question.confirm(
          "Stop sharing \(target.name)? \(Format.people(people)) will lose it, and have to be invited anew.",
          about: target.name)
      }
      try await target.client.unshare(target.address)
      if output.json { return try JSON.write(UnshareOutput(path: target.given, participants: people)) }
      let lost = people.isEmpty ? "nobody else took part" : "\(Format.people(people)) lost access"
      try StandardOutput.line("Stopped sharing \(target.name); \(lost).".escapingControls)
    }
  }
}

struct Leave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Leave what someone shares with you, or decline an invitation.",
    discussion: """
      Deletes nothing: it only goes from your Shared folder. `rmdir` of the entry there does the same. With the link of \
      an invitation it declines that; with a link by which you asked for access it takes the request back.

      Examples:
        sheaf leave ~/Sheaf/Shared/alice@example.com/plans
        sheaf leave sheaf://5f0c…/s/tK3… --as bob@example.com
      """)

  @Argument(help: "The entry below Shared/OWNER, or a share URL.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    if let url = String(validating: path.bytes, as: UTF8.self), url.contains("://") { return try await decline(url) }
    try await ItemTarget.with(path, library, changing: true) { target in
      try await target.client.leave(target.address)
      if output.json { return try JSON.write(LeaveOutput(path: target.given, declined: nil, title: nil)) }
      try StandardOutput.line("Left \(target.name); nothing of it was deleted.".escapingControls)
    }
  }

  private func decline(_ url: String) async throws {
    let declined = try await ItemTarget.with(optional: nil, library, changing: true) {
      try await $0.client.decline(url, as: $0.address.account)
    }
    if output.json {
      return try JSON.write(LeaveOutput(path: url, declined: declined.declined, title: declined.title))
    }
    switch declined.declined {
    case .invitation:
      try StandardOutput.line("Declined the invitation to \((declined.title ?? "it").escapingControls).")
    case .request: try StandardOutput.line("Took the request for access back.")
    }
  }
}

struct Resolve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Dismiss a conflict of a document.",
    discussion: """
      Where two people saved without seeing what the other had written, both versions are in the history, and the \
      later one is current. Compare them with `sheaf diff`; then save what is right, or dismiss the conflict. What a hub \
      put beside another document is settled by deleting it or giving it another name.

      Example:
        sheaf resolve ~/Sheaf/Documents/plan.md
      """)

  @Argument(help: "A document.")
  var path: PathArgument

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func run() async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      let former = try await target.client.status(of: target.address).conflict
      try await target.client.resolve(target.address)
      if output.json { return try JSON.write(ResolveOutput(path: target.given, conflict: former)) }
      let said =
        former.map { "Dismissed the conflict of \(target.name) with version \($0)" }
        ?? "Nothing changed: \(target.name) has no conflict"
      try StandardOutput.line(said.escapingControls + ".")
    }
  }
}
