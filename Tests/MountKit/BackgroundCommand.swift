import Glibc

/// A program that runs beside a test until it is ended.
public final class BackgroundCommand {
  private let running: RunningCommand
  private var ended = false

  public init(_ command: Command) throws { running = try command.start() }

  deinit { end() }

  public var process: Int32 { running.child }

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
