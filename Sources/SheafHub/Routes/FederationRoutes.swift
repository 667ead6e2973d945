import Foundation
import HTTPTypes
import Hummingbird
import SheafWire

extension HubRoutes {
  /// The requests of other hubs and of their people's devices, none of which has a session.
  func addFederationRoutes(to routes: some RouterMethods<HubContext>) {
    let (federation, guests, pace) = (hub.federation, hub.guests, RequestPace())
    add(
      ".well-known/sheaf", to: routes,
      [
        .get: { _, context in
          try pace.take(context.source, at: .now)
          return try .json(federation.description)
        }
      ])
    add(
      "v1/guests", to: routes,
      [
        .post: { request, context in
          try pace.take(context.source, at: .now)
          let asked = try await request.json(GuestRequest.self, upTo: Self.smallBody)
          return try .json(try await guests.enter(asked), status: .created)
        }
      ])
    addHubRoute(Federation.keysPath, pace, to: routes) { (asked: CollaborationRequest, domain, address) in
      try .json(try await hub.collaborations.join(asked, from: domain, at: address))
    }
    addHubRoute(Federation.rootsPath, pace, to: routes) { (root: CollaborationRoot, domain, _) in
      if try await guests.renew(root, from: domain) {
        watch.end { $0.guest?.share == root.share && $0.handle == root.handle }
      }
      return Response(status: .noContent)
    }
    addHubRoute(Federation.inboxPath, pace, to: routes) { (told: InboxNews, domain, address) in
      let zone = try await hub.sharing.inboxes.receive(told, from: domain, at: address)
      await news.check(zone)
      return Response(status: .noContent)
    }
  }

  /// A request that another hub signs.
  private func addHubRoute<Value: Decodable & Sendable>(
    _ path: String, _ pace: RequestPace, to routes: some RouterMethods<HubContext>,
    _ body: @escaping @Sendable (Value, _ domain: String, HubAddress) async throws -> Response
  ) {
    let federation = hub.federation
    add(
      String(path.dropFirst()), to: routes,
      [
        .post: { request, context in
          // Before a hub is asked for its key.
          try pace.take(context.source, at: .now)
          guard let type = request.headers[.contentType], type.lowercased() == "application/json" else {
            throw HubError(.mediaType, "the body must be application/json")
          }
          let bytes = try await request.bytes(upTo: Self.smallBody)
          let message = HubSignature.Message(path: path, body: Data(bytes.readableBytesView))
          let (domain, peer) = try await federation.sender(
            of: message, input: request.headers[.signatureInput], signature: request.headers[.signature])
          try pace.take(domain, at: .now)
          return try await body(JSONText.decode(Value.self, bytes.readableBytesView), domain, peer.address)
        }
      ])
  }

  /// The keys that devices deposit, and what they need to prove themselves to another hub.
  func addCollaborationRoutes(to routes: some RouterMethods<HubContext>) {
    let collaborations = hub.collaborations
    add(
      "v1/keys", to: routes,
      [
        .get: { _, context in try .json(try await collaborations.stock(of: try context.requireCaller())) },
        .post: { request, context in
          let caller = try context.requireCaller()
          let deposit = try await request.json(KeyDeposit.self, upTo: Self.keysBody)
          let stock = try await collaborations.deposit(deposit, by: caller)
          await hub.courier.deliver(from: caller.zone)
          return try .json(stock)
        },
      ])
    add(
      "v1/collaborations/:share", to: routes,
      [
        .get: { _, context in
          let caller = try context.requireCaller()
          let (found, isToBeTold) = try await collaborations.collaboration(try shareID("share", context), of: caller)
          if isToBeTold { await hub.courier.deliver(from: caller.zone) }
          return try .json(found)
        }
      ])
    add(
      "v1/collaborations/:share/acceptance", to: routes,
      [
        .put: { _, context in
          try await collaborations.accept(try shareID("share", context), by: try context.requireCaller())
          return Response(status: .noContent)
        }
      ])
  }

  /// Bytes of a deposit, of which a key takes up to 240.
  private static let keysBody = KeyDeposit.mostKeys * 256 + 1_024
}

extension HTTPField.Name {
  fileprivate static let signatureInput = HTTPField.Name("Signature-Input")!
  fileprivate static let signature = HTTPField.Name("Signature")!
}
