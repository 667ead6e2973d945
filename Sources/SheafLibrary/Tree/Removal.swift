import Foundation
import SheafModel
import SheafStore

/// Taking names away: unlink and rmdir, and what becomes of an inode without a name.
///
/// Rooms: `Chunks`, `EditingSessions`, `EventLog`, `Identity`, `InodeTable`, `Numbers`, `ShareBook`.
extension Library {
  /// Removes a name of a file.
  ///
  /// - Throws: `notFound`, `isDirectory`, `accessDenied`, `notPermitted` (sticky folder).
  package func unlink(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws {
    if let kept = try locked({ try keptInode(parent, name, caller) }) { completeSaves(of: kept) }
    try lockedNear([parent]) { try unlinkFile(parent, name, caller) }
  }

  /// As ``unlink(_:_:_:)``, with the lock held.
  func unlinkFile(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws {
    let folder = try self.folder(parent)
    try Self.checkLength(name)
    guard let entry = try entry(parent, name) else { throw SheafError(.notFound) }
    let inode = try inode(entry.ino)
    try permitRemoving(inode, from: folder, caller)
    guard !inode.isFolder else { throw SheafError(.isDirectory) }
    let time = clock()
    try endSessionsBeforeTakingLinkedPlace(inode, entry, caller, time)
    try endSessionBeforeRemoval(inode, name, caller, time)
    try settleSession(of: inode)
    try makeChange(.unlink, freesSpace: true, by: caller, at: time) { change in
      try change.rows.delete(entry)
      try change.noteEnd(of: entry, inode)
      try touch(folder, time, change)
      try noteDeparture(entry, of: inode, change)
      try removeName(entry, of: inode, change)
      change.whenRecorded { [self] in tell(.removed(NamedInode(inode, parent, name)), from: caller.door) }
    }
  }

  /// Removes an empty folder; returns its inode.
  ///
  /// - Throws: `notFound`, `notDirectory`, `notEmpty`, `busy` for an account's `Documents`, as ``unlink(_:_:_:)``.
  @discardableResult
  package func rmdir(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64 {
    try lockedNear([parent]) { try removeFolder(parent, name, caller) }
  }

  /// As ``rmdir(_:_:_:)``, with the lock held.
  func removeFolder(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64 {
    let folder = try self.folder(parent)
    try Self.checkLength(name)
    guard let entry = try entry(parent, name) else { throw SheafError(.notFound) }
    let inode = try inode(entry.ino)
    try permitRemoving(inode, from: folder, caller)
    guard inode.isFolder else { throw SheafError(.notDirectory) }
    guard try !read({ try $0.hasEntries(inode.ino) }) else { throw SheafError(.notEmpty) }
    let time = clock()
    try makeChange(.rmdir, freesSpace: true, by: caller, at: time) { change in
      try change.rows.delete(entry)
      try change.noteEnd(of: entry, inode)
      try touch(folder, time, links: -1, change)
      try noteDeparture(entry, of: inode, change)
      try deleteFolder(inode, entry, opens: caller.thread != 0, change)
      change.whenRecorded { [self] in tell(.removed(NamedInode(inode, parent, name)), from: caller.door) }
    }
    return inode.ino
  }

  /// A document that is to be stored before its name goes.
  private func keptInode(_ parent: Int64, _ name: [UInt8], _ caller: Caller) throws -> Int64? {
    guard sessions.hasKept, let entry = try entry(parent, name), let inode = sessions.keptInode(entry.ino),
      !leavesNoTrace(inode, name, caller, clock())
    else { return nil }
    return inode.ino
  }

  /// Makes a version of what was written before its file goes, unless that leaves no trace anyway.
  func endSessionBeforeRemoval(_ inode: Inode, _ name: [UInt8], _ caller: Caller, _ time: Timestamp) throws {
    guard inode.hasSession, inode.row.nlink == 1 else { return }
    if leavesNoTrace(inode, name, caller, time) { return }
    if hasOthersChanges(inode, caller) { identity.holdsOthers(inode.ino) }
    do {
      try endSessionBeforeReplacement(inode)
    } catch let error as SheafError where error.kind == .noSpace {
      // Bytes that do not fit go with the file, which the person removes to make room.
    }
  }

  /// Takes `entry` from `inode`; the entry's row itself is the caller's to delete or change.
  func removeName(
    _ entry: EntryRow, of inode: Inode, _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    var row = inode.row
    row.nlink -= 1
    row.ctime = time
    if row.nlink > 0 {
      if !entry.isExtra, var remaining = try change.rows.extraEntry(row.ino) {
        // The oldest name that is left takes its place.
        remaining.isExtra = false
        try change.rows.update(remaining)
        row.parent = remaining.parent
        row.name = remaining.name
        let isProved = isProved(inode, entry.name)
        change.whenRecorded { [self] in identity.named(inode.ino, by: caller.process, isProved: isProved) }
        if row.nlink == 1, try takeLinkedPlace(inode, &row, from: entry, change) {
          return try change.rows.update(row)
        }
        try carryEntry(of: inode, to: remaining.parent, change)
        try tellWithOtherName(inode, remaining, change)
        rememberUnlinkedName(inode, entry, change)
      }
      try change.rows.update(row)
      let final = row
      change.whenRecorded { inode.row = final }
      return
    }
    guard let item = try item(of: inode), !leavesNoTrace(inode, entry.name, caller, time) else {
      let told = try item(of: inode).flatMap { $0.isQuiet || events.has($0.id) ? nil : $0 }
      let data = try told.map { try eventData($0, parent: entry.parent, name: entry.name) }
      try erase(inode, change)
      if let told, let data {
        // Its creation was settled early.
        try logEvent(
          .deleted, told, ino: row.ino, data, actor: caller.actor(in: row), thread: 0, opens: false, change)
      }
      return
    }
    try change.rows.setChangeTime(time, nlink: row.nlink, ino: row.ino)
    try change.rows.insert(
      DeletedRow(ino: row.ino, parent: entry.parent, name: entry.name, time: time, actor: caller.actor(in: row)))
    let data = try eventData(item, parent: entry.parent, name: entry.name)
    let firstEvent = numbers.pending + 1
    try logEvent(
      .deleted, item, ino: row.ino, data, actor: caller.actor(in: row), thread: caller.thread,
      opens: caller.thread != 0,
      folder: entry.parent,
      change)
    let final = row
    change.whenRecorded { [self] in
      inode.row = final
      if inode.isRegular {
        identity.remember(
          item.id, ino: final.ino, from: entry.parent, entry.name, process: caller.process, mode: final.mode,
          event: firstEvent, since: entry.since, at: time)
      }
    }
  }

  /// Gives the event of a file's making, where that is yet to be told, the name that is left, as a rename does (rule 12
  /// of ``Identity``).
  private func tellWithOtherName(_ inode: Inode, _ entry: EntryRow, _ change: Change) throws {
    guard let item = try item(of: inode), events.of(item.id).first?.row.type == EventType.created.rawValue else {
      return
    }
    let here = try eventData(item, parent: entry.parent, name: entry.name)
    for event in events.of(item.id) {
      guard var told = event.data else { continue }
      (told.item, told.share) = (here.item, here.share)
      try rewrite(event, told, change)
    }
  }

  /// Remembers a document's oldest name, which goes while another one stays (rule 5 of ``Identity``).
  private func rememberUnlinkedName(
    _ inode: Inode, _ entry: EntryRow, _ change: Change
  ) {
    let (caller, time) = (change.caller, change.time)
    guard inode.isRegular, let item = inode.row.item, !FileRole.looksPassing(entry.name) else { return }
    if identity.isOwn(inode.ino, of: caller.process, at: time), !isProved(inode, entry.name) { return }
    let mode = inode.row.mode
    change.whenRecorded { [self] in
      identity.remember(
        item, ino: inode.ino, from: entry.parent, entry.name, process: caller.process, mode: mode, event: nil,
        since: entry.since, at: time)
    }
  }

  /// Removes every row of an inode that has no name left; programs that have it open go on with it in memory.
  func erase(_ inode: Inode, _ change: Change) throws {
    if let item = inode.row.item {
      try dropPending(item, change)
      try removeShare(of: item, change)
      try change.rows.deleteItem(item)
    }
    try detach(inode, change)
  }

  /// Removes an inode's own rows: it has no name and is no item any more.
  func detach(_ inode: Inode, _ change: Change) throws {
    let xattrs = try detachXattrs(of: inode, change)
    if inode.own.session?.kept != nil || inode.keptEmptyBy != nil { try change.rows.deleteWorkingCopy(inode.ino) }
    try change.rows.deleteInode(inode.ino)
    try removeMark(of: inode.ino, change)
    let share =
      shares.isLeaving(inode.ino)
      ? nil : try inode.row.item.flatMap { shares.active($0) } ?? share(ofFolder: inode.row.parent)
    let account = change.caller.account
    change.whenRecorded { [self] in
      sessions.removeKept(inode.ino)
      inode.orphanXattrs = Dictionary(uniqueKeysWithValues: xattrs.map { ($0.name, $0.value) })
      inode.xattrSpace = xattrs.reduce(into: XattrSpace()) { $0.add($1.name, valueBytes: $1.value.count) }
      inode.orphanShare = share?.row.item
      for draft in inode.drafts {
        // Whoever takes the file away knows that what they have open goes with it; who only emptied it loses nothing.
        if draft !== inode.own, draft.isEdited, draft.working?.size ?? 0 > 0, draft.account != account {
          noteLostChanges(of: draft)
        }
        shareChunks(of: draft)
        draft.working?.area?.abandon()
        discardUnsaved(draft)
        load(inode, draft)
        draft.session = nil
      }
      inode.row.nlink = 0
      inode.row.item = nil
      inode.item = nil
      inode.isOrphan = true
      inode.keptEmptyBy = nil
      inode.hasNewAccessTime = false
      sessions.remove(inode.ino)
      identity.forget(inode.ino)
      inodes.insert(inode)
      noteDiscarded(bytes: inode.row.size)
    }
  }

  /// Notes that contents of so many bytes have no use any more, and asks upkeep to free them: at once if there are many
  /// by now, else in a while.
  func noteDiscarded(bytes: Int64) {
    guard bytes > 0 else { return }
    if chunks.noteDiscarded(bytes) { sweepDiscarded() } else { maintenance.sweepLater() }
  }

  /// Asks upkeep to free what files left that went without a trace, if any did since the last time.
  func sweepDiscarded() {
    if chunks.takeDiscarded() { maintenance.sweepSoon() }
  }

  /// Takes its name from an empty folder, as ``removeName(_:of:_:_:_:)`` does from a file.
  ///
  /// - Parameter opens: whether the deletion of the folder around it can still tell of it.
  func deleteFolder(
    _ inode: Inode, _ entry: EntryRow, opens: Bool, _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    guard let item = try item(of: inode) else { return try erase(inode, change) }
    // No event reported it yet, and none will, and nothing of it is to come back.
    if try events.has(item.id, type: .created) || isPlain(item, inode), shares[item.id] == nil,
      try change.rows.deleted(from: inode.ino, limit: 1).isEmpty
    {
      return try erase(inode, change)
    }
    var row = inode.row
    row.nlink = 0
    row.ctime = time
    try change.rows.update(row)
    try change.rows.insert(
      DeletedRow(ino: row.ino, parent: entry.parent, name: entry.name, time: time, actor: caller.actor(in: row)))
    var data = try eventData(item, parent: entry.parent, name: entry.name)
    let absorbed = try absorbDeletions(from: inode.ino, into: &data, by: caller.process, change)
    let isShared = shares.active(item.id) != nil
    try logEvent(
      .deleted, item, ino: row.ino, data, actor: caller.actor(in: row), thread: caller.thread, opens: opens,
      folder: entry.parent, absorbed: absorbed, change)
    change.whenRecorded { [self] in
      inode.row = row
      if isShared { shares.forgetFolders() }
    }
  }
}
