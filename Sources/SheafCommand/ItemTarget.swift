import SheafClient
import SheafLibrary
import SheafModel
import SheafMount

/// The item that the PATH of a command means, with the connection to its library.
struct ItemTarget: Sendable {
  let connection: LibraryConnection
  let address: ItemAddress
  /// Words of a shell's command line that name the item, wherever one stands.
  let words: String
  /// The item's path for people, also of one that was given by its id.
  let name: String

  var client: SheafClient { connection.client }

  /// The item's path as it was given.
  var given: String { (address.path ?? []).readable }

  /// As ``with(_:_:changing:body:)``; without a path, everything of the acting account is meant: the one of `--as`,
  /// otherwise of the mount that the working directory is in, otherwise the library's default account.
  static func with<Value>(
    optional path: PathArgument?, _ options: LibraryOptions, changing: Bool = false,
    body: (ItemTarget) async throws -> Value
  ) async throws -> Value {
    guard let path else { return try await whereOneStands(nil, options, changing, body: body) }
    guard let top = try PathResolution.current().mount(at: path.bytes) else {
      return try await with(path, options, changing: changing, body: body)
    }
    return try await with(top.library, top.mountpoints, path, options, changing) { connection, location, mount in
      if let account = try options.account(), account != mount.account {
        throw SheafError(
          .invalid, subject: path.bytes.readable, reason: "is the mount of \(mount.account)", advice: "leave out --as")
      }
      let target = ItemTarget(
        connection: connection, address: ItemAddress(account: mount.account, path: nil),
        words: mount.mountpoint.shellWord, name: mount.mountpoint)
      return try await run(body, on: target, location, as: mount.account)
    }
  }

  /// Opens the library of a mount, and finds the mount among those of its process.
  private static func with<Value>(
    _ library: String, _ mountpoints: [String], _ path: PathArgument, _ options: LibraryOptions, _ changing: Bool,
    body: (LibraryConnection, LibraryLocation, MountInfo) async throws -> Value
  ) async throws -> Value {
    let location = LibraryLocation(path: library)
    if let file = options.file, try LibraryChoice.location(path: file) != location {
      throw SheafError(
        .invalid, subject: path.bytes.readable, reason: "is in the library \(library), not in that of --library",
        advice: "leave out --library")
    }
    return try await LibraryConnection.with(location) { connection in
      let mounts = try await connection.client.mounts()
      guard let mount = mounts.first(where: { mountpoints.contains($0.mountpoint) }) else {
        throw PathResolution.dead(mountpoints.first ?? library, of: library)
      }
      if changing { try refuseReadOnly(mount) }
      return try await body(connection, location, mount)
    }
  }

  /// Finds the item that `path` means, opens its library and runs `body`.
  ///
  /// - Parameter changing: Whether the command changes something, which a read-only mount does not allow.
  /// - Throws: ``SheafError`` if path, `--library` and `--as` contradict each other; and the error of `body`.
  static func with<Value>(
    _ path: PathArgument, _ options: LibraryOptions, changing: Bool = false, body: (ItemTarget) async throws -> Value
  ) async throws -> Value {
    let account = try options.account()
    switch try PathResolution.current().place(of: path.bytes) {
    case .library(let inside) where ItemAddress.itemID(inside) != nil:
      return try await whereOneStands(inside, options, changing, body: body)
    case .library(let inside):
      let location = try LibraryChoice.location(named: options.file, changing: changing)
      return try await LibraryConnection.with(location) { connection in
        let target = ItemTarget(connection, location, account, inside, inside.readable, options)
        return try await run(body, on: target, location, as: account)
      }
    case .mount(let library, let mountpoints, let inside):
      return try await with(library, mountpoints, path, options, changing) { connection, location, mount in
        if let account, account != mount.account {
          guard let printed = PathResolution.printed(path.bytes) else {
            throw SheafError(
              .invalid, subject: path.bytes.readable, reason: "is in the mount of \(mount.account)",
              advice: "leave out --as, or write the path as Documents/…")
          }
          let target = ItemTarget(connection, location, account, printed, printed.readable, options)
          return try await run(body, on: target, location, as: account)
        }
        let target = ItemTarget(
          connection: connection, address: ItemAddress(account: mount.account, path: inside),
          words: SystemPath.join(Array(mount.mountpoint.utf8), inside).shellWord, name: inside.readable)
        let isHere = hereEntry.map { mountpoints.contains($0.mountpoint.readable) } ?? false
        return try await run(body, on: target, location, as: isHere ? nil : mount.account)
      }
    }
  }

  /// Runs `body` with the account of `--as`, otherwise with that of the mount that the working directory is in.
  private static func whereOneStands<Value>(
    _ path: [UInt8]?, _ options: LibraryOptions, _ changing: Bool, body: (ItemTarget) async throws -> Value
  ) async throws -> Value {
    var account = try options.account()
    let location = try LibraryChoice.location(named: options.file, changing: changing)
    return try await LibraryConnection.with(location) { connection in
      if account == nil, let entry = hereEntry, entry.isSheaf,
        let mount = try await connection.client.mounts().first(where: { $0.mountpoint == entry.mountpoint.readable })
      {
        if changing { try refuseReadOnly(mount) }
        account = mount.account
      }
      var name = (path ?? []).readable
      // Whoever may not see it is told so by the command.
      if let id = path.flatMap(ItemAddress.itemID),
        let known = try? await connection.client.paths(of: [id], for: account)[id]
      {
        name = known
      }
      let target = ItemTarget(connection, location, account, path, name, options)
      return try await run(body, on: target, location, as: try options.account())
    }
  }

  /// The mount that the working directory is in.
  fileprivate static var hereEntry: MountTable.Entry? {
    (try? SystemPath.workingDirectory()).flatMap { try? MountTable.current().entry(containing: $0) }
  }

  /// - Parameter account: As of ``AdvisedCommand/completed(_:_:as:)``.
  private static func run<Value>(
    _ body: (ItemTarget) async throws -> Value, on target: ItemTarget, _ location: LibraryLocation,
    as account: AccountHandle?
  ) async throws -> Value {
    do {
      return try await body(target)
    } catch {
      throw AdvisedCommand.completed(error, location, as: account)
    }
  }

  private static func refuseReadOnly(_ mount: MountInfo) throws(SheafError) {
    // mount(8) may have made it so since: `mount -o remount,ro`.
    let entry = try? MountTable.current().entry(at: Array(mount.mountpoint.utf8))
    if mount.readOnly || entry?.isReadOnly ?? false { throw LibraryChoice.readOnly(mount.mountpoint) }
  }
}

extension ItemTarget {
  /// How commands take the paths of the account, where one stands in the mount of another account or in none and the
  /// account is not the default one; nil where they take them as they are.
  func pathAdvice() async -> String? {
    guard let account = address.account, let mounts = try? await client.mounts() else { return nil }
    let here = Self.hereEntry.flatMap { entry in mounts.first { $0.mountpoint == entry.mountpoint.readable }?.account }
    // A user to whom root gave a mount may not ask.
    let other: AccountHandle? = if let here { here } else { try? await client.settings().defaultAccount }
    guard let other, other != account else { return nil }
    let place = mounts.first { $0.account == account }.map { "below \($0.mountpoint.shellWord), or " } ?? ""
    return "These are paths of \(account): commands take them \(place)with --as \(account)."
  }

  /// An item of a library that is named by its path there, or by its id.
  fileprivate init(
    _ connection: LibraryConnection, _ location: LibraryLocation, _ account: AccountHandle?, _ path: [UInt8]?,
    _ name: String, _ options: LibraryOptions
  ) {
    self.connection = connection
    self.name = name
    address = ItemAddress(account: account, path: path)
    var words = [(path ?? []).shellWord]
    if let account { words += ["--as", "\(account)".shellWord] }
    if options.file != nil { words += ["--library", location.path.shellWord] }
    self.words = words.joined(separator: " ")
  }
}
