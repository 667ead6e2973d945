import Glibc
package import SheafModel

/// The time of day, which tests move themselves.
package struct HubClock: Sendable {
  private let read: @Sendable () -> Timestamp

  package init(_ read: @escaping @Sendable () -> Timestamp) { self.read = read }

  package var now: Timestamp { read() }

  package static let system = HubClock {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }
}
