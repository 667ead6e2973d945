import Foundation
package import SheafModel
import SheafStore

/// chmod, chown, truncate and utimensat.
///
/// Rooms: `Identity`, `UnstoredAccessTimes`.
extension Library {
  /// The attributes to change; nil leaves one as it is.
  package struct AttributeChange: Sendable {
    package enum Time: Sendable {
      case now
      case at(Timestamp)
    }

    package var mode: UInt32?
    package var uid: UInt32?
    package var gid: UInt32?
    package var size: Int64?
    package var atime: Time?
    package var mtime: Time?

    package init(
      mode: UInt32? = nil, uid: UInt32? = nil, gid: UInt32? = nil, size: Int64? = nil, atime: Time? = nil,
      mtime: Time? = nil
    ) {
      self.mode = mode
      self.uid = uid
      self.gid = gid
      self.size = size
      self.atime = atime
      self.mtime = mtime
    }

    /// Whether all is left as it is, but for the set-id bits, which the kernel leaves to the file system.
    var onlyClearsSetID: Bool {
      mode == nil && uid == nil && gid == nil && size == nil && atime == nil && mtime == nil
    }
  }

  /// Changes attributes.
  ///
  /// - Parameter handle: the open file through which, for ftruncate(2).
  /// - Throws: `notPermitted`, `accessDenied`, `isDirectory`, `tooLarge`, `noSpace`.
  package func setAttributes(
    _ ino: Int64, _ change: AttributeChange, handle: UInt64?, _ caller: Caller
  ) throws -> Attributes {
    if let size = change.size {
      collectMapped(size, of: ino, caller)
      if handle == nil { storeSpilled(ino) }
    }
    return try locked {
      let inode = try inode(ino)
      let time = clock()
      let change = try fit(change, to: inode, caller)
      try permitChange(of: inode, change, handle: handle, caller)
      if let size = change.size {
        guard !inode.isFolder else { throw SheafError(.isDirectory) }
        try truncate(inode, to: size, handle: handle, caller)
        let draft = inode.draft(of: caller.account)
        if draft.writerCount == 0 {
          try endAfterClose(inode, draft)
        } else if handle == nil {
          // A close that returned is safe, even if the kernel has not reported it yet.
          try makeVersion(inode, draft, cause: .save)
        }
      }
      var row = inode.row
      if let mode = change.mode {
        row.mode = row.mode & S_IFMT | mode & 0o7777
        // Nobody gives a program the rights of a group that is not theirs (chmod(2)).
        if caller.uid != 0, mode & 0o2000 != 0, !caller.belongs(to: shownUser(of: inode, caller).gid) {
          row.mode &= ~0o2000
        }
      }
      // Whoever a mount is given to gives programs their own rights, and not those of the file's user.
      if let user = caller.user, user.ownsAll, change.mode != nil, !inode.isFolder, row.mode & 0o6000 != 0 {
        (row.uid, row.gid) = (user.uid, user.gid)
      }
      if let uid = change.uid { row.uid = uid }
      if let gid = change.gid { row.gid = gid }
      // Giving a file away takes its set-id bits, whoever does it (chown(2)).
      if change.mode == nil, !inode.isFolder, change.uid != nil || change.gid != nil {
        row.mode = modeWithoutSetID(inode, changedBy: caller)
      }
      if change.onlyClearsSetID, caller.uid != 0 { row.mode = modeWithoutSetID(inode, changedBy: caller) }
      if let atime = change.atime { row.atime = atime.timestamp(time) }
      if let mtime = change.mtime { row.mtime = mtime.timestamp(time) }
      row.ctime = time
      try updateAttributes(row, of: inode)
      if change.mode != nil { identity.choseMode(ino) }
      if !inode.isOrphan { inode.hasNewAccessTime = false }
      // The event of a truncation is that of a change of contents.
      tell(change.size == nil ? .attributes(ino) : .appearance(ino), from: caller.door)
      return try attributes(inode, caller)
    }
  }

  /// A change as it may be made where another user than the file's own is shown: to that user alone, and without set-id
  /// bits on what another account shares.
  ///
  /// - Throws: `accessDenied` for readers; `notPermitted` for another owner or group.
  private func fit(_ change: AttributeChange, to inode: Inode, _ caller: Caller) throws -> AttributeChange {
    guard isForeign(inode, caller) || caller.user?.ownsAll ?? false else { return change }
    try allow(.write, inode, caller)
    var change = change
    guard change.uid == nil || change.uid == caller.user?.uid, change.gid == nil || change.gid == caller.user?.gid
    else { throw SheafError(.notPermitted) }
    change.uid = nil
    change.gid = nil
    if isForeign(inode, caller) {
      // A caller that changes the mode of others' files saw no set-id bits: folders keep theirs, programs lose them.
      let kept = inode.isFolder ? inode.row.mode & 0o6000 : 0
      change.mode = change.mode.map { $0 & 0o1777 | kept }
    }
    return change
  }

  /// Stores a row that no version would store, since its contents are as they were.
  func updateAttributes(_ row: InodeRow, of inode: Inode) throws {
    if !inode.isOrphan { try makeChange(.setAttributes) { try $0.rows.update(row, keepsItem: true) } }
    inode.row = row
  }

  /// The rules of chmod(2), chown(2), truncate(2) and utimensat(2).
  private func permitChange(of inode: Inode, _ change: AttributeChange, handle: UInt64?, _ caller: Caller) throws {
    guard caller.uid != 0 else { return }
    let isOwner = caller.uid == shownUser(of: inode, caller).uid
    if let mode = change.mode, !isOwner {
      // The kernel takes set-id bits from a file that someone who may write it writes.
      let lost = inode.row.mode & 0o7777 & ~(mode & 0o7777)
      let gained = mode & 0o7777 & ~inode.row.mode
      guard gained == 0, lost & 0o1777 == 0 else { throw SheafError(.notPermitted) }
    }
    if let uid = change.uid, uid != inode.row.uid { throw SheafError(.notPermitted) }
    if let gid = change.gid, gid != inode.row.gid {
      guard isOwner, caller.belongs(to: gid) else { throw SheafError(.notPermitted) }
    }
    if change.onlyClearsSetID, !isOwner, modeWithoutSetID(inode, changedBy: caller) != inode.row.mode {
      // By a write of who may write, or by chown(2), which is the owner's.
      do {
        try permit(inode, caller, Permission.write)
      } catch let error as SheafError where error.kind == .accessDenied {
        throw SheafError(.notPermitted)
      }
    }
    if change.size != nil, handle == nil { try permit(inode, caller, Permission.write) }
    if !isOwner {
      switch (change.atime, change.mtime) {
      case (nil, nil): break
      case (.at, _), (_, .at): if change.size == nil { throw SheafError(.notPermitted) }
      default: if handle == nil { try permit(inode, caller, Permission.write) }
      }
    }
  }

  /// Notes a read as relatime does: at most once a day unless the file changed since (mount(8)).
  func noteAccess(_ inode: Inode) {
    let time = clock()
    let row = inode.row
    guard row.atime <= row.mtime || row.atime <= row.ctime || time.seconds - row.atime.seconds >= 86_400 else { return }
    inode.row.atime = time
    if !inode.isOrphan, accessTimes.insert(inode) { maintenance.wake() }
  }

  /// Access times that are stored at a time, so that nobody waits long.
  private static let accessBatch = 1000

  /// Stores access times that reads left in memory, some of them; returns whether there are more.
  func updateAccessTimes() throws -> Bool {
    let batch = accessTimes.prefix(Self.accessBatch)
    guard !batch.isEmpty else { return false }
    try makeChange(.times, freesSpace: true) { change in
      for inode in batch where inode.hasNewAccessTime && !inode.isOrphan {
        try change.rows.setAccessTime(inode.row.atime, ino: inode.ino)
      }
      change.whenRecorded { [self] in accessTimes.remove(batch) }
    }
    return !accessTimes.isEmpty
  }
}

extension Library.AttributeChange.Time {
  fileprivate func timestamp(_ now: Timestamp) -> Timestamp {
    switch self {
    case .now: now
    case .at(let time): time
    }
  }
}
