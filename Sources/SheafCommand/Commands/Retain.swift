import ArgumentParser
import SheafClient
import SheafModel

struct Retain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say for how long a folder keeps versions and deleted items.",
    discussion: """
      Without options it shows what holds for PATH. What a folder says counts for all that is below it, but for folders there \
      that say something else; `sheaf library set` says it for the rest. Deleted items are kept for 30 days, versions for a year, \
      fewer and fewer of them as they get older. Current and labelled versions always stay. Only the owner can say it. \
      On a connected account the hub and the account's other machines keep things as the folder says, too. \
      Before something is kept for a shorter time, it asks on a terminal, and needs --yes in a script.

      Examples:
        sheaf retain ~/Sheaf/Documents/Contracts --keep-deleted 1y --keep-versions 10y
        sheaf retain ~/Sheaf/Documents/Scratch --keep-deleted 2d --keep-versions 1w --yes
        sheaf retain ~/Sheaf/Documents/Scratch --default      as the folder around it
      """)

  @Argument(help: "A folder.")
  var path: PathArgument

  @Option(help: ArgumentHelp("For how long what is deleted can come back: 7d, 2w, 1y.", valueName: "span"))
  var keepDeleted: SpanArgument?

  @Option(help: ArgumentHelp("For how long versions stay: 7d, 2w, 1y.", valueName: "span"))
  var keepVersions: SpanArgument?

  @Flag(name: .customLong("default"), help: "Say nothing any more: the folder around it, or the library, decides.")
  var isDefault = false

  @Flag(help: "Yes, keep it for a shorter time; without that a terminal asks, and a script is refused.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  /// How long the command waits for a hub that is reached to be told.
  private static let patience = (pauses: 30, pause: Duration.milliseconds(100))

  /// What a shorter span means.
  static let warning = "What is older goes for good in the next four hours, unless a longer span is set before."

  /// The span of what is kept for ever.
  private static let forever = Int64.max

  /// Asks before something is kept for a shorter time than it is now; in a script that needs `--yes`.
  ///
  /// - Parameter spans: What is kept, for how long it is, and for how long it is to be; nil where that stays.
  static func confirm(
    _ spans: [(String, Int64, Int64?)], of subject: String, yes: Bool
  ) throws(SheafError) {
    let shorter = spans.compactMap { what, before, after -> String? in
      // What is too short is refused, and nobody is asked about it.
      guard let after, after < before, after >= RetentionChange.shortestSpan else { return nil }
      return "\(what) for \(Format.span(after)) instead of \(before == forever ? "for ever" : Format.span(before))"
    }
    guard !yes, !shorter.isEmpty else { return }
    let change = shorter.joined(separator: ", ")
    guard Question.canBeAsked else {
      throw SheafError(
        .invalid, subject: subject,
        reason: "would keep \(change); older ones would be destroyed, and nobody can be asked",
        advice: "add --yes")
    }
    try Question.confirm("Keep \(change)? \(warning)", about: subject)
  }

  func validate() throws {
    if isDefault, keepDeleted != nil || keepVersions != nil {
      throw ValidationError("--default takes back what --keep-deleted and --keep-versions say: give it alone.")
    }
  }

  func run() async throws {
    let change = RetentionChange(
      keepDeleted: keepDeleted?.seconds, keepVersions: keepVersions?.seconds, isDefault: isDefault)
    let changes = isDefault || keepDeleted != nil || keepVersions != nil
    let (before, retention) = try await ItemTarget.with(path, library, changing: changes) { target in
      let client = target.client
      let before = try await client.retention(of: target.address)
      var spans: [(String, Int64, Int64?)] = [
        ("deleted items", before.keepDeleted, keepDeleted?.seconds ?? (isDefault ? before.aroundKeepDeleted : nil)),
        ("versions", before.keepVersions, keepVersions?.seconds ?? (isDefault ? before.aroundKeepVersions : nil)),
      ]
      if let hub = before.hub, hub.state == .told { spans += hubSpans(hub) }
      try Self.confirm(spans, of: before.path, yes: yes)
      guard changes else { return (before, before) }
      var retention = try await client.retain(target.address, change)
      for _ in 0..<Self.patience.pauses {
        guard let hub = retention.hub, hub.state == .waiting, hub.isReached else { break }
        try await Task.sleep(for: Self.patience.pause)
        retention = try await client.retention(of: target.address)
      }
      return (before, retention)
    }
    if output.json { return try JSON.write(retention) }
    if changes, Self.isSame(retention, before) { try StandardOutput.line("Nothing changed.") }
    for (what, span, own) in [
      ("deleted items", retention.keepDeleted, retention.ownKeepDeleted),
      ("versions", retention.keepVersions, retention.ownKeepVersions),
    ] {
      let origin = own == nil ? ", as the folders around it and the library say" : ""
      try StandardOutput.line("\(retention.path) keeps \(what) for \(Format.span(span))\(origin).".escapingControls)
    }
    if Self.isShorter(retention, before) {
      try StandardOutput.line(Self.warning)
    }
    if let hub = retention.hub { try StandardOutput.line(Self.text(hub, retention)) }
  }

  /// What the hub keeps, for how long it does, and for how long it is to; nil where that stays.
  private func hubSpans(_ hub: HubRetention) -> [(String, Int64, Int64?)] {
    func wanted(_ span: Int64?, _ around: Int64?) -> Int64? { span ?? (isDefault ? around ?? Self.forever : nil) }
    return [
      (
        "deleted items at the hub", hub.keepDeleted ?? Self.forever,
        wanted(keepDeleted?.seconds, hub.aroundKeepDeleted)
      ),
      ("versions at the hub", hub.keepVersions ?? Self.forever, wanted(keepVersions?.seconds, hub.aroundKeepVersions)),
    ]
  }

  /// Whether this machine or the hub keeps anything for a shorter time than before.
  private static func isShorter(_ retention: Retention, _ before: Retention) -> Bool {
    if retention.keepDeleted < before.keepDeleted || retention.keepVersions < before.keepVersions { return true }
    guard let hub = retention.hub, let former = before.hub, hub.state == .told, former.state == .told else {
      return false
    }
    return (hub.keepDeleted ?? forever) < (former.keepDeleted ?? forever)
      || (hub.keepVersions ?? forever) < (former.keepVersions ?? forever)
  }

  /// Whether a folder says the same, and the same holds.
  private static func isSame(_ retention: Retention, _ other: Retention) -> Bool {
    retention.keepDeleted == other.keepDeleted && retention.keepVersions == other.keepVersions
      && retention.ownKeepDeleted == other.ownKeepDeleted && retention.ownKeepVersions == other.ownKeepVersions
  }

  /// What holds at the hub of the folder's account.
  static func text(_ hub: HubRetention, _ retention: Retention) -> String {
    switch hub.state {
    case .told where hub.keepDeleted == retention.keepDeleted && hub.keepVersions == retention.keepVersions:
      return hub.isReached ? "The hub keeps the same." : "The hub kept the same when it was reached last."
    case .told:
      func span(_ seconds: Int64?) -> String { seconds.map { "for \(Format.span($0))" } ?? "for ever" }
      return "That is what this machine keeps; the hub keeps deleted items \(span(hub.keepDeleted)) and versions "
        + "\(span(hub.keepVersions))."
    case .waiting:
      return "That is what this machine keeps; the hub and the account's other machines hear of it "
        + (hub.isReached ? "next." : "once the hub is reached.")
    case .unknown:
      return "That is what this machine keeps; the hub has not said yet what it keeps."
    case .older:
      return "That is what this machine keeps; the hub's program is older, and keeps what `sheaf-hub retain` says."
    case .absent:
      return "That is what this machine keeps; the hub does not get this folder."
    }
  }
}
