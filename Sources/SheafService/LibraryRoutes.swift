import Hummingbird
import SheafModel

extension LibraryAPI {
  /// `GET /v1/status`: the library's state. `GET` and `PATCH /v1/library`: its settings.
  func addLibraryRoutes(to routes: Routes) {
    routes.get("status") { _, _ in
      let (counts, last, remembered) = try await call { (try $0.counts(), $0.lastEvent, try $0.rememberedMounts()) }
      let up = await mounts?.mounts() ?? []
      let places = Set(up.map(\.mountpoint))
      return try Response.json(
        LibraryStatus(
          library: info.library, pid: info.pid, mounts: up,
          notMounted: remembered.filter { !places.contains($0.mountpoint) }, counts: counts, sinks: sinks(at: last),
          connections: await connections?.connections() ?? []))
    }
    routes.get("library") { _, _ in try Response.json(try await call { try $0.settings() }) }
    routes.patch("library") { request, _ in
      let change = try await request.decoded(as: SettingsChange.self)
      return try Response.json(try await call { try $0.change(change) })
    }
  }

  /// `GET` and `POST /v1/accounts`, `DELETE /v1/accounts/{handle}`.
  func addAccountRoutes(to routes: Routes) {
    routes.get { _, _ in try Response.json(try await call { try $0.accounts() }) }
    routes.post { request, _ in
      let account = try await request.decoded(as: AccountRequest.self)
      let added = try await call { try $0.addAccount(account.handle, name: account.name) }
      return try Response.json(added, status: .created)
    }
    routes.delete(":handle") { _, context in
      let text = context.parameters.get("handle") ?? ""
      guard let bytes = PercentCoding.decode(text.utf8) else {
        throw SheafError(.invalid, subject: text.printable, reason: "has a % without two hexadecimal digits")
      }
      let handle = try AccountHandle(String(decoding: bytes, as: UTF8.self))
      if let mount = await mounts?.mounts().first(where: { $0.account == handle }) {
        throw SheafError(
          .busy, subject: handle.description, reason: "is mounted at \(mount.mountpoint)",
          advice: "unmount it first: sheaf unmount \(mount.mountpoint.shellWord)")
      }
      try await call { try $0.removeAccount(handle) }
      return Response(status: .noContent)
    }
  }

  /// `GET`, `POST` and `DELETE /v1/mounts`; a mount is addressed by `mountpoint=`, and `lazy=true` unmounts one in use.
  /// `DELETE` of one that is remembered and not up forgets it.
  func addMountRoutes(to routes: Routes) {
    routes.get { _, _ in try Response.json(await mounts?.mounts() ?? []) }
    routes.post { request, _ in
      let mount = try await request.decoded(as: MountRequest.self)
      return try Response.json(try await controller().mount(mount), status: .created)
    }
    routes.delete { request, _ in
      guard let mountpoint = try request.parameter("mountpoint") else {
        throw SheafError(.invalid, subject: "mountpoint", reason: "is missing")
      }
      let lazy = try request.parameter("lazy") == "true"
      let up = await mounts?.mounts() ?? []
      if !up.contains(where: { $0.mountpoint == mountpoint }),
        try await call({ try $0.forgetMount(at: mountpoint) })
      {
        return try Response.json(UnmountResult(mountpoint: mountpoint, remaining: up.count))
      }
      let remaining = try await controller().unmount(mountpoint: mountpoint, lazy: lazy)
      return try Response.json(UnmountResult(mountpoint: mountpoint, remaining: remaining))
    }
  }

  private func controller() throws -> any MountController {
    guard let mounts else {
      throw SheafError(
        .unavailable, subject: info.library, reason: "is in use by process \(info.pid), which does not mount",
        advice: "try again when it has ended")
    }
    return mounts
  }
}
