import ArgumentParser
import SheafClient
import SheafModel

struct Retain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say for how long a folder keeps versions and deleted items.",
    discussion: """
      Without options it shows what holds for PATH. What a folder says counts for all that is below it, but for folders there \
      that say something else; `sheaf library set` says it for the rest. Deleted items are kept for 30 days, versions for a year, \
      fewer and fewer of them as they get older. Current and labelled versions always stay. Only the owner can say it.

      Examples:
        sheaf retain ~/Sheaf/Documents/Contracts --keep-deleted 1y --keep-versions 10y
        sheaf retain ~/Sheaf/Documents/Scratch --keep-deleted 2d --keep-versions 1w
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

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  /// What a shorter span means.
  static let warning = "What is older goes for good in the next four hours, unless a longer span is set before."

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
