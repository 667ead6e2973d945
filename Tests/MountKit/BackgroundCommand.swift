import Glibc

/// A program that runs beside a test until it is ended.
public final class BackgroundCommand {
  private let running: RunningCommand
  private var ended = false

  public init(_ command: Command) throws { running = try command.start() }

  deinit { end() }

  public var process: Int32 { running.child }

  /// Writes a line to its standard input.
  public func say(_ line: String) throws { try running.say(line) }

  /// Closes its standard input.
  public func endInput() { running.endInput() }

  /// Waits for it to end by itself.
  ///
  /// - Throws: `Command.Failure` if it did not end in time, when it is killed, or ended with another status than 0.
  public func wait(limit: Duration) throws {
    guard !ended else { return }
    defer { running.closeEnds() }
    ended = true
    let output = try running.finish(input: [], limit: limit, name: "the background program")
    guard output.status == 0 else { throw Command.Failure(description: "the background program: \(output)") }
  }

  /// Kills it with its process group and waits for its end; a second time does nothing.
  public func end() {
    guard !ended else { return }
    ended = true
    kill(-running.child, SIGKILL)
    var status: Int32 = 0
    waitpid(running.child, &status, 0)
    running.closeEnds()
  }
}
