import Foundation
import SheafModel
import SheafStore

/// A document's identity passing to another inode: the rules of ``Identity``, carried out.
///
/// Rooms: `EditingSessions`, `EventLog`, `Identity`, `InodeTable`, `LinkedPlaces`, `Numbers`, `ShareBook`.
extension Library {
  /// A document that can come back to the name that it lost.
  struct FormerDocument {
    let inode: Inode
    let item: ItemRow
    let memory: Identity.Remembered
  }

  /// The document that the program of `caller` took the name from, if it still can come back there.
  ///
  /// - Parameter isOpen: Whether it would come back with its former contents, and get new ones afterwards.
  func formerDocument(
    _ parent: Int64, _ name: [UInt8], isOpen: Bool = false, _ caller: Caller, _ time: Timestamp
  ) throws -> FormerDocument? {
    guard caller.thread != 0, !identity.isEmpty,
      let memory = identity.former(parent, name, process: caller.process, at: time),
      let inode = try? inode(memory.ino), inode.row.item == memory.item, let item = try item(of: inode),
      // It may have been given away since.
      try inode.row.owner == folder(parent).row.owner,
      try !isPrivate(inode, item, of: parent, name, isOpen: isOpen, since: memory.time)
    else { return nil }
    return FormerDocument(inode: inode, item: item, memory: memory)
  }

  /// Whether a document that lost its name in a folder which is shared by now holds what is not for those who see the
  /// folder: it got another name before they could see it, or was deleted before that and would show what it held then,
  /// or is outside of the share, and was changed there.
  private func isPrivate(
    _ inode: Inode, _ item: ItemRow, of folder: Int64, _ name: [UInt8], isOpen: Bool, since time: Timestamp
  ) throws -> Bool {
    guard let around = try share(ofFolder: folder) else { return false }
    let isDeletedThere = inode.row.nlink == 0 && inode.row.parent == folder && inode.row.name == name
    if isOpen || !isDeletedThere, try time < entryTime(of: self.inode(folder), in: around) { return true }
    guard try share(ofFolder: inode.row.parent)?.row.item != around.row.item else { return false }
    if inode.drafts.contains(where: \.isChanged) { return true }
    return try (read { try $0.version(item.id, item.version) }?.time).map { $0 > time } ?? false
  }

  /// Files and names that are looked at with the lock held at most.
  private static let expiryStep = 256

  /// Forgets what is older than the window of ``Identity``, some at a time, with the lock free in between.
  func expireIdentity() {
    // Files that their makers alone are remembered of are looked at once.
    var left = locked { identity.counts.young }
    while left > 0, locked({ expireSomeFiles() }) == Self.expiryStep { left -= Self.expiryStep }
    while locked({ identity.expireNames(at: clock(), limit: Self.expiryStep) }) {}
    locked { linkedPlaces.expire(at: clock()) }
  }

  /// Forgets the oldest files that are older than the window; returns how many were looked at.
  private func expireSomeFiles() -> Int {
    let files = identity.oldestFiles(Self.expiryStep, expiredAt: clock())
    for ino in files { expireIdentity(of: ino) }
    return files.count
  }

  /// Forgets a file that is older than the window: one that is about to be written would seem to have been all the
  /// time.
  func expireIdentity(of ino: Int64) { identity.expire(ino, at: clock(), aging: aging) }

  private func aging(_ ino: Int64, _ process: Int32, hasAged: Bool) -> Identity.Aging {
    guard let inode = try? inode(ino) else { return .established }
    if !hasAged, isBeingWritten(inode) { return .young }
    return FileRole(inode.row.name) == .scratch && Caller.lives(process) ? .makerRemembered : .established
  }

  // MARK: - Making a document anew

  /// The mode that a document has after `inode` took its place (rule 4 of ``Identity``).
  ///
  /// - Parameter former: the mode that `old` had under the name.
  private func keptMode(
    _ mode: UInt32, of old: Inode, former: UInt32, _ caller: Caller, _ time: Timestamp
  ) -> UInt32 {
    if identity.isOwn(old.ino, of: caller.process, at: time), !identity.isModeChosen(old.ino) { return mode }
    return Self.inheritedMode(mode, from: former)
  }

  /// The mode of a file that takes a document's place, where nobody chose one: the document's. What the file's owner may
  /// read and write they go on reading and writing, so that a program can open again what it made. Set-id bits go: whoever
  /// gave them gave them to a file of another user, perhaps, and with other contents.
  static func inheritedMode(_ mode: UInt32, from former: UInt32) -> UInt32 {
    mode & (S_IFMT | 0o600) | former & 0o1777
  }

  /// The mode of a document whose file is made anew by open(2) (rule 4 of ``Identity``).
  private func remadeMode(_ mode: UInt32, of old: Inode, former: UInt32, _ caller: Caller, _ time: Timestamp) -> UInt32
  {
    // One that asks for less than everything that the umask leaves has chosen the mode.
    guard (mode | caller.umask) & 0o666 == 0o666 else { return mode }
    var kept = keptMode(mode, of: old, former: former, caller, time)
    if mode & 0o111 == 0 { kept &= ~0o111 } else if kept & 0o111 == 0 { kept |= (kept & 0o444) >> 2 }
    return caller.uid == old.row.uid ? kept : kept & ~0o6000
  }

  /// Makes a remembered document's file anew: empty for its writer, while others see the contents it had until something
  /// is written (rule 5 of ``Identity``). After a crash in between it is empty.
  ///
  /// - Parameters:
  ///   - memory: How the document lost its name; nil where it loses it now.
  ///   - nameless: The file, where a program made it without a name and links it into place: it has the contents.
  ///   - also: Further work of the transaction, done first.
  func remake(
    _ old: Inode, _ memory: Identity.Remembered?, _ folder: Inode, _ name: [UInt8], mode: UInt32, _ caller: Caller,
    _ time: Timestamp, holding nameless: Inode? = nil, also: (Change) throws -> Void = { _ in }
  ) throws -> Inode {
    try endSessionBeforeReplacement(old)
    guard var item = try item(of: old) else { throw SheafError(.notFound) }
    var row =
      nameless?.row(named: name, in: folder, time) ?? newRow(S_IFREG, in: folder, name, mode: mode, caller, time)
    let formerMode = memory?.mode ?? old.row.mode
    row.mode =
      nameless == nil
      ? remadeMode(row.mode, of: old, former: formerMode, caller, time)
      : keptMode(row.mode, of: old, former: formerMode, caller, time)
    row.item = item.id
    row.content = old.row.content ?? .empty
    row.size = old.row.size
    let inode = nameless ?? Inode(row)
    let draft = inode.draft(of: caller.account)
    try makeChange(.create, by: caller, at: time) { change in
      try also(change)
      if nameless != nil { try insertXattrs(of: inode, change) }
      // Before the old inode loses them.
      let carriesXattrs = try carryXattrs(from: old, to: row.ino, isNew: inode.orphanXattrs.isEmpty, change)
      var since = time
      if memory == nil, let entry = try change.rows.entry(folder.ino, hash: nameHash(name), name: name) {
        try change.rows.delete(entry)
        since = entry.since
        let before = old.row
        old.row.nlink -= 1
        defer { old.row = before }
        try partFromItem(old, item, nil, parent: folder.ino, name, change)
      } else {
        since = try beginOfName(folder.ino, name, memory, change) ?? time
        try partFromItem(old, item, memory, parent: folder.ino, name, change)
        if let memory { try settleReturn(of: &item, old, lostAt: memory.time, to: folder.ino, change) }
      }
      try change.rows.insert(row)
      if nameless == nil { try keepEmpty(inode, row, of: draft.account, change) }
      try change.rows.insert(
        EntryRow(parent: folder.ino, hash: nameHash(name), name: name, ino: row.ino, since: since))
      try touch(folder, time, change)
      let final = item
      change.whenRecorded { [self] in
        if nameless != nil { inode.becomeNamed(row) }
        inode.item = final
        if carriesXattrs { inode.xattrSpace = nil } else if nameless == nil { inode.xattrSpace = XattrSpace() }
        load(inode, draft)
        inodes.insert(inode)
        identity.settle(folder.ino, name)
        tell(.made(NamedInode(inode, folder.ino, name)), from: caller.door)
      }
    }
    if draft.isChanged {
      // It is a version of its own as soon as it has the name: until then the document has what it had.
      draft.session?.base = try base(of: item, inode, savedBy: caller, orReadBy: .account)
      draft.session?.baseContent = row.content ?? .empty
      try makeVersion(inode, draft, cause: .replace)
      return inode
    }
    try draft.working?.truncate(to: 0, from: self)
    if inode.row.size > 0 {
      try beginSession(inode, draft, handle: nil, at: time)
      draft.session?.base = try base(of: item, inode, savedBy: caller, orReadBy: .account)
    }
    return inode
  }

  /// Promises that a file, which has the contents of the document whose place it takes, is empty after a crash: the
  /// document is not under that name any more.
  private func keepEmpty(_ inode: Inode, _ row: InodeRow, of account: Int64, _ change: Change) throws {
    guard row.size > 0 else { return }
    try change.rows.set(
      WorkingCopyRow(ino: row.ino, author: account, time: change.time, cause: .replace, writes: .emptied))
    change.whenRecorded { inode.keptEmptyBy = account }
  }

  /// Since when a document has had the name that it lost and now has again: nobody is to see that it was away.
  ///
  /// - Parameter memory: how it lost the name; nil where it did not.
  func beginOfName(
    _ parent: Int64, _ name: [UInt8], _ memory: Identity.Remembered?, _ change: Change
  ) throws -> Timestamp? {
    guard let memory else { return nil }
    try change.rows.removePastName(parent, name, until: memory.time, item: memory.item)
    return memory.since
  }

  /// Whether a file is named after another one, and is in a folder for backups, as `bak/doc`.
  private func isInBackupFolder(_ inode: Inode, of name: [UInt8]) throws -> Bool {
    guard FileRole.isNamedAfter(inode.row.name, name), inode.row.parent != 0 else { return false }
    return try FileRole.isForBackups(self.inode(inode.row.parent).row.name)
  }

  /// Takes the item from the inode that had it. The rest of that inode becomes a document of its own, or is gone.
  ///
  /// - Parameters:
  ///   - memory: How the document lost its name; nil where it loses it now.
  ///   - parent: The folder of the name that the document has from now on.
  private func partFromItem(
    _ old: Inode, _ item: ItemRow, _ memory: Identity.Remembered?, parent: Int64, _ name: [UInt8],
    _ change: Change
  ) throws {
    let (caller, time) = (change.caller, change.time)
    change.whenRecorded { [self] in shares.forgetListings(of: item.id) }
    if let memory { try takeBack(memory, old, item, parent: parent, name, change) }
    guard old.row.nlink > 0 else {
      if memory != nil { try change.rows.removeDeleted(old.ino) }
      try detach(old, change)
      change.whenRecorded { old.replacer = caller.process }
      // The kernel let go of it when its name went, and will not say so again.
      if memory != nil { letGo(old, change) }
      return
    }
    // Renamed away, or another name of the file.
    let fresh = try insertDocument(
      holding: old, of: item,
      isQuiet: item.isQuiet || FileRole.looksPassing(old.row.name) || isInBackupFolder(old, of: name),
      creator: item.creator, time, change)
    var row = old.row
    row.item = fresh.id
    try change.rows.update(row)
    // With the name that is left, which the inode in memory may get later.
    let left = row
    try logEvent(
      .created, fresh, ino: old.ino, try eventData(fresh, parent: row.parent, name: row.name),
      actor: caller.actor(in: row),
      thread: caller.thread, opens: true, change)
    change.whenRecorded { [self] in
      old.row.item = fresh.id
      old.item = fresh
      carrySeen(
        old.ino, from: SeenVersion(item: item.id, number: item.version),
        to: SeenVersion(item: fresh.id, number: fresh.version))
      shareChunks(of: old)
      // A file without a version is being written by another program, which loses nothing by an unlink of this one.
      if fresh.version > 0 {
        identity.noteCreated(old.ino, process: caller.process, isRemainder: true, at: time)
        // Its contents were closed (rule 2 of ``Identity``).
        if !fresh.isQuiet, left.size > 0, !FileRole.looksPassing(left.name) {
          identity.saved(old.ino, by: nil, under: left.name, at: time)
        }
      }
      for draft in old.drafts where draft.session == nil && draft.isChanged {
        // It was just truncated, and who did goes on.
        draft.session = EditingSession(
          author: draft.account, base: fresh.version == 0 ? nil : fresh.version,
          baseContent: old.row.content ?? .empty, began: time,
          cause: .save)
        draft.session?.dirtySince = time
        sessions.insert(old)
      }
    }
  }

  /// Takes back what was logged of a document that lost its name and has it again.
  private func takeBack(
    _ memory: Identity.Remembered, _ old: Inode, _ item: ItemRow, parent: Int64, _ name: [UInt8],
    _ change: Change
  ) throws {
    let caller = change.caller
    let wasOpen =
      try memory.event.map {
        try dropPending(item.id, types: [.deleted, .renamed, .moved], since: $0, change)
      } ?? true
    let here = try eventData(item, parent: parent, name: name)
    if let created = events.of(item.id).first(where: { $0.row.type == EventType.created.rawValue }) {
      // Renaming an own file had changed the name that it is to be created under.
      if created.data?.item.path != here.item.path { try rewrite(created, here, change) }
    } else if !wasOpen {
      // Settled early, for room: say that it is there again.
      var data = here
      let type: EventType = old.row.nlink == 0 ? .created : old.row.parent == parent ? .renamed : .moved
      if type != .created {
        try setPrevious(&data, item, parent: old.row.parent, name: old.row.name)
      }
      try logEvent(
        type, item, ino: old.ino, data, actor: caller.actor(in: old.row), thread: caller.thread, opens: false,
        change)
    }
  }

  /// Changes what a waiting event says; its place in the order stays.
  func rewrite(_ event: EventLog.Pending, _ data: EventData, _ change: Change) throws {
    var row = event.row
    row.data = data.json
    row.share = data.share
    row.previousShare = data.previousShare
    try change.rows.removePending(row.number)
    try change.rows.insertPending(row)
    let rewritten = row
    change.whenRecorded { [self] in
      events.replace(.init(row: rewritten, process: event.process, ino: event.ino, data: data))
    }
  }

  // MARK: - Renaming onto a document

  /// Makes `inode`, which is about to take the name of a document, that document (rule 3 of ``Identity``).
  ///
  /// Runs in the transaction of the rename. The old session has ended, and that of `inode` unless `continues`.
  ///
  /// - Parameters:
  ///   - old: The inode that was the document.
  ///   - memory: How it lost its name; nil where it loses it now.
  ///   - row: The row of `inode` as it will be, with its new place; the caller stores it.
  ///   - continues: Whether `inode` is still being written (rule 11 of ``Identity``).
  func takeOver(
    _ inode: Inode, identityOf old: Inode, _ item: ItemRow, _ memory: Identity.Remembered?, _ row: inout InodeRow,
    source: EntryRow, continues: Bool, _ change: Change
  ) throws {
    try requireContents(row.content)
    let (caller, time) = (change.caller, change.time)
    let isYoung = identity.isYoung(inode.ino, at: time)
    let isQuiet = try self.item(of: inode)?.isQuiet ?? false
    let dissolves = try (isYoung || isQuiet) && !hasHistory(inode, source.name, change)
    let oldContent = old.row.content ?? .empty
    var document = item
    // The item that the new inode was, of which people may have heard.
    let former = try self.item(of: inode)
    let base =
      try isHubCopy(former, of: document) && document.version > 0
      ? document.version : base(of: document, old, savedBy: caller, orReadBy: .account)
    let isOnTop = document.version == 0 || base == document.version
    var deletedItem: ItemRow?
    var tombstone: InodeRow?
    var (firstEvent, isTold): (Int64?, Bool) = (nil, false)
    let wasTold = former.map { !$0.isQuiet && !events.has($0.id, type: .created) } ?? false
    if let dissolved = row.item {
      row.item = nil
      if dissolves {
        try dropPending(dissolved, change)
        try removeShare(of: dissolved, change)
        try change.rows.deleteItem(dissolved)
      } else {
        change.whenRecorded { [self] in shares.forgetListings(of: dissolved) }
        // From now on it writes the document; its own last version ends here.
        for session in inode.drafts.compactMap(\.session) {
          if let number = session.number { try change.rows.closeVersion(dissolved, number, cause: session.cause) }
        }
        deletedItem = try change.rows.item(dissolved)
        tombstone = try leaveTombstone(of: inode, item: dissolved, at: source, change)
      }
    }
    // Before the old inode loses them.
    let carriesXattrs = try carryXattrs(from: old, to: inode.ino, change)
    if let memory {
      try partFromItem(old, item, memory, parent: row.parent, row.name, change)
      try settleReturn(of: &document, old, lostAt: memory.time, to: row.parent, change)
    } else {
      var oldRow = old.row
      oldRow.nlink -= 1
      oldRow.ctime = time
      if oldRow.nlink > 0, var remaining = try change.rows.extraEntry(old.ino) {
        remaining.isExtra = false
        try change.rows.update(remaining)
        oldRow.parent = remaining.parent
        oldRow.name = remaining.name
      }
      let before = old.row
      old.row = oldRow
      defer { old.row = before }
      try partFromItem(old, item, nil, parent: row.parent, row.name, change)
      let final = oldRow
      change.whenRecorded {
        let item = old.row.item
        old.row = final
        old.row.item = item
      }
    }
    row.item = document.id
    if isYoung, !identity.isModeChosen(inode.ino) {
      row.mode = keptMode(row.mode, of: old, former: memory?.mode ?? old.row.mode, caller, time)
    }
    let content = row.content ?? .empty
    let isEmptyYet = continues && content.length == 0
    let writing = inode.drafts.first { $0.session != nil }
    // Whoever still writes has not changed them, so they were closed: the next save must not renew their version.
    let wereClosed = continues && !isEmptyYet && writing?.session?.baseContent == content
    if isEmptyYet {
      // Until something is written, others see what the document held.
      row.content = oldContent
      row.size = oldContent.length
      try keepEmpty(inode, row, of: (writing ?? inode.own).account, change)
    }
    let current = try change.rows.version(document.id, document.version)
    var number: Int64?
    if !isEmptyYet, current?.content != content {
      let version = VersionRow(
        item: document.id, number: document.lastVersion + 1, time: time, author: caller.actor(in: row), size: row.size,
        cause: .replace, base: base, content: content, isOpen: continues && !wereClosed)
      try change.rows.insert(version)
      number = version.number
      // As for a save in place: a save on top of the current version has seen everything.
      document.conflict = isOnTop ? nil : document.version
      document.version = version.number
      document.lastVersion = version.number
      try change.rows.update(document)
      if version.isOpen {
        // The end of the session tells.
      } else if dissolves && !wasTold || source.parent == row.parent && source.name == row.name {
        try logSave(version, of: document, inode: row, by: SavingProcess(caller.process), change)
      } else {
        var data = try eventData(document, parent: row.parent, name: row.name)
        data.version = .init(version)
        try setPrevious(&data, deletedItem ?? document, parent: source.parent, name: source.name)
        isTold = data.previousShare.map { $0.share == data.share?.share } ?? true
        try logEvent(
          .edit, document, ino: row.ino, data, actor: caller.actor(in: row), thread: 0, opens: false, change)
      }
    }
    if let deletedItem, !isTold {
      // No version tells where it went, or not those who saw it there.
      firstEvent = numbers.pending + 1
      try logEvent(
        .deleted, deletedItem, ino: inode.ino, eventData(deletedItem, parent: source.parent, name: source.name),
        actor: caller.actor(in: row), thread: caller.thread, opens: caller.thread != 0, change)
    }
    if let tombstone, let item = tombstone.item, !FileRole.looksPassing(source.name) {
      // A program that keeps a backup makes the document anew now.
      change.whenRecorded { [self, firstEvent] in
        identity.remember(
          item, ino: tombstone.ino, from: source.parent, source.name, process: caller.process, mode: tombstone.mode,
          event: firstEvent, since: source.since, at: time)
      }
    }
    let (final, finalDocument) = (row, document)
    let keepsAttributes = row.mode == inode.row.mode && !isEmptyYet
    change.whenRecorded { [self] in
      inode.row = final
      inode.item = finalDocument
      if carriesXattrs { inode.xattrSpace = nil }
      if let number { noteKnown(SeenVersion(item: finalDocument.id, number: number), of: inode, by: caller) }
      if let former {
        carrySeen(
          inode.ino, from: SeenVersion(item: former.id, number: former.version),
          to: SeenVersion(item: finalDocument.id, number: finalDocument.version))
      }
      shareChunks(of: inode)
      identity.forget(inode.ino)
      if continues {
        let draft = writing ?? inode.draft(of: caller.account)
        let (lastWriter, writers) = (draft.session?.lastWriter, draft.session?.writers ?? [:])
        draft.session =
          wereClosed
          ? EditingSession(
            author: draft.account, base: finalDocument.version, baseContent: content, began: time, cause: .save,
            lastWriter: lastWriter, closedBy: draft.session?.closedBy, writers: writers)
          : EditingSession(
            author: draft.account, number: number, base: base, baseContent: oldContent, began: time, cause: .replace,
            isOnTop: isOnTop, lastWriter: lastWriter, closedBy: isEmptyYet ? nil : draft.session?.closedBy,
            writers: writers)
        if isEmptyYet {
          draft.working?.replaceAll(with: .empty)
          draft.session?.dirtySince = time
          // To others it is what is stored.
          adoptSaved(in: inode, by: draft)
          tellSaved(inode, draft)
        }
        sessions.insert(inode)
      }
      if !keepsAttributes { tell(.appearance(inode.ino), from: 0) }
    }
  }

  /// Whether a file that dissolves in a document has contents that nothing else holds (rule 3 of ``Identity``).
  private func hasHistory(
    _ inode: Inode, _ name: [UInt8], _ change: Change
  ) throws -> Bool {
    let (caller, time) = (change.caller, change.time)
    guard let item = try item(of: inode), item.lastVersion > 1 else { return false }
    // Contents of several accounts are versions of each (rule 11 of ``Identity``).
    func hasSeveralAuthors() throws -> Bool {
      let author = try change.rows.version(item.id, item.version)?.author
      return try author.map { try change.rows.hasVersions(of: item.id, notBy: $0) } ?? false
    }
    if !identity.wasProved(inode.ino), identity.isYoung(inode.ino, at: time), try !hasSeveralAuthors() {
      if isOwnAlone(inode, caller, time) { return false }
      // A temporary file's earlier contents are nobody's while it is young; a backup's are.
      if FileRole.looksPassing(name), !identity.wasBackup(inode.ino) {
        guard case .backup = FileRole(name) else { return false }
      }
    }
    return try change.rows.hasVersion(of: item.id, besides: inode.row.content ?? .empty)
  }

  /// Ends the session of an inode that an item parts from; one that has only truncated so far makes no version.
  func endSessionBeforeReplacement(_ inode: Inode) throws {
    for draft in inode.drafts {
      if let session = draft.session, session.number == nil, !session.hasWrites, draft.working?.size == 0,
        session.baseContent.length > 0, draft.writerCount > 0
      {
        shareChunks(of: draft)
        draft.session = nil
      } else {
        try endSession(inode, draft)
      }
    }
    sessions.removeIfEnded(inode)
  }

  /// Whether the session of `inode` goes on after it took a document's name; ends it where it does not.
  func settleBeforeTakeOver(_ inode: Inode, _ time: Timestamp) throws -> Bool {
    guard identity.isYoung(inode.ino, at: time), isBeingWritten(inode),
      inode.drafts.count(where: { $0.session != nil }) < 2
    else {
      try endSessionBeforeReplacement(inode)
      return false
    }
    try makeVersions(inode)
    return true
  }

  /// Keeps among the deleted the history of a document whose inode another one took (rule 6 of docs/ARCHITECTURE.md).
  private func leaveTombstone(
    of inode: Inode, item: Int64, at source: EntryRow, _ change: Change
  ) throws -> InodeRow {
    let (caller, time) = (change.caller, change.time)
    var row = inode.row
    row.item = nil
    try change.rows.update(row)
    row.ino = numbers.nextIno()
    row.item = item
    row.nlink = 0
    row.parent = source.parent
    row.name = source.name
    try change.rows.insert(row)
    try carryXattrs(from: inode, to: row.ino, isNew: true, change) { _ in true }
    try change.rows.insert(
      DeletedRow(ino: row.ino, parent: source.parent, name: source.name, time: time, actor: caller.actor(in: row)))
    return row
  }
}
