import SheafModel
import SheafStore

/// The return of the items that a person who left a share had deleted in it: some at a time, so that nobody waits long.
///
/// Rules:
/// 1. The departure is committed first, with a setting that says which items are to come back. If the process is
///    killed, or the disk is full, the library brings back the rest when it is next opened. Then everything counts that
///    the account deleted from the setting's time until it left, whichever program deleted it, and names that left no
///    row behind are gone. Items that the account deletes after joining again stay deleted.
/// 2. The events of these deletions wait until the items are back, so nobody learns of them, not even people who join
///    meanwhile. If an event of a deletion was seen before, another event reports that the item is there again. The
///    event of a folder's deletion names its contents, and so it waits until all of them are back.
/// 3. Items that were recovered or purged meanwhile stay as they are. Items in a folder that somebody else has deleted
///    wait for that folder: two people who leave at once bring back what both deleted.
struct Return {
  let share: Int64
  /// The account that left.
  let account: Int64
  let folder: Int64
  /// When it left.
  let left: Timestamp
  let departure: Departure
  let caller: Caller
  /// Whether an earlier process began it: events do not say any more of what else they tell.
  var isResumed = false
  /// Each folder before what is in it.
  fileprivate(set) var rows: ArraySlice<DeletedRow> = []
  /// The last name that went comes back first, so that the oldest becomes the oldest again.
  fileprivate var removedNames: ArraySlice<Departure.RemovedName>
  /// Deletions of folders that are back, and whose events name their contents.
  fileprivate var events: [Int64] = []
  /// Where an earlier process began it: folders of whose deletion nobody was told, nor of that of what was in them.
  fileprivate var untold: Set<Int64> = []

  init(
    share: Int64, account: Int64, folder: Int64, left: Timestamp, _ departure: Departure, _ caller: Caller
  ) {
    (self.share, self.account, self.folder, self.left) = (share, account, folder, left)
    (self.departure, self.caller) = (departure, caller)
    removedNames = departure.removedNames.reversed()[...]
  }

  var isDone: Bool { rows.isEmpty && removedNames.isEmpty }
  var setting: String { "\(Self.settingPrefix)\(share).\(account).\(left.nanoseconds)" }

  func includes(_ row: DeletedRow) -> Bool {
    row.actor == account && row.time <= left && departure.includes(row)
  }

  /// The prefix of the settings that say which items are to come back: share, account and time of leaving follow.
  static let settingPrefix = "returning."
}

/// Rooms: `Departures`, `EventLog`.
extension Library {
  /// Names that one transaction gives back at most.
  private static let returnBatch = 16
  /// Events that one transaction takes back at most.
  private static let returnEventBatch = 128

  /// Brings back what a person deleted who has left; that they left is committed.
  ///
  /// - Throws: the error that keeps the rest from coming back. It comes back when the library is next opened.
  func undoDeletions(_ begun: Return) throws {
    var back = begun
    let outcome = Result {
      back.rows = try store.snapshot { try Self.gather(back, $0) }[...]
      while !back.isDone { try locked { try undoSomeDeletions(&back) } }
    }
    // However it ended, what is back was not deleted.
    let untold = Result {
      while !back.events.isEmpty { try locked { try takeBackEvents(&back) } }
    }
    try locked {
      events.endHolding(back.caller.process)
      if case .success = outcome, case .success = untold {
        try makeChange(.share, freesSpace: true) { try $0.rows.setSetting(back.setting, nil) }
      }
    }
    try outcome.get()
    try untold.get()
  }

  /// Goes on with the returns that an earlier process began. Items that cannot come back now do not keep the library
  /// from opening: they come back the next time.
  func resumeReturns() {
    do {
      for (key, since) in try store.read({ try $0.numberSettings(after: Return.settingPrefix) }) {
        try resumeReturn(key, since: Timestamp(nanoseconds: since))
      }
    } catch {
      log.error(
        "what was deleted on the way out of a share is not all back; it comes back when the library is opened next",
        metadata: ["error": "\(error)"])
    }
  }

  /// - Parameter key: the part after ``Return/settingPrefix``.
  private func resumeReturn(_ key: String, since: Timestamp) throws {
    let numbers = key.split(separator: ".").compactMap { Int64($0) }
    guard numbers.count == 3, let folder = try locked({ try sharedInode(numbers[0])?.ino }) else {
      return try locked {
        try makeChange(.share, freesSpace: true) { try $0.rows.setSetting(Return.settingPrefix + key, nil) }
      }
    }
    var back = Return(
      share: numbers[0], account: numbers[1], folder: folder, left: Timestamp(nanoseconds: numbers[2]),
      Departure(ofAllSince: since), .api(numbers[1]))
    back.isResumed = true
    try locked {
      for event in events.pending
      where event.row.type == EventType.deleted.rawValue && event.row.actor == back.account {
        guard try (read { try $0.inode(item: event.row.item) }?.nlink ?? 0) > 0 else { continue }
        // Its folder is back already, and what was in that may not be.
        back.events.append(event.row.number)
        back.untold.insert(event.ino)
      }
    }
    try undoDeletions(back)
  }

  /// The deleted items that are to come back, each folder before its contents.
  private static func gather(_ back: Return, _ transaction: StoreTransaction) throws -> [DeletedRow] {
    var rows: [DeletedRow] = []
    var folders = [back.folder]
    var seen: Set<Int64> = [back.folder]
    while let next = folders.popLast() {
      rows += try transaction.deleted(from: next).filter(back.includes)
      // Another may have deleted the folder around what this one has.
      let below = try transaction.folders(in: next) + transaction.deletedFolders(from: next)
      folders += below.filter { seen.insert($0).inserted }
    }
    return rows
  }

  private func undoSomeDeletions(_ back: inout Return) throws {
    let begun = back
    back = try makeChange(.share, freesSpace: true, by: begun.caller) { change in
      var back = begun
      for _ in 0..<Self.returnBatch {
        if let row = back.rows.popFirst() {
          guard try change.rows.deleted(row.ino) == row else { continue }
          guard try (change.rows.inode(row.parent)?.nlink ?? 0) > 0 else {
            change.whenRecorded { [self] in departures.keepWaiting(row) }
            continue
          }
          try undo(row, &back, change)
          let waiting = departures.waiting(for: row.ino)
          if !waiting.isEmpty {
            back.rows += waiting
            change.whenRecorded { [self] in departures.removeWaiting(for: row.ino) }
          }
        } else if let name = back.removedNames.popFirst() {
          switch name {
          case .link(let entry): try undoUnlink(entry, change)
          case .special(let row): try undoUnlink(special: row, change)
          }
        }
      }
      return back
    }
  }

  /// Takes a deletion back (rule 2 of ``Return``).
  private func undo(_ row: DeletedRow, _ back: inout Return, _ change: Change) throws {
    guard let part = try giveBack(row, change).part else { return }
    let id = part.item.id
    if let deletion = events.of(id).first(where: { $0.row.type == EventType.deleted.rawValue }) {
      if back.isResumed, part.item.kind == .folder { back.untold.insert(row.ino) }
      if deletion.contentCount > 0 {
        back.events.append(deletion.row.number)
      } else {
        try dropPending(id, types: [.deleted], change)
      }
    } else if try back.isResumed ? !liesInUntold(row, back) : !events.isAbsorbed(id) {
      var action = TreeAction()
      action.add(part)
      try log(.created, action, change)
    }
  }

  private func liesInUntold(_ row: DeletedRow, _ back: Return) throws -> Bool {
    if back.untold.isEmpty { return false }
    var isFound = false
    try ascend(from: row.parent) { folder in
      isFound = back.untold.contains(folder.ino)
      return !isFound && folder.ino != back.folder
    }
    return isFound
  }

  private func takeBackEvents(_ back: inout Return) throws {
    let numbers = Array(back.events.prefix(Self.returnEventBatch))
    try makeChange(.share, freesSpace: true) { change in
      for number in numbers { try change.rows.removePending(number) }
      change.whenRecorded { [self] in events.remove(numbers) }
    }
    back.events.removeFirst(numbers.count)
  }
}
