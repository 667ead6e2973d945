import Foundation
import HubKit
import Logging
import MountKit
import SheafHub
import SheafHubStore
import SheafModel
import SheafWire

/// A hub that is served on a port of this machine.
struct RunningHub: Sendable {
  let hub: TestHub
  let client: HubClient

  /// Runs `body` with a served hub on an empty store.
  static func with(
    _ engine: StoreEngine = .sqlite, limits: ServerLimits = ServerLimits(), _ body: (RunningHub) async throws -> Void
  ) async throws {
    try await engine.withDatabase { database in try await with(database, limits: limits, body) }
  }

  /// Runs `body` with a served hub on a store.
  static func with(
    _ database: any Database, limits: ServerLimits = ServerLimits(), _ body: (RunningHub) async throws -> Void
  ) async throws {
    do {
      let hub = try await TestHub(database, address: "127.0.0.1:0")
      let server = try server(of: hub, limits: limits)
      try await server.start()
      let client = try HubClient(base: "http://\(hub.hub.addresses.first?.description ?? "")")
      let result = await Result { try await body(RunningHub(hub: hub, client: client)) }
      await client.close()
      await server.stop()
      try result.get()
    }
  }

  /// A server on a port that the system chooses.
  static func server(of hub: TestHub, limits: ServerLimits = ServerLimits()) throws -> HubServer {
    try HubServer(
      hub: hub.hub, listen: try ListenAddress("127.0.0.1:0"), certificate: nil, limits: limits,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  var port: Int { hub.hub.addresses.first?.port ?? 0 }

  /// Makes an account with one device that has a session.
  func member(_ handle: String = "alice@hub.example") async throws -> (device: EnrolledDevice, token: String) {
    try await member(of: try await hub.account(handle))
  }

  /// Enrolls one more device, with a session.
  func member(of zone: String) async throws -> (device: EnrolledDevice, token: String) {
    let machine = TestDevice()
    let device = try await client.enroll(machine, code: try await hub.accounts.makeCode(for: zone).code)
    return (device, try await client.begin(machine, device))
  }
}
