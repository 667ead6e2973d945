package import Logging
package import SheafModel
package import ServiceLifecycle

/// Delivers a library's events to all sinks until it is told to stop; the sinks know nothing of each other.
package struct SidecarService: Service {
  /// How often the library hears how delivery goes, at most.
  private static let reportInterval = Duration.milliseconds(250)

  private let library: LibraryLink
  private let runners: [SinkRunner]
  private let board: StatusBoard
  private let poke: Poke
  private let log: Logger

  /// - Parameter random: From 0 up to 1.
  package init(
    _ configuration: SidecarConfiguration, library: LibraryLocation, state: SidecarState,
    clock: any SidecarClock = RealClock(), random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
    log: Logger
  ) {
    let link = LibraryLink(library, log: log)
    let board = StatusBoard()
    self.library = link
    self.board = board
    self.log = log
    poke = Poke()
    runners = configuration.sinks.map { sink in
      SinkRunner(
        name: sink.name, kind: sink.target.kind, sink: sink.make(clock: clock),
        filter: sink.filter, schedule: sink.schedule, beginsNow: sink.beginsNow,
        keepsDeadLetters: sink.target != .desktop, library: link, state: state, board: board, clock: clock,
        random: random, log: log)
    }
  }

  /// Has every sink look at its record again: a person resumed it, or wants dead letters sent again.
  package func poked() { poke.poke() }

  /// Delivers until the service is told to stop, or no sink has a reader left.
  ///
  /// Attempts that have begun are waited for; what they came to is stored.
  package func run() async throws {
    await cancelWhenGracefulShutdown {
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          for await _ in board.changes() {
            await library.report(board.report)
            try? await Task.sleep(for: Self.reportInterval)
          }
        }
        await withTaskGroup(of: Void.self) { sinks in
          for runner in runners { sinks.addTask { await runner.run(poke: poke) } }
        }
        group.cancelAll()
      }
    }
    await library.report(board.report)
    await library.close()
    log.notice("stopped")
  }
}

extension SinkConfiguration {
  fileprivate func make(clock: any SidecarClock) -> any Sink {
    switch target {
    case .webhook(let url, let secrets):
      WebhookSink(url: url, secrets: secrets, account: account, batch: batch, timeout: .seconds(timeout), clock: clock)
    case .output: OutputSink(account: account)
    case .exec(let command): ExecSink(command: command, account: account, timeout: .seconds(timeout))
    case .desktop: DesktopSink(account: account)
    }
  }
}
