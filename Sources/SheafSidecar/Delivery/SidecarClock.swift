import Glibc
package import SheafModel

/// Time as the sidecar sees it, which tests replace.
package protocol SidecarClock: Sendable {
  var now: Timestamp { get }

  /// Waits until `time`, or until the task is cancelled.
  func sleep(until time: Timestamp) async throws
}

/// CLOCK_REALTIME: a wait goes on through a restart.
package struct RealClock: SidecarClock {
  package init() {}

  package var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  package func sleep(until time: Timestamp) async throws {
    let wait = time.nanoseconds - now.nanoseconds
    if wait > 0 { try await Task.sleep(for: .nanoseconds(wait)) }
  }
}
