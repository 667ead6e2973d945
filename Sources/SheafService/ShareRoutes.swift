import Hummingbird
import SheafModel

extension LibraryAPI {
  /// The share of an item and its participants. Every route takes `as=` and `path=` (``ItemAddress``).
  func addShareRoutes(to routes: Routes) {
    routes.get("share") { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.share(of: path) })
    }
    routes.post("share") { request, _ in
      let path = try await item(request)
      let change = try await request.decoded(as: ShareChange.self)
      if let share = try await connections?.share(path, change) { return try Response.json(share) }
      return try Response.json(try await call { try $0.share(path, change) })
    }
    routes.delete("share") { request, _ in
      let path = try await item(request)
      if try await connections?.unshare(path) != true { try await call { try $0.unshare(path) } }
      return Response(status: .noContent)
    }
    routes.post("leave") { request, _ in
      let path = try await item(request)
      if try await connections?.leave(path) != true { try await call { try $0.leave(path) } }
      return Response(status: .noContent)
    }
    routes.post("resolve") { request, _ in
      let path = try await item(request)
      try await call { try $0.resolveConflict(path) }
      return Response(status: .noContent)
    }
    routes.get("children") { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.children(path) })
    }
    routes.post("transfer") { request, _ in
      let path = try await item(request)
      let handle = try await request.decoded(as: TransferRequest.self).handle
      if let offer = try await connections?.offerTransfer(path, to: handle) { return try Response.json(offer) }
      return try Response.json(try await call { try $0.offerTransfer(path, to: handle) })
    }
    routes.delete("transfer") { request, _ in
      let path = try await item(request)
      if try await connections?.withdrawTransfer(path) != true { try await call { try $0.withdrawTransfer(path) } }
      return Response(status: .noContent)
    }
    addParticipantRoutes(to: routes.group("participants"))
    addInvitationRoutes(to: routes)
  }

  /// `GET`, `POST`, `PATCH` and `DELETE` of participants; the last with `handle=`.
  private func addParticipantRoutes(to routes: Routes) {
    routes.get { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.participants(path) })
    }
    routes.post { request, _ in
      let path = try await item(request)
      let change = try await request.decoded(as: ParticipantChange.self)
      if let added = try await connections?.addParticipant(path, change) { return try Response.json(added) }
      return try Response.json(try await call { try $0.addParticipant(path, change) })
    }
    routes.patch { request, _ in
      let path = try await item(request)
      let change = try await request.decoded(as: ParticipantChange.self)
      if let changed = try await connections?.setParticipant(path, change) { return try Response.json(changed) }
      return try Response.json(try await call { try $0.setParticipant(path, change) })
    }
    routes.delete { request, _ in
      let path = try await item(request)
      let handle = try AccountHandle(try request.parameter("handle") ?? "")
      if try await connections?.removeParticipant(path, handle) != true {
        try await call { try $0.removeParticipant(path, handle) }
      }
      return Response(status: .noContent)
    }
  }

  private func addInvitationRoutes(to routes: Routes) {
    routes.post("one-time-links") { request, _ in
      let path = try await item(request)
      let permission = try await request.decoded(as: InviteRequest.self).permission
      if let link = try await connections?.inviteOnce(path, permission: permission) {
        return try Response.json(link, status: .created)
      }
      return try Response.json(try await call { try $0.inviteOnce(path, permission: permission) }, status: .created)
    }
    routes.delete("one-time-links") { request, _ in
      let path = try await item(request)
      if let revoked = try await connections?.revokeOneTimeLinks(path) { return try Response.json(revoked) }
      return try Response.json(RevokedLinks(count: try await call { try $0.revokeOneTimeLinks(path) }))
    }
    routes.get("requests") { request, _ in
      let path = try await item(request)
      if let requests = try await connections?.accessRequests(path) { return try Response.json(requests) }
      return try Response.json(try await call { try $0.accessRequests(path) })
    }
    routes.post("requests") { request, _ in
      let path = try await item(request)
      let answer = try await request.decoded(as: RequestAnswer.self)
      if try await connections?.answer(path, answer) != true { try await call { try $0.answer(path, answer) } }
      return Response(status: .noContent)
    }
  }

  /// `GET /v1/shares`: all that the acting account shares and joined, its invitations and who asks it for access;
  /// `GET /v1/requests`: the last of these alone.
  func addShareListRoutes(to routes: Routes) {
    routes.get("shares") { request, _ in
      let account = try await account(try request.address().account)
      let limit = ServiceLimits.hubPatience.addition
      // The rest is known without the hub.
      async let requests = atHub([AccessRequest]()) { try await $0.accessRequests(for: account, within: limit) }
      async let transfers = atHub(TransferList.none) { try await $0.transfers(of: account, within: limit) }
      let shares = try await call { try $0.shares(of: account) }
      return try Response.json(shares.with(requests: await requests, transfers: await transfers))
    }
    routes.get("requests") { request, _ in
      let account = try await account(try request.address().account)
      let limit = ServiceLimits.hubPatience.list
      let atHub = try await connections?.accessRequests(for: account, within: limit) ?? []
      return try Response.json(try await call { try $0.accessRequests(for: account) } + atHub)
    }
  }

  /// What a hub adds to a list, or why it does not.
  ///
  /// - Parameter nothing: What it adds where no account is connected here.
  private func atHub<Value: Sendable>(
    _ nothing: Value, _ body: @Sendable (any ConnectionController) async throws -> Value
  ) async -> Result<Value, any Error> {
    guard let connections else { return .success(nothing) }
    do {
      return .success(try await body(connections))
    } catch {
      return .failure(error)
    }
  }

  /// `GET /v1/transfers`: the offers by the acting account and to it; `POST /v1/transfers/accept` and
  /// `POST /v1/transfers/decline` answer one of the latter.
  func addTransferRoutes(to routes: Routes) {
    routes.get { request, _ in
      let account = try await account(try request.address().account)
      let here = try await call { try $0.transfers(of: account) }
      let limit = ServiceLimits.hubPatience.addition
      return try Response.json(here.with(try await connections?.transfers(of: account, within: limit) ?? .none))
    }
    routes.post("accept") { request, _ in
      let account = try await account(try request.address().account)
      let id = try await request.decoded(as: TransferAnswer.self).id
      if let accepted = try await connections?.acceptTransfer(id, as: account) { return try Response.json(accepted) }
      return try Response.json(try await call { try $0.acceptTransfer(id, as: account) })
    }
    routes.post("decline") { request, _ in
      let account = try await account(try request.address().account)
      let id = try await request.decoded(as: TransferAnswer.self).id
      if try await connections?.declineTransfer(id, as: account) != true {
        try await call { try $0.declineTransfer(id, as: account) }
      }
      return Response(status: .noContent)
    }
  }

  /// Inspecting a share URL, joining by it, and declining what it offers. The URL is in the body, so that no log of requests has it.
  func addLinkRoutes(to routes: Routes) {
    routes.post("inspect") { request, _ in
      let account = try await account(try request.address().account)
      let url = try await request.decoded(as: LinkRequest.self).url
      if let offer = try await connections?.inspect(url, as: account) { return try Response.json(offer) }
      return try Response.json(try await call { try $0.inspect(url, as: account) })
    }
    routes.post("accept") { request, _ in
      let account = try await account(try request.address().account)
      let url = try await request.decoded(as: LinkRequest.self).url
      if let accepted = try await connections?.accept(url, as: account) { return try Response.json(accepted) }
      return try Response.json(try await call { try $0.accept(url, as: account) })
    }
    routes.post("decline") { request, _ in
      let account = try await account(try request.address().account)
      let url = try await request.decoded(as: LinkRequest.self).url
      if let declined = try await connections?.decline(url, as: account) { return try Response.json(declined) }
      return try Response.json(try await call { try $0.decline(url, as: account) })
    }
  }
}
