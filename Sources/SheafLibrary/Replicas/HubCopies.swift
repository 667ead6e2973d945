import SheafModel
import SheafStore
package import SheafWire

/// Documents that a hub put beside others, since two machines saved at once (docs/HUB.md, "When two did something at
/// once").
///
/// Rules:
/// 1. The hub's state of an item says of which document it is a copy. A name alone says nothing: people give names, too.
/// 2. Whoever gives such a document a name of their own, or deletes it, has decided. Until then it is a conflict.
///
/// Rooms: `ConnectedAccounts`.
extension Library {
  /// What a caller sees of a document's being beside another one; nil for any other item, and once it has a name that
  /// hubs do not give.
  ///
  /// - Throws: `corrupt`.
  func hubCopy(_ item: ItemRow, named name: [UInt8], _ caller: Caller) throws -> HubCopy? {
    guard item.kind == .document, HubCopyName.isOne(name),
      let base = try read({ try $0.replicaItem(of: item.owner, item.uuid.bytes) }).base
    else { return nil }
    let state: ItemState = try replicaTexts.decode(base)
    return try state.copyOf.map { HubCopy(path: try place(ofOriginal: $0, owner: item.owner, caller)) }
  }

  /// Whether an item is what a hub put beside a document. Whoever gives it that document's name has seen both, and decided:
  /// it is no save that is based on the one that lost.
  func isHubCopy(_ item: ItemRow?, of document: ItemRow) throws -> Bool {
    guard let item, item.owner == document.owner, connectedAccounts.contains(document.owner),
      let base = try read({ try $0.replicaItem(of: item.owner, item.uuid.bytes) }).base
    else { return false }
    let state: ItemState = try replicaTexts.decode(base)
    return try state.copyOf.map { try present($0, of: item.owner) == WireID(bytes: document.uuid.bytes) } ?? false
  }

  /// Whether people decided about a document that a hub put beside another one (rule 2); nil where the library does not
  /// know it: it has not come yet, or nothing is left of it.
  package func isDecided(_ copy: WireID, of account: Int64) throws -> Bool? {
    try locked {
      try replicaInode(copy, of: account).map { $0.row.nlink == 0 || !HubCopyName.isOne($0.row.name) }
    }
  }

  /// The id that an item has by now: it may have become one with another.
  private func present(_ id: WireID, of owner: Int64) throws -> WireID {
    try read { try $0.replicaItem(of: owner, id.bytes) }.alias.flatMap { WireID(bytes: $0) } ?? id
  }

  /// Where a caller sees the document that another one of the same owner was put beside; nil where it is gone, or not
  /// for the caller.
  private func place(ofOriginal original: WireID, owner: Int64, _ caller: Caller) throws -> String? {
    guard let account = caller.account else { return nil }
    guard let inode = try replicaInode(present(original, of: owner), of: owner), inode.row.nlink > 0 else { return nil }
    do {
      try allow(.read, inode, caller)
      return try mountPath(inode, for: account)
    } catch let error as SheafError where [.accessDenied, .notFound].contains(error.kind) {
      return nil
    }
  }
}
