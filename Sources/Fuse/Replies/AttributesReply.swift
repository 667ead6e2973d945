import CFuse

/// The answer to getattr and setattr.
///
/// Valid replies: attributes with the seconds for which the kernel may keep them, an error.
/// Source: `fuse_reply_attr()`.
package struct AttributesReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  package consuming func succeed(_ attributes: FileAttributes, timeout: Double) {
    var status = attributes.stat
    _ = request.answer { fuse_reply_attr($0, &status, timeout) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(timeout: Double, _ body: () throws(Errno) -> FileAttributes) {
    let attributes: FileAttributes
    do {
      attributes = try body()
    } catch {
      return fail(error)
    }
    succeed(attributes, timeout: timeout)
  }
}

/// The answer to statfs.
///
/// Valid replies: the numbers, an error. Source: `fuse_reply_statfs()`.
package struct StatFSReply: ~Copyable, Sendable {
  let request: PendingRequest

  package consuming func succeed(_ status: StatFS) {
    var status = status.statvfs
    _ = request.answer { fuse_reply_statfs($0, &status) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> StatFS) {
    let status: StatFS
    do {
      status = try body()
    } catch {
      return fail(error)
    }
    succeed(status)
  }
}
