import Glibc
package import SheafModel
import SheafStore

/// A deleted item with all that was deleted from it, and how much that is.
private struct TrashTree {
  let row: DeletedRow
  var extent = TrashExtent(items: 0, bytes: 0)
}

/// Destroying deleted items, some at a time, so that nobody waits long.
///
/// Rules:
/// 1. It works on whole trees, the lines of ``deletedTrees(_:below:limit:)``: a deleted folder goes with everything
///    that was deleted from it, or not at all.
/// 2. Only the owner's account destroys, so no items that others share are among them.
/// 3. The items are found without the lock. An item that was recovered meanwhile, or deleted again, stays, and so does
///    one that became another account's (``Library/acceptTransfer(_:as:)``).
/// 4. The contents of a folder go before it, as in ``Purge``. So an interrupted run can be repeated.
/// 5. Nothing goes for its age if upkeep would not believe the clock (``believesClock(_:)``), nor an item that a clock
///    that was behind made older than it is.
extension Library {
  /// The part of the trash that a path selects.
  private struct TrashScope {
    /// The account whose trash it is.
    let owner: Int64
    /// A folder that is there, for all that was deleted below it.
    var folder: Int64?
    /// The place of the path, for what was deleted there; nil for everything.
    var place: (parent: Int64, name: [UInt8])?
  }

  /// How much of an account's trash is meant.
  ///
  /// - Parameter path: a folder, or what was deleted; everything where nil.
  /// - Throws: `notFound`, and `accessDenied` for what another account owns; `unavailable` where the age of things is
  ///   asked for and the clock is not believed.
  package func trashExtent(
    _ handle: AccountHandle, below path: ItemPath?, _ selection: TrashSelection,
    progress: (SheafModel.Progress) -> Void
  ) throws -> TrashExtent {
    let trees = try chooseTrash(handle, below: path, selection, progress)
    return trees.reduce(into: TrashExtent(items: 0, bytes: 0)) { $0.add($1.extent) }
  }

  /// Destroys what is meant of an account's trash, with its history, for good; returns how much that was.
  ///
  /// - Throws: as ``trashExtent(_:below:_:progress:)``; `corrupt` or `noSpace` where a pack still holds what went.
  package func emptyTrash(
    _ handle: AccountHandle, below path: ItemPath?, _ selection: TrashSelection,
    progress: (SheafModel.Progress) -> Void
  ) throws -> TrashExtent {
    completeSaves()
    try settleEventsInSteps()
    let all = try chooseTrash(handle, below: path, selection, progress)
    let owner = try locked { try account(handle).id }
    let caller = Caller.api(owner)
    let subject = try path ?? ItemPath(account: handle, "Documents")
    var (trees, destroyed) = (all[...], TrashExtent(items: 0, bytes: 0))
    // That of the first tree, once it is begun.
    var begun: Purge?
    try leavingRest {
      while !trees.isEmpty {
        (trees, destroyed, begun) = try locked {
          try settleSessions()
          // Events of earlier actions are settled before the item goes: a pending event would go with it.
          try settleEvents(all: true)
          return try makeChange(.purge, freesSpace: true, by: caller) { change in
            var (left, done, budget, purge) = (trees, destroyed, Self.purgeBatch, begun)
            try notePurge(change)
            while budget > 0, let tree = left.first {
              if try change.rows.deleted(tree.row.ino) == tree.row, try change.rows.inode(tree.row.ino)?.owner == owner
              {
                var going = purge ?? Purge(path: subject, top: .deleted(tree.row), caller: caller)
                guard try !erase(of: &going, within: &budget, change) else { return (left, done, going) }
                done.add(tree.extent)
              } else {
                budget -= 1
              }
              purge = nil
              left.removeFirst()
            }
            return (left, done, purge)
          }
        }
        progress(SheafModel.Progress(done: Int64(all.count - trees.count), total: Int64(all.count)))
      }
    }
    if destroyed.items > 0 { try freePurged() }
    return destroyed
  }

  // MARK: - Choosing

  /// - Throws: as ``trashExtent(_:below:_:progress:)``.
  private func trashScope(_ handle: AccountHandle, below path: ItemPath?) throws -> TrashScope {
    try locked {
      var scope = TrashScope(owner: try account(handle).id)
      guard let path, let name = path.components.last, path.components != [Array("Documents".utf8)] else {
        return scope
      }
      let existing: Inode?
      do {
        existing = try resolve(path)
      } catch let error as SheafError where error.kind == .notFound {
        existing = nil
      }
      if let existing {
        try allow(.purge, existing, on: path)
        if existing.isFolder { scope.folder = existing.ino }
        scope.place = (existing.row.parent, name)
      } else {
        let row = try resolveDeleted(path)
        try allow(.purge, inode(row.ino), on: path)
        scope.place = (row.parent, row.name)
      }
      return scope
    }
  }

  /// The trees that are meant.
  private func chooseTrash(
    _ handle: AccountHandle, below path: ItemPath?, _ selection: TrashSelection,
    _ progress: (SheafModel.Progress) -> Void
  ) throws -> [TrashTree] {
    let scope = try trashScope(handle, below: path)
    var due: Set<Int64>?
    if let span = selection.olderThan {
      let time = clock()
      guard try believesClock(time) else {
        throw SheafError(
          .unavailable, subject: "--older-than",
          reason: "goes by the clock, which is far ahead of all that is in the library",
          advice: "set the clock right; if it is right, say so again in a day")
      }
      let (old, late) = try deleted(before: Timestamp(seconds: time.seconds - span), at: time)
      due = Set(old).subtracting(late)
    }
    var trees: [TrashTree] = []
    var looked: Int64 = 0
    try store.snapshot { transaction in
      var known: [Int64: Bool] = [:]
      var last: DeletedRow?
      repeat {
        let page = try transaction.deleted(before: last, limit: 1024)
        for (row, owner) in page where owner == scope.owner {
          guard try Self.isMeant(row, scope, &known, transaction) else { continue }
          var tree = TrashTree(row: row)
          if try Self.measure(&tree, due, transaction), selection.largerThan.map({ tree.extent.bytes > $0 }) ?? true {
            trees.append(tree)
          }
        }
        looked += Int64(page.count)
        progress(SheafModel.Progress(done: looked, total: 0))
        last = page.count < 1024 ? nil : page.last?.row
      } while last != nil
    }
    return trees
  }

  /// Whether a row is one of the trees at a place.
  private static func isMeant(
    _ row: DeletedRow, _ scope: TrashScope, _ known: inout [Int64: Bool], _ transaction: StoreTransaction
  ) throws -> Bool {
    if let place = scope.place, row.parent == place.parent, row.name == place.name { return true }
    if let isBelow = known[row.parent] { return isBelow }
    // Whether the folder that it was deleted from is there, and lies below the one that is meant.
    var (ino, passed, isBelow) = (row.parent, Set<Int64>(), false)
    while let folder = try transaction.inode(ino), folder.nlink > 0, passed.insert(ino).inserted {
      isBelow = scope.place == nil || ino == scope.folder
      if isBelow { break }
      ino = folder.parent
    }
    known[row.parent] = isBelow
    return isBelow
  }

  /// Measures a tree; returns false where something of it is not among those that are due.
  private static func measure(
    _ tree: inout TrashTree, _ due: Set<Int64>?, _ transaction: StoreTransaction
  ) throws -> Bool {
    var (open, passed) = ([tree.row.ino], Set<Int64>())
    while let ino = open.popLast() {
      guard due?.contains(ino) ?? true else { return false }
      guard passed.insert(ino).inserted, let inode = try transaction.inode(ino) else { continue }
      tree.extent.add(TrashExtent(items: 1, bytes: inode.size))
      if inode.mode & S_IFMT == S_IFDIR { open += try transaction.deleted(from: ino).map(\.ino) }
    }
    return true
  }
}
