import Dispatch
import Glibc
import NIOCore
package import SheafModel

/// Writes each event as a line of JSON to a descriptor, standard output for one.
package final class OutputSink: Sink {
  package let account: AccountHandle?
  package var batch: Int { 1000 }
  private let descriptor: Int32
  /// A pipe that nobody empties holds up this queue and nothing else.
  private let queue = DispatchQueue(label: "sheaf.output")

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
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      queue.async { [descriptor, lines] in
        continuation.resume(with: Result { try Self.write(lines, to: descriptor) })
      }
    }
  }

  private static func write(_ lines: ByteBuffer, to descriptor: Int32) throws {
    try lines.withUnsafeReadableBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EPIPE || errno == EBADF {
          throw DeliveryFailure("nobody reads the output any more", .end)
        } else if errno != EINTR {
          throw DeliveryFailure("the output cannot be written: \(String(cString: strerror(errno)))")
        }
      }
    }
  }
}
