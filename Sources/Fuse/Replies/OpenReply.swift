import CFuse

/// The answer to open and opendir.
///
/// Valid replies: an open file, an error. Source: `fuse_reply_open()`.
package struct OpenReply: ~Copyable, Sendable {
  let request: PendingRequest

  /// Gives the handle, which release (or releasedir) will close.
  ///
  /// - Returns: false where the kernel did not take it and will not release it.
  @discardableResult
  package consuming func succeed(_ result: OpenResult) -> Bool {
    var info = result.fileInfo
    return request.answer { fuse_reply_open($0, &info) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  @discardableResult
  package consuming func answer(_ body: () throws(Errno) -> OpenResult) -> Bool {
    let result: OpenResult
    do {
      result = try body()
    } catch {
      fail(error)
      return true
    }
    return succeed(result)
  }
}

/// The answer to operations that return nothing.
///
/// Valid replies: success, an error. Source: `fuse_reply_err()`.
package struct EmptyReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  package consuming func succeed() {
    request.fail(Errno(rawValue: 0))
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers success once `body` returned, or the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> Void) {
    do {
      try body()
    } catch {
      return fail(error)
    }
    succeed()
  }
}
