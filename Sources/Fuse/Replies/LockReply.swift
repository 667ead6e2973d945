import CFuse
import Glibc

/// The answer to getlk.
///
/// Valid replies: the lock that is in the way, or one of kind `unlock`; an error. Source: `fuse_reply_lock()`.
package struct LockReply: ~Copyable, Sendable {
  let request: PendingRequest

  package consuming func succeed(_ lock: FileLock) {
    var lock = lock.flock
    _ = request.answer { fuse_reply_lock($0, &lock) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }
}
