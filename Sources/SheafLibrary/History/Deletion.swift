import Foundation
package import SheafModel
import SheafStore
import enum SheafWire.MarkedName

/// Deleted items: listing, recovering, and destroying them for good.
///
/// Rooms: `Identity`, `InodeTable`, `PurgedContents`, `ShareBook`.
extension Library {
  /// Deleted items that are looked at with the lock held, so that nobody waits for a long list.
  private static let deletedBatch = 32

  /// The items that were deleted at or below `path` (all if nil) and can be recovered, latest first.
  package func deleted(_ handle: AccountHandle, below path: ItemPath?) throws -> [DeletedItem] {
    var items: [DeletedItem] = []
    var last: DeletedRow?
    repeat {
      last = try locked { try addDeleted(before: last, handle, below: path, to: &items) }
    } while last != nil
    return items
  }

  /// Adds some of what was deleted before `last`; returns the last that was looked at, nil at the end.
  private func addDeleted(
    before last: DeletedRow?, _ handle: AccountHandle, below path: ItemPath?, to items: inout [DeletedItem]
  ) throws -> DeletedRow? {
    let account = try account(handle)
    let prefix = path?.bytes
    let owners = Set([account.id] + shares.owners(sharingWith: account.id))
    let rows = try read { try $0.deleted(before: last, limit: Self.deletedBatch) }
    for (row, owner) in rows where owners.contains(person(of: owner)) {
      guard let item = try item(of: inode(row.ino)), try isVisible(row, .api(account.id)) else { continue }
      let whole = Array(try mountPath(row.parent, row.name, for: account.id).utf8)
      if let prefix, whole != prefix, !whole.starts(with: prefix + [UInt8(ascii: "/")]) { continue }
      items.append(
        DeletedItem(
          id: item.uuid.text, path: String(decoding: whole, as: UTF8.self), time: row.time,
          actor: try self.handle(row.actor)))
    }
    return rows.count < Self.deletedBatch ? nil : rows.last?.row
  }

  /// Gives a deleted inode a name again; the caller logs the event.
  ///
  /// - Parameters:
  ///   - destination: where it goes, which the caller has looked at; nil for back to its place.
  ///   - entersShare: whether it comes into a share in which it was not.
  func giveBack(
    _ row: DeletedRow, to destination: Recovery.Destination? = nil, entersShare: Bool = false, _ change: Change
  ) throws -> Recovered {
    let time = clock()
    let parent = destination?.folder ?? row.parent
    guard var inode = try change.rows.inode(row.ino), var folder = try change.rows.inode(parent) else {
      throw SheafError(.corrupt, subject: "deleted inode \(row.ino)", advice: "run sheaf check")
    }
    guard inode.owner == folder.owner else { throw SheafError(.crossDevice) }
    let isFolder = inode.mode & S_IFMT == S_IFDIR
    let name = try destination?.name ?? freeName(row.name, in: parent, isFolder: isFolder)
    let left = parent == row.parent ? nil : try share(ofFolder: row.parent)
    inode.nlink = isFolder ? 2 : 1
    inode.parent = parent
    inode.name = name
    inode.ctime = time
    folder.nlink += inode.mode & S_IFMT == S_IFDIR ? 1 : 0
    folder.mtime = time
    folder.ctime = time
    try change.rows.removeDeleted(row.ino)
    try change.rows.insert(
      EntryRow(parent: parent, hash: nameHash(name), name: name, ino: row.ino, since: change.placed))
    try change.rows.update(inode)
    try change.rows.touch(folder: folder.ino, time: time, nlink: folder.nlink)
    var returned: (item: ItemRow, data: EventData)?
    if let id = inode.item, var item = try change.rows.item(id) {
      try settleReturn(
        of: &item, self.inode(row.ino), lostAt: row.time, to: parent, entersShare: entersShare, change)
      if item.isQuiet, try !isIgnored(parent, name, isFolder: isFolder) && !isQuietName(name, in: parent, change) {
        // By a name of its own it is a document, as if it had been renamed.
        item.isQuiet = false
        try insertFirstVersion(of: &item, self.inode(row.ino), change)
        try change.rows.update(item)
      }
      if !item.isQuiet { try makeKnown(parent, change) }
      var data = try eventData(item, parent: parent, name: name)
      if item.version > 0, let version = try change.rows.version(id, item.version) { data.version = .init(version) }
      (data.contents, data.contentCount) = ([], 0)
      returned = (item, data)
    }
    let (final, finalItem, finalFolder) = (inode, returned?.item, folder)
    change.whenRecorded { [self] in
      inodes[final.ino]?.row = final
      inodes[final.ino]?.item = finalItem
      inodes[finalFolder.ino]?.row = finalFolder
      if let item = final.item {
        identity.settle(item: item)
        shares.forgetListings(of: item)
      }
      tell(
        .made(NamedInode(ino: final.ino, mode: final.mode, place: .init(folder: .inode(parent), name: name))),
        from: destination?.mover.door ?? 0)
      // A member who read it in the trash of a share may not see it in its present place.
      for member in left?.members ?? [] where member.role != .owner { tellAccess(of: member.account) }
    }
    // The paths below a folder that is recovered in this transaction are read through its row.
    for row in [final, finalFolder] where row.mode & S_IFMT == S_IFDIR {
      guard let cached = inodes[row.ino] else { continue }
      let before = cached.row
      change.whenFailed { cached.row = before }
      cached.row = row
    }
    let actor = change.caller.actor(in: inode)
    let path = try mountPath(parent, name, for: actor, item: inode.item)
    let isShared = final.item.flatMap { shares.active($0) } != nil
    if final.mode & S_IFMT == S_IFDIR, isShared || final.name != row.name || parent != row.parent {
      change.whenFailed { [self] in shares.forgetFolders() }
      shares.forgetFolders()
    }
    return Recovered(
      path: path,
      part: returned.map { .init(item: $0.item, ino: row.ino, actor: actor, data: $0.data) })
  }

  /// An item that has a name again.
  struct Recovered {
    let path: String
    /// Nil for what is no item.
    let part: TreeAction.Part?
  }

  /// `name`, or with ` (2)`, ` (3)` … before its extension where it is taken. A folder has none.
  func freeName(_ name: [UInt8], in parent: Int64, isFolder: Bool) throws -> [UInt8] {
    var candidate = name
    var number = 2
    while try Self.isReserved(candidate) || entry(parent, candidate) != nil {
      candidate = MarkedName.numbered(name, number, isFolder: isFolder)
      number += 1
    }
    return candidate
  }

  // MARK: - Destroying for good

  /// Destroys an item, existing or deleted, with its history; or one version that is not the current one.
  ///
  /// - Throws: `notFound`; `busy` for the current version, one whose session goes on, and a file with another name;
  ///   `corrupt` or `noSpace` where a pack still holds what was purged.
  package func purge(_ path: ItemPath, version number: Int64?) throws {
    completeSaves()
    try settleEventsInSteps()
    guard let number else { return try purge(path) }
    try partChunks(ofVersion: number, of: path)
    try locked {
      try settleSessions()
      // Events of earlier actions are settled before the item goes: a pending event would go with it.
      try settleEvents(all: true)
      let (inode, item) = try document(path, for: .purge)
      guard let row = try read({ try $0.version(item.id, number) }) else {
        throw SheafError(
          .notFound, subject: "\(path)", reason: "has no version \(number)",
          advice: "`sheaf versions` shows those it has")
      }
      guard number != item.version, !row.isOpen, !inode.drafts.contains(where: { $0.session?.number == number })
      else {
        throw SheafError(
          .busy, subject: "version \(number) of \(path)", reason: "is the current one",
          advice: "restore another first, or purge the whole document")
      }
      try makeChange(.purge, freesSpace: true) { change in
        try notePurge(change)
        try requestPurge(ofVersion: number, item, change)
        try change.rows.deleteVersion(item.id, number)
        guard item.conflict == number else { return }
        var settled = item
        settled.conflict = nil
        try change.rows.update(settled)
        change.whenRecorded { [settled] in inode.item = settled }
      }
    }
    try freePurged()
  }

  /// Destroys an item with all that is below it.
  private func purge(_ path: ItemPath) throws {
    var purge: Purge?
    try leavingRest {
      repeat {
        try locked {
          try settleSessions()
          // Events of earlier actions are settled before the item goes: a pending event would go with it.
          try settleEvents(all: true)
          purge = try purge.map(resumed) ?? beginPurge(path)
          if let begun = purge { purge = try eraseSome(begun) }
        }
      } while purge != nil
    }
    try freePurged()
  }

  /// Gives freed space back to the disk, as far as it has room for the work.
  func shrink() throws {
    var failure: SheafError?
    do {
      try store.shrink()
    } catch {
      failure = error
    }
    // It may have been given up for that.
    store.reserve.establish()
    guard let failure else { return }
    guard failure.kind == .noSpace else { throw failure }
    // Freed it is all the same: its room in the file is there for what comes next.
    log.warning("the library could not be shrunk", metadata: ["error": "\(failure)"])
  }

  /// Forgets an erased inode that nobody has open, and with it the contents that would hold its chunks.
  func letGo(_ inode: Inode, _ change: Change) {
    change.whenRecorded { [self] in
      guard inode.openCount == 0 else {
        if !purged.isFreed { purged.noteOpen(inode.ino) }
        return
      }
      for draft in inode.drafts { draft.working = nil }
      inodes.remove(inode.ino)
    }
  }
}
