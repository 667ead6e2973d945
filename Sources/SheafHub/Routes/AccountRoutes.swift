import Foundation
import HTTPTypes
import Hummingbird
import SheafWire

extension HubRoutes {
  /// The account of the session, its devices, and links for more of them.
  func addAccountRoutes(to routes: some RouterMethods<HubContext>) {
    let (accounts, watch) = (hub.accounts, watch)
    add(
      "v1/account", to: routes,
      [
        .get: { _, context in
          try .json(try await accounts.facts(of: try context.requireCaller().zone))
        }
      ])
    add(
      "v1/sessions/current", to: routes,
      [
        .delete: { _, context in
          let caller = try context.requireCaller()
          try await accounts.endSession(of: caller)
          watch.end { $0 == caller }
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/devices", to: routes,
      [
        .get: { _, context in
          try .json(DeviceList(devices: try await accounts.devices(of: try context.requireCaller().zone)))
        }
      ])
    add(
      "v1/devices/:device", to: routes,
      [
        .delete: { request, context in
          let caller = try context.requireCaller()
          let device = context.parameters.get("device") ?? ""
          guard let id = UUID(uuidString: device), id.uuidString.lowercased() == device else {
            throw HubError(.notFound, "the account has no such device")
          }
          try await accounts.removeDevice(
            device, of: caller.zone, by: caller.device, wipes: try request.flag("wipe"))
          watch.end { $0.zone == caller.zone && $0.device == device }
          await hub.courier.deliver(from: caller.zone)
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/links", to: routes,
      [
        .post: { _, context in
          let made = try await accounts.makeCode(for: try context.requireCaller().zone)
          return try .json(try link(made), status: .created)
        },
        .delete: { _, context in
          try .json(
            RevokedLinkFacts(revoked: try await accounts.revokeCodes(of: try context.requireCaller().zone)))
        },
      ])
  }

  private func link(_ made: (code: String, expires: String)) throws -> LinkFacts {
    guard let address = hub.addresses.first else { throw HubError(.failure, "the hub has no address") }
    let link = EnrollmentLink(
      scheme: address.scheme(isPlain: scheme == "http"), address: address.description, code: made.code,
      fingerprint: fingerprint)
    return LinkFacts(link: link.description, expires: made.expires)
  }
}
