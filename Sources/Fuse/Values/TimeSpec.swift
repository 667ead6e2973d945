import Glibc

/// A point in time since the epoch, in nanoseconds.
///
/// The corresponding C type is `struct timespec`.
package struct TimeSpec: Hashable, Sendable {
  package var seconds: Int64
  /// 0 ..< 1,000,000,000, also before the epoch.
  package var nanoseconds: Int64

  package init(seconds: Int64, nanoseconds: Int64 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }
}

extension TimeSpec: Comparable {
  package static func < (left: TimeSpec, right: TimeSpec) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }
}

extension TimeSpec {
  init(_ time: timespec) {
    self.init(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  var timespec: timespec {
    Glibc.timespec(tv_sec: time_t(seconds), tv_nsec: Int(nanoseconds))
  }
}
