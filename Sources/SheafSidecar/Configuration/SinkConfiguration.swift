import Crypto
import Foundation
package import SheafModel
import SheafWire

/// One sink as a person configured it.
package struct SinkConfiguration: Sendable, Equatable {
  /// The target of events.
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

  /// Unique in a configuration: position and retries are stored under it.
  package var name: String
  /// Its former name, for a webhook that was named by its whole URL; nil for all others.
  package var formerName: String?
  package var target: Target
  package var filter = EventFilter()
  /// The account whose view of the library the sink has; nil for the library's own.
  package var account: AccountHandle?
  /// The most events in one request.
  package var batch = 1
  /// The time limit of a request or a command, in seconds.
  package var timeout: Double
  /// Whether to begin with the next event rather than the oldest that is kept.
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

  /// A webhook without a name other than its URL.
  ///
  /// Names stand in logs, metrics and `status`, and anything after a URL's host may be a secret. So the name has only a
  /// hash of that, and of a user in front of the host, which tells webhooks apart.
  package init(webhook url: String, secrets: [WebhookSecret]) {
    let digest = SHA256.hash(data: Data(url.utf8)).prefix(4)
    let hash = Hexadecimal.text(of: digest)
    let parts = URLComponents(string: url)
    let port = parts?.port.map { ":\($0)" } ?? ""
    self.init(
      name: "webhook \(parts?.scheme ?? "")://\(parts?.host ?? "")\(port) (\(hash))",
      target: .webhook(url: url, secrets: secrets))
    formerName = "webhook \(url)"
  }
}

/// The configuration of a sidecar.
package struct SidecarConfiguration: Sendable, Equatable {
  /// Path of the library; nil for the person's own.
  package var library: String?
  /// Whether a hub's events are delivered rather than a library's.
  package var isOfHub = false
  /// Path of the file that makes this machine a device of the hub; nil for the person's own.
  package var device: String?
  /// Path of the file that holds positions; nil for the person's own.
  package var state: String?
  package var sinks: [SinkConfiguration] = []
  /// Whether to serve the webhooks that accounts registered through the API, at public addresses only.
  package var servesAccounts = false

  package init() {}

  /// - Throws: ``SheafError`` of kind `invalid` if it makes no sense.
  package func check() throws(SheafError) {
    guard !sinks.isEmpty || servesAccounts else {
      throw SheafError(
        .invalid, reason: "has nowhere to deliver to",
        advice: "name a sink: --webhook URL, --stdout, --desktop, --exec COMMAND, --account-webhooks or --config FILE")
    }
    if isOfHub { try checkHub() }
    var names: Set<String> = []
    for sink in sinks {
      guard names.insert(sink.name).inserted else { throw Self.twice("sink \(sink.name.printable)") }
      if let problem = sink.problem {
        throw SheafError(
          .invalid, subject: "sink \(sink.name.printable): \(problem.key)", reason: problem.reason,
          advice: problem.advice)
      }
    }
  }

  /// A hub tells a device what its account sees, and nothing of others.
  private func checkHub() throws(SheafError) {
    if library != nil {
      throw SheafError(
        .invalid, subject: "library", reason: "is named, and a hub", advice: "run one sidecar for each")
    }
    if servesAccounts {
      throw SheafError(
        .invalid, subject: "account-webhooks", reason: "are those of a library, and a hub has none",
        advice: "name the webhook here")
    }
    if let sink = sinks.first(where: { $0.account != nil }) {
      throw SheafError(
        .invalid, subject: "sink \(sink.name.printable): account",
        reason: "cannot be chosen at a hub, which tells what the device's account sees",
        advice: "leave it out, or connect a device of that account")
    }
  }

  /// The error for a second sink with the same name.
  static func twice(_ subject: String) -> SheafError {
    SheafError(.invalid, subject: subject, reason: "is there twice", advice: "give each sink its own name")
  }
}

extension SinkConfiguration {
  /// A problem of the sink, by the key of the configuration file.
  struct Problem {
    let key: String
    let reason: String
    var advice: String?
  }

  /// The first problem; nil if there is none.
  var problem: Problem? {
    if name.isEmpty { return Problem(key: "name", reason: "is empty") }
    switch target {
    case .webhook(let url, let secrets):
      guard let parts = URL(string: url), ["http", "https"].contains(parts.scheme?.lowercased()),
        !(parts.host ?? "").isEmpty
      else {
        return Problem(key: "webhook", reason: "\(url.printable) is no URL of a webhook", advice: "give https://…")
      }
      if secrets.count > 2 {
        return Problem(
          key: "secrets", reason: "are more than two",
          advice: "give the new one and the one before, secret-file included")
      }
    case .exec(let command) where command.allSatisfy(\.isWhitespace):
      return Problem(key: "exec", reason: "is empty")
    default: break
    }
    if let pattern = filter.types.first(where: { !EventFilter.isOfAType($0) }) {
      return Problem(
        key: "types", reason: "\(pattern.printable) matches no type of event",
        advice: "there are " + EventType.allCases.map(\.rawValue).joined(separator: ", "))
    }
    if !(1...1000).contains(batch) { return Problem(key: "batch", reason: "is not 1 to 1000") }
    if !(timeout > 0 && timeout <= 3600) { return Problem(key: "timeout", reason: "is not up to 3600 seconds") }
    if !(schedule.base > 0) { return Problem(key: "retry-base", reason: "is not more than 0 seconds") }
    if !(schedule.cap >= schedule.base) { return Problem(key: "retry-cap", reason: "is less than retry-base") }
    if !(schedule.patience >= 0) { return Problem(key: "retry-for", reason: "is less than 0 seconds") }
    return nil
  }
}
