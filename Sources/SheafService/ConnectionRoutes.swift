import Hummingbird
import SheafModel

extension LibraryAPI {
  /// `GET` and `POST /v1/connections`, `GET /v1/connections/accounts`, `POST /v1/connections/preview`, `PATCH` and
  /// `DELETE /v1/connections/{handle}` (`discard=true` gives up what is not sent), `POST /v1/connections/{handle}/sync`;
  /// `GET` and `POST /v1/connections/{handle}/devices`, `DELETE …/{id}` of them (`wipe=true` has the device destroy what
  /// it has).
  func addConnectionRoutes(to routes: Routes) {
    routes.get { _, _ in try Response.json(await connections?.connections() ?? []) }
    routes.get("accounts") { _, _ in try Response.json(try await connections?.connectedAccounts() ?? []) }
    routes.post { request, _ in
      let connection = try await request.decoded(as: ConnectionRequest.self)
      return try Response.json(try await connectionController().connect(connection), status: .created)
    }
    routes.post("preview") { request, _ in
      let connection = try await request.decoded(as: ConnectionRequest.self)
      return try Response.json(try await connectionController().preview(connection))
    }
    routes.patch(":handle") { request, context in
      let change = try await request.decoded(as: ConnectionChange.self)
      return try Response.json(try await connectionController().change(change, of: handle(in: context)))
    }
    routes.delete(":handle") { request, context in
      let discards = try request.parameter("discard") == "true"
      return try Response.json(
        try await connectionController().disconnect(handle(in: context), discardsUnsent: discards))
    }
    routes.post(":handle/sync") { _, context in
      try Response.json(try await connectionController().synchronize(handle(in: context)))
    }
    routes.get(":handle/devices") { _, context in
      try Response.json(try await connectionController().devices(of: handle(in: context)))
    }
    routes.post(":handle/devices") { _, context in
      try Response.json(try await connectionController().addDevice(to: handle(in: context)), status: .created)
    }
    routes.delete(":handle/device-links") { _, context in
      try Response.json(try await connectionController().revokeDeviceLinks(of: handle(in: context)))
    }
    routes.delete(":handle/devices/:id") { request, context in
      try await connectionController().removeDevice(
        context.parameters.get("id") ?? "", of: handle(in: context), wipes: try request.parameter("wipe") == "true")
      return Response(status: .noContent)
    }
  }

  private func connectionController() throws -> any ConnectionController {
    guard let connections else {
      throw SheafError(.notSupported, subject: info.library, reason: "is served by a process that knows no hubs")
    }
    return connections
  }

  private func handle(in context: BasicRequestContext) throws -> AccountHandle {
    let text = context.parameters.get("handle") ?? ""
    guard let bytes = PercentCoding.decode(text.utf8) else {
      throw SheafError(.invalid, subject: text.printable, reason: "has a % without two hexadecimal digits")
    }
    return try AccountHandle(String(decoding: bytes, as: UTF8.self))
  }
}
