import Glibc

/// An open file description.
final class OpenFile {
  let inode: Inode
  let canRead: Bool
  let canWrite: Bool
  /// Whether opening it takes its contents away, even if only for reading.
  let truncates: Bool
  /// Whether the kernel opens it to run it, which needs the right to execute alone.
  private let executes: Bool
  /// Whether reading is to be noted in the access time: not with `O_NOATIME` (open(2)).
  let notesAccess: Bool
  /// The door by which it was opened.
  let door: Int
  /// The account that opened it; nil for the library itself.
  let account: Int64?
  /// That account's state of the contents.
  let draft: Draft
  /// The thread that opened it.
  let thread: Int32
  /// Its process then, if it may change the file: the thread can end before it. Of those that read few are asked for it.
  private let writingProcess: Int32?
  /// Whether what was written through it could not be saved in its place, because the account lost the right to.
  var hasLostChanges = false
  /// The version that its reader has read through it, as far as that is remembered; 0 before any.
  var readVersion: Int64 = 0
  /// The version that its reader and writer has seen through it; nil where that is not known.
  var seen: SeenVersion?
  /// Whether opening it took its contents away, and nothing was written through it since.
  var hasOnlyTruncated = false
  /// Whether something was written through it since it was last flushed.
  var hasUnflushed = false
  /// Whether it was told that it is closed: with the flush after the last write, as that comes before close(2) returns.
  var isToldClosed = false

  /// Whether it holds contents that a replica receives (``Library/beginContents(of:)``): nobody else has it open.
  var isReceived: Bool { door == 0 && inode.isNameless }

  init(inode: Inode, flags: Int32, _ caller: Caller) {
    self.inode = inode
    door = caller.door
    account = caller.account
    draft = inode.draft(of: caller.account)
    thread = caller.thread
    let mode = flags & O_ACCMODE
    writingProcess = mode == O_RDONLY && flags & O_TRUNC == 0 ? nil : caller.process
    canRead = mode != O_WRONLY
    canWrite = mode != O_RDONLY
    truncates = flags & O_TRUNC != 0
    executes = flags & Self.toExecute != 0
    notesAccess = flags & Library.noAccessTime == 0
  }

  /// `__FMODE_EXEC` of <linux/fs.h>, which open(2) never has.
  private static let toExecute: Int32 = 0x20

  /// The process that opened it; 0 for the library itself.
  var process: Int32 { writingProcess ?? Caller.process(of: thread) }

  /// Whether its last close has something to promise.
  var mayChange: Bool { canWrite || truncates }

  /// The permission bits that opening needs.
  var wanted: UInt32 {
    executes ? Permission.execute : (canRead ? Permission.read : 0) | (mayChange ? Permission.write : 0)
  }
}
