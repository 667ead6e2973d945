import SheafClient
import SheafLibrary
import SheafModel

/// Where the PATH of a command leads, with the connection to its library.
struct ItemTarget: Sendable {
  let connection: LibraryConnection
  let address: ItemAddress

  var client: SheafClient { connection.client }

  /// The item's path for people.
  var name: String { (address.path ?? []).readable }

  /// As ``with(_:_:body:)``; without a path all that the acting account has is meant: that of `--as`, else of the mount one
  /// stands in, else the library's default account.
  static func with<Value>(
    optional path: PathArgument?, _ options: LibraryOptions, body: (ItemTarget) async throws -> Value
  ) async throws -> Value {
    if let path { return try await with(path, options, body: body) }
    var account = try options.account()
    let location = try LibraryChoice.location(named: options.file)
    return try await LibraryConnection.with(location) { connection in
      if account == nil, let here = try? SystemPath.workingDirectory(),
        let mount = try? MountTable.current().entry(containing: here), mount.isSheaf
      {
        account = try await connection.client.mounts().first { $0.mountpoint == mount.mountpoint.readable }?.account
      }
      return try await body(ItemTarget(connection: connection, address: ItemAddress(account: account, path: nil)))
    }
  }

  /// Finds the item that `path` means, opens its library and runs `body`.
  ///
  /// - Throws: ``SheafError`` where path, `--library` and `--as` contradict each other; and what `body` throws.
  static func with<Value>(
    _ path: PathArgument, _ options: LibraryOptions, body: (ItemTarget) async throws -> Value
  ) async throws -> Value {
    let account = try options.account()
    switch try PathResolution.current().place(of: path.bytes) {
    case .library(let inside):
      return try await LibraryConnection.with(LibraryChoice.location(named: options.file)) { connection in
        try await body(ItemTarget(connection: connection, address: ItemAddress(account: account, path: inside)))
      }
    case .mount(let library, let mountpoints, let inside):
      let location = LibraryLocation(path: library)
      if let file = options.file, try LibraryChoice.location(path: file) != location {
        throw SheafError(
          .invalid, subject: path.bytes.readable, reason: "is in the library \(library), not in that of --library",
          advice: "leave out --library")
      }
      return try await LibraryConnection.with(location) { connection in
        let mounts = try await connection.client.mounts()
        guard let mount = mounts.first(where: { mountpoints.contains($0.mountpoint) }) else {
          throw PathResolution.dead(mountpoints.first ?? library)
        }
        if let account, account != mount.account {
          throw SheafError(
            .invalid, subject: path.bytes.readable, reason: "is in the mount of \(mount.account)",
            advice: "leave out --as, or write the path as Documents/…")
        }
        return try await body(
          ItemTarget(connection: connection, address: ItemAddress(account: mount.account, path: inside)))
      }
    }
  }
}
