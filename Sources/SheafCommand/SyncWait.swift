import Glibc
import SheafClient
import SheafModel
import UnixSignals

/// Waits until this machine and a hub have the same, with a line of progress on a terminal. There, Ctrl-C ends the
/// waiting and nothing else.
enum SyncWait {
  private static let pause = Duration.milliseconds(100)

  static func isSettled(_ status: ConnectionStatus) -> Bool { status.isSettled && status.state == .connected }

  /// - Parameters:
  ///   - first: How it is before.
  ///   - end: Until when to wait at most; nil for as long as it takes.
  /// - Returns: how it is then.
  static func untilSettled(
    _ first: ConnectionStatus, _ client: SheafClient, until end: ContinuousClock.Instant?
  ) async throws -> ConnectionStatus {
    guard StandardError.isTerminal else { return try await poll(first, client, until: end) { _ in } }
    let signals = await UnixSignalsSequence(trapping: .sigint)
    // Another Ctrl-C, when the waiting is over, ends the program.
    defer { signal(SIGINT, SIG_DFL) }
    let settled = try await withThrowingTaskGroup(of: ConnectionStatus?.self) { group in
      group.addTask {
        let line = ProgressLine("Synchronizing \(first.account)")
        defer { line.clear() }
        var progress = SyncProgress(first)
        return try await poll(first, client, until: end) { line.show(progress.text($0)) }
      }
      group.addTask {
        for await _ in signals { break }
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
    guard let settled else { return try await now(first, client) }
    return settled
  }

  private static func poll(
    _ first: ConnectionStatus, _ client: SheafClient, until end: ContinuousClock.Instant?,
    _ show: (ConnectionStatus) -> Void
  ) async throws -> ConnectionStatus {
    var status = first
    while !isSettled(status), status.state != .failed, end.map({ ContinuousClock.now < $0 }) ?? true {
      show(status)
      try await Task.sleep(for: pause)
      status = try await now(status, client)
    }
    return status
  }

  private static func now(_ status: ConnectionStatus, _ client: SheafClient) async throws -> ConnectionStatus {
    try await client.connections().first { $0.account == status.account } ?? status
  }
}

/// What is done and left since a moment, in words.
struct SyncProgress {
  private let movedBefore: Int64
  private var left: Int64
  private var done: Int64 = 0

  init(_ first: ConnectionStatus) {
    movedBefore = first.movedBytes
    left = first.unsent + first.unfetched
  }

  /// `12 to send, 340 to fetch; 160 done, 1.2 MB`
  mutating func text(_ status: ConnectionStatus) -> String {
    let now = status.unsent + status.unfetched
    // What comes meanwhile is left, too.
    done += max(0, left - now)
    left = now
    let moved = max(0, status.movedBytes - movedBefore)
    let counts = "\(status.unsent) to send, \(status.unfetched) to fetch; \(done) done, \(Format.size(moved))"
    return status.state == .disconnected ? counts + "; the hub is not reached" : counts
  }
}
