package import SheafModel

/// Shares items of connected accounts at their hubs, for a service that knows nothing of hubs.
///
/// Every call answers nil, or false, where it is no hub's affair: then the library does it. Each throws ``SheafError``:
/// what the hub refuses, and `unavailable` where it cannot be reached.
package protocol ShareController: Sendable {
  func share(_ path: ItemPath, _ change: ShareChange) async throws -> Share?
  func unshare(_ path: ItemPath) async throws -> Bool
  func leave(_ path: ItemPath) async throws -> Bool
  func addParticipant(_ path: ItemPath, _ change: ParticipantChange) async throws -> Participant?
  func setParticipant(_ path: ItemPath, _ change: ParticipantChange) async throws -> Participant?
  func removeParticipant(_ path: ItemPath, _ handle: AccountHandle) async throws -> Bool
  func inviteOnce(_ path: ItemPath, permission: SharePermission?) async throws -> OneTimeLink?
  func revokeOneTimeLinks(_ path: ItemPath) async throws -> RevokedLinks?
  func accessRequests(_ path: ItemPath) async throws -> [AccessRequest]?
  /// The people who ask an account for access to what it shares at its hub.
  ///
  /// - Parameter limit: How long the hub is waited for.
  func accessRequests(for account: AccountHandle, within limit: Duration) async throws -> [AccessRequest]
  func answer(_ path: ItemPath, _ answer: RequestAnswer) async throws -> Bool
  func inspect(_ url: String, as account: AccountHandle) async throws -> ShareOffer?
  func accept(_ url: String, as account: AccountHandle) async throws -> AcceptResult?
  func decline(_ url: String, as account: AccountHandle) async throws -> DeclinedLink?

  func offerTransfer(_ path: ItemPath, to handle: AccountHandle) async throws -> TransferOffer?
  func withdrawTransfer(_ path: ItemPath) async throws -> Bool
  /// What is offered at an account's hub, by it and to it.
  ///
  /// - Parameter limit: How long the hub is waited for.
  func transfers(of account: AccountHandle, within limit: Duration) async throws -> TransferList
  /// - Parameter id: Of the offer.
  func acceptTransfer(_ id: String, as account: AccountHandle) async throws -> AcceptResult?
  func declineTransfer(_ id: String, as account: AccountHandle) async throws -> Bool
}
