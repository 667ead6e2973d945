import Hummingbird
import SheafModel

extension LibraryAPI {
  /// What one item is and was; every route takes `as=` and `path=` (``ItemAddress``).
  func addItemRoutes(to routes: Routes) {
    routes.get { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.itemStatus(path) })
    }
    routes.get("versions") { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.versions(path) })
    }
    routes.get("content") { request, _ in
      let path = try await item(request)
      return try await content(of: path, version: try versionParameter(request))
    }
    routes.post("restore") { request, _ in
      let path = try await item(request)
      let version = try await request.decoded(as: RestoreRequest.self).version
      let made = try await call { try $0.restore(path, version: version) }
      return try Response.json(made)
    }
    routes.put("label") { request, _ in
      let path = try await item(request)
      let label = try await request.decoded(as: LabelRequest.self)
      return try Response.json(try await call { try $0.label(path, name: label.name, version: label.version) })
    }
  }

  private func versionParameter(_ request: Request) throws -> Int64? {
    guard let text = try request.parameter("version") else { return nil }
    guard let number = Int64(text), number > 0 else {
      throw SheafError(.invalid, subject: text.printable, reason: "is no version number")
    }
    return number
  }
}
