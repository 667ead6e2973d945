import ArgumentParser
import Glibc
import SheafModel

/// The program.
package enum Program {
  /// Runs the command in the process's arguments, and ends the process with its exit status.
  package static func run() async { await Sheaf.main() }
}

/// The command `sheaf`.
struct Sheaf: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sheaf",
    abstract: "Mount your documents and share them; every save is a version.",
    discussion: """
      Mount a library, work in its Documents folder with any program, and get every earlier state back:

        sheaf mount                              mount at ~/Sheaf
        sheaf versions ~/Sheaf/Documents/a.txt   what was saved, and when
        sheaf restore ~/Sheaf/Documents/a.txt --version 3
        sheaf share ~/Sheaf/Documents/plans --with bob@example.com
        sheaf unmount

      A PATH inside a mount selects the library and the account. Where nothing is mounted, a PATH is written \
      Documents/… and is looked up in the library of --library, else of SHEAF_LIBRARY, else in \
      ~/.local/share/sheaf/library.sqlite.

      A PATH may also be id:UUID, with the id that --json tells: it names an item whatever it is called by now.

      Exit status: 0 done, 1 refused or failed (one line on standard error says why, with --json as JSON), 64 wrong usage. \
      `sheaf --version` tells the program's version.
      """,
    groupedSubcommands: [
      CommandGroup(name: "Mounts", subcommands: [Mount.self, Unmount.self, Status.self]),
      CommandGroup(
        name: "History",
        subcommands: [
          Versions.self, Show.self, Diff.self, Restore.self, LabelVersion.self, Deleted.self, Recover.self, Purge.self,
          UsageCommand.self, Retain.self, FindCommand.self,
        ]),
      CommandGroup(name: "News", subcommands: [Activity.self, Notices.self, CommentCommand.self]),
      CommandGroup(
        name: "Sharing",
        subcommands: [
          ShareCommand.self, Shares.self, Participants.self, ParticipantCommand.self, Invite.self, Requests.self,
          Inspect.self,
          Accept.self, Leave.self, Unshare.self, SendCopy.self, TransferCommand.self,
          Resolve.self,
        ]),
      CommandGroup(
        name: "Machines",
        subcommands: [Connect.self, Disconnect.self, SyncCommand.self, Keep.self, Free.self, DeviceCommand.self]),
      CommandGroup(
        name: "Libraries",
        subcommands: [
          AccountCommand.self, LibraryCommand.self, Check.self, Compact.self, Backup.self, Repair.self,
        ]),
    ])

  /// Not the configuration's version, since every subcommand would answer to it: `sheaf diff a.txt --version 3` must be
  /// refused.
  private static let version = "0.1.0"

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    let arguments = RawArguments.strings(CommandLine.unsafeArgv, count: CommandLine.argc)
    var command: any ParsableCommand
    do {
      if arguments == ["--version"] { throw CleanExit.message(version) }
      if arguments == ["--generate-completion-script", "bash"] { throw CleanExit.message(bashCompletionScript) }
      command = try await asyncParseAsRoot(arguments)
    } catch {
      refuse(error, arguments)
    }
    do {
      do {
        if var asynchronous = command as? any AsyncParsableCommand {
          try await asynchronous.run()
        } else {
          try command.run()
        }
      } catch {
        try? await LibraryConnection.closeOwn()
        throw error
      }
      try await LibraryConnection.closeOwn()
    } catch is OutputClosed {
      Glibc.exit(0)
    } catch let error as SheafError {
      fail(error, asJSON: asksJSON(arguments))
    } catch let error where error is CleanExit || error is ValidationError || error is ExitCode {
      refuse(error, arguments)
    } catch {
      // ArgumentParser throws errors of its own to print its help and usage texts.
      if exitCode(for: error) == .success || exitCode(for: error) == .validationFailure { refuse(error, arguments) }
      fail(SheafError(.inputOutput, reason: "\(error)"), asJSON: false)
    }
  }

  private static func asksJSON(_ arguments: [String]) -> Bool { arguments.prefix { $0 != "--" }.contains("--json") }

  /// Prints what is wrong with the arguments, or the help that they ask for, and ends.
  private static func refuse(_ error: any Error, _ arguments: [String]) -> Never {
    let hint = CommandHint.line(for: arguments)
    // Help about what is no command is none.
    let isMistaken = arguments.first == "help" && hint != nil
    let code = isMistaken ? .validationFailure : exitCode(for: error)
    guard code != .success else { exit(withError: error) }
    if asksJSON(arguments) {
      let reason = hint.map { String($0.dropFirst("sheaf: ".count)) } ?? message(for: error)
      let failure = SheafError(
        .invalid, reason: reason.trimmingCharacters(in: .newlines), advice: "see the command's --help")
      let json = try? JSON.text(ErrorFact(failure), [.sortedKeys, .withoutEscapingSlashes])
      StandardError.write((json ?? ErrorLine.text(failure.description)) + "\n")
    } else if let hint {
      StandardError.write(hint)
    } else {
      let message = RawArguments.readable(fullMessage(for: error).escapingControls(of: arguments))
      if !message.isEmpty { StandardError.write(message + "\n") }
    }
    Glibc.exit(code.rawValue)
  }

  /// Prints the failure in one line, and ends with status 1.
  private static func fail(_ error: SheafError, asJSON: Bool) -> Never {
    StandardError.write(ErrorLine.text(error, asJSON: asJSON))
    Glibc.exit(1)
  }
}

/// A failure as JSON, in one line.
private struct ErrorFact: Encodable {
  struct Failure: Encodable {
    let kind: SheafError.Kind
    let subject: String
    let reason: String
    @OrNull var advice: String?
  }

  let error: Failure

  init(_ error: SheafError) {
    self.error = Failure(kind: error.kind, subject: error.subject, reason: error.reason, advice: error.advice)
  }
}

/// The line that reports a failure.
enum ErrorLine {
  /// The line for people, or a line of JSON.
  static func text(_ error: SheafError, asJSON: Bool) -> String {
    let json = asJSON ? try? JSON.text(ErrorFact(error), [.sortedKeys, .withoutEscapingSlashes]) : nil
    return json.map { $0 + "\n" } ?? text(error)
  }

  /// The line for people, with times as they are where they are.
  static func text(_ error: SheafError) -> String {
    text(
      (error.times ?? []).reduce(error.description) { text, time in
        text.replacing(time.secondsText, with: Format.time(time))
      })
  }

  /// `sheaf: ` and the description, on one line whatever it contains.
  static func text(_ description: String) -> String {
    "sheaf: " + RawArguments.readable(description).escapingControls + "\n"
  }
}
