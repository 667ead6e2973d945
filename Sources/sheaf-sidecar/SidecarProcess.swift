import Glibc
import SheafModel

/// The sidecar that uses a state file, by the lock beside it.
enum SidecarProcess {
  /// Its process id; nil if none runs.
  static func running(_ state: String) -> Int32? {
    let descriptor = open(state + "-lock", O_RDONLY | O_CLOEXEC)
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

  /// Makes the folders above a file, for this user alone.
  static func makeFolder(of path: String) throws(SheafError) {
    let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    guard !folder.isEmpty, access(folder, F_OK) != 0 else { return }
    try makeFolder(of: folder)
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw SheafError(.inputOutput, subject: folder.printable, reason: String(cString: strerror(errno)))
    }
  }
}
