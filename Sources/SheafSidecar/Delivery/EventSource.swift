import SheafModel

/// Where events come from: a library's process, or a hub.
protocol EventSource: Sendable {
  /// The logs, once it answers.
  ///
  /// - Throws: `CancellationError`.
  func answering() async throws -> any EventLogs

  /// Tells it how delivery goes.
  func report(_ report: SidecarReport) async

  func close() async
}

/// The logs of a source that answers. Every call throws ``SheafError``, of kind `unavailable` if it broke off.
protocol EventLogs: Sendable {
  /// What positions in them are stored under.
  var id: String { get }

  /// The places after the newest events, for a sink that begins with the next one.
  func newest(for sink: any Sink) async throws -> [LogPlace]

  /// The events after the positions of a record, and those to come.
  func follow(for sink: any Sink, from record: SidecarState.Record) async throws -> any EventFlow
}

/// Events in their order; read by one task.
protocol EventFlow {
  /// The next element; nil once the source has ended it.
  mutating func next() async throws -> EventElement?

  /// The next element, if it is here already.
  mutating func nextReceived() throws -> EventElement?
}

/// An element of an ``EventFlow``.
enum EventElement: Sendable {
  /// An event, and the place after it.
  case event(Delivery, LogPlace)
  /// A log was read up to a place.
  case position(LogPlace)
  /// Nothing happened for a while.
  case silence
}
