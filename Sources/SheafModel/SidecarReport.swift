/// How delivery goes at one sink of a sidecar.
package struct SinkStatus: Hashable, Sendable, Codable {
  package var name: String
  /// `webhook`, `stdout`, `desktop` or `exec`.
  package var kind: String
  /// Sequence number of the last event that the sink is done with.
  package var position: Int64
  /// Events in the log after it, whether the sink wants them or not; the library fills it in.
  @OrNull package var undelivered: Int64? = nil
  /// Events that arrived.
  package var delivered: Int64
  /// Attempts that failed.
  package var failed: Int64
  /// Events that were given up.
  package var deadLetters: Int64
  /// What the last attempt failed with, until one succeeds.
  @OrNull package var failure: String? = nil
  /// When the next attempt is due, after a failure.
  @OrNull package var nextAttempt: Timestamp? = nil
  /// Why no attempts are made until a person resumes the sink.
  @OrNull package var disabled: String? = nil

  package init(name: String, kind: String) {
    self.name = name
    self.kind = kind
    position = 0
    delivered = 0
    failed = 0
    deadLetters = 0
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
