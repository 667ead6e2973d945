package import SheafModel

/// Accounts that are connected to hubs.
extension SheafClient {
  /// The accounts that are connected, whether or not anything goes on with their hubs.
  package func connectedAccounts() async throws -> [AccountHandle] {
    try await transport.fetch(.get, "/v1/connections/accounts")
  }

  package func connections() async throws -> [ConnectionStatus] { try await transport.fetch(.get, "/v1/connections") }

  package func connect(_ request: ConnectionRequest) async throws -> ConnectionStatus {
    try await transport.fetch(.post, "/v1/connections", body: request)
  }

  /// What a link would connect. It spends nothing and makes nothing.
  package func preview(_ request: ConnectionRequest) async throws -> ConnectionPreview {
    try await transport.fetch(.post, "/v1/connections/preview", body: request)
  }

  /// Sets how much is sent and fetched; returns how it is then.
  package func change(_ change: ConnectionChange, of account: AccountHandle) async throws -> ConnectionStatus {
    try await transport.fetch(.patch, "/v1/connections/\(Self.component(account))", body: change)
  }

  /// - Parameter discardsUnsent: Whether to give up what the hub does not have yet; it stays in the library.
  package func disconnect(_ account: AccountHandle, discardsUnsent: Bool) async throws -> Disconnection {
    try await transport.fetch(
      .delete, "/v1/connections/\(Self.component(account))", query: discardsUnsent ? "discard=true" : "")
  }

  /// Has everything sent and fetched now; returns how it is at this moment.
  package func synchronize(_ account: AccountHandle) async throws -> ConnectionStatus {
    try await transport.fetch(.post, "/v1/connections/\(Self.component(account))/sync")
  }

  package func devices(of account: AccountHandle) async throws -> [ConnectedDevice] {
    try await transport.fetch(.get, "/v1/connections/\(Self.component(account))/devices")
  }

  package func addDevice(to account: AccountHandle) async throws -> DeviceLink {
    try await transport.fetch(.post, "/v1/connections/\(Self.component(account))/devices")
  }

  /// Makes links for devices useless that nobody has used.
  package func revokeDeviceLinks(of account: AccountHandle) async throws -> RevokedDeviceLinks {
    try await transport.fetch(.delete, "/v1/connections/\(Self.component(account))/device-links")
  }

  /// - Parameter wipes: Whether the device is to destroy what it has of the account.
  package func removeDevice(_ id: String, of account: AccountHandle, wipes: Bool) async throws {
    try await transport.perform(
      .delete, "/v1/connections/\(Self.component(account))/devices/\(id)", query: wipes ? "wipe=true" : "")
  }

  private static func component(_ account: AccountHandle) -> String { PercentCoding.encode(account.description.utf8) }
}
