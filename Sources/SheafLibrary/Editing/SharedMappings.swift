import SheafModel

/// Files that programs have mapped shared by one mount and change by another one.
///
/// A kernel keeps the pages that a mapping changed, and writes whole pages when somebody requests it: over bytes that
/// came by another mount meanwhile. So before bytes are changed by one door, the kernels of the others are asked for
/// what they have of them; after the change they forget the pages, as always.
///
/// Rooms: `Doors`, `InodeTable`, `OpenFiles`, `ShareBook`.
extension Library {
  /// Makes other mounts of the account write back what may be mapped of bytes that are about to be changed by an open
  /// file.
  ///
  /// - Parameters:
  ///   - start: the first byte.
  ///   - count: how many; nil for all that follow.
  func collectMapped(_ start: Int64, _ count: Int64?, of handle: UInt64) {
    locked {
      guard doors.areSeveral, let file = files[handle], file.draft.writerCount > 1 else { return }
      tellOverwriting(start, count, of: file.inode, file.draft, from: file.door)
    }
  }

  /// As ``collectMapped(_:_:of:)``, where a file is truncated.
  func collectMapped(_ start: Int64, of ino: Int64, _ caller: Caller) {
    locked {
      guard doors.areSeveral, let inode = inodes[ino], inode.writerCount > 0 else { return }
      tellOverwriting(start, nil, of: inode, inode.draft(of: caller.account), from: caller.door)
    }
  }

  /// Makes the mounts of other people write back what they changed in mappings of what is in a share, while they may
  /// still save it: before an end of their access, after which the library takes none of it.
  ///
  /// - Parameter handle: whose access it is; nil for everybody's.
  func collectMapped(inShareOf path: ItemPath, by handle: AccountHandle? = nil) {
    collectMapped {
      let share = try sharedItem(path).share.row.item
      let account = try handle.map { try self.account($0).id }
      return { file in try (account == nil || file.account == account) && self.share(of: file.inode)?.row.item == share
      }
    }
  }

  /// As ``collectMapped(inShareOf:by:)``, where an account takes an entry of its `Shared/OWNER` away.
  func collectMapped(leaving name: [UInt8], of account: Int64, owner: Int64) {
    collectMapped {
      let share = try listing(of: account, owner: owner)[name]?.share
      return { file in try file.account == account && self.share(of: file.inode)?.row.item == share }
    }
  }

  /// As ``collectMapped(inShareOf:by:)``, for what leaves a share by a rename.
  func collectMapped(leavingWith name: [UInt8], _ parent: Int64, _ newParent: Int64) {
    if parent == newParent { return }
    collectMapped {
      guard !shares.isEmpty, let share = try share(ofFolder: parent)?.row.item,
        try self.share(ofFolder: newParent)?.row.item != share, let top = try entry(parent, name)?.ino
      else { return { _ in false } }
      return { file in
        try self.share(of: file.inode)?.row.item == share
          && (file.inode.ino == top || self.isBelow(file.inode.row.parent, top))
      }
    }
  }

  /// As ``collectMapped(inShareOf:by:)``, for what somebody elsewhere takes out of a share.
  ///
  /// - Parameters:
  ///   - owner: Whose it is.
  ///   - leaves: Says which of it goes.
  func collectMapped(ofOwner owner: Int64, where leaves: @escaping (Inode) throws -> Bool) {
    collectMapped { { file in try file.inode.row.owner == owner && leaves(file.inode) } }
  }

  /// As ``collectMapped(inShareOf:by:)``, for a tree that gets another owner: of the files of its owner, too.
  func collectMapped(below top: Int64) {
    collectMapped(ofOwners: true) {
      { file in try file.inode.ino == top || self.isBelow(file.inode.row.parent, top) }
    }
  }

  /// - Parameter which: Says, with the lock held, of which files of other people than the owner it is to be.
  private func collectMapped(ofOwners: Bool = false, _ which: () throws -> (OpenFile) throws -> Bool) {
    locked {
      guard !doors.isEmpty, let isMeant = try? which() else { return }
      for file in files.all where file.canRead && file.canWrite {
        guard let account = file.account, ofOwners || account != file.inode.row.owner,
          (try? isMeant(file)) ?? false
        else { continue }
        tell(.overwriting(file.inode.ino, 0..<(.max)), to: account)
      }
    }
  }

  private func tellOverwriting(_ start: Int64, _ count: Int64?, of inode: Inode, _ draft: Draft, from door: Int) {
    // A program that mapped it shared for writing has a handle that can read and write, for as long as the mapping
    // exists.
    let isMapped = files.all.contains { $0.draft === draft && $0.door != door && $0.canRead && $0.canWrite }
    guard isMapped, start >= 0 else { return }
    let end = count.map { start.addingReportingOverflow($0) } ?? (.max, false)
    tell(.overwriting(inode.ino, start..<(end.overflow ? .max : max(start, end.partialValue))), of: draft, from: door)
  }
}
