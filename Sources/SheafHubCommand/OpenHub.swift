import ArgumentParser
import Foundation
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire

/// The option that every command takes.
struct HubOption: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The hub's folder.", valueName: "folder"))
  var hub: String?

  /// Opens the hub for one command, and closes its store afterwards.
  func withHub(_ body: (OpenHub) async throws -> Void) async throws {
    let folder = HubFolder(hub)
    _ = try folder.settings()
    let use = try folder.use()
    // Read again now that they stay.
    let settings = try folder.settings()
    let database = try folder.database(settings)
    let result = await Result {
      if try await Hub.isOlder(database) {
        // The older program would not find what is moved.
        try await folder.useAlone(since: use) { try await Self.addTables(database) }
      } else {
        try await Self.addTables(database)
      }
      guard try await !StoreMove.isUnfinished(database) else {
        throw StoreMove.unfinished
      }
      let hub = try await Hub(
        database: database, addresses: try folder.addresses(settings), domains: settings.domains ?? [])
      try await body(OpenHub(hub: hub, folder: folder, settings: settings))
    }
    await database.close()
    try result.get()
  }

  /// Adds the tables that an older hub does not have.
  static func addTables(_ database: any Database) async throws {
    do {
      try await Hub.prepare(database)
    } catch HubStoreError.refused {
      // PostgreSQL refuses one of two processes that make a table at once; the other's is there then.
      try await Hub.prepare(database)
    }
  }
}

extension StoreMove {
  /// Why no hub is made or opened on a store.
  static let unfinished = SheafError(
    .busy, subject: "the store", reason: "is a copy of another one that is not whole",
    advice: "run sheaf-hub migrate again, in the folder of the hub that is copied")
}

/// A hub that a command has open.
struct OpenHub {
  let hub: Hub
  let folder: HubFolder
  let settings: HubSettings

  /// Makes an enrolment link of an account.
  func link(for zone: String) async throws -> LinkFacts {
    guard let address = hub.addresses.first else {
      throw SheafError(.corrupt, subject: folder.settingsFile.printable, reason: "names no address")
    }
    let made = try await hub.accounts.makeCode(for: zone)
    let link = EnrollmentLink(
      scheme: address.scheme(isPlain: settings.security == .plain), address: address.description, code: made.code,
      fingerprint: try folder.fingerprint(settings))
    return LinkFacts(link: link.description, expires: made.expires)
  }
}

extension Result where Failure == any Error {
  /// The outcome of an asynchronous body.
  init(catching body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}

/// Prints facts as JSON.
enum JSONOutput {
  static func print(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    Swift.print(String(decoding: try encoder.encode(value), as: UTF8.self))
  }
}

extension AccountHandle: ExpressibleByArgument {
  public init?(argument: String) {
    do { try self.init(argument) } catch { return nil }
  }
}
