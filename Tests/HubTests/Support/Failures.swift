import MountKit

@testable import SheafHubClient

/// What `body` fails with.
func hubFailure(_ body: () async throws -> Void) async throws -> HubFailure {
  do {
    try await body()
  } catch let failure as HubFailure {
    return failure
  }
  throw Command.Failure(description: "it succeeded")
}

extension ScriptedServer {
  /// What `body` fails with at a server that answers so; nil if it succeeds.
  static func failure(
    limits: DeviceClientLimits = .brief, _ answer: @escaping @Sendable (String) -> ScriptedServer.Answer?,
    _ body: (DeviceClient) async throws -> Void
  ) async throws -> HubFailure? {
    let server = try ScriptedServer(answer)
    defer { server.close() }
    let client = DeviceClient(try server.device, limits: limits)
    let result = await Result { try await body(client) }
    await client.shutdown()
    do {
      try result.get()
      return nil
    } catch let failure as HubFailure {
      return failure
    }
  }
}
