import Foundation
package import SheafModel
import SheafStore

/// Webhooks of accounts. The sidecar checks which addresses they may reach, when it connects.
///
/// Rooms: `EventObservers`.
extension Library {
  /// Webhooks of one account, patterns of one webhook, and bytes of a URL or a pattern, at most.
  private static let webhookLimit = 16
  private static let patternLimit = 32
  private static let textLimit = 2048

  /// All webhooks, with their secrets.
  package func webhooks() throws -> [Webhook] {
    try locked { try read { try $0.webhooks() }.map(webhook) }
  }

  /// An account's webhooks, without their secrets.
  package func webhooks(of handle: AccountHandle) throws -> [Webhook] {
    try locked {
      let id = try account(handle).id
      return try read { try $0.webhooks() }.filter { $0.account == id }.map { row in
        var webhook = try webhook(row)
        webhook.secret = nil
        return webhook
      }
    }
  }

  /// Registers a URL, to which the sidecar posts what the account sees. Only the answer has the secret.
  ///
  /// - Throws: `invalid` for what is no URL of the web; `notPermitted` where the account has too many.
  package func addWebhook(for handle: AccountHandle, _ request: WebhookRequest) throws -> Webhook {
    let types = request.types ?? []
    guard request.url.utf8.count <= Self.textLimit, let url = URL(string: request.url),
      ["http", "https"].contains(url.scheme?.lowercased()), let host = url.host, !host.isEmpty, url.user == nil,
      types.count <= Self.patternLimit, types.allSatisfy({ $0.utf8.count <= Self.textLimit })
    else {
      throw SheafError(
        .invalid, subject: request.url.printable, reason: "is no URL of a webhook, or has too many types",
        advice: "give https://HOST/PATH without a user name")
    }
    return try locked {
      let account = try account(handle)
      guard try read({ try $0.webhooks() }).count(where: { $0.account == account.id }) < Self.webhookLimit else {
        throw SheafError(
          .notPermitted, subject: "account \(handle)", reason: "has \(Self.webhookLimit) webhooks already",
          advice: "remove one first")
      }
      var generator = SystemRandomNumberGenerator()
      let key = Data((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
      let time = clock()
      let row = WebhookRow(
        uuid: .timeOrdered(time), account: account.id, url: request.url, secret: "whsec_" + key.base64EncodedString(),
        types: String(decoding: try JSONEncoder().encode(types), as: UTF8.self), created: time)
      try makeChange(.accounts) { try $0.rows.insert(row) }
      eventObservers.noteWebhooks()
      return try webhook(row)
    }
  }

  /// Ends a webhook of an account.
  ///
  /// - Throws: `notFound`.
  package func removeWebhook(_ id: String, of handle: AccountHandle) throws {
    try locked {
      let account = try account(handle)
      let isGone = try UUID(uuidString: id).map { uuid in
        try makeChange(.accounts, freesSpace: true) { try $0.rows.deleteWebhook(uuid, of: account.id) }
      }
      guard isGone ?? false else { throw SheafError(.notFound, subject: "webhook \(id.printable)") }
      eventObservers.noteWebhooks()
    }
  }

  private func webhook(_ row: WebhookRow) throws -> Webhook {
    Webhook(
      id: row.uuid.text, account: try handle(row.account), url: row.url,
      types: (try? JSONDecoder().decode([String].self, from: Data(row.types.utf8))) ?? [], created: row.created,
      secret: row.secret)
  }
}
