internal import Foundation
import SheafModel
import SheafStore

/// An inode in memory: its row, and what goes on with it.
///
/// Belongs to a ``Library`` and is touched only under its lock.
final class Inode {
  /// The row in the store, with times that may be newer.
  var row: InodeRow
  /// The item's row, loaded when first needed.
  var item: ItemRow?
  /// The owner's draft, and those of other accounts that have the file open.
  private(set) var own: Draft
  var others: [Int64: Draft] = [:]
  /// Whether the store has no row (any more): it lives on for those who have it open.
  var isOrphan = false
  /// The account that made it, where a row (`working_copies`) says that it is empty, while it has the contents of the
  /// document whose place it took: it is to be empty after a crash, too.
  var keptEmptyBy: Int64?
  /// Whether it was made without a name (O_TMPFILE of open(2)), and may get one.
  var isNameless = false
  /// The account whose temporary file it is, which alone sees it (BesideDocuments.swift).
  var temporaryOf: Int64?
  /// The program that made the document anew, or gave its name to another file, where it lost its row by that.
  var replacer: Int32?
  /// The share that it was in when it lost its row.
  var orphanShare: Int64?
  /// Whether it goes with all that its owner has on this machine, so that open files give access to it no more.
  var isWiped = false
  /// Whether the access time waits to be stored.
  var hasNewAccessTime = false
  /// Extended attributes of one without a row.
  var orphanXattrs: [[UInt8]: [UInt8]] = [:]
  /// The room that its extended attributes take, counted when somebody first asks.
  var xattrSpace: XattrSpace?
  /// The latest version that each program made which had it open together with others.
  var savers: [Int32: SeenVersion] = [:]
  var used: UInt64 = 0

  init(_ row: InodeRow) {
    self.row = row
    own = Draft(account: row.owner)
  }

  /// Makes it another account's if it is in a tree that was given to that.
  func follow(_ tree: GivenTree) {
    if row.owner == tree.change.former, tree.inos.contains(ino) { setOwner(tree.change) }
  }

  /// Makes it another account's: what the former owner has open is theirs as what others have open is.
  func setOwner(_ change: OwnerChange) {
    change.user.apply(to: &row)
    item?.owner = change.owner
    setOwner(change.owner)
  }

  /// Makes it another account's, with the drafts as they are: the owner's is the own one.
  func setOwner(_ account: Int64) {
    let former = own
    row.owner = account
    own = others.removeValue(forKey: account) ?? Draft(account: account)
    if !former.isIdle { others[former.account] = former }
  }

  var ino: Int64 { row.ino }
  var type: UInt32 { row.mode & S_IFMT }
  var isFolder: Bool { type == S_IFDIR }
  var isRegular: Bool { type == S_IFREG }
  /// Whether it is known to have no extended attributes.
  var hasNoXattrs: Bool { xattrSpace?.count == 0 }
  /// Open file descriptions of all accounts, and those of them that can write.
  var openCount: Int { drafts.reduce(0) { $0 + $1.openCount } }
  var writerCount: Int { drafts.reduce(0) { $0 + $1.writerCount } }

  /// Whether somebody has its contents in memory.
  var hasContents: Bool { own.working != nil || !others.isEmpty }

  /// Whether it must stay in memory.
  var isPinned: Bool {
    isOrphan || hasNewAccessTime || !own.isIdle || others.values.contains { !$0.isIdle }
  }

  /// The answer of stat(2) for the owner.
  var attributes: Attributes { attributes(contents(for: nil)) }

  /// The answer of stat(2) for a program that has these contents.
  func attributes(_ contents: (size: Int64, dataLength: Int64)) -> Attributes {
    Attributes(
      ino: row.ino, mode: row.mode, nlink: row.nlink, uid: row.uid, gid: row.gid, rdev: row.rdev, size: contents.size,
      blocks: (contents.dataLength + 4095) / 4096 * 8, atime: row.atime, mtime: row.mtime, ctime: row.ctime,
      isForeign: false)
  }
}

/// Rooms: `InodeTable`.
extension Library {
  /// `O_NOATIME` of open(2), which <fcntl.h> has for C with `_GNU_SOURCE` alone.
  package static let noAccessTime: Int32 = 0o1000000

  /// The kernel let go of an inode: one without a name and without users is forgotten.
  package func forget(_ inos: [Int64]) {
    locked {
      for ino in inos {
        if let inode = inodes[ino], inode.isOrphan, inode.openCount == 0 { inodes.remove(ino) }
      }
    }
  }
}
