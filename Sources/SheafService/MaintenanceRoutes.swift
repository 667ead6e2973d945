import Hummingbird
import SheafModel

extension LibraryAPI {
  /// The largest `limit` of `GET /v1/deleted/trees`.
  private static let deletedLimit: Int64 = 100_000

  /// `GET /v1/deleted` lists each item, and `GET /v1/deleted/trees`, with `limit=`, folders as a whole.
  /// `POST /v1/deleted/extent` measures what a ``TrashSelection`` means, and `POST /v1/deleted/purge` destroys it.
  /// `POST /v1/usage` measures what there is, `POST /v1/find` looks for something in it, and `/v1/items/retention` is
  /// for how long a folder keeps things. Other routes recover or purge single items.
  func addDeletionRoutes(to routes: Routes) {
    routes.get("deleted") { request, _ in
      let (account, path) = try await whole(request)
      return try Response.json(try await call { try $0.deleted(account, below: path) })
    }
    routes.get("deleted/trees") { request, _ in
      let (account, path) = try await whole(request)
      let limit = Int(min(try request.number("limit") ?? Self.deletedLimit, Self.deletedLimit))
      return try Response.json(try await call { try $0.deletedTrees(account, below: path, limit: limit) })
    }
    routes.post("deleted/extent") { request, _ in
      let (account, path) = try await whole(request)
      let selection = try await request.decoded(as: TrashSelection.self)
      return try await job { progress in
        try library.trashExtent(account, below: path, selection, progress: progress)
      }
    }
    routes.post("deleted/purge") { request, _ in
      let (account, path) = try await whole(request)
      let selection = try await request.decoded(as: TrashSelection.self)
      return try await job { progress in
        try library.emptyTrash(account, below: path, selection, progress: progress)
      }
    }
    routes.get("items/retention") { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.retention(path) })
    }
    routes.patch("items/retention") { request, _ in
      let path = try await item(request)
      let change = try await request.decoded(as: RetentionChange.self)
      return try Response.json(try await call { try $0.retain(path, change) })
    }
    routes.post("usage") { request, _ in
      let (account, path) = try await whole(request)
      return try await job { progress in try library.usage(account, of: path, progress: progress) }
    }
    routes.post("find") { request, _ in
      let (account, path) = try await whole(request)
      let wanted = try await request.decoded(as: FindRequest.self)
      return try await job { progress in try library.find(account, in: path, wanted, progress: progress) }
    }
    routes.get("items/recoverable") { request, _ in
      let path = try await item(request, isExact: false)
      return try Response.json(try await call { try $0.recoverable(path) })
    }
    routes.post("items/recover") { request, _ in
      let path = try await item(request, isExact: false)
      let id = try await request.decoded(as: RecoverRequest.self).id ?? request.address().itemID
      return try await job { progress in try library.recover(path, id: id, progress: progress) }
    }
    routes.get("items/purge") { request, _ in
      let path = try await item(request)
      return try Response.json(try await call { try $0.purgeExtent(path) })
    }
    routes.post("items/purge") { request, _ in
      let path = try await item(request)
      let version = try await request.decoded(as: PurgeRequest.self).version
      try await call { try $0.purge(path, version: version) }
      return Response(status: .noContent)
    }
  }

  /// `POST /v1/check`, `/v1/compact` and `/v1/backup`: long jobs, which report line by line.
  func addMaintenanceRoutes(to routes: Routes) {
    routes.post("check") { _, _ in
      try await job { progress in try library.check(progress: progress) }
    }
    routes.post("compact") { _, _ in
      try await job { progress in try library.compact(progress: progress) }
    }
    routes.post("backup") { request, _ in
      let backup = try await request.decoded(as: BackupRequest.self)
      guard backup.file.hasPrefix("/") else {
        throw SheafError(.invalid, subject: backup.file.printable, reason: "is not an absolute path")
      }
      // Each page would be a change of the library that is being copied, and this process would wait for itself.
      let folder = backup.file.lastIndex(of: "/").map { String(backup.file[...$0]) } ?? "/"
      guard await mounts?.contains(folder: folder) != true else {
        throw SheafError(
          .invalid, subject: backup.file.printable, reason: "is in a mount of the library itself",
          advice: "name a file outside of it, best on another disk")
      }
      return try await job { progress in
        try library.backup(to: backup.file, progress: progress)
      }
    }
  }
}
