import Foundation
import Glibc
import SheafModel
import SheafStore

/// `rm -r` of an entry of `Shared/OWNER/`: it deletes what is inside before it takes the entry away. When the same program
/// then does that, its deletions are undone and it leaves, in one transaction. Interrupted, they stay, and can be recovered.
///
/// What becomes an item is among the deleted until then. What does not is remembered here, as long as the program lives: fifos
/// and sockets, and names of files that have others.
extension Library {
  /// A program that deletes something in a share of someone else.
  struct Departing: Hashable {
    let share: Int64
    let account: Int64
    let process: Int32
  }

  /// What such a program has deleted that is not among the deleted.
  struct Departure {
    /// When it began.
    let began: Timestamp
    var lost: [LostName] = []
  }

  /// A name that was taken away and left no row behind.
  enum LostName {
    /// One of several names of a file.
    case link(EntryRow)
    /// A fifo or socket.
    case special(InodeRow)
  }

  /// Names remembered of a program at most.
  private static let lostLimit = 16_384

  /// Programs remembered at most.
  private static let departureLimit = 1024

  /// Remembers when a program began to delete something in a share.
  func noteDeparture(from folder: Inode, _ caller: Caller, _ time: Timestamp) throws {
    guard isForeign(folder, caller), let account = caller.account, caller.process != 0,
      let share = try share(of: folder)
    else { return }
    let departing = Departing(share: share.row.item, account: account, process: caller.process)
    guard departures[departing] == nil else { return }
    if departures.count >= Self.departureLimit {
      departures = departures.filter { access("/proc/\($0.key.process)", F_OK) == 0 }
      if departures.count >= Self.departureLimit { departures = [:] }
    }
    departures[departing] = Departure(began: time)
  }

  /// Remembers what a program takes away in a share of someone else that leaves no row behind.
  func noteLost(_ entry: EntryRow, of inode: Inode, _ caller: Caller) throws {
    guard !departures.isEmpty, isForeign(inode, caller), let account = caller.account, caller.process != 0,
      let share = try share(ofFolder: entry.parent)
    else { return }
    let lost: LostName
    if inode.row.nlink > 1 {
      lost = .link(entry)
    } else if inode.row.item == nil {
      lost = .special(inode.row)
    } else {
      return
    }
    let departing = Departing(share: share.row.item, account: account, process: caller.process)
    guard departures[departing]?.lost.count ?? Self.lostLimit < Self.lostLimit else { return }
    whenCommitted { [self] in departures[departing]?.lost.append(lost) }
  }

  /// Brings back what a program deleted in a share, in the running transaction.
  func undo(
    _ departure: Departure, in folder: Inode, by account: Int64, _ caller: Caller, _ transaction: StoreTransaction
  ) throws {
    try undoDeletions(in: folder.ino, by: account, since: departure.began, caller, transaction)
    // The last name that went comes back first, so that the oldest becomes the oldest again.
    for lost in departure.lost.reversed() {
      switch lost {
      case .link(let entry): try undoUnlink(entry, transaction)
      case .special(var row):
        guard try canReturn(to: row.parent, row.name, transaction) else { continue }
        row.ino = newInodeNumber()
        row.nlink = 1
        try transaction.insert(row)
        try putBack(
          EntryRow(parent: row.parent, hash: nameHash(row.name), name: row.name, ino: row.ino), row, transaction)
      }
    }
  }

  private func undoUnlink(_ entry: EntryRow, _ transaction: StoreTransaction) throws {
    guard try canReturn(to: entry.parent, entry.name, transaction), var row = try transaction.inode(entry.ino),
      row.nlink > 0
    else { return }
    row.nlink += 1
    if !entry.isExtra, var heir = try transaction.entry(row.parent, hash: nameHash(row.name), name: row.name) {
      heir.isExtra = true
      try transaction.update(heir)
      (row.parent, row.name) = (entry.parent, entry.name)
    }
    try transaction.update(row)
    let final = row
    whenCommitted { [self] in inodes[final.ino]?.row = final }
    try putBack(entry, row, transaction)
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

  /// Brings back what an account deleted below a folder, in the running transaction.
  func undoDeletions(
    in folder: Int64, by account: Int64, since time: Timestamp, _ caller: Caller, _ transaction: StoreTransaction
  ) throws {
    for row in try transaction.deleted(from: folder) where row.actor == account && row.time >= time {
      try undo(row, caller, transaction)
    }
    // What is below a folder that came back just now is found there too.
    var cookie: Int64 = 0
    while true {
      let entries = try transaction.entries(folder, after: cookie, limit: 1000)
      guard let last = entries.last else { return }
      cookie = last.hash
      for entry in entries {
        guard let row = try transaction.inode(entry.ino), row.mode & S_IFMT == S_IFDIR else { continue }
        try undoDeletions(in: entry.ino, by: account, since: time, caller, transaction)
      }
    }
  }
}
