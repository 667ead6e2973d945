package import NIOCore

/// Cuts a stream of bytes into lines.
package struct LineBuffer {
  private var buffer = ByteBuffer()
  /// Bytes at the beginning that have no newline.
  private var searched = 0

  package init() {}

  package mutating func append(_ bytes: ByteBuffer) {
    var bytes = bytes
    buffer.discardReadBytes()
    buffer.writeBuffer(&bytes)
  }

  /// The next whole line without its newline; nil until more bytes come.
  package mutating func next() -> ByteBuffer? {
    // A long line comes in very many pieces.
    guard let newline = buffer.readableBytesView.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) else {
      searched = buffer.readableBytes
      return nil
    }
    let line = buffer.readSlice(length: newline - buffer.readerIndex)
    buffer.moveReaderIndex(forwardBy: 1)
    searched = 0
    return line
  }
}
