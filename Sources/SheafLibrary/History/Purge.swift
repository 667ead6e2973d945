import SheafModel
import SheafStore

/// Destroying a folder with everything below it, some at a time, so that nobody waits long.
///
/// Rules:
/// 1. The contents of a folder go before it, so that an interrupted purge leaves a sound tree, and can be repeated.
/// 2. It is one action: its event is stored with the transaction that removes the item itself.
/// 3. Items that come into the folder meanwhile go along. If the item itself was moved, or is no longer the caller's to
///    destroy, the purge ends with an error.
/// 4. It goes down the tree once and not anew in each step, so it costs the same however deep the tree is. It looks up
///    again what it is about to destroy. If a folder on the way down was moved, it begins at the top.
/// 5. If a document has very many versions, the old ones go before the document, some at a time.
struct Purge {
  /// Something that goes for good.
  enum Target {
    case entry(EntryRow)
    case deleted(DeletedRow)

    var ino: Int64 {
      switch self {
      case .entry(let entry): entry.ino
      case .deleted(let row): row.ino
      }
    }
  }

  let path: ItemPath
  let top: Target
  let caller: Caller
  var action = TreeAction()
  /// The folders that are in the action, and still there.
  var noted: Set<Int64> = []
  /// The items that are still to go, as far as they are known: each after the folder that it is in.
  var open: [Target] = []
  /// The folders on the way down.
  var folders: Set<Int64> = []
  /// How many folders had moved when that was looked at.
  var moveCount = 0
}

/// Rooms: `ShareBook`.
extension Library {
  /// Names and deleted inodes that one transaction of a purge erases at most.
  static let purgeBatch = 8
  /// Names and deleted inodes that it looks at.
  private static let purgeLooks = 64
  /// Versions of a document that one transaction erases at most.
  static let erasedVersions = 256

  /// Looks for what a purge is of.
  ///
  /// - Throws: `notFound`, `accessDenied`; `notPermitted` for `Documents`; `busy` for a file with another name.
  func beginPurge(_ path: ItemPath) throws -> Purge {
    guard path.components.count > 1 else {
      throw SheafError(.notPermitted, subject: "\(path)", reason: "is the account's folder itself, which stays")
    }
    let existing: Inode?
    do {
      existing = try resolve(path)
    } catch let error as SheafError where error.kind == .notFound {
      existing = nil
    }
    let account = try account(path.account).id
    guard let inode = existing, let name = path.components.last else {
      let row = try resolveDeleted(path)
      try allow(.purge, self.inode(row.ino), on: path)
      return Purge(path: path, top: .deleted(row), caller: .api(account))
    }
    try allow(.purge, inode, on: path)
    let parent = try resolve(ItemPath(account: path.account, bytes: path.bytes.dropLast(name.count + 1)))
    guard let entry = try entry(parent.ino, name) else { throw SheafError(.notFound, subject: "\(path)") }
    if !inode.isFolder, inode.row.nlink > 1 {
      let other = entry.isExtra ? nil : try read { try $0.extraEntry(inode.ino) }
      let otherPath = try mountPath(other?.parent ?? inode.row.parent, other?.name ?? inode.row.name, for: account)
      throw SheafError(
        .busy, subject: "\(path)", reason: "also has the name \(otherPath.printable)",
        advice: "remove that name before, or purge a folder with all of its names")
    }
    return Purge(path: path, top: .entry(entry), caller: .api(account))
  }

  /// A purge whose item is still where it was.
  ///
  /// - Throws: `notFound` where it was moved, recovered or removed meanwhile, and `accessDenied` where it became another
  ///   account's (rule 3).
  func resumed(_ purge: Purge) throws -> Purge {
    let isThere: Bool =
      switch purge.top {
      case .entry(let entry): try self.entry(entry.parent, entry.name)?.ino == entry.ino
      case .deleted(let row): try read { try $0.deleted(row.ino) } == row
      }
    if isThere {
      try allow(.purge, inode(purge.top.ino), on: purge.path)
      return purge
    }
    throw SheafError(
      .notFound, subject: "\(purge.path)", reason: "was moved or removed while it was being purged",
      advice: "purge what is left of it where it is now")
  }

  /// Erases some items of a purge, and stores its event with the last ones. Returns the rest of the purge; nil if
  /// nothing is left.
  func eraseSome(_ purge: Purge) throws -> Purge? {
    let time = clock()
    let isFolder = try inode(purge.top.ino).isFolder
    return try makeChange(.purge, freesSpace: true, by: purge.caller, at: time) { change in
      var (purge, budget) = (purge, Self.purgeBatch)
      try notePurge(change)
      if try erase(of: &purge, within: &budget, change) { return purge }
      if case .entry(let entry) = purge.top {
        try touch(inode(entry.parent), time, links: isFolder ? -1 : 0, change)
      }
      try log(.deleted, purge.action, change)
      return nil
    }
  }

  /// Erases as much as goes into a transaction, what is below something before it (rule 1); returns whether anything is
  /// left.
  ///
  /// - Parameter budget: how much may go, and then how much of that is left.
  func erase(of purge: inout Purge, within budget: inout Int, _ change: Change) throws -> Bool {
    if purge.open.isEmpty || shares.mayHaveMoved(purge.folders, since: purge.moveCount) {
      (purge.open, purge.folders) = ([purge.top], [])
    }
    purge.moveCount = shares.moveCount
    var looks = 0
    while let last = purge.open.last {
      if budget <= 0 || looks >= Self.purgeLooks { return true }
      looks += 1
      guard let next = try current(last, change) else {
        // It was moved, recovered or removed meanwhile.
        purge.open.removeLast()
        purge.folders.remove(last.ino)
        continue
      }
      let inode = try inode(next.ino)
      if case .entry(let entry) = next { try note(entry, inode, in: &purge) }
      if inode.isFolder {
        let below = try below(inode.ino, change)
        if !below.isEmpty {
          purge.folders.insert(inode.ino)
          // On the way down, since it is asked for on the way up.
          _ = try share(ofFolder: inode.ino)
          if let circle = below.first(where: { purge.folders.contains($0.ino) }) {
            throw SheafError(
              .corrupt, subject: "\(purge.path)", reason: "has the folder \(circle.ino) in itself",
              advice: "run sheaf check")
          }
          purge.open += below.reversed()
          continue
        }
      }
      if try eraseOldVersions(of: inode, change) { return true }
      if inode.isFolder || inode.row.nlink < 2 { try requestPurge(of: inode, change) }
      switch next {
      case .entry(let entry): try erase(entry, inode, change)
      case .deleted(let row):
        try change.rows.removeDeleted(row.ino)
        try erase(inode, change)
        letGo(inode, change)
      }
      purge.open.removeLast()
      purge.folders.remove(inode.ino)
      purge.noted.remove(inode.ino)
      budget -= 1
    }
    return false
  }

  /// Something that is to go as it is now; nil where it is there no longer.
  private func current(_ target: Purge.Target, _ change: Change) throws -> Purge.Target? {
    switch target {
    case .entry(let entry):
      let found = try change.rows.entry(entry.parent, hash: entry.hash, name: entry.name)
      return found.flatMap { $0.ino == entry.ino ? .entry($0) : nil }
    case .deleted(let row): return try change.rows.deleted(row.ino) == row ? target : nil
    }
  }

  /// Some of what lies in a folder; where nothing does, of what was deleted from it.
  private func below(_ folder: Int64, _ change: Change) throws -> [Purge.Target] {
    let entries = try change.rows.entries(folder, after: 0, limit: Self.purgeBatch)
    if !entries.isEmpty { return entries.map(Purge.Target.entry) }
    return try change.rows.deleted(from: folder, limit: Self.purgeBatch).map(Purge.Target.deleted)
  }

  /// Erases some versions of a document that is to go, if it has very many; returns whether it did.
  func eraseOldVersions(of inode: Inode, _ change: Change) throws -> Bool {
    guard inode.row.nlink < 2, var item = try item(of: inode), item.lastVersion > Self.erasedVersions,
      try change.rows.deleteVersions(item.id, besides: item.version, limit: Self.erasedVersions) > 0
    else { return false }
    if item.conflict != nil {
      item.conflict = nil
      try change.rows.update(item)
      change.whenRecorded { [item] in inode.item = item }
    }
    return true
  }

  /// Adds an item to the event of a purge, once.
  private func note(_ entry: EntryRow, _ inode: Inode, in purge: inout Purge) throws {
    guard inode.isFolder || inode.row.nlink == 1, !purge.noted.contains(inode.ino), let item = try item(of: inode)
    else { return }
    if inode.isFolder { purge.noted.insert(inode.ino) }
    purge.action.add(
      .init(
        item: item, ino: inode.ino, actor: purge.caller.actor(in: inode.row),
        data: try eventData(item, parent: entry.parent, name: entry.name)))
  }

  /// Erases a name, and its inode with the last one.
  private func erase(
    _ entry: EntryRow, _ inode: Inode, _ change: Change
  ) throws {
    try change.rows.delete(entry)
    try change.noteEnd(of: entry, inode)
    change.whenRecorded { [self] in tell(.removed(NamedInode(inode, entry.parent, entry.name)), from: 0) }
    if inode.row.nlink > 1, !inode.isFolder {
      try removeName(entry, of: inode, change)
      // Its other names may lie below, too: the last one takes it along.
      let before = inode.row
      change.whenFailed { inode.row = before }
      if let left = try change.rows.inode(inode.ino) {
        (inode.row.nlink, inode.row.parent, inode.row.name) = (left.nlink, left.parent, left.name)
      }
      return
    }
    try erase(inode, change)
    letGo(inode, change)
  }
}
