import Glibc
import SheafModel
import SheafSidecar

/// Keeps a second sidecar from using the same state: both would deliver the same events.
final class StateLock: Sendable {
  private let descriptor: Int32

  /// - Throws: `busy` if another sidecar has it.
  init(_ state: String) throws(SheafError) {
    let path = state + "-lock"
    try StateFiles.makeFolder(of: path)
    let descriptor = try StateFiles.open(path, O_RDWR)
    do throws(SheafError) {
      try StateFiles.refuseForeignLock(descriptor, path)
    } catch {
      close(descriptor)
      throw error
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let owner = SidecarProcess.running(state).map { "process \($0)" } ?? "another process"
      close(descriptor)
      throw SheafError(
        .busy, subject: state.printable, reason: "is used by \(owner)", advice: "end it, or name another file: --state")
    }
    self.descriptor = descriptor
    ftruncate(descriptor, 0)
    let text = "\(getpid())\n"
    pwrite(descriptor, text, text.utf8.count, 0)
  }

  deinit { close(descriptor) }
}
