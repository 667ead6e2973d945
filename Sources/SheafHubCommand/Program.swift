import ArgumentParser
import Foundation
import Glibc
import SheafHub
import SheafHubStore
import SheafModel

/// The program.
package enum Program {
  /// Runs the command in the process's arguments, and ends the process with its exit status.
  package static func run() async { await SheafHubCommand.main() }
}

/// The command `sheaf-hub`.
struct SheafHubCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sheaf-hub",
    abstract: "Serve a hub, at which the machines of people meet.",
    discussion: """
      Make a hub, give an account to a person, and serve:

        sheaf-hub init --address hub.example
        sheaf-hub account add alice@hub.example      prints a link for her first machine
        sheaf-hub serve

      The hub lies in the folder of --hub, else of SHEAF_HUB, else in /var/lib/sheaf-hub.

      Exit status: 0 done, 1 refused or failed (one line on standard error says why), 64 wrong usage.
      """,
    version: Hub.version,
    subcommands: [
      InitCommand.self, ServeCommand.self, AccountCommand.self, DeviceCommand.self, StatusCommand.self,
      CheckCommand.self, BackupCommand.self, MigrateCommand.self, RetainCommand.self,
    ])

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
      fail(error.description)
    } catch let error as HubError {
      fail(error.detail)
    } catch let error as HubStoreError {
      fail(describe(error))
    } catch {
      let code = exitCode(for: error)
      guard code != .success else { exit(withError: error) }
      let message = fullMessage(for: error).escapingControls(of: CommandLine.arguments)
      if !message.isEmpty { FileHandle.standardError.write(Data((message + "\n").utf8)) }
      Glibc.exit(code.rawValue)
    }
  }

  private static func describe(_ error: HubStoreError) -> String {
    switch error {
    case .unavailable(let reason): "the store is away: \(reason)"
    case .full(let reason): "the store has no room: \(reason)"
    case .corrupt(let reason): "the store is damaged: \(reason)"
    case .refused(let reason): "the store refused: \(reason)"
    case .nulInText: "a text has a NUL in it"
    }
  }

  /// Prints the failure in one line, and ends with status 1.
  private static func fail(_ reason: String) -> Never {
    FileHandle.standardError.write(Data("sheaf-hub: \(reason.escapingControls)\n".utf8))
    Glibc.exit(1)
  }
}
