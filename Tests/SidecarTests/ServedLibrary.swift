import Foundation
import Logging
import MountKit
import NIOCore
import ServiceLifecycle
import SheafLibrary
import SheafModel
import SheafService
import Synchronization

@testable import SheafSidecar

/// A library that is served to a sidecar, in this process.
struct ServedLibrary {
  let folder: TemporaryFolder
  let library: Library
  let service: SheafService
  let account: AccountHandle

  var state: String { "\(folder.path)/sidecar.sqlite" }

  init() async throws { try await self.init(in: TemporaryFolder()) }

  /// Opens and serves the library of another one that was closed.
  init(again other: ServedLibrary) async throws { try await self.init(in: other.folder) }

  private init(in folder: TemporaryFolder) async throws {
    self.folder = folder
    let location = LibraryLocation(path: "\(folder.path)/library.sqlite")
    library = try Library.open(location)
    account = try AccountHandle("alice@example.com")
    if try library.accounts().isEmpty { _ = try library.addAccount(account, name: "Alice") }
    service = try SheafService(library: library, mounts: nil, logger: Logger(label: "test"))
    try await service.start()
  }

  /// Makes a folder, which is an event at once.
  func mkdir(_ name: String) throws {
    _ = try library.make(.folder, library.documents(of: account), Array(name.utf8), mode: 0o755, .library)
  }

  func end() async throws {
    try await service.stop(patience: .seconds(10))
    try library.close()
    try folder.remove()
  }

  /// Delivers while `body` runs.
  func delivering(
    _ sinks: [SinkConfiguration], accounts: Bool = false, isGuarded: Bool = true,
    clock: any SidecarClock = RealClock(), _ body: () async throws -> Void
  ) async throws {
    var configuration = SidecarConfiguration()
    configuration.sinks = sinks
    configuration.servesAccounts = accounts
    try configuration.check()
    let store = try SidecarState(path: state)
    defer { try? store.close() }
    let service = SidecarService(
      configuration, library: library.location, state: store, clock: clock,
      isGuarded: isGuarded, random: { 0.5 },
      log: Logger(label: "sidecar") { _ in SwiftLogNoOpLogHandler() })
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
        logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }))
    let running = Task { try await group.run() }
    do {
      try await body()
    } catch {
      await group.triggerGracefulShutdown()
      try await running.value
      throw error
    }
    await group.triggerGracefulShutdown()
    try await running.value
  }

  func deadLetters() throws -> [DeadLetter] {
    var letters: [DeadLetter] = []
    try stored { try $0.eachDeadLetter { letters.append($0) } }
    return letters
  }

  func record(_ sink: String) throws -> SidecarState.Record {
    try stored { try $0.record(SinkKey(library: library.id, name: sink)) }
  }

  /// Looks at the sidecar's file, as its commands do.
  func stored<Value>(_ body: (SidecarState) throws -> Value) throws -> Value {
    let store = try SidecarState(path: state)
    defer { try? store.close() }
    return try body(store)
  }
}

extension SinkConfiguration {
  /// A webhook that loses no time with waiting.
  static func webhook(_ url: String, name: String = "webhook", secrets: [String] = []) throws -> SinkConfiguration {
    var sink = SinkConfiguration(
      name: name, target: .webhook(url: url, secrets: try secrets.map { try WebhookSecret($0) }))
    sink.schedule.base = 0.01
    sink.schedule.cap = 0.05
    sink.timeout = 1
    return sink
  }
}
