/// How delivery goes at one sink of a sidecar.
package struct SinkStatus: Hashable, Sendable, Codable {
  package var name: String
  /// `webhook`, `stdout`, `desktop` or `exec`.
  package var kind: String
  /// Sequence number of the last event that the sink is done with.
  package var position: Int64
  /// Events in the log after it, whether the sink wants them or not; the library fills it in.
  package var undelivered: Int64?
  /// Events that arrived.
  package var delivered: Int64
  /// Attempts that failed.
  package var failed: Int64
  /// Events that were given up.
  package var deadLetters: Int64
  /// What the last attempt failed with, until one succeeds.
  package var failure: String?
  /// When the next attempt is due, after a failure.
  package var nextAttempt: Timestamp?
  /// Why no attempts are made until a person resumes the sink.
  package var disabled: String?

  package init(name: String, kind: String) {
    self.name = name
    self.kind = kind
    position = 0
    delivered = 0
    failed = 0
    deadLetters = 0
  }

  private enum CodingKeys: CodingKey {
    case name, kind, position, undelivered, delivered, failed, deadLetters, failure, nextAttempt, disabled
  }

  /// Encodes what is absent as null.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(kind, forKey: .kind)
    try container.encode(position, forKey: .position)
    try container.encode(undelivered, forKey: .undelivered)
    try container.encode(delivered, forKey: .delivered)
    try container.encode(failed, forKey: .failed)
    try container.encode(deadLetters, forKey: .deadLetters)
    try container.encode(failure, forKey: .failure)
    try container.encode(nextAttempt, forKey: .nextAttempt)
    try container.encode(disabled, forKey: .disabled)
  }
}

/// What a sidecar tells the library of its sinks.
package struct SidecarReport: Hashable, Sendable, Codable {
  package var pid: Int32
  package var sinks: [SinkStatus]

  package init(pid: Int32, sinks: [SinkStatus]) {
    self.pid = pid
    self.sinks = sinks
  }
}
