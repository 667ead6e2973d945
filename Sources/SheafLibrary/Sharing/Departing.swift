import Foundation
import Glibc
import SheafModel
import SheafStore

/// `rm -r` of an entry of `Shared/OWNER/`: it deletes what is inside before it takes the entry away. When the same
/// program then does that, it leaves, and its deletions are undone (``Return``). Interrupted before, they stay, and can
/// be recovered; so do those that a program made before it paused.
///
/// Rooms: `Departures`, `InodeTable`, `Numbers`.
extension Library {
  /// Remembers what a program takes away in a share of someone else.
  func noteDeparture(
    _ entry: EntryRow, of inode: Inode, _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    guard isForeign(inode, caller), let account = caller.account, caller.process != 0,
      let share = try share(ofFolder: entry.parent)
    else { return }
    let program = Departures.Program(share: share.row.item, account: account, process: caller.process)
    let row = inode.row
    change.whenRecorded { [self] in
      if !inode.isFolder, row.nlink > 1 {
        departures.note(.link(entry), by: program, at: time)
      } else if row.item == nil {
        departures.note(.special(row), by: program, at: time)
      } else {
        departures.note(row.ino, by: program, at: time)
      }
    }
  }

  /// Whether what was deleted in an account's items may come back by itself: a program that still runs and has not paused
  /// may leave the share next, or somebody has left and the return goes on.
  func mayReturn(deletionsOfItemsOf account: Int64) throws -> Bool {
    let running = departures.programs(at: clock()).filter { Caller.lives($0.process) }
    let returning = try read { try $0.numberSettings(after: Return.settingPrefix) }
      .compactMap { $0.key.split(separator: ".").first.flatMap { Int64($0) } }
    return try (running.map(\.share) + returning).contains { try sharedInode($0)?.row.owner == account }
  }

  /// Gives a file a name again that was one of several.
  func undoUnlink(_ entry: EntryRow, _ change: Change) throws {
    guard try canReturn(to: entry.parent, entry.name, change), var row = try change.rows.inode(entry.ino),
      row.nlink > 0
    else { return }
    row.nlink += 1
    if !entry.isExtra, var first = try change.rows.entry(row.parent, hash: nameHash(row.name), name: row.name) {
      first.isExtra = true
      try change.rows.update(first)
      try carryEntry(of: inode(row.ino), to: entry.parent, change)
      (row.parent, row.name) = (entry.parent, entry.name)
    }
    try change.rows.update(row)
    let final = row
    change.whenRecorded { [self] in
      guard let inode = inodes[final.ino] else { return }
      inode.row = final
      tellPlace(of: inode)
    }
    var returned = entry
    returned.since = change.time
    try putBack(returned, row, change)
  }

  /// Gives a fifo or socket its name again.
  func undoUnlink(special removed: InodeRow, _ change: Change) throws {
    guard try canReturn(to: removed.parent, removed.name, change) else { return }
    var row = removed
    row.ino = numbers.nextIno()
    row.nlink = 1
    try change.rows.insert(row)
    try putBack(
      EntryRow(parent: row.parent, hash: nameHash(row.name), name: row.name, ino: row.ino, since: change.time), row,
      change)
  }

  private func canReturn(to folder: Int64, _ name: [UInt8], _ change: Change) throws -> Bool {
    guard let row = try change.rows.inode(folder), row.nlink > 0 else { return false }
    return try change.rows.entry(folder, hash: nameHash(name), name: name) == nil
  }

  private func putBack(_ entry: EntryRow, _ row: InodeRow, _ change: Change) throws {
    try change.rows.insert(entry)
    let place = LibraryPlace(folder: .inode(entry.parent), name: entry.name)
    change.whenRecorded { [self] in tell(.made(NamedInode(ino: row.ino, mode: row.mode, place: place)), from: 0) }
  }
}
