import Foundation
import SheafModel
import SheafReplica
import SheafStore
import SheafWire

/// What a connected account's items tell of their replica (docs/REFERENCE.md, "Extended attributes").
///
/// Rooms: `AccountTable`, `ConnectedAccounts`.
extension Library {
  /// The attributes `user.sheaf.local` and `user.sheaf.sync`; none in an account that no hub knows, and of what no hub
  /// hears of, as ignored files, not the second.
  func replicaAttributes(of inode: Inode, _ item: ItemRow) throws -> [(name: String, value: String)] {
    guard connectedAccounts.contains(item.owner) else { return [] }
    let local = [("local", try local(inode))]
    return item.isQuiet ? local : try local + [("sync", synchronization(of: inode, item))]
  }

  private func local(_ inode: Inode) throws -> String {
    let absent = inode.row.content?.absentLength ?? 0
    if absent > 0 { return absent < inode.row.size ? "partly" : "remote" }
    return try isKept(inode.ino) == true ? "kept" : "here"
  }

  private func synchronization(of inode: Inode, _ item: ItemRow) throws -> String {
    let (account, id) = (item.owner, item.uuid.bytes)
    let row = try read { try $0.replicaItem(of: account, id) }
    if let text = row.mark, case .refused = try ReplicaJSON.decode(text) as ReplicaMark { return "refused" }
    let isOpen = inode.drafts.contains { $0.session != nil || $0.isChanged }
    let isChanged = try read { try $0.hasReplicaChange(of: account, id) }
    // The hub has `Documents` as the zone itself.
    let isKnown = row.base != nil || inode.row.parent == 0
    if !isOpen, !isChanged, isKnown, try replicaVersions(of: item, connected(account)).unsent.isEmpty {
      return "synced"
    }
    return connectedAccounts.isSending(account) ? "sending" : "waiting"
  }

  /// Notes whether the hub of a connected account takes what was done here: it is reached, and has room.
  package func noteSending(_ isSending: Bool, _ account: Int64) {
    locked { connectedAccounts.note(account, isSending: isSending) }
  }

  /// Whether it is the `Documents` of a connected account, which was there before this machine knew of it.
  func isConnectedRoot(_ inode: Inode) -> Bool {
    connectedAccounts.contains(inode.row.owner) && accountTable[inode.row.owner]?.documents == inode.ino
  }
}
