import CFuse

/// The answer to getxattr.
///
/// Valid replies: the value, its size if the caller asks only for that, ERANGE if it does not fit, or another error.
/// ``succeed(_:)`` chooses. Source: `fuse_reply_xattr()`, `fuse_reply_buf()`.
package struct XattrReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes fit; 0 if the caller asks only for the size.
  package let capacity: Int

  package consuming func succeed(_ value: [UInt8]) {
    let capacity = capacity
    request.answerXattr(value, capacity: capacity)
  }

  /// Gives the size alone, for callers that know it without making the value. Otherwise use ``succeed(_:)``.
  package consuming func succeed(size: Int) {
    precondition(capacity == 0, "the caller asked for the value")
    _ = request.answer { fuse_reply_xattr($0, size) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> [UInt8]) {
    let value: [UInt8]
    do {
      value = try body()
    } catch {
      return fail(error)
    }
    succeed(value)
  }
}

/// The answer to listxattr.
///
/// Valid replies: the names, the size of the list if the caller asks only for that, ERANGE if it does not fit, or
/// another error. ``succeed(_:)`` chooses. Source: `fuse_reply_xattr()`, `fuse_reply_buf()`.
package struct XattrListReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes fit; 0 if the caller asks only for the size.
  package let capacity: Int

  package consuming func succeed(_ names: [FileName]) {
    let capacity = capacity
    var list: [UInt8] = []
    for name in names {
      list += name.bytes
      list.append(0)
    }
    request.answerXattr(list, capacity: capacity)
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> [FileName]) {
    let names: [FileName]
    do {
      names = try body()
    } catch {
      return fail(error)
    }
    succeed(names)
  }
}

extension PendingRequest {
  fileprivate consuming func answerXattr(_ value: [UInt8], capacity: Int) {
    if capacity == 0 {
      _ = answer { fuse_reply_xattr($0, value.count) }
    } else if value.count > capacity {
      fail(.resultTooLarge)
    } else {
      answer(value)
    }
  }
}
