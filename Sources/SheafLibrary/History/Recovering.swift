import Foundation
package import SheafModel
import SheafStore

/// Recovering deleted items, a folder with everything that went with it, some at a time, so that nobody waits long.
///
/// Rules:
/// 1. A folder comes back before its contents, so an interrupted recovery leaves a sound tree, and the rest in the
///    trash. Recovering the folder again, which exists by then, goes on.
/// 2. It is one action. Its event waits until the last item is back. It grows meanwhile, so that at each moment it
///    names what is back. If the recovery is interrupted, the event is settled as it is.
/// 3. Items that were recovered, purged or deleted with their folder meanwhile stay as they are.
struct Recovery {
  /// The items that are still to come back, each folder before its contents.
  private(set) var rows: ArraySlice<DeletedRow>
  /// How much there was at the beginning.
  let total: Int
  let caller: Caller
  /// Where the first of it goes, if not back to its place.
  let destination: Destination?
  /// The paths of what is back.
  private(set) var paths: [String] = []
  var action = TreeAction()
  /// The numbers of its pending events, in the order of the heads of ``action``.
  var events: [Int64] = []

  /// Whether it comes into a share in which it was not.
  var entersShare = false

  /// The place that a rename out of the trash names.
  struct Destination {
    let folder: Int64
    let name: [UInt8]
    /// The caller that renames; its mount need not be told.
    let mover: Caller
  }

  init(_ rows: [DeletedRow], to destination: Destination?, _ caller: Caller) {
    self.rows = rows[...]
    total = rows.count
    self.destination = destination
    self.caller = caller
  }

  mutating func next() -> DeletedRow? { rows.popFirst() }

  mutating func note(_ recovered: Library.Recovered) {
    paths.append(recovered.path)
    if let part = recovered.part { action.add(part) }
  }
}

/// Rooms: `EventLog`, `Identity`, `Numbers`, `ShareBook`.
extension Library {
  /// Names that one transaction of a recovery gives back at most.
  static let recoveryBatch = 8
  /// Seconds between two deletions of one `rm -r` at most.
  private static let sweepGap: Int64 = 10

  /// Brings back what was deleted, a folder with all that went with it; returns the paths, the top one first.
  ///
  /// Of a folder that is there, what was deleted from it last comes back, with what went in one go with that.
  ///
  /// - Parameter id: the item's UUID, where several of one path were deleted; the latest where nil.
  /// - Throws: `notFound` that names the path; `noSpace`.
  package func recover(_ path: ItemPath, id: String?, progress: (SheafModel.Progress) -> Void) throws -> [String] {
    // The event of a deletion comes before that of the recovery, also if a folder's deletion names the item.
    try settleEventsInSteps()
    if let id, let row = try locked({ try deleted(id: id) }) { try approach(row.parent) }
    let (caller, found) = try locked { try findDeleted(path, id: id) }
    switch found {
    case .deleted(let row): return try recover(row, called: "\(path)", to: nil, caller, progress: progress)
    case .folder(let ino):
      let rows = try lastDeleted(below: ino, caller)
      guard !rows.isEmpty else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "is there, and nothing of it was deleted lately",
          advice: "`sheaf deleted` shows what can be recovered")
      }
      var paths: [String] = []
      for (index, row) in rows.enumerated() {
        do {
          paths += try recover(row, called: "\(path)", to: nil, caller) { _ in }
        } catch let error as SheafError where error.kind == .notFound {
          // Somebody else was faster (rule 3).
        }
        progress(SheafModel.Progress(done: Int64(index + 1), total: Int64(rows.count)))
      }
      return paths
    }
  }

  /// What ``recover(_:id:progress:)`` would bring back by a path.
  ///
  /// - Throws: as that.
  package func recoverable(_ path: ItemPath) throws -> RecoverableItem {
    try locked {
      guard case .deleted(let row) = try findDeleted(path, id: nil).1 else { return RecoverableItem(id: nil) }
      return RecoverableItem(id: try item(of: inode(row.ino))?.uuid.text)
    }
  }

  /// The items that can be recovered by a path.
  private enum Recoverable {
    case deleted(DeletedRow)
    /// A folder that is there.
    case folder(Int64)
  }

  /// - Throws: `notFound`, `accessDenied` that name the path.
  private func findDeleted(_ path: ItemPath, id: String?) throws -> (Caller, Recoverable) {
    let caller = Caller.api(try account(path.account).id)
    let row: DeletedRow
    if let id {
      guard let found = try deleted(id: id), try isVisible(found, caller) else {
        throw SheafError(
          .notFound, subject: "item \(id.printable)", reason: "is not among the deleted",
          advice: "`sheaf deleted` shows the ids")
      }
      row = found
    } else {
      do {
        row = try resolveDeleted(path)
      } catch let error as SheafError where error.kind == .notFound {
        guard let folder = try? resolve(path), folder.isFolder else { throw error }
        try allow(.recover, folder, on: path)
        return (caller, .folder(folder.ino))
      }
    }
    try allow(.recover, inode(row.ino), on: path)
    return (caller, .deleted(row))
  }

  /// The deleted item that has a UUID.
  private func deleted(id: String) throws -> DeletedRow? {
    guard let uuid = UUID(uuidString: id) else { return nil }
    return try read { transaction in
      try transaction.item(uuid: uuid).flatMap { try transaction.inode(item: $0.id) }
        .flatMap { try transaction.deleted($0.ino) }
    }
  }

  /// Brings back one deleted item with everything that went along; returns the paths.
  ///
  /// - Parameters:
  ///   - subject: The path that the person gave.
  ///   - destination: Where it goes; back to its place if nil.
  ///   - isAlone: Whether what went along with it stays in the trash.
  /// - Throws: `notFound` if it is no longer in the trash.
  func recover(
    _ top: DeletedRow, called subject: String, to destination: Recovery.Destination?, isAlone: Bool = false,
    _ caller: Caller, progress: (SheafModel.Progress) -> Void
  ) throws -> [String] {
    try approach(destination?.folder ?? top.parent)
    let (isFolder, hasFolder) = try locked { (try inode(top.ino).isFolder, try inode(top.parent).row.nlink > 0) }
    if !hasFolder, destination == nil {
      // The folders above, empty: they are an action of their own, of which the first of them tells.
      let above = try store.snapshot { try Self.deletedFolders(above: top, $0) }
      _ = try recover(above, of: top, called: subject, to: nil, caller) { _ in }
    }
    let rows =
      isFolder && !isAlone ? try visible(store.snapshot { try Self.gather(top, $0) }, from: top, caller) : [top]
    return try recover(rows, of: top, called: subject, to: destination, caller, progress: progress)
  }

  /// Brings back some of what was deleted, each folder before what is in it, as one action.
  private func recover(
    _ rows: [DeletedRow], of top: DeletedRow, called subject: String, to destination: Recovery.Destination?,
    _ caller: Caller, progress: (SheafModel.Progress) -> Void
  ) throws -> [String] {
    var recovery = Recovery(rows, to: destination, caller)
    let outcome = Result {
      while !recovery.rows.isEmpty {
        try locked { try recoverSome(&recovery, top, subject) }
        progress(SheafModel.Progress(done: Int64(recovery.total - recovery.rows.count), total: Int64(recovery.total)))
      }
    }
    if !recovery.events.isEmpty {
      // However it ended, they tell what is so.
      locked { events.endGrowing(recovery.events) }
      try settleDueEventsInSteps()
    }
    try outcome.get()
    return recovery.paths
  }

  /// Gives back as many items as go into a transaction, and logs that.
  private func recoverSome(_ recovery: inout Recovery, _ top: DeletedRow, _ subject: String) throws {
    let isFirst = recovery.rows.count == recovery.total
    // A person may lose the right to do it on the way.
    do {
      try allow(.recover, inode(top.ino), recovery.caller)
    } catch let error as SheafError where error.kind == .accessDenied {
      throw error.about(subject)
    }
    let destination = isFirst ? recovery.destination : nil
    if isFirst { try settleEvents(all: true) }
    try makeVersionsBeforeReturn()
    if let destination {
      try permitReturn(of: top, to: destination)
      let (here, there) = try (share(ofFolder: top.parent), share(ofFolder: destination.folder))
      recovery.entersShare = there != nil && there?.row.item != here?.row.item
    }
    let begun = recovery
    recovery = try makeChange(.recover, by: recovery.caller) { change in
      var recovery = begun
      if isFirst {
        guard try change.rows.deleted(top.ino) == top else {
          throw SheafError(
            .notFound, subject: subject, reason: "is not among the deleted any more",
            advice: "`sheaf activity` tells what became of it")
        }
        let folder = destination?.folder ?? recovery.rows.first?.parent
        guard let folder, try (change.rows.inode(folder)?.nlink ?? 0) > 0 else {
          throw SheafError(
            .notFound, subject: subject, reason: "was in a folder that somebody deleted again meanwhile",
            advice: "recover it once more")
        }
      }
      for _ in 0..<Self.recoveryBatch {
        guard let row = recovery.next() else { break }
        let place = row == top ? destination : nil
        guard try change.rows.deleted(row.ino) == row,
          try (change.rows.inode(place?.folder ?? row.parent)?.nlink ?? 0) > 0
        else { continue }
        recovery.note(try giveBack(row, to: place, entersShare: recovery.entersShare, change))
        try markReturned(row, change)
        // Who brings it back would miss it (rule 1 of ``Identity``).
        change.whenRecorded { [self] in identity.becomesKnown(row.ino) }
      }
      try tell(of: &recovery, change)
      return recovery
    }
  }

  /// Logs what a recovery brought back so far (rule 2 of ``Recovery``).
  private func tell(of recovery: inout Recovery, _ change: Change) throws {
    if recovery.rows.isEmpty, recovery.events.isEmpty {
      return try log(.created, recovery.action, change)
    }
    for (head, number) in zip(recovery.action.heads, recovery.events) {
      guard let event = events.of(head.item.id).first(where: { $0.row.number == number }) else { continue }
      try rewrite(event, head.data, change)
    }
    for head in recovery.action.heads.dropFirst(recovery.events.count) {
      try logEvent(
        .created, head.item, ino: head.ino, head.data, actor: head.actor, thread: 0, opens: true, change)
      let number = numbers.pending
      recovery.events.append(number)
      change.whenRecorded { [self] in events.beginGrowing(number) }
    }
  }

  /// The deleted folders that something was in, the top one first.
  ///
  /// - Throws: `corrupt` where they lie in each other.
  private static func deletedFolders(above row: DeletedRow, _ transaction: StoreTransaction) throws -> [DeletedRow] {
    var folders: [DeletedRow] = []
    var passed: Set<Int64> = [row.ino]
    var next = row.parent
    while let folder = try transaction.deleted(next) {
      guard passed.insert(next).inserted else { throw Self.liesInItself(next) }
      folders.append(folder)
      next = folder.parent
    }
    return folders.reversed()
  }

  // MARK: - What comes along

  /// Those of some deletions that `caller` sees.
  ///
  /// - Parameter top: That with which the others come along, if they do: what was deleted from a folder before that
  ///   entered its share was never in the share, and is not among them.
  private func visible(
    _ rows: [DeletedRow], from top: DeletedRow? = nil, _ caller: Caller
  ) throws -> [DeletedRow] {
    var seen: [DeletedRow] = []
    for start in stride(from: 0, to: rows.count, by: Self.recoveryBatch) {
      let some = rows[start..<min(start + Self.recoveryBatch, rows.count)]
      seen += try locked { try some.filter { try isVisible($0, caller) && (top == nil || $0 == top || wasShared($0)) } }
    }
    return seen
  }

  /// Whether something was deleted from a folder that was in its share by then, or is in none.
  private func wasShared(_ row: DeletedRow) throws -> Bool {
    guard !shares.isEmpty, let share = try share(ofFolder: row.parent) else { return true }
    return try row.time >= entryTime(of: inode(row.parent), in: share)
  }

  /// A deleted folder, while the items that were deleted with it are gathered.
  private struct Gathering {
    /// The items that were deleted from it, latest first, and how many of them were looked at.
    let rows: [DeletedRow]
    var next = 0
    let folders: Set<Int64>
    /// When the first was deleted of what comes along.
    var earliest: Timestamp
    var names: Set<[UInt8]> = []
  }

  /// Gathers a deleted item and what was deleted from it together with it, each folder before what is in it: one
  /// deletion after the other, up to its own.
  ///
  /// Later than the folder can only be what was deleted before the clock was put back: when, nobody can tell, so it
  /// comes along.
  private static func gather(_ top: DeletedRow, _ transaction: StoreTransaction) throws -> [DeletedRow] {
    func begin(_ folder: DeletedRow) throws -> Gathering {
      Gathering(
        rows: try transaction.deleted(from: folder.ino), folders: try transaction.deletedFolders(from: folder.ino),
        earliest: folder.time)
    }
    var rows = [top]
    var seen: Set<Int64> = [top.ino]
    var open = [try begin(top)]
    while var folder = open.popLast() {
      guard folder.next < folder.rows.count,
        folder.earliest.seconds - folder.rows[folder.next].time.seconds <= Self.sweepGap
      else {
        if let around = open.indices.last { open[around].earliest = min(open[around].earliest, folder.earliest) }
        continue
      }
      let row = folder.rows[folder.next]
      folder.next += 1
      // An item does not come along if another one of the same name was deleted after it.
      let isLatest = folder.names.insert(row.name).inserted
      guard seen.insert(row.ino).inserted else { throw Self.liesInItself(row.ino) }
      if isLatest { rows.append(row) }
      if !isLatest || !folder.folders.contains(row.ino) { folder.earliest = min(folder.earliest, row.time) }
      open.append(folder)
      if isLatest, folder.folders.contains(row.ino) { open.append(try begin(row)) }
    }
    return rows
  }

  /// The item that was last deleted from an existing folder, or from an existing one below it, and the items that went
  /// together with it, latest first.
  private func lastDeleted(below top: Int64, _ caller: Caller) throws -> [DeletedRow] {
    let rows = try store.snapshot { transaction in
      var known: [Int64: Bool] = [top: true]
      /// Whether a folder is there, and is `top` or lies below it.
      func isBelow(_ folder: Int64) throws -> Bool {
        var (ino, passed) = (folder, Set<Int64>())
        while known[ino] == nil, let row = try transaction.inode(ino), row.nlink > 0, passed.insert(ino).inserted {
          ino = row.parent
        }
        let isBelow = known[ino] ?? false
        for ino in passed { known[ino] = isBelow }
        known[folder] = isBelow
        return isBelow
      }
      var names: [Int64: Set<[UInt8]>] = [:]
      var (rows, earliest, last): ([DeletedRow], Timestamp?, DeletedRow?) = ([], nil, nil)
      while true {
        let page = try transaction.deleted(before: last, limit: 1024)
        for (row, _) in page {
          if let earliest, earliest.seconds - row.time.seconds > Self.sweepGap { return rows }
          guard try isBelow(row.parent) else { continue }
          earliest = min(earliest ?? row.time, row.time)
          if names[row.parent, default: []].insert(row.name).inserted { rows.append(row) }
        }
        guard page.count == 1024, let end = page.last?.row else { return rows }
        last = end
      }
    }
    return try visible(rows, caller)
  }
}
