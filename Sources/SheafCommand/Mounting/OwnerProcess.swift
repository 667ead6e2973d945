import Glibc

/// A process that owns a library, seen from another one.
struct OwnerProcess {
  let pid: pid_t

  /// Whether it still runs: a process that only waits to be reaped has no open files any more, once its threads have
  /// ended.
  var isRunning: Bool {
    guard let bytes = try? SmallFile.read("/proc/\(pid)/stat"), let end = bytes.lastIndex(of: UInt8(ascii: ")")) else {
      return false
    }
    // From the third field on (proc_pid_stat(5)): the state; the 20th is the number of threads.
    let fields = bytes[(end + 1)...].split(separator: UInt8(ascii: " ")).map(\.readable)
    guard fields.count > 17 else { return false }
    return !["Z", "X"].contains(fields[0]) || (Int(fields[17]) ?? 0) > 1
  }
}
