import Glibc
import SheafModel
import Synchronization

/// The status of each sink, as the library shows it.
final class StatusBoard: Sendable {
  private struct State {
    var sinks: [String: SinkStatus] = [:]
    var changes: AsyncStream<Void>.Continuation?
  }

  private let state = Mutex(State())

  func update(_ status: SinkStatus) {
    state.withLock { state in
      guard state.sinks.updateValue(status, forKey: status.name) != status else { return }
      state.changes?.yield()
    }
  }

  /// Notes that a sink failed before it could make an attempt.
  func fail(_ name: String, kind: String, _ reason: String) {
    var status = state.withLock { $0.sinks[name] } ?? SinkStatus(name: name, kind: kind)
    status.failure = reason
    update(status)
  }

  /// Notes the number of dead letters.
  func update(_ name: String, deadLetters: Int64) {
    guard var status = state.withLock({ $0.sinks[name] }) else { return }
    status.deadLetters = deadLetters
    update(status)
  }

  /// Makes the sidecar send a full report again, as for a process that has none yet.
  func tell() { state.withLock { _ = $0.changes?.yield() } }

  func remove(_ name: String) {
    state.withLock { state in
      if state.sinks.removeValue(forKey: name) != nil { state.changes?.yield() }
    }
  }

  var report: SidecarReport {
    SidecarReport(pid: getpid(), sinks: state.withLock { $0.sinks.values.sorted { $0.name < $1.name } })
  }

  /// One element for any number of changes.
  func changes() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { $0.changes = continuation }
    continuation.yield()
    return stream
  }
}
