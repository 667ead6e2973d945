import CFuse

/// The answer to read.
///
/// Valid replies: bytes, at most as many as asked for and fewer only at the end of the file (the kernel shows zeros
/// for the rest), an error. Source: `fuse_reply_buf()`.
package struct DataReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  /// Gives the bytes; they are copied to the kernel before this returns, and nowhere else.
  package consuming func succeed(_ bytes: UnsafeRawBufferPointer) {
    _ = request.answer { fuse_reply_buf($0, bytes.baseAddress, bytes.count) }
  }

  package consuming func succeed(_ bytes: [UInt8]) {
    request.answer(bytes)
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the bytes that `body` returns, or the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> [UInt8]) {
    let bytes: [UInt8]
    do {
      bytes = try body()
    } catch {
      return fail(error)
    }
    succeed(bytes)
  }

  /// Answers with the first bytes of a scratch buffer: `body` fills it and returns how many count, or throws.
  ///
  /// - Parameter capacity: the size of the buffer, as a rule that of the request.
  package consuming func fill(
    capacity: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  ) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    defer { buffer.deallocate() }
    let count: Int
    do {
      count = try body(buffer)
    } catch {
      return fail(error)
    }
    succeed(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
  }
}

/// The answer to readlink.
///
/// Valid replies: the target, an error. Source: `fuse_reply_readlink()`.
package struct LinkReply: ~Copyable, Sendable {
  let request: PendingRequest

  package consuming func succeed(_ target: [UInt8]) {
    request.answer(target)
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> [UInt8]) {
    let target: [UInt8]
    do {
      target = try body()
    } catch {
      return fail(error)
    }
    succeed(target)
  }
}
