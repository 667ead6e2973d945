package import SheafLibrary
package import SheafModel

/// Connects a library's accounts with hubs, for a service that knows nothing of hubs.
package protocol ConnectionController: ShareController, ContentsSource {
  /// What a link would connect. It spends nothing and makes nothing.
  ///
  /// - Throws: ``SheafError``: `invalid` for what is no link, `exists` for an account that is connected, what the hub
  ///   refuses.
  func preview(_ request: ConnectionRequest) async throws -> ConnectionPreview

  /// Makes this machine a device of the account that a link enrols, and the account in the library where it is missing.
  ///
  /// - Throws: ``SheafError`` as ``preview(_:)`` does, before the link is spent.
  func connect(_ request: ConnectionRequest) async throws -> ConnectionStatus

  /// Ends the connection of an account, and takes this machine from its devices if the hub answers within five seconds.
  /// Everything that is here stays.
  ///
  /// - Throws: ``SheafError``: `notFound`; `busy` while something is not sent, unless that is to be discarded.
  func disconnect(_ account: AccountHandle, discardsUnsent: Bool) async throws -> Disconnection

  /// Sets how much is sent and fetched; returns how it is then.
  ///
  /// - Throws: ``SheafError``: `notFound`; `invalid` for a limit that is too low.
  func change(_ change: ConnectionChange, of account: AccountHandle) async throws -> ConnectionStatus

  /// The accounts that are connected, whether or not anything goes on with their hubs.
  func connectedAccounts() async throws -> [AccountHandle]

  /// How the accounts are with their hubs with which anything goes on, or nothing can, since the key is missing.
  func connections() async -> [ConnectionStatus]

  /// Has everything sent and fetched now; returns how it is at this moment.
  ///
  /// - Throws: ``SheafError`` of kind `notFound`.
  func synchronize(_ account: AccountHandle) async throws -> ConnectionStatus

  /// The devices of an account, asked of its hub.
  ///
  /// - Throws: ``SheafError``: `notFound`, what the hub refuses.
  func devices(of account: AccountHandle) async throws -> [ConnectedDevice]
  func addDevice(to account: AccountHandle) async throws -> DeviceLink

  /// Makes links for devices useless that nobody has used.
  ///
  /// - Throws: ``SheafError``: `notFound`, what the hub refuses.
  func revokeDeviceLinks(of account: AccountHandle) async throws -> RevokedDeviceLinks

  /// Takes a device from an account.
  ///
  /// - Parameter wipes: Whether it is to destroy what it has of the account.
  /// - Throws: ``SheafError``: `notFound`, what the hub refuses.
  func removeDevice(_ id: String, of account: AccountHandle, wipes: Bool) async throws
}
