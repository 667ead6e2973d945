internal import Glibc

/// A moment of CLOCK_MONOTONIC, which nobody sets: a wait ends in time even if the time of day is put back.
package struct Moment: Comparable, Sendable {
  private let nanoseconds: Int64

  package static var now: Moment {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// Before every other one.
  package static let past = Moment(nanoseconds: 0)

  package func after(seconds: Double) -> Moment { Moment(nanoseconds: nanoseconds + Int64(seconds * 1e9)) }

  package func seconds(since other: Moment) -> Double { Double(nanoseconds - other.nanoseconds) / 1e9 }

  package static func < (left: Moment, right: Moment) -> Bool { left.nanoseconds < right.nanoseconds }

  fileprivate var value: timespec {
    .init(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }
}

/// A lock to wait with, like `NSCondition`, by a clock that nobody sets.
// Sendable: pthread(7)'s functions may be called by every thread; the pointers never change.
package final class MonotonicCondition: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  package init() {
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package func lock() { pthread_mutex_lock(mutex) }

  package func unlock() { pthread_mutex_unlock(mutex) }

  package func signal() { pthread_cond_signal(condition) }

  package func broadcast() { pthread_cond_broadcast(condition) }

  /// Releases the lock and waits until it is signalled, or wakes without a reason.
  package func wait() { pthread_cond_wait(condition, mutex) }

  /// As ``wait()``, but until `end` at the latest; then it returns false.
  package func wait(until end: Moment) -> Bool {
    var time = end.value
    return pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
  }
}
