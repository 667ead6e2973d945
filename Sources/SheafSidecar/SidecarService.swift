package import Logging
import ServiceLifecycle
package import SheafHubClient
package import SheafModel

/// Delivers the events of a library or a hub to all sinks until it is told to stop; the sinks know nothing of each other.
package struct SidecarService: Service {
  /// The shortest time between two reports to the library.
  private static let reportInterval = Duration.milliseconds(250)

  /// Seconds between attempts to read the webhooks of accounts, at first and at most.
  private static let waits = (first: 1.0, longest: 60.0)

  private let source: any EventSource
  /// Whose accounts may have webhooks; nil for a hub.
  private let library: LibraryLink?
  private let sinks: [SinkConfiguration]
  /// Whether the webhooks that accounts registered are served, too.
  private let servesAccounts: Bool
  private let state: SidecarState
  private let clock: any SidecarClock
  private let random: @Sendable () -> Double
  private let isGuarded: Bool
  private let board: StatusBoard
  private let poke: Poke
  private let log: Logger

  /// - Parameters:
  ///   - isGuarded: Whether webhooks of accounts reach only public addresses; tests have no public ones.
  ///   - random: From 0 up to 1.
  package init(
    _ configuration: SidecarConfiguration, library: LibraryLocation, state: SidecarState,
    clock: any SidecarClock = RealClock(), isGuarded: Bool = true,
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, log: Logger
  ) {
    let board = StatusBoard()
    let link = LibraryLink(library, log: log) { board.tell() }
    self.init(
      configuration, source: link, library: link, board: board, state: state, clock: clock, isGuarded: isGuarded,
      random: random, log: log)
  }

  /// Delivers what a hub tells a device.
  package init(
    _ configuration: SidecarConfiguration, device: Device, limits: DeviceClientLimits = DeviceClientLimits(),
    state: SidecarState, clock: any SidecarClock = RealClock(),
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, log: Logger
  ) {
    self.init(
      configuration, source: HubLink(device, limits: limits, log: log), library: nil, board: StatusBoard(),
      state: state, clock: clock, isGuarded: true, random: random, log: log)
  }

  private init(
    _ configuration: SidecarConfiguration, source: any EventSource, library: LibraryLink?, board: StatusBoard,
    state: SidecarState, clock: any SidecarClock, isGuarded: Bool, random: @escaping @Sendable () -> Double, log: Logger
  ) {
    self.source = source
    self.library = library
    self.board = board
    sinks = configuration.sinks
    servesAccounts = configuration.servesAccounts
    self.state = state
    self.clock = clock
    self.isGuarded = isGuarded
    self.random = random
    self.log = log
    poke = Poke()
  }

  /// Makes every sink read its record again, after a person resumed it or wants dead letters sent again.
  package func poked() { poke.poke() }

  /// Delivers until the service is told to stop, or the readers of all sinks have gone.
  ///
  /// It waits for attempts that have begun, and stores their outcome.
  package func run() async throws {
    await cancelWhenGracefulShutdown {
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          for await _ in board.changes() {
            await source.report(board.report)
            try? await Task.sleep(for: Self.reportInterval)
          }
        }
        await withTaskGroup(of: Void.self) { running in
          for sink in sinks { running.addTask { await runner(sink).run(poke: poke) } }
          if servesAccounts, let library { running.addTask { await serveAccounts(of: library) } }
        }
        group.cancelAll()
      }
    }
    await source.report(board.report)
    await source.close()
    log.notice("stopped")
  }

  private func runner(_ sink: SinkConfiguration, isGuarded: Bool = false) -> SinkRunner {
    SinkRunner(
      name: sink.name, kind: sink.target.kind, sink: sink.make(clock: clock, isGuarded: isGuarded),
      filter: sink.filter, schedule: sink.schedule, beginsNow: sink.beginsNow,
      keepsDeadLetters: sink.target != .desktop, source: source, state: state, board: board, clock: clock,
      random: random, log: log)
  }

  /// Delivers to the webhooks that accounts registered, for as long as they are registered.
  private func serveAccounts(of library: LibraryLink) async {
    var running: [String: Task<Void, Never>] = [:]
    var wait = Self.waits.first
    var told: String?
    while !Task.isCancelled {
      do {
        let (client, info) = try await library.connect()
        if let account = info.account {
          log.error("webhooks of accounts are served beside the library itself, not beside the mount of \(account)")
          break
        }
        try await client.followWebhooks { webhooks in
          (wait, told) = (Self.waits.first, nil)
          for (id, task) in running where !webhooks.contains(where: { $0.id == id }) {
            task.cancel()
            running[id] = nil
            board.remove(SinkConfiguration.name(ofWebhook: id))
          }
          for webhook in webhooks where running[webhook.id] == nil {
            let sink = try SinkConfiguration(webhook)
            let runner = runner(sink, isGuarded: isGuarded)
            running[webhook.id] = Task { await runner.run(poke: poke) }
          }
        }
      } catch is CancellationError {
        break
      } catch {
        // The next go waits for a process that has ended.
        if (error as? SheafError)?.kind == .unavailable, wait == Self.waits.first {
          wait *= 2
          continue
        }
        if told != "\(error)" { log.error("webhooks of accounts cannot be read: \(error)") }
        told = "\(error)"
        try? await Task.sleep(for: .seconds(wait))
        wait = min(wait * 2, Self.waits.longest)
      }
    }
    for task in running.values { task.cancel() }
    for task in running.values { await task.value }
  }
}

extension SinkConfiguration {
  fileprivate static func name(ofWebhook id: String) -> String { "webhook " + id }

  /// The sink of a webhook that an account registered.
  fileprivate init(_ webhook: Webhook) throws {
    let secrets = try webhook.secret.map { [try WebhookSecret($0)] } ?? []
    self.init(name: Self.name(ofWebhook: webhook.id), target: .webhook(url: webhook.url, secrets: secrets))
    filter.types = webhook.types
    account = webhook.account
    beginsNow = true
  }

  fileprivate func make(clock: any SidecarClock, isGuarded: Bool) -> any Sink {
    switch target {
    case .webhook(let url, let secrets):
      WebhookSink(
        url: url, secrets: secrets, account: account, batch: batch, timeout: .seconds(timeout), isGuarded: isGuarded,
        clock: clock)
    case .output: OutputSink(account: account)
    case .exec(let command): ExecSink(command: command, account: account, timeout: .seconds(timeout))
    case .desktop: DesktopSink(account: account)
    }
  }
}
