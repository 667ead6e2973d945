public import FoundationEssentials

/// `GET /.well-known/sheaf`: which hub speaks for a domain, and how it is known.
///
/// A domain that has no hub at its own name answers with ``hub`` alone; the hub that it names says the rest.
public struct HubDescription: Hashable, Sendable, Codable {
  /// Where the hub is dialled: `https://ADDRESS`.
  public let hub: String
  /// The domains for which it speaks: what follows the `@` of its accounts' handles.
  public let domains: [String]?
  /// The P-256 key with which it signs requests to other hubs, an uncompressed point of 65 bytes.
  public let key: Data?

  public init(hub: String, domains: [String]?, key: Data?) {
    self.hub = hub
    self.domains = domains
    self.key = key
  }
}
