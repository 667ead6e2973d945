import ArgumentParser
import Glibc
import SheafModel

/// The command `sheaf-sidecar`.
@main
struct SidecarCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sheaf-sidecar",
    abstract: "Deliver a library's events: webhooks, standard output, the desktop, commands.",
    discussion: """
      Runs beside a mount and posts every event, in order, at least once; after any crash of either side it goes on where it \
      stopped. It waits for a library that is not mounted yet.

      Examples:
        sheaf-sidecar --webhook https://example.com/hook --secret whsec_…
        sheaf-sidecar --stdout --types 'sheaf.change.*'
        sheaf-sidecar --config ~/.config/sheaf/sidecar.toml
        sheaf-sidecar dead-letters --retry
      """,
    version: "0.1.0",
    subcommands: [Run.self, DeadLetters.self, Resume.self],
    defaultSubcommand: Run.self)

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let error as SheafError {
      let line = "sheaf-sidecar: \(error)\n"
      _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
      Glibc.exit(1)
    } catch {
      exit(withError: error)
    }
  }
}

/// The file that holds positions and dead letters.
struct StateOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where positions and dead letters are kept (default: ~/.local/state/sheaf/sidecar.sqlite).", valueName: "file"))
  var state: String?

  /// The file of the flag, else of the configuration, else the person's own (XDG Base Directory Specification).
  func path(configured: String? = nil) throws -> String {
    if let path = state ?? configured { return path }
    if let folder = Environment.value("XDG_STATE_HOME"), folder.hasPrefix("/") {
      return folder + "/sheaf/sidecar.sqlite"
    }
    return try Environment.home() + "/.local/state/sheaf/sidecar.sqlite"
  }
}

enum Environment {
  /// A variable's value; nil where it is absent or empty.
  static func value(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }

  static func home() throws(SheafError) -> String {
    guard let home = value("HOME") else {
      throw SheafError(
        .notFound, subject: "HOME", reason: "is not set", advice: "name the files: --library and --state")
    }
    return home
  }
}
