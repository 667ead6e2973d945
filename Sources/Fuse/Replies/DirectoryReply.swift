import CFuse

/// The answer to readdir.
///
/// Valid replies: as many entries as fit, none at the end; an error. Source: `fuse_add_direntry()`, `fuse_reply_buf()`.
package struct DirectoryReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes the kernel takes.
  package let capacity: Int

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the entries that `body` adds, or the error that it throws.
  package consuming func answer(_ body: (inout DirectoryBuffer) throws(Errno) -> Void) {
    var buffer = DirectoryBuffer(capacity: capacity)
    do {
      try body(&buffer)
    } catch {
      return fail(error)
    }
    let bytes = buffer.storage.filled
    _ = request.answer { fuse_reply_buf($0, bytes.baseAddress, bytes.count) }
  }
}

/// The answer to readdirplus.
///
/// Valid replies: as many entries with attributes as fit, none at the end; an error.
/// Source: `fuse_add_direntry_plus()`, `fuse_reply_buf()`.
package struct DirectoryPlusReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes the kernel takes.
  package let capacity: Int

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the entries that `body` adds, or the error that it throws.
  ///
  /// Each entry added (but `.` and `..`) adds one to its node's lookup count, unless `body` throws afterwards.
  ///
  /// - Returns: false where the kernel did not take the entries and so holds no references.
  @discardableResult
  package consuming func answer(_ body: (inout DirectoryPlusBuffer) throws(Errno) -> Void) -> Bool {
    var buffer = DirectoryPlusBuffer(capacity: capacity)
    do {
      try body(&buffer)
    } catch {
      fail(error)
      return true
    }
    let bytes = buffer.storage.filled
    return request.answer { fuse_reply_buf($0, bytes.baseAddress, bytes.count) }
  }
}
