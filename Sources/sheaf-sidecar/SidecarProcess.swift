import Glibc
import SheafModel

/// The sidecar that uses a state file, by the lock beside it.
enum SidecarProcess {
  /// Its process id; nil if none runs.
  static func running(_ state: String) -> Int32? {
    let descriptor = open(state + "-lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // If the lock is free, no sidecar runs.
    guard flock(descriptor, LOCK_SH | LOCK_NB) != 0 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 32)
    let count = pread(descriptor, &buffer, buffer.count, 0)
    return Int32(String(decoding: buffer.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }

  /// Makes the running sidecar read its state again; returns whether there is one.
  static func poke(_ state: String) -> Bool {
    guard let process = running(state) else { return false }
    return kill(process, SIGHUP) == 0
  }
}
