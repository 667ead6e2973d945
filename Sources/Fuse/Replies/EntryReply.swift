import CFuse

/// The answer to lookup, mknod, mkdir, symlink and link.
///
/// Valid replies: an entry (for lookup also a negative one), an error. Source: `fuse_reply_entry()`.
package struct EntryReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  /// Gives the entry, which adds one to the node's lookup count.
  ///
  /// - Returns: false where the kernel did not take it and so holds no reference: the connection has ended.
  @discardableResult
  package consuming func succeed(_ entry: Entry) -> Bool {
    var parameters = entry.parameters
    return request.answer { fuse_reply_entry($0, &parameters) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  @discardableResult
  package consuming func answer(_ body: () throws(Errno) -> Entry) -> Bool {
    let entry: Entry
    do {
      entry = try body()
    } catch {
      fail(error)
      return true
    }
    return succeed(entry)
  }
}

/// The answer to create.
///
/// Valid replies: an entry with an open file, an error. Source: `fuse_reply_create()`.
package struct CreateReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  /// Gives the entry, which adds one to the node's lookup count, and the open file, which release will close.
  ///
  /// - Returns: false where the kernel did not take it and will send neither forget nor release.
  @discardableResult
  package consuming func succeed(_ entry: Entry, _ result: OpenResult) -> Bool {
    var parameters = entry.parameters
    var info = result.fileInfo
    return request.answer { fuse_reply_create($0, &parameters, &info) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  @discardableResult
  package consuming func answer(_ body: () throws(Errno) -> (Entry, OpenResult)) -> Bool {
    let entry: Entry
    let result: OpenResult
    do {
      (entry, result) = try body()
    } catch {
      fail(error)
      return true
    }
    return succeed(entry, result)
  }
}
