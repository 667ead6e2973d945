import Logging
import ServiceLifecycle
import Synchronization

/// Wakes those who wait for changes of a zone, or of a share by ``SharedPlace/feed``: at once after a change by this
/// process, and within a second after a change by another one.
final class ZoneNews: Service {
  private static let interval = Duration.seconds(1)

  private struct Waiter {
    let zone: String
    let continuation: AsyncStream<Int64>.Continuation
  }

  private struct State {
    var waiters: [UInt64: Waiter] = [:]
    /// The newest number known of each zone that somebody waits for.
    var numbers: [String: Int64] = [:]
    var next: UInt64 = 0
    var isFinished = false
  }

  private let read: @Sendable ([String]) async throws -> [String: Int64]
  private let logger: Logger
  private let state = Mutex(State())

  /// - Parameter read: Reads the newest numbers of some zones from the store; a zone that is gone has none.
  init(logger: Logger, read: @escaping @Sendable ([String]) async throws -> [String: Int64]) {
    self.logger = logger
    self.read = read
  }

  /// The newest number of a zone whenever it is another one; several at once are the newest one. The sequence ends with
  /// the server.
  ///
  /// - Parameter number: A number that the reader knows already; nil for a reader that is to be woken in any case.
  func numbers(of zone: String, after number: Int64? = nil) -> AsyncStream<Int64> {
    let (stream, continuation) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
    let waiter: UInt64? = state.withLock { state in
      guard !state.isFinished else { return nil }
      if state.numbers[zone] == nil { state.numbers[zone] = number }
      state.next += 1
      state.waiters[state.next] = Waiter(zone: zone, continuation: continuation)
      return state.next
    }
    guard let waiter else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.forget(waiter) }
    return stream
  }

  /// Tells that a zone has reached a number.
  func tell(_ zone: String, number: Int64) {
    let woken = state.withLock { state -> [AsyncStream<Int64>.Continuation] in
      let waiting = state.waiters.values.filter { $0.zone == zone }.map(\.continuation)
      if waiting.isEmpty || number <= state.numbers[zone] ?? -1 { return [] }
      state.numbers[zone] = number
      return waiting
    }
    for continuation in woken { continuation.yield(number) }
  }

  /// Asks the store about all zones that somebody waits for.
  ///
  /// - Parameter zone: The one alone whose shares and own feed are asked about; nil for all.
  func check(_ zone: String? = nil) async {
    let zones = state.withLock { state in
      Set(state.waiters.values.map(\.zone)).filter { key in
        zone.map { key == $0 || key.hasPrefix($0 + " ") } ?? true
      }.sorted()
    }
    if zones.isEmpty { return }
    do {
      for (zone, number) in try await read(zones) { tell(zone, number: number) }
    } catch {
      logger.warning("the zones' numbers could not be read", metadata: ["reason": "\(type(of: error))"])
    }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown { [self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: Self.interval)
        await check()
      }
    }
    let waiting = state.withLock { state in
      state.isFinished = true
      return state.waiters.values.map(\.continuation)
    }
    for continuation in waiting { continuation.finish() }
  }

  private func forget(_ number: UInt64) {
    state.withLock { state in
      guard let waiter = state.waiters.removeValue(forKey: number) else { return }
      if !state.waiters.values.contains(where: { $0.zone == waiter.zone }) { state.numbers[waiter.zone] = nil }
    }
  }
}
