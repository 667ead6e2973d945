import Foundation
import SheafModel
import SheafStore

/// Backups that programs link before they rename over a document (rule 16 of ``Identity``).
///
/// Rooms: `Identity`, `InodeTable`, `Numbers`, `ShareBook`.
extension Library {
  /// Makes the copy that stands for a hard link; nil where a hard link is what to make.
  ///
  /// - Throws: as ``make(_:_:_:mode:_:)``.
  func linkBackup(of inode: Inode, _ folder: Inode, _ name: [UInt8], _ caller: Caller) throws -> Inode? {
    guard !shares.isEmpty, inode.isRegular, folder.ino == inode.row.parent, let document = inode.row.item,
      shares.active(document) != nil, FileRole.isNamedAfter(name, inode.row.name)
    else { return nil }
    try permitMaking(name, in: folder, caller)
    try makeVersions(inode)
    guard let item = try item(of: inode) else { return nil }
    let time = clock()
    // Like a result of link(2), the new inode has everything of the file but its number.
    var row = inode.row
    row.ino = numbers.nextIno()
    row.name = name
    row.ctime = time
    if caller.uid != 0, caller.uid != row.uid { row.mode = modeWithoutSetID(inode, changedBy: caller) }
    return try makeChange(.link, by: caller, at: time) { change in
      let fresh = try insertDocument(
        holding: inode, of: item, isQuiet: true, creator: caller.actor(in: row), time, change)
      row.item = fresh.id
      let copy = Inode(row)
      try change.rows.insert(row)
      try carryXattrs(from: inode, to: row.ino, isNew: true, change)
      try change.rows.insert(
        EntryRow(parent: folder.ino, hash: nameHash(name), name: name, ino: row.ino, since: time))
      try touch(folder, time, change)
      try logEvent(
        .created, fresh, ino: row.ino, try eventData(fresh, parent: folder.ino, name: name),
        actor: caller.actor(in: row), thread: caller.thread, opens: true, change)
      change.whenRecorded { [self] in
        copy.item = fresh
        shareChunks(of: inode)
        inodes.insert(copy)
        identity.settle(folder.ino, name)
        identity.noteCreated(copy.ino, process: caller.process, isRemainder: true, at: time)
        tell(.made(NamedInode(copy, folder.ino, name)), from: caller.door)
      }
      return copy
    }
  }
}
