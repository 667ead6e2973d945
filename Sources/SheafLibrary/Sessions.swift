import Foundation
import SheafModel
import SheafStore

/// Editing sessions: how writes become versions (docs/ARCHITECTURE.md, "Versions").
///
/// ```
///            first write            timed cut, flush, fsync        last writable close, 10 minutes,
///   none ───────────────► dirty ───────────────────────► numbered ──────────────────────────────► none
///        beginSession(_:)        cut(_:cause:)      ▲      │      endSession(_:)                    version immutable,
///                                                   └──────┘                                       event logged
///                                              renewed by each cut
/// ```
extension Library {
  /// Seconds after which unsaved writes are cut.
  static let autosaveSeconds: Int64 = 1
  /// Seconds after which a session's version ends though the document stays open.
  static let sessionSeconds: Int64 = 600

  /// Loads the contents of a regular file for reading or changing.
  func load(_ inode: Inode) {
    if inode.working == nil { inode.working = WorkingCopy(inode.row.content ?? .empty) }
  }

  /// Notes that `inode` changes now, through `handle` where there is one.
  ///
  /// A write through another handle than those that wrote so far, all of which were closed, begins a new session: the
  /// kernel tells of the last close later than close(2) returns.
  func beginSession(_ inode: Inode, handle: UInt64?, at time: Timestamp) throws {
    if let session = inode.session, handle.map({ session.writers[$0] == nil }) ?? true, !session.writers.isEmpty,
      session.writers.values.allSatisfy({ $0 }), session.dirtySince == nil
    {
      try endSession(inode)
    }
    if inode.session == nil {
      let item = try item(of: inode)
      inode.session = EditingSession(
        base: item.flatMap { $0.version == 0 ? nil : $0.version }, baseContent: inode.row.content ?? .empty,
        began: time,
        cause: .save)
    }
    if let handle { inode.session?.writers[handle] = false }
    if inode.session?.dirtySince == nil { inode.session?.dirtySince = time }
    dirtyInodes[inode.ino] = inode
    maintenance.wake()
  }

  /// Stores what was written to `inode` and has its session's version hold it.
  ///
  /// - Parameter ends: whether the session ends with it.
  func cut(_ inode: Inode, cause: VersionCause, ends: Bool = false) throws {
    guard let session = inode.session, let working = inode.working else { return }
    let time = clock()
    if inode.isOrphan {
      // Nobody can find it any more: there is nothing to keep but what is open.
      if ends { finish(inode) }
      return
    }
    var item = try item(of: inode)
    let isFirst = item?.version == 0
    guard working.isChanged || isFirst else {
      if ends {
        if let number = session.number, let item { noteEnd(of: number, item, inode, session) }
        finish(inode)
      }
      return
    }
    try transaction(.save) { transaction in
      var content = try working.flushed(into: self)
      let (released, parted) = (content.released, content.parted)
      var stored = try content.stored(in: self)
      if session.number == nil, !isFirst, stored != session.baseContent,
        // What is damaged in the old contents must not keep the new ones from being stored.
        (try? Content.areSame(stored, session.baseContent, from: self)) ?? false
      {
        // The same bytes, cut at other places: what was there stays.
        stored = session.baseContent
        content = Content(stored)
        for chunk in storedNow { try transaction.deleteChunk(chunk) }
        storedNow = []
      }
      var row = inode.row
      row.content = stored
      row.size = stored.length
      var number = session.number
      if var changed = item {
        var version = VersionRow(
          item: changed.id, number: number ?? changed.lastVersion + 1, time: time, author: row.owner, size: row.size,
          cause: cause, base: session.base, content: stored, isOpen: !ends)
        if let open = number, let base = session.base, stored == session.baseContent,
          try transaction.version(changed.id, open)?.label == nil
        {
          // Back to what it began from: contents equal to the version before make none.
          try transaction.deleteVersion(changed.id, open)
          number = nil
          changed.version = base
          changed.lastVersion = max(base, open - 1)
          try transaction.update(changed)
          item = changed
        } else if number != nil {
          try transaction.update(version)
        } else if stored != session.baseContent || isFirst {
          try transaction.insert(version)
          number = version.number
          changed.version = version.number
          changed.lastVersion = version.number
          try transaction.update(changed)
          item = changed
        }
        version.isOpen = false
        if ends, number != nil { try logSave(version, of: changed, inode: row, transaction) }
      }
      try transaction.update(row, keepsItem: true)
      let own = try freeReplaced(released, session, sparing: parted, inode, transaction)
      whenCommitted { [self, storedNow, item] in
        inode.row.content = stored
        inode.row.size = row.size
        inode.item = item
        unsavedBytes -= inode.working?.dirty.count ?? 0
        inode.working?.adopt(content)
        inode.working?.markUnchanged()
        inode.session?.number = number
        inode.session?.cause = cause
        inode.session?.dirtySince = nil
        inode.session?.hasWrites = false
        disown(parted, inode)
        inode.session?.ownChunks.subtract(own)
        inode.session?.ownChunks.formUnion(storedNow)
        for chunk in own { chunkOwners[chunk] = nil }
        for chunk in storedNow { chunkOwners[chunk] = inode.ino }
        if ends { finish(inode) }
      }
    }
  }

  /// Has the next transaction end a version that is stored already.
  ///
  /// The kernel tells of the last close after close(2) has returned, so nobody waits for it, and a crash ends the version
  /// all the same (``recoverFromCrash()``): no transaction of its own is needed.
  private func noteEnd(of number: Int64, _ item: ItemRow, _ inode: Inode, _ session: EditingSession) {
    let version = VersionRow(
      item: item.id, number: number, time: clock(), author: inode.row.owner, size: inode.row.size,
      cause: session.cause, base: session.base, content: inode.row.content ?? .empty, isOpen: false)
    endedSessions.append(EndedSession(version: version, item: item, inode: inode.row))
    maintenance.wake()
  }

  /// Ends the versions that wait for it, in the running transaction.
  func endNotedSessions(_ transaction: StoreTransaction) throws {
    guard !endedSessions.isEmpty else { return }
    for ended in endedSessions {
      try transaction.closeVersion(ended.version.item, ended.version.number, cause: ended.version.cause)
      // The item may have gone with its history meanwhile.
      if let item = try transaction.item(ended.item.id) {
        try logSave(ended.version, of: item, inode: ended.inode, transaction)
      }
    }
    let count = endedSessions.count
    whenCommitted { [self] in endedSessions.removeFirst(count) }
  }

  /// Ends the versions that wait for it now, before someone looks at them.
  func settleSessions() throws {
    if !endedSessions.isEmpty { try transaction(.endSession, freesSpace: true) { _ in } }
  }

  /// Frees chunks that this session's version held alone until this cut replaced them.
  private func freeReplaced(
    _ released: [Int64], _ session: EditingSession, sparing parted: Set<Int64>, _ inode: Inode,
    _ transaction: StoreTransaction
  ) throws -> Set<Int64> {
    let own = Set(released).intersection(session.ownChunks).subtracting(parted)
      .filter { chunkOwners[$0] == inode.ino }
    for chunk in own {
      try transaction.deleteChunk(chunk)
      chunks.remove(chunk)
    }
    return own
  }

  /// Has `chunks` outlive later cuts of `inode`: a part of them is in use elsewhere in it.
  private func disown(_ chunks: Set<Int64>, _ inode: Inode) {
    for chunk in chunks where inode.session?.ownChunks.remove(chunk) != nil { chunkOwners[chunk] = nil }
  }

  /// Has the chunks of `inode` outlive later cuts: something else refers to them now, or to parts of them.
  func shareChunks(of inode: Inode) {
    for chunk in inode.session?.ownChunks ?? [] { chunkOwners[chunk] = nil }
    inode.session?.ownChunks = []
  }

  /// Ends the session: its version is immutable from here on, and its event is logged.
  func endSession(_ inode: Inode, cause: VersionCause = .save) throws {
    guard inode.session != nil else { return }
    try cut(inode, cause: cause, ends: true)
  }

  private func finish(_ inode: Inode) {
    shareChunks(of: inode)
    inode.session = nil
    dirtyInodes[inode.ino] = nil
    releaseContents(inode)
  }

  /// Lets go of the contents of a file that nobody has open.
  func releaseContents(_ inode: Inode) {
    if inode.openCount == 0, inode.session == nil, !inode.isOrphan, !(inode.working?.isChanged ?? false) {
      inode.working = nil
    }
  }

  /// Stores written bytes as chunks without a version, to bound memory (rule 7).
  func spill(_ inode: Inode) throws {
    guard let working = inode.working, !working.dirty.isEmpty else { return }
    try transaction(.spill) { _ in
      let content = try working.flushed(into: self)
      whenCommitted { [self, storedNow] in
        unsavedBytes -= inode.working?.dirty.count ?? 0
        disown(content.parted, inode)
        inode.working?.adopt(content)
        guard inode.session != nil else { return }
        inode.session?.ownChunks.formUnion(storedNow)
        for chunk in storedNow { chunkOwners[chunk] = inode.ino }
      }
    }
  }

  /// Forgets what was written to a file that went and that nobody has open.
  func discardUnsaved(_ inode: Inode) {
    guard inode.openCount == 0 else { return }
    unsavedBytes -= inode.working?.dirty.count ?? 0
    inode.working = nil
  }

  /// Cuts what has waited long enough, and ends sessions that last too long; a failure is tried again.
  func autosave() {
    let time = clock()
    do {
      try settleSessions()
    } catch {
      log.error("ending sessions failed", metadata: ["error": "\(error)"])
    }
    for inode in Array(dirtyInodes.values) {
      guard let session = inode.session else {
        dirtyInodes[inode.ino] = nil
        continue
      }
      do {
        if time.seconds - session.began.seconds >= Self.sessionSeconds, session.number != nil {
          try endSession(inode, cause: .autosave)
        } else if let since = session.dirtySince,
          time.nanoseconds - since.nanoseconds >= Self.autosaveSeconds * 1_000_000_000,
          // Rule 6 of identity: a truncated document is not cut at its empty moment.
          session.hasWrites || inode.size > 0 || session.baseContent.length == 0
        {
          try cut(inode, cause: .autosave)
          if inode.writerCount == 0 { try endSession(inode) }
        }
      } catch {
        log.error("autosave failed", metadata: ["ino": "\(inode.ino)", "error": "\(error)"])
        if inode.session?.dirtySince != nil { inode.session?.dirtySince = time }
      }
    }
  }

  /// Ends every session, as an unmount does; one that cannot be stored keeps no other from it.
  func endAllSessions() throws {
    var failure: (any Error)?
    for inode in Array(dirtyInodes.values) {
      do {
        try endSession(inode, cause: inode.writerCount > 0 ? .autosave : .save)
      } catch {
        failure = failure ?? error
      }
    }
    try settleSessions()
    if let failure { throw failure }
  }
}
