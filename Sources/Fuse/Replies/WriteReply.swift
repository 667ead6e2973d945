import CFuse
import Glibc

/// The answer to write and copy_file_range.
///
/// Valid replies: how many bytes were taken, an error. Source: `fuse_reply_write()`. For a write fewer bytes than
/// asked for are an error to the kernel, unless the file is open with direct I/O.
package struct WriteReply: ~Copyable, Sendable, InterruptibleReply {
  var request: PendingRequest

  /// Calls `action`, on any thread, if the caller gets a signal while it waits. The request still needs its answer.
  package mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) { request.whenInterrupted(action) }

  package consuming func succeed(_ count: Int) {
    _ = request.answer { fuse_reply_write($0, count) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> Int) {
    let count: Int
    do {
      count = try body()
    } catch {
      return fail(error)
    }
    succeed(count)
  }
}

/// The answer to lseek.
///
/// Valid replies: the offset, an error (ENXIO past the end). Source: `fuse_reply_lseek()`.
package struct LseekReply: ~Copyable, Sendable {
  let request: PendingRequest

  package consuming func succeed(_ offset: Int64) {
    _ = request.answer { fuse_reply_lseek($0, off_t(offset)) }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }

  /// Answers with the value that `body` returns, or with the error that it throws.
  package consuming func answer(_ body: () throws(Errno) -> Int64) {
    let offset: Int64
    do {
      offset = try body()
    } catch {
      return fail(error)
    }
    succeed(offset)
  }
}

/// The answer to ioctl.
///
/// Valid replies: a result with the bytes for the caller, an error. Source: `fuse_reply_ioctl()`.
package struct IoctlReply: ~Copyable, Sendable {
  let request: PendingRequest
  /// How many bytes the caller takes at most (`out_bufsz`).
  package let outputSize: Int

  package consuming func succeed(_ result: Int32, output: [UInt8] = []) {
    let size = min(output.count, outputSize)
    _ = request.answer { request in
      output.withUnsafeBytes { fuse_reply_ioctl(request, result, $0.baseAddress, size) }
    }
  }

  package consuming func fail(_ error: Errno) {
    request.fail(error)
  }
}
