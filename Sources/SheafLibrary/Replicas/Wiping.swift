package import SheafModel
import SheafStore
package import SheafWire

/// Destroying what a connected account has on this machine, where its hub says that the machine was removed for that.
///
/// Rules:
/// 1. The account is disconnected with the same change that notes what is to be destroyed. So nothing that goes here is
///    a deletion for the hub, and another process goes on where this one ends.
/// 2. What is here goes: documents with their history and what was deleted, open files, what others share with the
///    account, events, webhooks. What the hub does not have is lost.
/// 3. What other accounts own stays, and so does the account, which is empty. What it gets before this is done goes,
///    too.
///
/// Rooms: `EventObservers`, `InodeTable`, `ShareBook`.
extension Library {
  /// Disconnects an account and marks what it has here for destruction.
  ///
  /// - Parameter device: The device that the machine was.
  /// - Throws: `notFound` for an account that is not connected.
  package func beginWiping(_ account: Int64, device: String) throws {
    try locked {
      guard let zone = WireID(bytes: try connected(account).zone) else { return }
      _ = try handOverShares(of: account)
      try makeChange(.replica, freesSpace: true) { change in
        try change.rows.setWipe(
          WipeMark(state: .begun, zone: zone, device: device, time: change.time), of: account)
        try change.rows.removeWaitingEvents(of: account, all: true)
        try change.rows.deleteReplica(account)
        try endReplica(of: account, change)
      }
      for inode in Array(inodes.all) where inode.row.owner == account && inode.openCount > 0 { inode.isWiped = true }
    }
  }

  /// How far an account is with being destroyed on this machine; nil for one that is not.
  package func wipe(of account: Int64) throws -> WipeMark? { try locked { try read { try $0.wipe(of: account) } } }

  /// Notes how far that is; nil forgets it.
  package func setWipe(_ mark: WipeMark?, of account: Int64) throws {
    try locked { try makeChange(.replica, freesSpace: true) { try $0.rows.setWipe(mark, of: account) } }
  }

  /// Destroys what an account has here, after ``beginWiping(_:device:)``. It can be called again.
  package func destroyWiped(_ account: Int64) throws {
    let followed = try locked { try handOverShares(of: account) }
    let owners = [account] + followed.map(\.account)
    for share in followed { try endShare(share, isWiped: true) }
    try locked {
      for share in shares.all where share.owner == account && share.row.isActive {
        guard let inode = try sharedInode(share.row.item) else { continue }
        try makeChange(.share, freesSpace: true) { try stop(share, inode, actor: account, $0) }
      }
    }
    try destroyAll(of: account)
    try locked { try makeChange(.purge, freesSpace: true) { try $0.rows.deleteWebhooks(of: account) } }
    try forgetEvents(of: account)
    locked {
      // Programs may have them open still.
      for inode in Array(inodes.all) where inode.isOrphan && owners.contains(inode.row.owner) {
        inode.isWiped = true
        for draft in inode.drafts { draft.working = nil }
        tell(.contents(inode.ino), to: account)
      }
      eventObservers.noteWebhooks()
    }
    try freePurged()
  }

  /// Forgets what an earlier program left of accounts that it removed.
  func forgetGoneAccounts() {
    do {
      for account in try locked({ try read { try $0.goneAccounts() } }) { try forgetEvents(of: account) }
    } catch {
      log.warning("what is left of removed accounts could not be forgotten", metadata: ["error": "\(error)"])
    }
  }

  /// Forgets the events of what an account owns.
  func forgetEvents(of account: Int64) throws {
    var hasMore = true
    while hasMore {
      hasMore = try locked {
        try settleEvents(all: true)
        return try makeChange(.purge, freesSpace: true) {
          try $0.rows.forgetEvents(of: account, limit: Self.forgottenAtOnce)
        }
      }
    }
  }

  /// Events that one transaction forgets.
  private static let forgottenAtOnce = 512
}

/// How far an account is with being destroyed on this machine.
package struct WipeMark: Hashable, Sendable {
  package enum State: String, Sendable {
    /// Something may be here still.
    case begun
    /// Nothing is here, and the hub does not know that yet.
    case done
    /// The hub knows it.
    case told
  }

  package var state: State
  /// The account's zone at its hub.
  package let zone: WireID
  /// The device that the machine was.
  package let device: String
  /// When it began.
  package let time: Timestamp

  package init(state: State, zone: WireID, device: String, time: Timestamp) {
    self.state = state
    self.zone = zone
    self.device = device
    self.time = time
  }
}

extension StoreTransaction {
  private static func wipeKey(_ account: Int64) -> String { "wipe.\(account)" }

  /// - Throws: `corrupt`.
  func wipe(of account: Int64) throws -> WipeMark? {
    guard let text = try setting(Self.wipeKey(account)) else { return nil }
    let words = text.split(separator: " ")
    guard words.count == 4, let state = WipeMark.State(rawValue: String(words[0])), let zone = WireID(String(words[1])),
      let time = Int64(words[3])
    else {
      throw SheafError(
        .corrupt, subject: "library", reason: "does not say what of an account was destroyed here",
        advice: "run sheaf repair")
    }
    return WipeMark(state: state, zone: zone, device: String(words[2]), time: Timestamp(nanoseconds: time))
  }

  func setWipe(_ mark: WipeMark?, of account: Int64) throws {
    try setSetting(
      Self.wipeKey(account), mark.map { "\($0.state.rawValue) \($0.zone) \($0.device) \($0.time.nanoseconds)" })
  }
}
