package import SheafModel
package import SheafWire

/// A share of somebody elsewhere whose contents this library keeps.
package struct FollowedShare: Hashable, Sendable {
  package let share: WireID
  /// The account whose `Documents` has them.
  package let account: Int64
}

/// What is to be done about the shares of a connected account.
package struct ShareDuties: Hashable, Sendable {
  /// Shares of others that it takes part in, and by whose device this library reads them.
  package var followed: [FollowedShare] = []
  /// Shares of others that nobody here takes part in any more.
  package var ended: [FollowedShare] = []
  /// Shares that are followed, and whose owner is connected here by now: the library has them as the owner's.
  package var ownedHere: [FollowedShare] = []
  /// Shares that the account left here, of which the hub is to be told.
  package var left: [WireID] = []
  /// Whether there are such whose departure may still be undone.
  package var isLeaving = false
}

/// The interface of a library for shares at hubs: what a hub says about who takes part becomes so here.
///
/// `account` is a connected account, if nothing else is said.
package protocol SharedReplicaInterface: AnyObject, Sendable {
  func noteHub(_ hub: String, of account: Int64) throws
  func noteInbox(_ entries: [InboxEntry], _ states: [ShareState], of account: Int64) throws
  func noted(of account: Int64) throws -> [WireID: String]
  func shareDuties(of account: Int64) throws -> ShareDuties
  func isLeaving(_ account: Int64) throws -> Bool
  func hub(of share: WireID, for account: Int64) throws -> String?
  func isElsewhere(_ url: String, for account: Int64) throws -> Bool
  func showShares(of account: Int64, except: Set<WireID>) throws -> Int
  func showsAllShares(of account: Int64, except: Set<WireID>) throws -> Bool
  func endShare(_ share: FollowedShare) throws
  func invitations(of account: Int64) throws -> [ShareInvitation]

  func hubShare(of path: ItemPath) throws -> HubShareFacts
  func sharePath(_ share: WireID, for account: Int64) throws -> String?

  func noteDeleted(_ states: [ItemState], in share: FollowedShare) throws
  func noteShared(_ states: [ItemState], left: [WireID], token: String, of share: FollowedShare) throws
  func noteAllShared(_ states: [ItemState], left: Set<WireID>, token: String, of share: FollowedShare) throws
  func isSharedFolder(_ item: WireID, in share: FollowedShare) throws -> Bool
  func giveUp(_ items: Set<WireID>, in share: FollowedShare) throws
}

/// What a path is to the hub of a connected account.
package enum HubShareFacts: Hashable, Sendable {
  /// Nothing of it is a hub's affair: the account is not connected, and the item in no share of a hub.
  case local
  /// An item of a connected account that is in no share, and whether the hub has it as it is here.
  case item(WireID, account: AccountHandle, isSent: Bool)
  /// In a share at the hub, whose item is at `path`.
  case share(WireID, account: AccountHandle, item: WireID, path: String, isItem: Bool)
}
