import ArgumentParser
import SheafModel

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make an old version of a document current again, or a folder what it was.",
    discussion: """
      With --version, a new version of a document has the old contents, and none is lost: it can be undone in the same \
      way. Where the contents are equal already, nothing happens. With --time, that is the version of that time.

      With --time, a folder becomes what it was: contents, names and places come back, what was deleted since is \
      recovered, and what was made since is deleted and can be recovered. With --by only what one person did since then, \
      or until another time with --until, is undone, and what was gone on with after that is left alone. Before it \
      begins it says how to undo it. \
      `.versions/@2026-11-17T18-00-00Z/` in the folder shows what it was.

      A time is local ('2026-11-17 18:00') or as RFC 3339 has it (2026-11-17T18:00:00Z), and counts to the end of its \
      second.

      Examples:
        sheaf restore ~/Sheaf/Documents/notes.md --version 3
        sheaf restore ~/Sheaf/Documents/notes.md --time 'tuesday 18:00'
        sheaf restore ~/Sheaf/Documents/plans --time '2026-11-17 18:00' --dry-run
        sheaf restore ~/Sheaf/Documents/plans --time '2026-11-17 18:00' --by bob@example.com
        sheaf restore ~/Sheaf/Documents/plans --time '2026-11-17 09:00' --until '2026-11-17 12:00' --by bob@example.com
      """)

  @Argument(help: "A document, or a folder with --time.")
  var path: PathArgument

  @Option(
    help: ArgumentHelp("The version whose contents come back, by its number or label.", valueName: "version"),
    completion: Completions.versions)
  var version: VersionArgument?

  @Option(help: ArgumentHelp("The time as of which the document or folder comes back.", valueName: "time"))
  var time: String?

  @Option(
    help: ArgumentHelp("Undo only what this person did since then.", valueName: "handle"),
    completion: Completions.people)
  var by: String?

  @Option(help: ArgumentHelp("Undo only what the person of --by did until then.", valueName: "time"))
  var until: String?

  @Flag(help: "Say what would be done, and do nothing.")
  var dryRun = false

  @Flag(help: "Yes, change a lot; without that a terminal asks about more than 20 changes, and a script is refused.")
  var yes = false

  @OptionGroup var library: LibraryOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if (version == nil) == (time == nil) {
      throw ValidationError("Give either the --version of a document, or the --time of a document or a folder.")
    }
    if time == nil, by != nil || until != nil || dryRun || yes {
      throw ValidationError("--by, --until, --dry-run and --yes go with --time.")
    }
    if until != nil, by == nil { throw ValidationError("--until goes with --by: say whose actions are undone.") }
  }

  func run() async throws {
    if let version { return try await restore(version) }
    guard let time else { return }
    let moment = try TimeArgument(time).time
    try await ItemTarget.with(path, library, changing: !dryRun) { target in
      if try await target.client.status(of: target.address).kind == "document" {
        try await restore(target, at: moment)
      } else {
        try await restoreFolder(target, at: moment)
      }
    }
  }

  private func restore(_ version: VersionArgument) async throws {
    try await ItemTarget.with(path, library, changing: true) { target in
      try await restore(target, version: version.number(of: target))
    }
  }

  private func restore(_ target: ItemTarget, version: Int64) async throws {
    let made = try await target.client.restore(target.address, version: version)
    if output.json { return try JSON.write(made) }
    let name = target.name.escapingControls
    try StandardOutput.line(
      made.map { "Restored version \(version) of \(name) as version \($0.number)." }
        ?? "\(name) already has the contents of version \(version).")
  }

  private func restore(_ target: ItemTarget, at time: Timestamp) async throws {
    guard by == nil else {
      throw SheafError(
        .invalid, subject: target.name, reason: "is a document, and --by is for folders",
        advice: "look at its authors with sheaf versions, and name one of them: --version N")
    }
    let version = try await target.version(at: time)
    guard dryRun else { return try await restore(target, version: version.number) }
    if output.json { return try JSON.write(version) }
    try StandardOutput.line(
      "Would restore version \(version.number) of \(target.name), of \(Format.time(version.time)).".escapingControls)
  }

  // MARK: - Folders

  /// Changes that nobody is asked about.
  private static let fewChanges = 20

  private func restoreFolder(_ target: ItemTarget, at time: Timestamp) async throws {
    let person = try by.map { try AccountHandle($0) }
    let until = try until.map { try TimeArgument($0, of: "--until").time }
    func run(dryRun: Bool) async throws -> FolderRestoration {
      let request = FolderRestoreRequest(time: time, by: person, until: until, dryRun: dryRun)
      return try await ProgressLine.during(dryRun ? "Comparing" : "Restoring") { show in
        try await target.client.restoreFolder(target.address, request) { progress in
          if let before = progress.before { tellHowToUndo(target, before) }
          show(progress)
        }
      }
    }
    if dryRun { return try tell(try await run(dryRun: true), target.name) }
    if !yes { try confirm(try await run(dryRun: true), target.name) }
    try tell(try await run(dryRun: false), target.name)
  }

  private func confirm(_ plan: FolderRestoration, _ name: String) throws {
    let count = plan.changes.count
    guard count > Self.fewChanges else { return }
    guard Question.canBeAsked else {
      throw SheafError(
        .notPermitted, subject: name, reason: "would have \(count) changes",
        advice: "look at them with --dry-run, and confirm them with --yes")
    }
    try Question.confirm("Restore \(name): \(Self.summary(plan))?", about: name)
  }

  /// Prints it before anything is done, for whoever interrupts that; with `--json` on standard error.
  private func tellHowToUndo(_ target: ItemTarget, _ before: Timestamp) {
    let line = "To undo it: sheaf restore \(target.words) --time \(before)".escapingControls
    // If nobody reads it, the last line fails, too.
    if output.json { StandardError.write(line + "\n") } else { try? StandardOutput.line(line) }
  }

  private func tell(_ restoration: FolderRestoration, _ name: String) throws {
    if output.json { return try JSON.write(restoration) }
    for step in restoration.steps where dryRun || step.action == .leave {
      try StandardOutput.line(Self.line(step).escapingControls)
    }
    let moment = Format.time(restoration.time)
    guard !restoration.changes.isEmpty else {
      let left = restoration.steps.isEmpty ? "" : ": \(Self.summary(restoration))"
      return try StandardOutput.line("Nothing to do in \(name) as of \(moment)\(left).".escapingControls)
    }
    let verb = dryRun ? "Would restore" : "Restored"
    try StandardOutput.line("\(verb) \(name) as of \(moment): \(Self.summary(restoration)).".escapingControls)
  }

  /// `move     Documents/a → Documents/b`.
  private static func line(_ step: FolderRestoration.Step) -> String {
    var line = step.action.rawValue.padding(to: 9) + step.path
    if let to = step.to { line += " → \(to)" }
    if let version = step.version { line += version == 0 ? " to being empty" : " to version \(version)" }
    if let reason = step.reason { line += ": \(reason)" }
    return line
  }

  /// `2 deleted, 1 moved, 3 recovered, 1 with earlier contents, 2 left alone`.
  private static func summary(_ restoration: FolderRestoration) -> String {
    let words: [(FolderRestoration.Action, String)] = [
      (.delete, "deleted"), (.move, "moved"), (.recover, "recovered"), (.restore, "with earlier contents"),
      (.leave, "left alone"),
    ]
    return words.compactMap { action, word in
      let count = restoration.steps.count { $0.action == action }
      return count == 0 ? nil : "\(count) \(word)"
    }.joined(separator: ", ")
  }
}

extension String {
  /// With spaces behind it up to a width.
  fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
