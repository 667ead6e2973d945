/// A URL to which an account's events are posted.
package struct Webhook: Hashable, Sendable, Codable {
  /// UUID in lower case.
  package let id: String
  package let account: AccountHandle
  package let url: String
  /// Patterns of event types; empty for all.
  package let types: [String]
  package let created: Timestamp
  /// `whsec_` and base64; only the answer to its making and the sidecar's stream have it, otherwise it is null.
  @OrNull package var secret: String?

  package init(
    id: String, account: AccountHandle, url: String, types: [String], created: Timestamp, secret: String?
  ) {
    self.id = id
    self.account = account
    self.url = url
    self.types = types
    self.created = created
    self.secret = secret
  }
}

/// Asks for a webhook.
package struct WebhookRequest: Hashable, Sendable, Codable {
  package let url: String
  /// Nil for all.
  package let types: [String]?

  package init(url: String, types: [String]? = nil) {
    self.url = url
    self.types = types
  }
}
