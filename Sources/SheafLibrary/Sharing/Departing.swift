import Foundation
import Glibc
import SheafModel
import SheafStore

/// `rm -r` of an entry of `Shared/OWNER/`: it deletes what is inside before it takes the entry away. When the same program then
/// does that, it leaves, and its deletions are undone (``Return``). Interrupted before, they stay, and can be recovered; so do
/// those that a program made before it paused.
extension Library {
  /// Remembers what a program takes away in a share of someone else, in the running transaction.
  func noteDeparture(_ entry: EntryRow, of inode: Inode, _ caller: Caller, _ time: Timestamp) throws {
    guard isForeign(inode, caller), let account = caller.account, caller.process != 0,
      let share = try share(ofFolder: entry.parent)
    else { return }
    let program = Departures.Program(share: share.row.item, account: account, process: caller.process)
    let row = inode.row
    whenCommitted { [self] in
      if !inode.isFolder, row.nlink > 1 {
        departures.note(.link(entry), by: program, at: time)
      } else if row.item == nil {
        departures.note(.special(row), by: program, at: time)
      } else {
        departures.note(row.ino, by: program, at: time)
      }
    }
  }

  /// Gives a file a name again that was one of several.
  func undoUnlink(_ entry: EntryRow, _ transaction: StoreTransaction) throws {
    guard try canReturn(to: entry.parent, entry.name, transaction), var row = try transaction.inode(entry.ino),
      row.nlink > 0
    else { return }
    row.nlink += 1
    if !entry.isExtra, var heir = try transaction.entry(row.parent, hash: nameHash(row.name), name: row.name) {
      heir.isExtra = true
      try transaction.update(heir)
      try carryEntry(of: inode(row.ino), to: entry.parent, transaction)
      (row.parent, row.name) = (entry.parent, entry.name)
    }
    try transaction.update(row)
    let final = row
    whenCommitted { [self] in
      guard let inode = inodes[final.ino] else { return }
      inode.row = final
      tellPlace(of: inode)
    }
    try putBack(entry, row, transaction)
  }

  /// Gives a fifo or socket its name again.
  func undoUnlink(special lost: InodeRow, _ transaction: StoreTransaction) throws {
    guard try canReturn(to: lost.parent, lost.name, transaction) else { return }
    var row = lost
    row.ino = numbers.nextIno()
    row.nlink = 1
    try transaction.insert(row)
    try putBack(
      EntryRow(parent: row.parent, hash: nameHash(row.name), name: row.name, ino: row.ino), row, transaction)
  }

  private func canReturn(to folder: Int64, _ name: [UInt8], _ transaction: StoreTransaction) throws -> Bool {
    guard let row = try transaction.inode(folder), row.nlink > 0 else { return false }
    return try transaction.entry(folder, hash: nameHash(name), name: name) == nil
  }

  private func putBack(_ entry: EntryRow, _ row: InodeRow, _ transaction: StoreTransaction) throws {
    try transaction.insert(entry)
    let place = LibraryPlace(folder: .inode(entry.parent), name: entry.name)
    whenCommitted { [self] in tell(.made(NamedInode(ino: row.ino, mode: row.mode, place: place)), from: 0) }
  }
}
