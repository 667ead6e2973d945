import MountKit
package import SheafHubStore

/// The engines that every suite of the hub runs on.
package enum StoreEngine: String, CaseIterable, Sendable {
  case sqlite
  case postgres

  /// Those that this machine has.
  package static let available: [StoreEngine] = allCases.filter { $0 == .sqlite || PostgresCluster.isInstalled }

  /// Runs `body` with a new, empty place for a hub's rows, which is removed afterwards.
  package func withPlace(_ body: (StorePlace) async throws -> Void) async throws {
    switch self {
    case .sqlite:
      let folder = try TemporaryFolder()
      do {
        try await body(StorePlace(engine: self, location: "\(folder.path)/hub.sqlite"))
      } catch {
        try? folder.remove()
        throw error
      }
      try folder.remove()
    case .postgres:
      try await body(StorePlace(engine: self, location: try PostgresCluster.shared.get().newPlace()))
    }
  }

  /// Runs `body` with an open, empty store.
  package func withDatabase(_ body: (any Database) async throws -> Void) async throws {
    try await withPlace { place in
      let database = try place.open()
      do {
        try await body(database)
      } catch {
        await database.close()
        throw error
      }
      await database.close()
    }
  }
}

/// Where a hub's rows are: it can be opened again.
package struct StorePlace: Sendable {
  package let engine: StoreEngine
  /// The file, or libpq's URI.
  package let location: String

  package func open() throws -> any Database {
    switch engine {
    case .sqlite: try SQLiteDatabase(path: location)
    case .postgres: PostgresDatabase(target: location)
    }
  }
}
