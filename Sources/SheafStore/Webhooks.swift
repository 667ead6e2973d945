package import Foundation
package import SheafModel

/// A row of `webhooks`.
package struct WebhookRow: Hashable, Sendable {
  package let uuid: UUID
  package let account: Int64
  package let url: String
  package let secret: String
  /// JSON array of patterns.
  package let types: String
  package let created: Timestamp

  package init(uuid: UUID, account: Int64, url: String, secret: String, types: String, created: Timestamp) {
    self.uuid = uuid
    self.account = account
    self.url = url
    self.secret = secret
    self.types = types
    self.created = created
  }
}

extension StoreTransaction {
  /// All webhooks, oldest first.
  package func webhooks() throws -> [WebhookRow] {
    try all("SELECT uuid, account, url, secret, types, created FROM webhooks ORDER BY id") { row in
      try WebhookRow(
        uuid: row.uuid(0), account: row[1], url: row[2], secret: row[3], types: row[4],
        created: Timestamp(nanoseconds: row[5]))
    }
  }

  package func insert(_ webhook: WebhookRow) throws {
    try run(
      "INSERT INTO webhooks (uuid, account, url, secret, types, created) VALUES (?,?,?,?,?,?)",
      webhook.uuid.bytes, webhook.account, webhook.url, webhook.secret, webhook.types,
      webhook.created.nanoseconds)
  }

  /// Removes a webhook of an account; returns whether there was one.
  package func deleteWebhook(_ uuid: UUID, of account: Int64) throws -> Bool {
    try run("DELETE FROM webhooks WHERE uuid = ? AND account = ?", uuid.bytes, account)
    return try changes > 0
  }

  package func deleteWebhooks(of account: Int64) throws { try run("DELETE FROM webhooks WHERE account = ?", account) }
}
