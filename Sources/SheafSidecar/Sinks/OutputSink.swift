import Dispatch
import Glibc
import NIOCore
package import SheafModel
import Synchronization

/// Writes each event as a line of JSON to a descriptor, such as standard output.
package final class OutputSink: Sink {
  package let account: AccountHandle?
  package var batch: Int { 1000 }
  private let descriptor: Int32
  /// A pipe that nobody empties holds up this queue and nothing else.
  private let queue = DispatchQueue(label: "sheaf.output")
  /// Whether the last write left a part of a line.
  private let isTorn = Atomic(false)

  package init(descriptor: Int32 = STDOUT_FILENO, account: AccountHandle?) {
    self.descriptor = descriptor
    self.account = account
  }

  package func deliver(_ deliveries: [Delivery]) async throws {
    var lines = ByteBuffer()
    for delivery in deliveries {
      lines.writeImmutableBuffer(delivery.json)
      lines.writeInteger(UInt8(ascii: "\n"))
    }
    let stop = Stop()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        queue.async { [lines] in continuation.resume(with: Result { try self.write(lines, stop) }) }
      }
    } onCancel: {
      stop.isAsked.store(true, ordering: .relaxed)
    }
  }

  /// Tells the writing to end before it is done.
  private final class Stop: Sendable {
    let isAsked = Atomic(false)
  }

  /// Bytes that a pipe takes without waiting once poll(2) says that there is room: `PIPE_BUF`.
  private static let portion = 4096
  /// Milliseconds between two checks whether to stop.
  private static let lookInterval: Int32 = 250

  private func write(_ lines: ByteBuffer, _ stop: Stop) throws {
    var lines = lines
    // A broken-off part stays a line of its own.
    if isTorn.load(ordering: .relaxed) { lines = ByteBuffer(string: "\n" + String(buffer: lines)) }
    try lines.withUnsafeReadableBytes { bytes in
      var rest = bytes[...]
      defer { if rest.count < bytes.count { isTorn.store(!rest.isEmpty, ordering: .relaxed) } }
      while !rest.isEmpty {
        var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&room, 1, Self.lookInterval) > 0 else {
          if stop.isAsked.load(ordering: .relaxed) { throw DeliveryFailure("nobody empties the output") }
          continue
        }
        let count = Glibc.write(
          descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, min(rest.count, Self.portion))
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EPIPE || errno == EBADF {
          throw DeliveryFailure("nobody reads the output any more", .end)
        } else if errno != EINTR, errno != EAGAIN {
          throw DeliveryFailure("the output cannot be written: \(String(cString: strerror(errno)))")
        }
      }
    }
  }
}
