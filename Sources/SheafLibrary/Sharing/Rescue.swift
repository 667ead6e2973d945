import Foundation
import SheafModel
import SheafStore

/// Keeps changes that cannot be saved in their place: in the writer's own `Documents`, as `NAME (not saved).EXT`. A
/// notice says where that is.
///
/// - The writer lost the right to save them. Saving fails with EACCES.
/// - They were written to an open file after another program had given the document's name to another file. They are
///   kept once nobody has the file open for writing. Bytes written by the program that replaced the file are lost with
///   it, as on a local disk.
///
/// A file that never had a name (O_TMPFILE of open(2)) is not kept: its program never said what it is to be, and on a
/// local disk it goes with its last descriptor, too. write(2) and linkat(2) fail with EACCES.
///
/// If the disk has no room, they stay in memory and in the working file, and autosave tries again until there is room;
/// `sheaf status` shows how many wait (``waitingRescues``). The last close(2) of such a file fails with ENOSPC.
///
/// Rooms: `AccountTable`, `EditingSessions`, `Numbers`, `OpenFiles`.
extension Library {
  /// Keeps what an account wrote to documents that it may write no longer.
  func rescueDrafts(of account: Int64) {
    for inode in Array(sessions.inodes) {
      guard let draft = inode.others[account], draft.session != nil,
        let allowed = try? mayWrite(inode, draft), !allowed
      else { continue }
      do {
        try rescueDenied(inode, draft)
      } catch {
        log.error(
          "unsaved changes could not be kept yet", metadata: ["account": "\(account)", "error": "\(error)"])
      }
    }
  }

  /// Keeps what was written to a draft whose account may write it no longer, and ends its session.
  func rescueDenied(_ inode: Inode, _ draft: Draft) throws {
    if draft.isChanged {
      do {
        if !inode.isNameless { try rescue(draft, of: inode) }
      } catch {
        // close(2) fails; autosave tries again.
        noteLostChanges(of: draft)
        throw error
      }
      drop(draft, of: inode)
    }
    if inode.keptEmptyBy == draft.account, !inode.isOrphan {
      // It has its contents again.
      try makeChange(.workingCopy, freesSpace: true) { change in
        try change.rows.deleteWorkingCopy(inode.ino)
        change.whenRecorded { inode.keptEmptyBy = nil }
      }
    }
    // The version saved before ends as it is.
    try endSession(inode, draft)
  }

  /// Whether a draft may be saved in its place: a permission counts when it is used.
  func mayWrite(_ inode: Inode, _ draft: Draft) throws -> Bool {
    if draft === inode.own { return true }
    return try participant(draft.account, in: inode).map { Self.allows(.write, $0) } ?? false
  }

  /// Whether what was written to a file without a name is to be kept, as the work of another program than the one that
  /// replaced it.
  func needsRescue(_ inode: Inode, _ draft: Draft) -> Bool {
    inode.isOrphan && draft.hasReplacedWork && draft.isChanged && draft.working?.size ?? 0 > 0
  }

  /// - Throws: `noSpace`, while a program can still be told, where there is no room for what it wrote to a file without
  ///   a name.
  func requireRoomForRescue(of inode: Inode, _ draft: Draft) throws {
    guard needsRescue(inode, draft) else { return }
    try requireRoom(for: Int64(draft.unsavedBytes) + (draft.working?.area?.count ?? 0))
  }

  /// Documents whose changes cannot be saved in their place, and wait for room on the disk to be kept elsewhere.
  package var waitingRescues: Int {
    locked {
      sessions.inodes.reduce(0) { count, inode in
        count
          + inode.drafts.count { draft in
            guard draft.session != nil, draft.isChanged else { return false }
            if inode.isOrphan { return draft.writerCount == 0 && needsRescue(inode, draft) }
            return (try? mayWrite(inode, draft)) == false
          }
      }
    }
  }

  /// Makes a document of a draft in its account's `Documents`.
  func rescue(_ draft: Draft, of lost: Inode) throws {
    guard let working = draft.working, let account = accountTable[draft.account] else {
      return
    }
    let time = clock()
    try makeChange(.save) { change in
      var content = try working.stored(in: change)
      let stored = try content.stored(in: change)
      let version = VersionRow(
        item: 0, number: 1, time: time, author: account.id, size: stored.length, cause: .save, base: nil,
        content: stored, isOpen: false)
      try insertKept([version], of: lost, for: account, change)
    }
  }

  /// Makes a document in an account's `Documents` of what cannot be saved in its place.
  ///
  /// - Parameters:
  ///   - versions: What it has, the oldest first; their items and numbers are those of others.
  ///   - lost: Where it would have been saved.
  func insertKept(_ versions: [VersionRow], of lost: Inode, for account: AccountRow, _ change: Change) throws {
    guard let last = versions.last else { return }
    let folder = try inode(account.documents)
    var item = newItem(.document, owner: account.id, creator: account.id, time: change.time)
    (item.version, item.lastVersion) = (Int64(versions.count), Int64(versions.count))
    let name = try freeName(
      Self.marked(FileRole.lasting(lost.row.name), " (not saved)"), in: folder.ino, isFolder: false)
    let row = InodeRow(
      ino: numbers.nextIno(), item: item.id, owner: account.id, parent: folder.ino, name: name, mode: S_IFREG | 0o600,
      nlink: 1, uid: folder.row.uid, gid: folder.row.gid, size: last.size, time: change.time, content: last.content)
    try change.rows.insert(item)
    try change.rows.insert(row)
    var kept: VersionRow?
    for (index, version) in versions.enumerated() {
      let number = Int64(index) + 1
      let made = VersionRow(
        item: item.id, number: number, time: version.time, author: version.author, size: version.size,
        cause: version.cause, base: index == 0 ? nil : number - 1, content: version.content, isOpen: false)
      try change.rows.insert(made)
      kept = made
    }
    try change.rows.insert(
      EntryRow(parent: folder.ino, hash: nameHash(name), name: name, ino: row.ino, since: change.time))
    try touch(folder, change.time, change)
    var data = try eventData(item, parent: folder.ino, name: name)
    data.version = kept.map { .init($0) }
    data.previousName = String(decoding: lost.row.name, as: UTF8.self)
    try logEvent(.created, item, ino: row.ino, data, actor: account.id, thread: 0, opens: false, change)
    change.whenRecorded { [self] in
      shareChunks(of: lost)
      let place = LibraryPlace(folder: .inode(folder.ino), name: name)
      tell(.made(NamedInode(ino: row.ino, mode: row.mode, place: place)), from: 0)
    }
  }

  /// Resets a draft to what is saved; close(2) tells those who wrote to it that their bytes were not saved.
  private func drop(_ draft: Draft, of inode: Inode) {
    sessions.addUnsaved(-draft.unsavedBytes)
    noteLostChanges(of: draft)
    draft.working = WorkingCopy(inode.row.content ?? .empty)
    draft.session?.dirtySince = nil
    tell(.saved(inode.ino), to: draft.account)
  }

  /// Makes close(2) tell those who wrote to a draft that it was not saved.
  func noteLostChanges(of draft: Draft) {
    for file in files.all where file.draft === draft && file.canWrite { file.hasLostChanges = true }
  }

  /// Notes that what is written through `file`, whose inode lost its name, is the work of another program than the one
  /// that replaced it.
  ///
  /// - Parameter thread: The thread that writes; 0 if it is not known, so that it counts as the program that opened the
  ///   file.
  func noteReplacedWork(through file: OpenFile, by thread: Int32) {
    guard !file.draft.hasReplacedWork, let replacer = file.inode.replacer else { return }
    file.draft.hasReplacedWork = (thread == 0 ? file.process : Caller.process(of: thread)) != replacer
  }

  /// `name` with a mark before its extension.
  static func marked(_ name: [UInt8], _ mark: String) -> [UInt8] {
    let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.endIndex
    let middle = Array(mark.utf8)
    let ending = Array(name[dot...])
    return Array((Array(name[..<dot].prefix(max(0, 255 - middle.count - ending.count))) + middle + ending).prefix(255))
  }
}
