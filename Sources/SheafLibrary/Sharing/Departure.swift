import Foundation
import SheafModel
import SheafStore

/// `rm -r` of an entry of `Shared/OWNER/`: it deletes what is inside before it takes the entry away. When the same program
/// then does that, its deletions are undone and it leaves, in one transaction. Interrupted, they stay, and can be recovered.
extension Library {
  /// A program that deletes something in a share of someone else.
  struct Departing: Hashable {
    let share: Int64
    let account: Int64
    let process: Int32
  }

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
    departures[departing] = time
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
