import Glibc
import SheafModel
import SheafMount

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

  /// Whether it was killed, and has threads that have not ended. It answers nobody any more.
  private var isEnding: Bool {
    let lines = (try? SmallFile.read("/proc/\(pid)/status"))?.split(separator: UInt8(ascii: "\n")).map(\.readable) ?? []
    func value(_ name: String) -> Substring? {
      lines.first { $0.hasPrefix(name) }?.dropFirst(name.count).drop { $0 == "\t" || $0 == " " }
    }
    // Signals of its first thread, which one that ends all threads is among (proc_pid_status(5)).
    let pending = value("SigPnd:").flatMap { UInt64($0, radix: 16) } ?? 0
    let isLeft = value("State:").map { "ZX".contains($0.prefix(1)) } ?? false
    return pending & 1 << UInt64(SIGKILL - 1) != 0 || isLeft && value("Threads:").flatMap { Int($0) } ?? 0 > 1
  }

  /// Whether the process that owned a library last has ended, or is about to.
  static func hasEnded(_ location: LibraryLocation) -> Bool {
    OwnerPatience.owner(of: location).map { OwnerProcess(pid: $0) }.map { !$0.isRunning || $0.isEnding } ?? false
  }

  /// Lets the process that owned a library end, if it was killed: its threads may wait for locks of programs that wait
  /// for their answers (``LibraryMount/abort(_:)``), and it has the library for as long.
  static func releaseKilled(_ location: LibraryLocation) {
    guard let pid = OwnerPatience.owner(of: location), OwnerProcess(pid: pid).isEnding,
      let table = try? MountTable.current()
    else { return }
    for entry in table.entries where entry.isSheaf && entry.source == Array(location.path.utf8) {
      // A mount of another user, which is not this one's to cut, goes on waiting.
      try? LibraryMount.abort(entry)
    }
  }
}
