import AsyncHTTPClient
import FoundationEssentials
package import NIOCore
package import SheafModel

/// The event log of a library, notices and comments.
extension SheafClient {
  /// Whose log a reader asks for.
  package enum EventReader: Hashable, Sendable {
    /// What the account of the address sees (nil: the library's first account), of the item at its path if it has one.
    case account(ItemAddress)
    /// What the library itself sees: everything.
    case library

    fileprivate var resource: String { self == .library ? "/v1/library/events" : "/v1/events" }

    fileprivate func query(_ more: [String]) -> String {
      guard case .account(let address) = self, !address.query.isEmpty else { return more.joined(separator: "&") }
      return ([address.query] + more).joined(separator: "&")
    }
  }

  /// The events after a sequence number, oldest first.
  ///
  /// - Parameter position: Nil to begin with the oldest that is kept.
  /// - Throws: ``SheafError``, of kind `gone` where retention dropped events after `position`.
  package func events(_ reader: EventReader, after position: Int64?, limit: Int) async throws -> EventPage {
    let query = reader.query(["limit=\(limit)"] + (position.map { ["after=\($0)"] } ?? []))
    return try await transport.fetch(.get, reader.resource, query: query)
  }

  /// The latest events that an account sees, oldest first.
  package func latestEvents(_ address: ItemAddress, limit: Int) async throws -> [Event] {
    let query = EventReader.account(address).query(["limit=\(limit)"])
    return try await transport.fetch(.get, "/v1/events/latest", query: query)
  }

  /// The events after a sequence number, and those to come, for as long as they are read.
  ///
  /// - Throws: As ``events(_:after:limit:)``.
  package func follow(_ reader: EventReader, after position: Int64?) async throws -> EventStream {
    let query = reader.query(position.map { ["after=\($0)"] } ?? [])
    return EventStream(
      lines: try await transport.open(reader.resource + "/stream", query: query).makeAsyncIterator(),
      transport: transport)
  }

  /// Numbers in the text format of Prometheus.
  package func metrics() async throws -> String {
    var bytes = ByteBuffer()
    try await transport.stream(.get, "/v1/metrics") { bytes.writeImmutableBuffer($0) }
    return String(buffer: bytes)
  }

  /// Tells how delivery goes.
  package func report(_ report: SidecarReport) async throws {
    try await transport.perform(.put, "/v1/library/sidecar", body: report)
  }

  package func notices(_ address: ItemAddress) async throws -> NoticeList {
    try await transport.fetch(.get, "/v1/notices", query: address.query)
  }

  /// Clears the notices of events up to a sequence number.
  package func clearNotices(_ address: ItemAddress, through sequence: Int64) async throws {
    let query = EventReader.account(address).query(["through=\(sequence)"])
    try await transport.perform(.delete, "/v1/notices", query: query)
  }

  package func comment(_ item: ItemAddress, text: String) async throws -> ItemComment {
    try await transport.fetch(.post, "/v1/items/comments", query: item.query, body: CommentRequest(text: text))
  }
}

/// Events as a library tells them (Server-Sent Events); read by one task.
package struct EventStream {
  /// What came.
  package enum Element: Sendable {
    /// An event, with the bytes of its JSON as the library wrote them.
    case event(Event, json: ByteBuffer)
    /// The log has been read up to this sequence number.
    case position(Int64)
    /// Nothing happened for a while.
    case silence
  }

  fileprivate var lines: HTTPClientResponse.Body.AsyncIterator
  fileprivate let transport: Transport
  private var buffer = LineBuffer()
  private var id: Int64?
  private var data: ByteBuffer?

  fileprivate init(lines: HTTPClientResponse.Body.AsyncIterator, transport: Transport) {
    self.lines = lines
    self.transport = transport
  }

  /// What comes next; nil where the library ended the stream, as a process does that ends.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` where the connection broke.
  package mutating func next() async throws -> Element? {
    while true {
      if let element = try nextReceived() { return element }
      guard let bytes = try await read() else { return nil }
      buffer.append(bytes)
    }
  }

  /// What comes next, if it is here already.
  package mutating func nextReceived() throws -> Element? {
    while let line = buffer.next() {
      if let element = try take(line) { return element }
    }
    return nil
  }

  private mutating func read() async throws -> ByteBuffer? {
    do {
      return try await lines.next()
    } catch let error as CancellationError {
      throw error
    } catch {
      return try await transport.described { throw error }
    }
  }

  /// Takes one line of the stream; an empty one ends an event.
  private mutating func take(_ line: ByteBuffer) throws -> Element? {
    var line = line
    guard line.readableBytes > 0 else {
      defer { (id, data) = (nil, nil) }
      if let data { return .event(try Transport.decode(data), json: data) }
      return id.map { .position($0) }
    }
    if line.readableBytesView.starts(with: "data: ".utf8) {
      line.moveReaderIndex(forwardBy: 6)
      data = line
    } else if line.readableBytesView.starts(with: "id: ".utf8) {
      line.moveReaderIndex(forwardBy: 4)
      id = Int64(String(buffer: line))
    } else if line.readableBytesView.first == UInt8(ascii: ":") {
      return .silence
    }
    return nil
  }
}
