import CFuse

/// The answer to getxattr.
///
/// Valid replies: the value, or its size where that is all that was asked, or ERANGE where it does not fit; an error.
/// ``succeed(_:)`` chooses. Source: `fuse_reply_xattr()`, `fuse_reply_buf()`.
package struct XattrReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes fit, 0 where only the size is asked.
  package let capacity: Int

  package consuming func succeed(_ value: [UInt8]) {
    let capacity = capacity
    request.answerXattr(value, capacity: capacity)
  }

  /// Gives only the size, where the value need not be made for it; else use ``succeed(_:)``.
  package consuming func succeed(size: Int) {
    precondition(capacity == 0, "the caller asked for the value")
    _ = request.answer { fuse_reply_xattr($0, size) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with what `body` returns or throws.
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
/// Valid replies: the names, or the size of the list where that is all that was asked, or ERANGE where it does not
/// fit; an error. ``succeed(_:)`` chooses. Source: `fuse_reply_xattr()`, `fuse_reply_buf()`.
package struct XattrListReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes fit, 0 where only the size is asked.
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

  /// Answers with what `body` returns or throws.
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
