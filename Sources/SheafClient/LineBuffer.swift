package import NIOCore

/// Cuts a stream of bytes into lines.
package struct LineBuffer {
  private var buffer = ByteBuffer()

  package init() {}

  package mutating func append(_ bytes: ByteBuffer) {
    var bytes = bytes
    buffer.discardReadBytes()
    buffer.writeBuffer(&bytes)
  }

  /// The next whole line without its newline; nil until more bytes come.
  package mutating func next() -> ByteBuffer? {
    guard let newline = buffer.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let line = buffer.readSlice(length: newline - buffer.readerIndex)
    buffer.moveReaderIndex(forwardBy: 1)
    return line
  }
}
