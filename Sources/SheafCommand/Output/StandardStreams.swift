import Glibc
import SheafModel

/// The reader of standard output has gone; the command ends without a word.
struct OutputClosed: Error {}

/// Standard output, with every failure noticed.
enum StandardOutput {
  static func write(_ text: String) throws { try write(Array(text.utf8)) }

  /// Writes text and a newline.
  static func line(_ text: String) throws { try write(text + "\n") }

  /// - Throws: ``OutputClosed``; ``SheafError`` for a full disk and the like.
  static func write(_ bytes: some Collection<UInt8>) throws {
    try write(bytes, to: STDOUT_FILENO, named: "standard output")
  }

  /// Writes all bytes to a descriptor.
  static func write(_ bytes: some Collection<UInt8>, to descriptor: CInt, named name: String) throws {
    let whole = bytes.withContiguousStorageIfAvailable { storage in
      Result { try writeAll(UnsafeRawBufferPointer(storage), to: descriptor, named: name) }
    }
    if let whole { return try whole.get() }
    try Array(bytes).withUnsafeBytes { try writeAll($0, to: descriptor, named: name) }
  }

  private static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt, named name: String) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      guard written < 0 else {
        rest = rest.dropFirst(written)
        continue
      }
      switch errno {
      case EINTR: continue
      // Another process with the same pipe may have made it non-blocking.
      case EAGAIN:
        var ready = pollfd(fd: descriptor, events: CShort(POLLOUT), revents: 0)
        poll(&ready, 1, -1)
      case EPIPE: throw OutputClosed()
      default: throw SheafError(systemError: errno, subject: name)
      }
    }
  }
}

/// Standard error, where a failure to write goes unnoticed.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  static func write(_ text: String) { try? StandardOutput.write(Array(text.utf8), to: STDERR_FILENO, named: "") }
}
