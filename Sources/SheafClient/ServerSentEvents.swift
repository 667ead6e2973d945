import AsyncHTTPClient
import NIOCore

/// A stream of Server-Sent Events (WHATWG HTML, section 9.2), as far as a library writes them; read by one task.
struct ServerSentEvents {
  enum Message {
    /// The lines between two empty lines.
    case message(id: Int64?, data: ByteBuffer?)
    case comment
  }

  private let transport: Transport
  private var bytes: HTTPClientResponse.Body.AsyncIterator
  private var lines = LineBuffer()
  private var id: Int64?
  private var data: ByteBuffer?

  init(_ transport: Transport, _ resource: String, query: String) async throws {
    self.transport = transport
    bytes = try await transport.open(resource, query: query).makeAsyncIterator()
  }

  /// The next message; nil once the stream has ended.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` if the connection broke.
  mutating func next() async throws -> Message? {
    while true {
      if let message = nextReceived() { return message }
      guard let more = try await read() else { return nil }
      lines.append(more)
    }
  }

  /// The next message, if it is here already.
  mutating func nextReceived() -> Message? {
    while let line = lines.next() {
      if let message = take(line) { return message }
    }
    return nil
  }

  private mutating func read() async throws -> ByteBuffer? {
    do {
      return try await bytes.next()
    } catch let error as CancellationError {
      throw error
    } catch {
      return try await transport.described { throw error }
    }
  }

  /// Takes one line; an empty one ends a message.
  private mutating func take(_ line: ByteBuffer) -> Message? {
    var line = line
    guard line.readableBytes > 0 else {
      defer { (id, data) = (nil, nil) }
      return id == nil && data == nil ? nil : .message(id: id, data: data)
    }
    if line.readableBytesView.starts(with: "data: ".utf8) {
      line.moveReaderIndex(forwardBy: 6)
      data = line
    } else if line.readableBytesView.starts(with: "id: ".utf8) {
      line.moveReaderIndex(forwardBy: 4)
      id = Int64(String(buffer: line))
    } else if line.readableBytesView.first == UInt8(ascii: ":") {
      return .comment
    }
    return nil
  }
}
