import FoundationEssentials
import Hummingbird
import SheafLibrary
import SheafModel

extension LibraryAPI {
  /// `GET`, `POST` and `DELETE /v1/webhooks` of the acting account.
  func addWebhookRoutes(to routes: Routes) {
    routes.get("webhooks") { request, _ in
      let account = try await account(request.address().account)
      return try Response.json(try await call { try $0.webhooks(of: account) })
    }
    routes.post("webhooks") { request, _ in
      let account = try await account(request.address().account)
      let wanted = try await request.decoded(as: WebhookRequest.self)
      let webhook = try await call { try $0.addWebhook(for: account, wanted) }
      return try Response.json(webhook, status: .created)
    }
    routes.delete("webhooks/:id") { request, context in
      let account = try await account(request.address().account)
      let id = context.parameters.get("id") ?? ""
      try await call { try $0.removeWebhook(id, of: account) }
      return Response(status: .noContent)
    }
  }

  /// `GET /v1/library/webhooks/stream`, for the sidecar that serves all accounts.
  func addLibraryWebhookRoutes(to routes: Routes) {
    routes.get("library/webhooks/stream") { _, _ in try webhookStream() }
  }

  /// Streams the complete list of all accounts' webhooks, now and after each change.
  private func webhookStream() throws -> Response {
    let slot = try streams.take()
    let body = ResponseBody { writer in
      defer { withExtendedLifetime(slot) {} }
      try await clients.withoutCounting {
        var told: [Webhook]?
        for await _ in signals.wakeUps(for: .webhooks, every: Self.keepAlive) {
          let webhooks = try await call { try $0.webhooks() }
          guard webhooks != told else {
            try await writer.write(ByteBuffer(string: ": \n\n"))
            continue
          }
          told = webhooks
          var bytes = ByteBuffer(string: "data: ")
          bytes.writeBytes(try JSONEncoder().encode(webhooks))
          bytes.writeString("\n\n")
          try await writer.write(bytes)
        }
      }
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
  }
}
