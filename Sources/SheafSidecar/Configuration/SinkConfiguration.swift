package import SheafModel

/// One sink as a person configured it.
package struct SinkConfiguration: Sendable, Equatable {
  /// What to do with events.
  package enum Target: Sendable, Equatable {
    case webhook(url: String, secrets: [WebhookSecret])
    case output
    case desktop
    case exec(command: String)

    /// The word of the configuration.
    package var kind: String {
      switch self {
      case .webhook: "webhook"
      case .output: "stdout"
      case .desktop: "desktop"
      case .exec: "exec"
      }
    }
  }

  /// Unique in a configuration: position and retries hang on it.
  package var name: String
  package var target: Target
  package var filter = EventFilter()
  /// Whose view of the library the sink has; nil for the library's own.
  package var account: AccountHandle?
  /// Events in one request at most.
  package var batch = 1
  /// Of a request or a command, in seconds.
  package var timeout: Double
  /// Whether to begin with the next event rather than with the oldest that is kept.
  package var beginsNow: Bool
  package var schedule = RetrySchedule()

  package init(name: String, target: Target) {
    self.name = name
    self.target = target
    switch target {
    case .webhook, .output: (timeout, beginsNow) = (15, false)
    case .exec: (timeout, beginsNow) = (60, false)
    case .desktop:
      (timeout, beginsNow) = (10, true)
      // Nobody wants the notices of days ago.
      schedule.patience = 600
    }
  }
}

/// What a sidecar does.
package struct SidecarConfiguration: Sendable, Equatable {
  /// Path of the library; nil for the person's own.
  package var library: String?
  /// Path of the file that holds positions; nil for the person's own.
  package var state: String?
  package var sinks: [SinkConfiguration] = []
  /// Whether to serve the webhooks that accounts registered through the API, at public addresses alone.
  package var servesAccounts = false

  package init() {}

  /// - Throws: ``SheafError`` of kind `invalid` where it makes no sense.
  package func check() throws(SheafError) {
    guard !sinks.isEmpty || servesAccounts else {
      throw SheafError(
        .invalid, subject: "sheaf-sidecar", reason: "has nowhere to deliver to",
        advice: "name a sink: --webhook URL, --stdout, --desktop, --exec COMMAND, --account-webhooks or --config FILE")
    }
    var names: Set<String> = []
    for sink in sinks {
      guard names.insert(sink.name).inserted else {
        throw SheafError(
          .invalid, subject: "sink \(sink.name.printable)", reason: "is there twice", advice: "give each its own name")
      }
      if case .webhook(let url, let secrets) = sink.target {
        guard let scheme = url.split(separator: ":").first?.lowercased(), ["http", "https"].contains(scheme),
          url.contains("://")
        else {
          throw SheafError(.invalid, subject: url.printable, reason: "is no URL of a webhook", advice: "give https://…")
        }
        guard secrets.count <= 2 else {
          throw SheafError(
            .invalid, subject: "sink \(sink.name.printable)", reason: "has more than two secrets",
            advice: "give the new one and the one before")
        }
      }
      guard (1...1000).contains(sink.batch), sink.timeout > 0, sink.timeout <= 3600, sink.schedule.base > 0,
        sink.schedule.cap >= sink.schedule.base, sink.schedule.patience >= 0
      else {
        throw SheafError(
          .invalid, subject: "sink \(sink.name.printable)",
          reason: "has a batch that is not 1 to 1000, or times that make no sense")
      }
    }
  }
}
