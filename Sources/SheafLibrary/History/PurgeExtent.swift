package import SheafModel
import SheafStore

/// Rooms: `ShareBook`.
extension Library {
  /// The items that a purge would destroy, and the people who would lose them.
  ///
  /// - Throws: as ``purge(_:version:)`` of the whole item.
  package func purgeExtent(_ path: ItemPath) throws -> PurgeExtent {
    let (ino, people) = try locked {
      let ino = try beginPurge(path).top.ino
      return (ino, try affected(by: ino, besides: try account(path.account).id))
    }
    // Read beside the lock: a folder may have very much in it.
    let items = try store.snapshot { try $0.countBelow(ino, limit: PurgeExtent.limit) }
    return PurgeExtent(items: items, people: people)
  }

  /// The participants of the shares that an inode is in or that lie below it.
  private func affected(by ino: Int64, besides account: Int64) throws -> [AccountHandle] {
    var accounts: Set<Int64> = []
    for share in shares.owned(by: try inode(ino).row.owner) {
      guard let inode = try sharedInode(share.row.item) else { continue }
      var lies = inode.ino == ino
      try ascend(from: inode.row.parent) { folder in
        lies = lies || folder.ino == ino
        return !lies
      }
      if !lies { lies = try self.share(of: self.inode(ino))?.row.item == share.row.item }
      if lies { accounts.formUnion(share.participants.values.filter { $0.acceptance == .accepted }.map(\.account)) }
    }
    return try accounts.subtracting([account]).map(handle).sorted { $0.description < $1.description }
  }
}
