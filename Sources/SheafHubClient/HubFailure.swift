package import SheafModel
package import SheafWire

/// Why a hub did not do what it was asked for: which hub, the reason, and what to do about it.
package struct HubFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the caller can do about it.
  package enum Kind: Hashable, Sendable {
    /// The hub does not know the device: it was removed. Another try does not help.
    case deviceRemoved
    /// The device was removed, and is to destroy what it has of the account.
    case deviceWiped
    /// The hub has another key than the one that the link named. Another try does not help.
    case certificateChanged
    /// Nobody whom this machine trusts vouches for the hub's certificate, or this machine's clock is wrong.
    case notTrusted
    /// The hub sends its devices elsewhere.
    case moved
    /// It cannot be reached, breaks off or does not answer in time. It may come back.
    case unreachable
    /// It asks to be left alone for a while: its store is away, it is ending, or too much is asked of it.
    case busy
    /// The hub refuses, and says why.
    case refused(Problem.Kind)
    /// What it answers is not what hubs answer.
    case nonsense
  }

  package let kind: Kind
  /// The hub, by its address.
  package let hub: String
  package let reason: String
  package let advice: String?
  /// Seconds after which the hub wants to be asked again.
  package let retryAfter: Double?

  init(_ kind: Kind, _ hub: HubIdentity, _ reason: String, advice: String? = nil, retryAfter: Double? = nil) {
    self.kind = kind
    self.hub = hub.description
    self.reason = reason.printable
    self.advice = advice
    self.retryAfter = retryAfter
  }

  package var description: String { sheafError.description }

  /// The failure in the words of everything else.
  package var sheafError: SheafError {
    let kind: SheafError.Kind =
      switch kind {
      case .deviceRemoved, .deviceWiped, .certificateChanged, .notTrusted: .accessDenied
      case .moved, .unreachable, .busy: .unavailable
      case .refused(.gone): .gone
      case .refused(.notFound): .notFound
      case .refused(.forbidden), .refused(.unauthorized): .accessDenied
      case .refused(.quota), .refused(.full): .noSpace
      case .refused, .nonsense: .inputOutput
      }
    return SheafError(kind, subject: hub, reason: reason, advice: advice, times: times)
  }

  /// The times in the reason, which hubs tell in UTC; nil where there are none.
  package var times: [Timestamp]? {
    let times = reason.matches(of: #/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z/#).compactMap {
      Timestamp(rfc3339: String($0.output))
    }
    return times.isEmpty ? nil : times
  }
}
