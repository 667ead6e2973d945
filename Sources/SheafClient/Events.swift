import FoundationEssentials
package import NIOCore
package import SheafModel

/// The event log of a library, notices and comments.
extension SheafClient {
  /// The view of the log that a reader asks for.
  package enum EventReader: Hashable, Sendable {
    /// The view of the address's account (nil: the library's default account), limited to the item at its path if it
    /// has one.
    case account(ItemAddress)
    /// The library's own view: everything.
    case library

    fileprivate var resource: String { self == .library ? "/v1/library/events" : "/v1/events" }

    fileprivate func query(_ more: [String]) -> String {
      guard case .account(let address) = self, !address.query.isEmpty else { return more.joined(separator: "&") }
      return ([address.query] + more).joined(separator: "&")
    }
  }

  /// The events after a sequence number, oldest first.
  ///
  /// - Parameter position: Nil to begin with the oldest event that is kept.
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
    return EventStream(try await ServerSentEvents(transport, reader.resource + "/stream", query: query))
  }

  // MARK: Webhooks of accounts

  package func webhooks(_ address: ItemAddress) async throws -> [Webhook] {
    try await transport.fetch(.get, "/v1/webhooks", query: address.query)
  }

  /// Adds a webhook, which posts the account's events to a URL; only this answer has the secret.
  package func addWebhook(_ address: ItemAddress, _ request: WebhookRequest) async throws -> Webhook {
    try await transport.fetch(.post, "/v1/webhooks", query: address.query, body: request)
  }

  package func removeWebhook(_ address: ItemAddress, id: String) async throws {
    try await transport.perform(.delete, "/v1/webhooks/" + PercentCoding.encode(id.utf8), query: address.query)
  }

  /// Passes all accounts' webhooks to `body`, now and after each change, until the library's process ends.
  package func followWebhooks(_ body: ([Webhook]) async throws -> Void) async throws {
    var messages = try await ServerSentEvents(transport, "/v1/library/webhooks/stream", query: "")
    while let message = try await messages.next() {
      if case .message(_, let data?) = message { try await body(try Transport.decode(data)) }
    }
  }

  // MARK: News

  /// Numbers in the text format of Prometheus.
  package func metrics() async throws -> String {
    var bytes = ByteBuffer()
    try await transport.stream(.get, "/v1/metrics") { bytes.writeImmutableBuffer($0) }
    return String(buffer: bytes)
  }

  /// Tells how delivery goes.
  package func report(_ report: SidecarReport) async throws {
    try await transport.perform(.put, "/v1/sidecar", body: report)
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

/// A library's events in their order; read by one task.
package struct EventStream {
  /// An element of the stream.
  package enum Element: Sendable {
    /// An event, with the bytes of its JSON as the library wrote them.
    case event(Event, json: ByteBuffer)
    /// The log has been read up to this sequence number.
    case position(Int64)
    /// Nothing happened for a while.
    case silence
  }

  private var messages: ServerSentEvents

  fileprivate init(_ messages: ServerSentEvents) { self.messages = messages }

  /// The next element; nil once the library has ended the stream, as an ending process does.
  ///
  /// - Throws: ``SheafError`` of kind `unavailable` if the connection broke.
  package mutating func next() async throws -> Element? { try await messages.next().map(element) }

  /// The next element, if it is here already.
  package mutating func nextReceived() throws -> Element? { try messages.nextReceived().map(element) }

  private func element(_ message: ServerSentEvents.Message) throws -> Element {
    switch message {
    case .message(let id, let data?):
      var event: Event = try Transport.decode(data)
      if let id { event.position = id }
      return .event(event, json: data)
    case .message(let id?, nil): return .position(id)
    default: return .silence
    }
  }
}
