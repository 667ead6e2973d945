package import NIOCore

/// Takes a stream of Server-Sent Events apart (WHATWG HTML, section 9.2): the data of each message, and comments, which
/// say that the stream lives.
package struct ServerSentText {
  package enum Message: Hashable, Sendable {
    case data(ByteBuffer)
    case comment
  }

  /// The error for a message that has no end.
  package struct TooLong: Error {}

  /// Bytes of a message, and of a line.
  private let longest: Int
  private var line = ByteBuffer()
  private var data: ByteBuffer?
  private var input = ByteBuffer()

  package init(longest: Int) { self.longest = longest }

  package mutating func append(_ bytes: ByteBuffer) {
    var bytes = bytes
    input.discardReadBytes()
    input.writeBuffer(&bytes)
  }

  /// The next message; nil until more bytes come.
  ///
  /// - Throws: ``TooLong``.
  package mutating func next() throws -> Message? {
    while let newline = input.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
      let length = newline - input.readerIndex
      try take(length)
      input.moveReaderIndex(forwardBy: 1)
      if line.readableBytesView.last == UInt8(ascii: "\r") { line.moveWriterIndex(to: line.writerIndex - 1) }
      defer { line.clear() }
      if let message = try end() { return message }
    }
    try take(input.readableBytes)
    return nil
  }

  /// Moves bytes to the line that is not complete yet.
  private mutating func take(_ length: Int) throws {
    guard line.readableBytes + length <= longest else { throw TooLong() }
    if var part = input.readSlice(length: length) { line.writeBuffer(&part) }
  }

  /// Takes a whole line; an empty one ends a message.
  private mutating func end() throws -> Message? {
    guard line.readableBytes > 0 else {
      defer { data = nil }
      return data.map(Message.data)
    }
    if line.readableBytesView.first == UInt8(ascii: ":") { return .comment }
    guard line.readableBytesView.starts(with: "data:".utf8) else { return nil }
    line.moveReaderIndex(forwardBy: 5)
    if line.readableBytesView.first == UInt8(ascii: " ") { line.moveReaderIndex(forwardBy: 1) }
    var joined = data ?? ByteBuffer()
    if data != nil { joined.writeInteger(UInt8(ascii: "\n")) }
    guard joined.readableBytes + line.readableBytes <= longest else { throw TooLong() }
    joined.writeImmutableBuffer(line.slice())
    data = joined
    return nil
  }
}
