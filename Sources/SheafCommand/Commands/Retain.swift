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

  /// What a shorter span means.
  static let warning = "What is older goes for good in the next four hours, unless a longer span is set before."

  /// Asks before something is kept for a shorter time than it is now; in a script that needs `--yes`.
  ///
  /// - Parameter spans: What is kept, for how long it is, and for how long it is to be; nil where that stays.
  static func confirm(
    _ spans: [(String, Int64, Int64?)], of subject: String, yes: Bool
  ) throws(SheafError) {
    let shorter = spans.compactMap { what, before, after -> String? in
      // What is too short is refused, and nobody is asked about it.
      guard let after, after < before, after >= RetentionChange.shortestSpan else { return nil }
      return "\(what) for \(Format.span(after)) instead of \(Format.span(before))"
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
    let (before, retention, isConnected) = try await ItemTarget.with(path, library, changing: changes) { target in
      let client = target.client
      let before = try await client.retention(of: target.address)
      let spans: [(String, Int64, Int64?)] = [
        ("deleted items", before.keepDeleted, keepDeleted?.seconds ?? (isDefault ? before.aroundKeepDeleted : nil)),
        ("versions", before.keepVersions, keepVersions?.seconds ?? (isDefault ? before.aroundKeepVersions : nil)),
      ]
      try Self.confirm(spans, of: before.path, yes: yes)
      let retention = changes ? try await client.retain(target.address, change) : before
      // A user to whom root gave a mount may not ask either of these.
      var account = target.address.account
      if account == nil { account = try? await client.settings().defaultAccount }
      let connected = (try? await client.connectedAccounts()) ?? []
      return (before, retention, connected.contains { $0 == account })
    }
    if output.json { return try JSON.write(retention) }
    if changes, retention == before { try StandardOutput.line("Nothing changed.") }
    for (what, span, own) in [
      ("deleted items", retention.keepDeleted, retention.ownKeepDeleted),
      ("versions", retention.keepVersions, retention.ownKeepVersions),
    ] {
      let origin = own == nil ? ", as the folders around it and the library say" : ""
      try StandardOutput.line("\(retention.path) keeps \(what) for \(Format.span(span))\(origin).".escapingControls)
    }
    if retention.keepDeleted < before.keepDeleted || retention.keepVersions < before.keepVersions {
      try StandardOutput.line(Self.warning)
    }
    if isConnected {
      try StandardOutput.line("That is what this machine keeps; the hub keeps what `sheaf-hub retain` says there.")
    }
  }
}
