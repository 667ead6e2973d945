import Hummingbird
import SheafModel

extension LibraryAPI {
  /// `POST /v1/paths`: the paths of items for the acting account, by their ids.
  func addPathRoutes(to routes: Routes) {
    routes.post("paths") { request, _ in
      let account = try await account(try request.address().account)
      let ids = try await request.decoded(as: PathsRequest.self).ids
      guard ids.count <= PathsRequest.limit else {
        throw SheafError(.invalid, subject: "ids", reason: "are more than \(PathsRequest.limit)")
      }
      return try Response.json(
        try await call { library in
          var paths: [String: String] = [:]
          for id in Set(ids) {
            do {
              paths[id] = try library.path(ofItem: id, for: account, isExact: false).description
            } catch let error as SheafError where error.kind == .notFound {}
          }
          return ItemPaths(paths: paths)
        })
    }
  }

  /// The routes about one item and its history. Every route takes `as=` and `path=` (``ItemAddress``).
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
    routes.post("restore-folder") { request, _ in
      let path = try await item(request)
      let restore = try await request.decoded(as: FolderRestoreRequest.self)
      return try await job { progress in
        // Where contents are fetched in between, it begins anew; the moment before the first time undoes all of it.
        var before: Timestamp?
        var restoration = try whenHere {
          try library.restoreFolder(path, restore) { told in
            var told = told
            if before == nil { before = told.before } else { told.before = nil }
            progress(told)
          }
        }
        if restoration.before != nil { restoration.before = before }
        return restoration
      }
    }
    routes.post("contents") { request, _ in
      let path = try await item(request)
      return try await job { progress in try library.localContents(path, progress: progress) }
    }
    routes.post("keep") { request, _ in
      let path = try await item(request)
      let isKept = try await request.decoded(as: KeptRequest.self).isKept
      return try await job { progress in
        try library.setKept(path, isKept)
        return try library.localContents(path, progress: progress)
      }
    }
    routes.post("free") { request, _ in
      let path = try await item(request)
      return try await job { progress in
        try library.setKept(path, false)
        return try library.freeContents(path, progress: progress)
      }
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
