internal import Foundation
package import SheafModel
import SheafStore

/// An inode in memory: its row, and what goes on with it.
///
/// Belongs to a ``Library`` and is touched only under its lock.
final class Inode {
  /// What the store holds, with times that may be newer.
  var row: InodeRow
  /// The item's row, loaded when first needed.
  var item: ItemRow?
  /// The owner's draft, and those of other accounts that have the file open.
  let own: Draft
  var others: [Int64: Draft] = [:]
  /// Whether the store has no row (any more): it lives on for those who have it open.
  var isOrphan = false
  /// The share that it was in when it lost its row.
  var orphanShare: Int64?
  /// Whether the access time waits to be stored.
  var hasNewAccessTime = false
  /// Extended attributes of one without a row.
  var orphanXattrs: [[UInt8]: [UInt8]] = [:]
  /// Whether it is known to have no extended attribute: the kernel asks for one before every write.
  var hasNoXattrs = false
  /// The latest version that each program made which had it open together with others.
  var savers: [Int32: SeenVersion] = [:]
  var used: UInt64 = 0

  init(_ row: InodeRow) {
    self.row = row
    own = Draft(account: row.owner)
  }

  var ino: Int64 { row.ino }
  var type: UInt32 { row.mode & S_IFMT }
  var isFolder: Bool { type == S_IFDIR }
  var isRegular: Bool { type == S_IFREG }
  /// Open file descriptions of all accounts, and those of them that can write.
  var openCount: Int { drafts.reduce(0) { $0 + $1.openCount } }
  var writerCount: Int { drafts.reduce(0) { $0 + $1.writerCount } }

  /// Whether it must stay in memory.
  var isPinned: Bool {
    isOrphan || hasNewAccessTime || drafts.contains { !$0.isIdle }
  }

  /// What stat(2) tells the owner.
  var attributes: Attributes { attributes(contents(for: nil)) }

  /// What stat(2) tells who has these contents.
  func attributes(_ contents: (size: Int64, dataLength: Int64)) -> Attributes {
    Attributes(
      ino: row.ino, mode: row.mode, nlink: row.nlink, uid: row.uid, gid: row.gid, rdev: row.rdev, size: contents.size,
      blocks: (contents.dataLength + 4095) / 4096 * 8, atime: row.atime, mtime: row.mtime, ctime: row.ctime,
      isForeign: false)
  }
}

extension Library {
  /// `O_NOATIME` of open(2), which <fcntl.h> has for C with `_GNU_SOURCE` alone.
  package static let noAccessTime: Int32 = 0o1000000

  /// The kernel let go of an inode: one without a name and without users is forgotten.
  package func forget(_ inos: [Int64]) {
    locked {
      for ino in inos {
        if let inode = inodes[ino], inode.isOrphan, inode.openCount == 0 { inodes[ino] = nil }
      }
    }
  }
}

/// What stat(2) tells of an inode.
package struct Attributes: Hashable, Sendable {
  package let ino: Int64
  package let mode: UInt32
  package let nlink: Int64
  package let uid: UInt32
  package let gid: UInt32
  package let rdev: UInt64
  /// Bytes.
  package let size: Int64
  /// Units of 512 bytes.
  package let blocks: Int64
  package let atime: Timestamp
  package let mtime: Timestamp
  package let ctime: Timestamp
  /// Whether another account than that which asks owns it.
  package let isForeign: Bool
}

/// One editing session: the writes between the first dirty one and the last writable close, which become one version.
struct EditingSession {
  /// The account that writes.
  let author: Int64
  /// The version's number, once an autosave or a close gave it one.
  var number: Int64?
  /// The version that the session began from; nil before any.
  var base: Int64?
  /// The contents it began from.
  var baseContent: StoredContent
  let began: Timestamp
  var cause: VersionCause
  /// Since when something is not stored; nil when everything is.
  var dirtySince: Timestamp?
  /// Whether anything but a truncation to nothing happened since the last cut.
  var hasWrites = false
  /// Whether the version that it numbered was made on top of the current one.
  var isOnTop = true
  /// Whether another account saved since this session's last cut, so that what it holds is not current.
  var isPassedOver = false
  /// Chunks that only this session's version holds, with how many of its extents refer to each: freed by the cut that replaces
  /// the last of these.
  var ownChunks: [Int64: Int] = [:]
  /// When its contents were kept in the working file, to be stored soon; nil where they were not.
  var kept: Timestamp?
  /// Handles that wrote, and whether each was flushed since.
  var writers: [UInt64: Bool] = [:]

  /// Whether all that was written is kept and waits to be stored.
  var isKept: Bool { kept != nil && dirtySince == nil }
}

/// A version that a program knows, of the item that the file was then; number 0 for none of those that the item has.
struct SeenVersion {
  let item: Int64
  let number: Int64
}

/// A session whose version is stored and has only to be ended.
struct EndedSession {
  let version: VersionRow
  let item: ItemRow
  let inode: InodeRow
}

/// An open file description.
final class OpenFile {
  let inode: Inode
  let canRead: Bool
  let canWrite: Bool
  /// Whether opening it takes its contents away, be it for reading alone.
  let truncates: Bool
  /// Whether the kernel opens it to run it, which needs the right to execute alone.
  private let executes: Bool
  /// Whether reading is to be noted in the access time: not with `O_NOATIME` (open(2)).
  let notesAccess: Bool
  /// The door by which it was opened.
  let door: Int
  /// The account that opened it; nil for the library itself.
  let account: Int64?
  /// What that account has of the contents.
  let draft: Draft
  /// The thread that opened it.
  let thread: Int32
  /// Whether what was written through it could not be saved in its place, because the account lost the right to.
  var hasLostChanges = false
  /// The version that its reader has read through it, as far as that is remembered; 0 before any.
  var readVersion: Int64 = 0
  /// The version that who reads and writes it has seen through it; nil where that is not known.
  var seen: SeenVersion?
  /// Whether opening it took its contents away, and nothing was written through it since.
  var hasOnlyTruncated = false
  /// Whether something was written through it since it was last flushed.
  var hasUnflushed = false
  /// Whether it was told that it is closed: with the flush after the last write, as that comes before close(2) returns.
  var isToldClosed = false

  init(inode: Inode, flags: Int32, _ caller: Caller) {
    self.inode = inode
    door = caller.door
    account = caller.account
    draft = inode.draft(of: caller.account)
    thread = caller.thread
    let mode = flags & O_ACCMODE
    canRead = mode != O_WRONLY
    canWrite = mode != O_RDONLY
    truncates = flags & O_TRUNC != 0
    executes = flags & Self.toExecute != 0
    notesAccess = flags & Library.noAccessTime == 0
  }

  /// `__FMODE_EXEC` of <linux/fs.h>, which open(2) never has.
  private static let toExecute: Int32 = 0x20

  /// Whether its last close has something to promise.
  var mayChange: Bool { canWrite || truncates }

  /// The permission bits that opening needs.
  var wanted: UInt32 {
    executes ? Permission.execute : (canRead ? Permission.read : 0) | (mayChange ? Permission.write : 0)
  }
}
