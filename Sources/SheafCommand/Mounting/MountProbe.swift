import Dispatch
import Glibc
import SheafModel
import Synchronization

/// Examines a path that may be in a mount whose process has ended or hangs.
enum MountProbe {
  /// How long a mount may take to answer.
  static let patience = 10.0

  /// The error number of lstat(2), 0 if it works; nil if it does not return in time.
  static func status(of path: String) -> CInt? {
    withPatience {
      var status = stat()
      return lstat(path, &status) == 0 ? 0 : errno
    }
  }

  /// Whether the process behind a mount has ended.
  ///
  /// statfs(2) always asks the process, unlike lstat(2), which the kernel may answer from its cache.
  static func isDead(_ mountpoint: String) -> Bool {
    let code = withPatience {
      var space = statvfs()
      return statvfs(mountpoint, &space) == 0 ? 0 : errno
    }
    return code == ENOTCONN || code == ECONNABORTED
  }

  private static func withPatience(_ call: @escaping @Sendable () -> CInt) -> CInt? {
    let result = ProbeResult()
    let done = DispatchSemaphore(value: 0)
    DispatchQueue(label: "sheaf.probe").async {
      let code = call()
      result.value.withLock { $0 = code }
      done.signal()
    }
    // Dispatch waits by the wall clock on Linux: set forward meanwhile, it ends a wait early.
    let deadline = DispatchTime.now() + patience
    while done.wait(timeout: deadline) == .timedOut, DispatchTime.now() < deadline {}
    return result.value.withLock { $0 }
  }
}

/// A result that a thread writes, perhaps after nobody waits for it any longer.
private final class ProbeResult: Sendable {
  let value = Mutex<CInt?>(nil)
}
