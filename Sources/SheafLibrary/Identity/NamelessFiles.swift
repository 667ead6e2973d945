import Glibc
import SheafModel
import SheafStore

/// Files that a program makes without a name (O_TMPFILE of open(2)), and links into place once they are whole.
///
/// Rules:
/// 1. The store knows nothing of them: a file that is not linked is gone with its last descriptor, and with the
///    process. At most its bytes are in chunks, which the next sweep frees.
/// 2. The name, the document and its version are one change. So the name always leads to everything that was written
///    before the file was linked, whatever happens afterwards.
/// 3. From then on it is a file that its program has just made (rule 1 of ``Identity``): if the program took the name
///    from a document, that document goes on in it, and it may take another document's place by rename(2).
///
/// Rooms: `EditingSessions`, `Identity`, `InodeTable`.
extension Library {
  /// Makes a file without a name in a folder, and opens it.
  ///
  /// - Parameters:
  ///   - mode: permission bits, the umask applied.
  ///   - flags: open(2)'s.
  /// - Throws: `notFound`, `notDirectory`, `accessDenied`.
  package func createNameless(
    _ parent: Int64, mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64) {
    try locked {
      let folder = try self.folder(parent)
      guard folder.row.nlink > 0 else { throw SheafError(.notFound) }
      try permit(folder, caller, Permission.write | Permission.execute)
      try requireRoom(for: 0)
      var row = newRow(S_IFREG, in: folder, [], mode: mode, caller, clock())
      (row.nlink, row.content) = (0, .empty)
      let inode = Inode(row)
      (inode.isOrphan, inode.isNameless) = (true, true)
      inode.orphanShare = try share(ofFolder: parent)?.row.item
      inode.xattrSpace = XattrSpace()
      inodes.insert(inode)
      return (try attributes(inode, caller), register(OpenFile(inode: inode, flags: flags, caller)))
    }
  }

  /// Gives a file its first name (rule 2).
  ///
  /// - Throws: as ``make(_:_:_:mode:_:)``.
  func nameNameless(_ inode: Inode, _ folder: Inode, _ name: [UInt8], _ caller: Caller) throws -> Attributes {
    try permitMaking(name, in: folder, caller)
    let time = clock()
    let draft = inode.draft(of: caller.account)
    try prepareNaming(inode, draft, time)
    if let former = try formerDocument(folder.ino, name, isOpen: true, caller, time) {
      _ = try remake(
        former.inode, former.memory, folder, name, mode: inode.row.mode, caller, time, holding: inode)
    } else {
      try insertNameless(inode, draft, folder, name, caller, time)
    }
    if draft.writerCount == 0 { try endAfterClose(inode, draft) }
    return try attributes(inode, caller)
  }

  /// Begins the session of what was written to a file that is about to get its first name.
  func prepareNaming(_ inode: Inode, _ draft: Draft, _ time: Timestamp) throws {
    load(inode, draft)
    if draft.isChanged, draft.session == nil { try beginSession(inode, draft, handle: nil, at: time) }
    shareChunks(of: inode)
  }

  private func insertNameless(
    _ inode: Inode, _ draft: Draft, _ folder: Inode, _ name: [UInt8], _ caller: Caller, _ time: Timestamp
  ) throws {
    guard let working = draft.working else { throw SheafError(.badDescriptor) }
    var row = inode.row(named: name, in: folder, time)
    var item = newItem(.document, owner: row.owner, creator: caller.actor(in: row), time: time)
    row.item = item.id
    item.isQuiet = try isIgnored(folder.ino, name, isFolder: false)
    if !item.isQuiet { (item.version, item.lastVersion) = (1, 1) }
    try makeChange(.link, by: caller, at: time) { change in
      var content = try working.stored(in: change)
      row.content = try content.stored(in: change)
      row.size = row.content?.length ?? 0
      try change.rows.insert(item)
      try change.rows.insert(row)
      try insertXattrs(of: inode, change)
      try change.rows.insert(
        EntryRow(parent: folder.ino, hash: nameHash(name), name: name, ino: row.ino, since: time))
      if item.version > 0 {
        try change.rows.insert(
          VersionRow(
            item: item.id, number: 1, time: time, author: draft.account, size: row.size, cause: .save, base: nil,
            content: row.content ?? .empty, isOpen: true))
      }
      try touch(folder, time, change)
      if !item.isQuiet { try makeKnown(folder.ino, change) }
      try logEvent(
        .created, item, ino: row.ino, try eventData(item, parent: folder.ino, name: name),
        actor: caller.actor(in: row), thread: caller.thread, opens: true, change)
      let (final, finalItem) = (row, item)
      change.whenRecorded { [self] in
        sessions.addUnsaved(-draft.unsavedBytes)
        draft.working?.adopt(content)
        draft.working?.markUnchanged()
        inode.becomeNamed(final)
        inode.item = finalItem
        var session =
          draft.session
          ?? EditingSession(author: draft.account, base: nil, baseContent: .empty, began: time, cause: .save)
        (session.dirtySince, session.hasWrites) = (nil, false)
        session.number = finalItem.version == 0 ? nil : 1
        draft.session = session
        sessions.insert(inode)
        identity.settle(folder.ino, name)
        identity.noteCreated(final.ino, process: caller.process, at: time)
        tell(.made(NamedInode(inode, folder.ino, name)), from: caller.door)
      }
    }
  }

  /// Stores the extended attributes that a file without a row has in memory.
  func insertXattrs(of inode: Inode, _ change: Change) throws {
    for (name, value) in inode.orphanXattrs { try change.rows.setXattr(inode.ino, name, value) }
  }
}

extension Inode {
  /// The row of a file that gets its first name.
  func row(named name: [UInt8], in folder: Inode, _ time: Timestamp) -> InodeRow {
    var row = row
    (row.parent, row.name, row.nlink, row.ctime) = (folder.ino, name, 1, time)
    return row
  }

  /// Notes that it has its first name.
  func becomeNamed(_ row: InodeRow) {
    self.row = row
    (isOrphan, isNameless, orphanShare, temporaryOf, orphanXattrs) = (false, false, nil, nil, [:])
  }
}
