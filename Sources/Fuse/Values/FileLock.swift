import CFuse
import Glibc

/// A lock of fcntl(2).
///
/// The corresponding C type is `struct flock`.
package struct FileLock: Hashable, Sendable {
  package enum Kind: Hashable, Sendable { case shared, exclusive, unlock }

  package let kind: Kind
  /// The locked bytes; up to `Int64.max` if the lock reaches to the end, however large the file becomes.
  package let range: ClosedRange<Int64>
  /// The process that set it.
  package let process: Int32

  package init(_ kind: Kind, _ range: ClosedRange<Int64>, process: Int32) {
    self.kind = kind
    self.range = range
    self.process = process
  }
}

/// The owner of a lock, as the kernel tells owners apart: a process or an open file description.
package struct LockOwner: Hashable, Sendable, RawRepresentable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

extension FileLock {
  init(_ lock: Glibc.flock) {
    let kind: Kind =
      switch Int32(lock.l_type) {
      case F_RDLCK: .shared
      case F_WRLCK: .exclusive
      default: .unlock
      }
    let start = max(0, Int64(lock.l_start))
    // A length of 0 reaches to the end, however large the file becomes.
    let length = lock.l_len > 0 ? Int64(lock.l_len) : .max
    let (end, overflows) = start.addingReportingOverflow(length - 1)
    self.init(kind, start...(length == .max || overflows ? .max : end), process: lock.l_pid)
  }

  var flock: Glibc.flock {
    var lock = Glibc.flock()
    lock.l_type =
      switch kind {
      case .shared: Int16(F_RDLCK)
      case .exclusive: Int16(F_WRLCK)
      case .unlock: Int16(F_UNLCK)
      }
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = off_t(range.lowerBound)
    lock.l_len = range.upperBound == .max ? 0 : off_t(range.count)
    lock.l_pid = process
    return lock
  }
}
