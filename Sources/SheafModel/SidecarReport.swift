/// The status of one sink of a sidecar.
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
  /// The failure of the last attempt, until one succeeds.
  @OrNull package var failure: String? = nil
  /// When the next attempt is due, after a failure.
  @OrNull package var nextAttempt: Timestamp? = nil
  /// The reason why the sink makes no attempts until a person resumes it.
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

/// The report of a sidecar to the library about its sinks.
package struct SidecarReport: Hashable, Sendable, Codable {
  package var pid: Int32
  package var sinks: [SinkStatus]

  /// Sinks of one sidecar, and bytes of each of their texts, at most.
  private static let sinkLimit = 4096
  private static let textLimit = 8192

  package init(pid: Int32, sinks: [SinkStatus]) {
    self.pid = pid
    self.sinks = sinks
  }

  /// - Throws: ``SheafError`` of kind `invalid` for values that no sidecar reports, since readers calculate with the
  ///   numbers.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    pid = try container.decode(Int32.self, forKey: .pid)
    sinks = try container.decode([SinkStatus].self, forKey: .sinks)
    guard pid > 0 else { throw SheafError(.invalid, subject: "pid \(pid)", reason: "is no process") }
    guard sinks.count <= Self.sinkLimit else {
      throw SheafError(.invalid, subject: "sinks", reason: "are more than \(Self.sinkLimit)")
    }
    for sink in sinks {
      let subject = "sink \(sink.name.printable)"
      guard [sink.position, sink.delivered, sink.failed, sink.deadLetters].allSatisfy({ $0 >= 0 }) else {
        throw SheafError(.invalid, subject: subject, reason: "has a number below 0")
      }
      let texts = [sink.name, sink.kind, sink.failure ?? "", sink.disabled ?? ""]
      guard texts.allSatisfy({ $0.utf8.count <= Self.textLimit }) else {
        throw SheafError(.invalid, subject: subject, reason: "has a text of more than \(Self.textLimit) bytes")
      }
    }
  }
}
