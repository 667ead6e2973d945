import Foundation
import Glibc
import SheafModel
import SheafStore

/// `rm -r` of an entry of `Shared/OWNER/`: it deletes what is inside before it takes the entry away. When the same program then
/// does that, it leaves, and its deletions are undone (``Return``). Interrupted before, they stay, and can be recovered; so do
/// those that a program made before it paused.
extension Library {
  /// A program that deletes something in a share of someone else.
  struct Departing: Hashable {
    let share: Int64
    let account: Int64
    let process: Int32
  }

  /// What such a program has deleted without a pause.
  struct Departure {
    /// Of each kind as many are remembered at most.
    static let limit = 16_384

    /// When it deleted something first.
    let since: Timestamp
    /// When it deleted something last.
    private var last: Timestamp
    /// The inodes that are among the deleted.
    private var deleted: Set<Int64> = []
    /// When it deleted the first that was too much to remember: what its account has deleted since counts as its own.
    private var overflow: Timestamp?
    /// What is not among the deleted, in the order in which it went: fifos and sockets, and names of files that have others.
    private(set) var lost: [LostName] = []

    init(at time: Timestamp) { (since, last) = (time, time) }

    /// What an account has deleted since a time, whatever program did it.
    init(ofAllSince time: Timestamp) { (since, last, overflow) = (time, time, time) }

    /// Whether what it deletes from now on is another deed: by now everybody was told of what it had deleted.
    func isOver(at time: Timestamp) -> Bool { time.nanoseconds - last.nanoseconds >= Identity.window }

    mutating func note(_ ino: Int64, at time: Timestamp) {
      last = time
      if deleted.count < Self.limit { deleted.insert(ino) } else if overflow == nil { overflow = time }
    }

    mutating func note(_ name: LostName, at time: Timestamp) {
      last = time
      if lost.count < Self.limit { lost.append(name) }
    }

    /// Whether something that its account deleted was deleted by it.
    func includes(_ row: DeletedRow) -> Bool {
      deleted.contains(row.ino) || overflow.map { row.time >= $0 } ?? false
    }
  }

  /// A name that was taken away and left no row behind.
  enum LostName {
    /// One of several names of a file.
    case link(EntryRow)
    /// A fifo or socket.
    case special(InodeRow)
  }

  /// Programs remembered at most.
  private static let departureLimit = 1024

  /// Remembers what a program takes away in a share of someone else, in the running transaction.
  func noteDeparture(_ entry: EntryRow, of inode: Inode, _ caller: Caller, _ time: Timestamp) throws {
    guard isForeign(inode, caller), let account = caller.account, caller.process != 0,
      let share = try share(ofFolder: entry.parent)
    else { return }
    let departing = Departing(share: share.row.item, account: account, process: caller.process)
    let row = inode.row
    whenCommitted { [self] in
      var departure = departures[departing].flatMap { $0.isOver(at: time) ? nil : $0 } ?? Departure(at: time)
      if !inode.isFolder, row.nlink > 1 {
        departure.note(.link(entry), at: time)
      } else if row.item == nil {
        departure.note(.special(row), at: time)
      } else {
        departure.note(row.ino, at: time)
      }
      if departures[departing] == nil, departures.count >= Self.departureLimit {
        departures = departures.filter { !$0.value.isOver(at: time) }
        if departures.count >= Self.departureLimit { departures = [:] }
      }
      departures[departing] = departure
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
    row.ino = newInodeNumber()
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
