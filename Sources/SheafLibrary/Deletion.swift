import Foundation
package import SheafModel
import SheafStore

/// What was deleted: listing, recovering, and destroying for good.
extension Library {
  /// What was deleted at or below `path` (all where nil) and can be recovered, latest first.
  package func deleted(_ handle: AccountHandle, below path: ItemPath?) throws -> [DeletedItem] {
    try locked {
      let account = try account(handle)
      let prefix = path.map { Array($0.components.joined(separator: [UInt8(ascii: "/")])) }
      var items: [DeletedItem] = []
      let owners = [account.id] + Set(shares.joined(by: account.id).map(\.owner)).sorted()
      for row in try owners.flatMap({ owner in try read { try $0.deleted(owner: owner) } }) {
        guard let item = try item(of: inode(row.ino)), try isVisible(row, .api(account.id)) else { continue }
        let whole = Array(try mountPath(row.parent, row.name, for: account.id).utf8)
        if let prefix, whole != prefix, !whole.starts(with: prefix + [UInt8(ascii: "/")]) { continue }
        items.append(
          DeletedItem(
            id: item.uuid.text, path: String(decoding: whole, as: UTF8.self), time: row.time,
            actor: try self.handle(row.actor)))
      }
      return items
    }
  }

  /// Brings back what was deleted, a folder with all that went with it; returns the paths, the top one first.
  ///
  /// - Parameter id: the item's UUID, where several of one path were deleted; the latest where nil.
  /// - Throws: `notFound` that names the path; `noSpace`.
  package func recover(_ path: ItemPath, id: String?, progress: (SheafModel.Progress) -> Void) throws -> [String] {
    try locked {
      let caller = Caller.api(try account(path.account).id)
      let row: DeletedRow
      if let id {
        guard let uuid = UUID(uuidString: id), let item = try read({ try $0.item(uuid: uuid) }),
          let inode = try read({ try $0.inode(item: item.id) }), let found = try read({ try $0.deleted(inode.ino) }),
          try isVisible(found, caller)
        else {
          throw SheafError(
            .notFound, subject: "item \(id.printable)", reason: "is not among the deleted",
            advice: "`sheaf deleted` shows the ids")
        }
        row = found
      } else {
        row = try resolveDeleted(path)
      }
      try allow(.recover, inode(row.ino), on: path)
      // What was deleted is told before that it is back, also where a folder's deletion tells of it.
      try settleEvents(all: true)
      var paths: [String] = []
      try transaction(.recover) { transaction in
        var above = TreeDeed()
        try recoverParents(of: row, into: &above, caller, transaction)
        try log(.created, above, transaction)
        var rows: [DeletedRow] = []
        _ = try gather(row, into: &rows, caller, transaction)
        var deed = TreeDeed()
        for next in rows {
          let recovered = try giveBack(next, caller, transaction)
          paths.append(recovered.path)
          if let part = recovered.part { deed.add(part) }
          if paths.count % 64 == 0 || paths.count == rows.count {
            progress(SheafModel.Progress(done: Int64(paths.count), total: Int64(rows.count)))
          }
        }
        try log(.created, deed, transaction)
      }
      return paths
    }
  }

  /// Brings back the folders above, empty; the first of them tells of the others.
  private func recoverParents(
    of row: DeletedRow, into deed: inout TreeDeed, _ caller: Caller, _ transaction: StoreTransaction
  ) throws {
    guard let parent = try transaction.deleted(row.parent) else { return }
    try recoverParents(of: parent, into: &deed, caller, transaction)
    if let part = try giveBack(parent, caller, transaction).part { deed.add(part) }
  }

  /// Seconds between two deletions of one `rm -r` at most.
  private static let sweepGap: Int64 = 10

  /// Gathers a deleted item and what was deleted from it together with it, each folder before what is in it: one
  /// deletion after the other, up to its own. Returns the time of the first.
  ///
  /// Later than the folder can only be what was deleted before the clock was put back: when, nobody can tell, so it comes along.
  private func gather(
    _ folder: DeletedRow, into rows: inout [DeletedRow], _ caller: Caller, _ transaction: StoreTransaction
  ) throws -> Timestamp {
    rows.append(folder)
    var earliest = folder.time
    var names: Set<[UInt8]> = []
    for row in try transaction.deleted(from: folder.ino) {
      guard earliest.seconds - row.time.seconds <= Self.sweepGap, try isVisible(row, caller) else { break }
      // What one of the same name took away before it does not come along.
      guard names.insert(row.name).inserted else {
        earliest = min(earliest, row.time)
        continue
      }
      earliest = min(earliest, try gather(row, into: &rows, caller, transaction))
    }
    return earliest
  }

  /// Takes a deletion back, in the running transaction, as if it had not been: nothing is told of either, if nobody was told
  /// of the deletion yet.
  func undo(_ row: DeletedRow, _ caller: Caller, _ transaction: StoreTransaction) throws {
    let recovered = try giveBack(row, caller, transaction)
    guard let part = recovered.part else { return }
    let id = part.item.id
    if try dropPending(id, types: [.deleted], transaction) || events.isAbsorbed(id) { return }
    var deed = TreeDeed()
    deed.add(part)
    try log(.created, deed, transaction)
  }

  /// Gives a deleted inode a name again, in the running transaction; who asks tells of it.
  private func giveBack(
    _ row: DeletedRow, _ caller: Caller, _ transaction: StoreTransaction
  ) throws -> Recovered {
    let time = clock()
    guard var inode = try transaction.inode(row.ino), var folder = try transaction.inode(row.parent) else {
      throw SheafError(.corrupt, subject: "deleted inode \(row.ino)", advice: "run sheaf check")
    }
    let name = try freeName(row.name, in: row.parent, transaction)
    inode.nlink = inode.mode & S_IFMT == S_IFDIR ? 2 : 1
    inode.parent = row.parent
    inode.name = name
    inode.ctime = time
    folder.nlink += inode.mode & S_IFMT == S_IFDIR ? 1 : 0
    folder.mtime = time
    folder.ctime = time
    try transaction.removeDeleted(row.ino)
    try transaction.insert(EntryRow(parent: row.parent, hash: nameHash(name), name: name, ino: row.ino))
    try transaction.update(inode)
    try transaction.touch(folder: folder.ino, time: time, nlink: folder.nlink)
    var deed: (item: ItemRow, data: EventData)?
    if let id = inode.item, var item = try transaction.item(id) {
      try settleReturn(of: &item, self.inode(row.ino), lostAt: row.time, to: row.parent, transaction)
      var data = try eventData(item, parent: row.parent, name: name)
      if item.version > 0, let version = try transaction.version(id, item.version) { data.version = .init(version) }
      (data.contents, data.contentCount) = ([], 0)
      deed = (item, data)
    }
    let (final, finalItem, finalFolder) = (inode, deed?.item, folder)
    whenCommitted { [self] in
      inodes[final.ino]?.row = final
      inodes[final.ino]?.item = finalItem
      inodes[finalFolder.ino]?.row = finalFolder
      if let item = final.item {
        identity.settle(item: item)
        if shares.active(item) != nil { sharedEntriesAreStale = true }
      }
      shares.forgetFolders()
      tell(
        .made(NamedInode(ino: final.ino, mode: final.mode, place: .init(folder: .inode(row.parent), name: name))),
        from: 0)
    }
    // The paths below a folder that is recovered in this transaction are read through its row.
    for row in [final, finalFolder] where row.mode & S_IFMT == S_IFDIR {
      guard let cached = inodes[row.ino] else { continue }
      let before = cached.row
      whenFailed { cached.row = before }
      cached.row = row
    }
    let actor = caller.actor(in: inode)
    return Recovered(
      path: try mountPath(row.parent, name, for: actor, item: inode.item),
      part: deed.map { .init(item: $0.item, ino: row.ino, actor: actor, data: $0.data) })
  }

  /// What has a name again.
  private struct Recovered {
    let path: String
    /// Nil for what is no item.
    let part: TreeDeed.Part?
  }

  /// `name`, or with ` (2)`, ` (3)` … before its extension where it is taken.
  func freeName(_ name: [UInt8], in parent: Int64, _ transaction: StoreTransaction) throws -> [UInt8] {
    var candidate = name
    var number = 2
    while try transaction.entry(parent, hash: nameHash(candidate), name: candidate) != nil {
      candidate = Self.numbered(name, number)
      number += 1
    }
    return candidate
  }

  // MARK: - Destroying for good

  /// Destroys an item, existing or deleted, with its history; or one version that is not the current one.
  ///
  /// - Throws: `notFound`; `busy` for the current version, one whose session goes on, and a file with another name; `corrupt` or
  ///   `noSpace` where a pack still holds what was purged.
  package func purge(_ path: ItemPath, version number: Int64?) throws {
    storeClosed()
    if let number { try partChunks(ofVersion: number, of: path) }
    try locked {
      try settleSessions()
      // What was done before is told before the item goes: an event that waits would go with it.
      try settleEvents(all: true)
      if let number {
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
        try transaction(.purge, freesSpace: true) { transaction in
          try transaction.deleteVersion(item.id, number)
          guard item.conflict == number else { return }
          var settled = item
          settled.conflict = nil
          try transaction.update(settled)
          whenCommitted { [settled] in inode.item = settled }
        }
      } else {
        try purgeItem(path)
      }
    }
    let swept = Result { try sweep(mustMend: true) }
    try shrink()
    _ = try swept.get()
  }

  /// Gives freed space back to the disk, as far as it has room for the work.
  private func shrink() throws {
    do {
      try store.shrink()
    } catch {
      guard error.kind == .noSpace else { throw error }
      // Freed it is all the same: its room in the file is there for what comes next.
      log.warning("the library could not be shrunk", metadata: ["error": "\(error)"])
    }
  }

  private func purgeItem(_ path: ItemPath) throws {
    guard path.components.count > 1 else {
      throw SheafError(.notPermitted, subject: "\(path)", reason: "is the account's folder itself, which stays")
    }
    let existing: Inode?
    do {
      existing = try resolve(path)
    } catch let error as SheafError where error.kind == .notFound {
      existing = nil
    }
    guard let inode = existing else {
      let row = try resolveDeleted(path)
      try allow(.purge, self.inode(row.ino), on: path)
      return try transaction(.purge, freesSpace: true) { try eraseDeleted(row, $0) }
    }
    try allow(.purge, inode, on: path)
    guard let name = path.components.last else { return }
    let parent = try resolve(ItemPath(account: path.account, bytes: path.bytes.dropLast(name.count + 1)))
    guard let entry = try entry(parent.ino, name) else { throw SheafError(.notFound, subject: "\(path)") }
    let time = clock()
    let account = try account(path.account).id
    let caller = Caller.api(account)
    if !inode.isFolder, inode.row.nlink > 1 {
      let other = entry.isExtra ? nil : try read { try $0.extraEntry(inode.ino) }
      let otherPath = try mountPath(other?.parent ?? inode.row.parent, other?.name ?? inode.row.name, for: account)
      throw SheafError(
        .busy, subject: "\(path)", reason: "also has the name \(otherPath.printable)",
        advice: "remove that name before, or purge a folder with all of its names")
    }
    try transaction(.purge, freesSpace: true) { transaction in
      try touch(parent, time, links: inode.isFolder ? -1 : 0, transaction)
      var deed = TreeDeed()
      try eraseTree(entry, into: &deed, caller, transaction)
      try log(.deleted, deed, transaction)
    }
  }

  /// Erases an entry and all below it, deleted things too.
  private func eraseTree(
    _ entry: EntryRow, into deed: inout TreeDeed, _ caller: Caller, _ transaction: StoreTransaction
  ) throws {
    let inode = try inode(entry.ino)
    if inode.isFolder || inode.row.nlink == 1, let item = try item(of: inode) {
      deed.add(
        .init(
          item: item, ino: inode.ino, actor: caller.actor(in: inode.row),
          data: try eventData(item, parent: entry.parent, name: entry.name)))
    }
    if inode.isFolder {
      while true {
        let children = try transaction.entries(entry.ino, after: 0, limit: 256)
        if children.isEmpty { break }
        for child in children { try eraseTree(child, into: &deed, caller, transaction) }
      }
      for row in try transaction.deleted(from: entry.ino) { try eraseDeleted(row, transaction) }
    }
    try transaction.delete(entry)
    whenCommitted { [self] in tell(.removed(NamedInode(inode, entry.parent, entry.name)), from: 0) }
    if inode.row.nlink > 1, !inode.isFolder {
      try removeName(entry, of: inode, caller, clock(), transaction)
      // Its other names may lie below, too: the last one takes it along.
      let before = inode.row
      whenFailed { inode.row = before }
      if let left = try transaction.inode(inode.ino) {
        (inode.row.nlink, inode.row.parent, inode.row.name) = (left.nlink, left.parent, left.name)
      }
      return
    }
    try erase(inode, transaction)
    letGo(inode)
  }

  /// Erases a deleted inode and all that was deleted from it.
  func eraseDeleted(_ row: DeletedRow, _ transaction: StoreTransaction) throws {
    for child in try transaction.deleted(from: row.ino) { try eraseDeleted(child, transaction) }
    try transaction.removeDeleted(row.ino)
    let inode = try inode(row.ino)
    try erase(inode, transaction)
    letGo(inode)
  }

  /// Forgets an erased inode that nobody has open, and with it the contents that would hold its chunks.
  func letGo(_ inode: Inode) {
    whenCommitted { [self] in
      guard inode.openCount == 0 else { return }
      for draft in inode.drafts { draft.working = nil }
      inodes[inode.ino] = nil
    }
  }
}
