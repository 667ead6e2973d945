import Foundation
import HTTPTypes
import Hummingbird
import SheafWire

extension HubRoutes {
  /// The version of the interface.
  private static let api = 1

  /// The requests that anybody may make: which hub this is, whether it works, becoming a device, beginning a session,
  /// telling that a removed device is wiped.
  func addPublicRoutes(to routes: some RouterMethods<HubContext>) {
    let accounts = hub.accounts
    add(
      "v1", to: routes,
      [.get: { _, _ in try .json(HubFacts(name: "sheaf-hub", api: Self.api, version: Hub.version)) }])
    add(
      "v1/health", to: routes,
      [
        .get: { _, _ in
          _ = try await hub.database.read { connection in try connection.query("SELECT 1") }
          return Response(status: .noContent)
        }
      ])
    add("enrol/:code", to: routes, [.get: { _, _ in Self.enrollmentPage() }])
    add(
      "v1/challenges", to: routes,
      [.post: { _, _ in try .json(accounts.challenge(), status: .created) }])
    add(
      "v1/sessions", to: routes,
      [
        .post: { request, _ in
          let asked = try await request.json(SessionRequest.self, upTo: Self.smallBody)
          return try .json(try await accounts.beginSession(asked), status: .created)
        }
      ])
    add(
      "v1/wipes", to: routes,
      [
        .post: { request, _ in
          try await accounts.noteWiped(try await request.json(SessionRequest.self, upTo: Self.smallBody))
          return Response(status: .noContent)
        }
      ])
    add(
      "v1/enrollments", to: routes,
      [
        .post: { request, _ in
          let asked = try await request.json(DeviceRequest.self, upTo: Self.smallBody)
          return try .json(try await accounts.enroll(asked), status: .created)
        }
      ])
    add(
      "v1/enrollments/preview", to: routes,
      [
        .post: { request, _ in
          let asked = try await request.json(DeviceRequest.self, upTo: Self.smallBody)
          return try .json(try await accounts.preview(asked))
        }
      ])
  }

  /// The page of an enrolment link in a browser. It is the same for every code, so nobody learns which ones are good.
  private static func enrollmentPage() -> Response {
    let page = """
      <!doctype html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <title>Sheaf</title>
      <p>This link adds a device to an account of this hub. Give the whole link to the program that is to be the device.
      Opening it here used nothing up.</p>
      </html>

      """
    return Response(
      status: .ok, headers: PublicPage.headers, body: ResponseBody(byteBuffer: ByteBuffer(string: page)))
  }
}

/// The pages that anybody may open.
enum PublicPage {
  /// No script, no picture, no frame around it, no copy of it, and no word of its address to others.
  static var headers: HTTPFields {
    [
      .contentType: "text/html; charset=utf-8", .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
      .cacheControl: "no-store", HTTPField.Name.referrerPolicy: "no-referrer",
    ]
  }
}

extension HTTPField.Name {
  fileprivate static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
}
