import Glibc
import SheafModel
import SheafMount

/// A process that owns a library, seen from another one.
struct OwnerProcess {
  let pid: pid_t

  /// What Linux says of a process (proc_pid_status(5)).
  private struct Status {
    /// Whether the first thread has ended: the process waits to be reaped, or for its other threads.
    let isLeft: Bool
    let threadCount: Int
    let isKilled: Bool
  }

  /// nil where there is no such process.
  private var status: Status? {
    guard let bytes = try? SmallFile.read("/proc/\(pid)/status") else { return nil }
    let lines = bytes.split(separator: UInt8(ascii: "\n")).map(\.readable)
    func value(_ name: String) -> Substring? {
      lines.first { $0.hasPrefix(name) }?.dropFirst(name.count).drop { $0 == "\t" || $0 == " " }
    }
    // Signals of its first thread, which one that ends all threads is among.
    let pending = value("SigPnd:").flatMap { UInt64($0, radix: 16) } ?? 0
    return Status(
      isLeft: value("State:").map { "ZX".contains($0.prefix(1)) } ?? true,
      threadCount: value("Threads:").flatMap { Int($0) } ?? 0,
      isKilled: pending & 1 << UInt64(SIGKILL - 1) != 0)
  }

  /// Whether it still runs: a process that only waits to be reaped has no open files any more, once its threads have
  /// ended.
  var isRunning: Bool { status.map { !$0.isLeft || $0.threadCount > 1 } ?? false }

  /// Whether it was killed, and has threads that have not ended. It answers nobody any more.
  private var isEnding: Bool { status.map { $0.isKilled || $0.isLeft && $0.threadCount > 1 } ?? false }

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
