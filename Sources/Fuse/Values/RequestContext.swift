import CFuse
import Glibc

/// The process that makes a request.
///
/// The corresponding C type is `struct fuse_ctx`.
package struct RequestContext: Hashable, Sendable {
  /// The file system user id (fsuid).
  package let uid: UInt32
  package let gid: UInt32
  /// The thread id; 0 if the kernel itself asks (write-back of a mapping) or the caller is outside of the pid
  /// namespace.
  package let pid: Int32
  /// The umask; only create, mkdir, mknod and symlink carry it.
  package let umask: UInt32

  package init(uid: UInt32, gid: UInt32, pid: Int32, umask: UInt32 = 0) {
    self.uid = uid
    self.gid = gid
    self.pid = pid
    self.umask = umask
  }

  /// Reads the caller's supplementary groups.
  ///
  /// This reads `/proc/PID/task/PID/status`, as `fuse_req_getgroups()` does: several system calls, too many for every
  /// request. Call it before answering: afterwards the thread may have ended.
  ///
  /// - Throws: ``Errno/noSuchFileOrDirectory`` if the thread is gone or is none; otherwise the error of open(2) or
  ///   read(2).
  package func groups() throws(Errno) -> [UInt32] {
    guard pid != 0 else { throw .noSuchFileOrDirectory }
    let status = try readFile("/proc/\(pid)/task/\(pid)/status")
    let text = String(decoding: status, as: UTF8.self)
    for line in text.split(separator: "\n") where line.hasPrefix("Groups:") {
      return line.dropFirst("Groups:".count).split(whereSeparator: \.isWhitespace).compactMap { UInt32($0) }
    }
    throw .inputOutput
  }
}

extension RequestContext {
  init(_ request: fuse_req_t) {
    let context = fuse_req_ctx(request).pointee
    self.init(uid: context.uid, gid: context.gid, pid: context.pid, umask: context.umask)
  }
}
