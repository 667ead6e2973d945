import Foundation
import SheafModel
import SheafStore

/// Contents that wait in the working file: a large save is kept first, and completed in the background.
///
/// ```
///            8 MiB or 1024 runs           close, 1 s              a thread, in steps
///   memory ─────────────────────► area ─────────────────► kept ─────────────────────────► a version
///             spill(_:_:)               keep(_:_:cause:)       completeSave(of:givesWay:):
///                                                              storeStep(of:_:), then makeVersion(_:_:cause:)
/// ```
/// Rules:
/// 1. A kept save has a row (`working_copies`) with the steps that make its contents from the stored ones. It is as
///    safe as a version: a process that opens the library after a crash completes it (``recoverWorkingCopies()``).
/// 2. The row goes in the transaction that makes the version, or takes the inode away.
/// 3. Nobody sees the difference: a caller that asks for versions, or for facts of the document, waits until the save
///    is complete (``completeSaves(of:)``), without the lock. A save of a document in a share, which others see, is
///    never kept: it makes its version at once.
/// 4. Storing goes in steps, so that others wait for one at most.
/// 5. A file that was made in the place of a document, and not written yet, has such a row, too, also in a share: it is
///    empty after a crash, as programs rely on that delete a journal and make it anew. The next version takes the row.
///
/// Rooms: `EditingSessions`, `InodeTable`, `ShareBook`.
extension Library {
  /// Bytes in memory of one document past which they are spilled; `SHEAF_SPILL_LIMIT` lowers it for tests, and what
  /// depends on it.
  static let spillLimit = ProcessInfo.processInfo.environment["SHEAF_SPILL_LIMIT"].flatMap { Int($0) } ?? 8 << 20
  /// Those of all documents.
  static let unsavedLimit = 8 * spillLimit
  /// Runs in memory of one document.
  static let runLimit = 1024
  /// Bytes of a write that goes to the working file without being gathered in memory.
  static let directLength = spillLimit / 128
  /// Bytes of a document's area past which its writer waits until they are stored.
  static let areaLimit = 128 * Int64(spillLimit)
  /// Bytes, and runs, that are stored at a time with the lock held.
  private static let step = (length: spillLimit / 8, runs: 256)
  /// Steps of a log past which its writer waits until they are stored, before there can be no more.
  private static let logLimit = WriteLog.limit - 2 * runLimit

  // MARK: - Spilling

  /// Bounds what a draft has in memory (rule 7 of docs/ARCHITECTURE.md).
  func spill(_ inode: Inode, _ draft: Draft) throws {
    guard mayKeep(inode, draft) else { return try storeChunks(of: inode, draft) }
    let before = draft.unsavedBytes
    defer { sessions.addUnsaved(draft.unsavedBytes - before) }
    try draft.working?.spill(to: store.working, from: self)
  }

  /// Whether what is written to a draft may wait in the working file.
  func mayKeep(_ inode: Inode, _ draft: Draft) -> Bool {
    guard draft === inode.own, inode.row.item != nil, !inode.isOrphan, inode.row.nlink > 0,
      let working = draft.working, let log = working.log,
      log.steps.count + working.dirty.memoryRuns < WriteLog.limit, working.area?.count ?? 0 < 2 * Self.areaLimit,
      store.hasAmpleRoom(for: Int64(working.dirty.memoryCount))
    else { return false }
    do {
      return try shares.isEmpty || share(of: inode) == nil
    } catch {
      return false
    }
  }

  /// Whether so much of a draft is in the working file that its writer has to wait.
  func isFull(_ draft: Draft) -> Bool {
    guard let working = draft.working else { return false }
    return working.area?.count ?? 0 > Self.areaLimit || working.log?.steps.count ?? 0 > Self.logLimit
  }

  // MARK: - Keeping

  /// Keeps what was written for its autosave or its save where much of it is in the working file; says whether it did.
  func keep(_ inode: Inode, _ draft: Draft, cause: VersionCause) throws -> Bool {
    guard draft.working?.dirty.hasSpilled ?? false, mayKeep(inode, draft) else { return false }
    try spill(inode, draft)
    guard let session = draft.session, let log = draft.working?.log else { return false }
    if session.isKept, session.cause == cause { return true }
    let time = session.isKept ? session.kept ?? clock() : clock()
    store.working.promise()
    try makeChange(.workingCopy) { change in
      try change.rows.set(
        WorkingCopyRow(ino: inode.ino, author: session.author, time: time, cause: cause, writes: log))
      try change.rows.update(inode.row, keepsItem: true)
      change.whenRecorded { [self] in
        draft.session?.kept = time
        draft.session?.dirtySince = nil
        draft.session?.cause = cause
        sessions.insertKept(inode)
        storing.wake()
      }
    }
    return true
  }

  /// Keeps what close(2) saves of a document of which much is in the working file; false where its
  /// version is to be made at once.
  func keepClosed(of inode: Inode, _ draft: Draft) throws -> Bool {
    guard draft.working?.dirty.hasSpilled ?? false || draft.session?.isKept ?? false else { return false }
    try resumeSession(inode, draft)
    if draft.session?.isKept ?? false, !(draft.working?.dirty.hasSpilled ?? false) {
      // All of it is stored; the other thread is about to make the version.
      draft.session?.cause = .save
      return true
    }
    return try keep(inode, draft, cause: .save)
  }

  // MARK: - Completing

  /// Starts the thread that completes kept saves.
  func startStoring() {
    storing.start { [weak self] in
      guard let self else { return true }
      var failed: Set<Int64> = []
      while let ino = self.locked({ self.sessions.keptInodes.lazy.map(\.ino).filter { !failed.contains($0) }.min() }) {
        do {
          try self.completeSave(of: ino, givesWay: true)
        } catch {
          // The others need not wait for it.
          failed.insert(ino)
          self.noteFailure(error)
        }
      }
      return failed.isEmpty
    }
  }

  /// Makes versions of the saves that were closed but wait in the working file, and returns when it has.
  ///
  /// A save that fails, as on a full disk, goes on waiting.
  ///
  /// - Parameter ino: the document's; nil for all of them.
  package func completeSaves(of ino: Int64? = nil) {
    do { try tryToCompleteSaves(of: ino) } catch { noteFailure(error) }
  }

  /// As ``completeSaves(of:)``, for callers that cannot go on without.
  ///
  /// - Throws: `noSpace`, `inputOutput`, where some of it goes on waiting.
  func tryToCompleteSaves(of ino: Int64? = nil) throws {
    var failed: Set<Int64> = []
    var failure: (any Error)?
    while let next = locked({ closedInode(ino, but: failed) }) {
      do {
        try completeSave(of: next)
      } catch {
        failed.insert(next)
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  private func closedInode(_ ino: Int64?, but failed: Set<Int64>) -> Int64? {
    if !sessions.hasKept { return nil }
    return sessions.keptInodes.first {
      (ino == nil || $0.ino == ino) && $0.own.writerCount == 0 && !failed.contains($0.ino)
    }?.ino
  }

  /// Drains the working file of what the file of a name, or the files below the folder of that name, have there, before
  /// the name goes elsewhere.
  func drainWorkingFile(of parent: Int64, _ name: [UInt8]) {
    let found: Int64?? = locked {
      guard sessions.hasKept, let entry = try? entry(parent, name) else { return nil }
      return .some(inodes[entry.ino]?.isFolder ?? false ? nil : entry.ino)
    }
    if let found { drainWorkingFile(of: found) }
  }

  /// Completes the saves that were closed, and stores what is spilled of documents that are still being written: little
  /// is left to be stored with the lock held then.
  func drainWorkingFile(of ino: Int64? = nil) {
    completeSaves(of: ino)
    for open in locked({ sessions.keptInodes.map(\.ino).filter { ino == nil || $0 == ino } }) { storeSpilled(open) }
  }

  /// Stores what a document has in the working file, in steps, without a version.
  func storeSpilled(_ ino: Int64) {
    guard locked({ inodes[ino]?.own.working?.dirty.hasSpilled ?? false }) else { return }
    do {
      try inSteps { try inodes[ino].map { try storeStep(of: $0, $0.own) } ?? false }
    } catch {
      noteFailure(error)
    }
  }

  func noteFailure(_ error: any Error) {
    log.error(
      "what was written is not stored yet; the working file beside the library has it",
      metadata: ["error": "\(error)"])
  }

  /// Makes a version of a kept save: stores its bytes in steps first.
  ///
  /// - Parameter givesWay: whether nobody waits for it, so that callers with other work go first.
  private func completeSave(of ino: Int64, givesWay: Bool = false) throws {
    // First, so that no transaction has to wait for the disk. Where that fails, storing is what helps.
    try? store.working.sync()
    try inSteps(givesWay: givesWay) {
      guard let inode = sessions.keptInode(ino) else { return false }
      if try storeStep(of: inode, inode.own) { return true }
      try makeKeptVersion(inode)
      return false
    }
  }

  /// Stores in steps what is spilled of a document, then makes its version, as an autosave does.
  func makeVersionsInSteps(_ ino: Int64) throws {
    guard locked({ inodes[ino]?.own.working?.dirty.hasSpilled ?? false }) else { return }
    try inSteps {
      guard let inode = inodes[ino] else { return false }
      if try storeStep(of: inode, inode.own) { return true }
      try makeVersion(inode, inode.own, cause: inode.own.session?.cause ?? .autosave)
      return false
    }
  }

  /// Runs `step` with the lock held, again and again while it says so, and lets others have the lock in between: those
  /// who wait, or, where it gives way, for as long as it had it itself.
  func inSteps(givesWay: Bool = false, _ step: () throws -> Bool) throws {
    let clock = ContinuousClock()
    while true {
      var begun = clock.now
      let goesOn = try locked {
        begun = clock.now
        return try step()
      }
      let took = clock.now - begun
      guard goesOn else { return }
      // Upkeep copies the log regularly, and tells what goes wrong with that.
      if store.hasLongLog { try? store.checkpoint() }
      guard waiting.load(ordering: .relaxed) > 0 else { continue }
      if givesWay {
        Thread.sleep(forTimeInterval: took / .seconds(1))
      } else {
        // A thread that frees the lock and takes it again would have it first.
        let end = clock.now + .milliseconds(1)
        while waiting.load(ordering: .relaxed) > 0, clock.now < end { sched_yield() }
      }
    }
  }

  /// Stores a piece of what is in the working file; says whether there was one.
  private func storeStep(of inode: Inode, _ draft: Draft) throws -> Bool {
    guard let working = draft.working, working.dirty.hasSpilled, !inode.isOrphan else { return false }
    try makeChange(.spill) { change in
      let (content, part) = try working.stored(first: Self.step.length, runs: Self.step.runs, in: change)
      change.whenRecorded { [self, storedNow = change.storedChunks] in
        let before = draft.unsavedBytes
        draft.working?.adopt(content, of: part)
        sessions.addUnsaved(draft.unsavedBytes - before)
        if draft.session != nil { claim(storedNow, inode, draft) }
      }
    }
    return true
  }

  /// Makes the version of a kept save whose bytes are stored, and ends the session if its last writer is gone.
  func makeKeptVersion(_ inode: Inode) throws {
    let draft = inode.own
    if let session = draft.session, session.kept != nil {
      try makeVersion(inode, draft, cause: session.cause)
      if draft.writerCount == 0 { try endAfterClose(inode, draft) }
    }
    sessions.removeKept(inode.ino)
    // Whoever keeps it the same elsewhere heard of it last when it was written, and may have looked since.
    tell(.appearance(inode.ino), from: 0)
  }

  // MARK: - After a crash

  /// Takes up the saves that an earlier process kept, to be completed.
  func recoverWorkingCopies() throws {
    let rows = try read { try $0.workingCopies() }
    if rows.isEmpty { return store.working.discardLeftover() }
    for row in rows {
      guard let inode = try? inode(row.ino), inode.isRegular, let area = try store.working.area(of: row.writes) else {
        log.error(
          "a save is lost: the working file beside the library does not have it", metadata: ["ino": "\(row.ino)"])
        try makeChange(.workingCopy, freesSpace: true) { try $0.rows.deleteWorkingCopy(row.ino) }
        continue
      }
      if row.writes == .emptied {
        recoverEmpty(inode, row)
        continue
      }
      let draft = inode.own
      load(inode, draft)
      try beginSession(inode, draft, handle: nil, at: row.time)
      draft.session?.kept = row.time
      draft.session?.dirtySince = nil
      draft.session?.cause = row.cause
      try draft.working?.apply(row.writes, in: area, from: self)
      sessions.insertKept(inode)
    }
  }

  /// Empties a document whose place a program took that wrote nothing before the crash (rule 5).
  private func recoverEmpty(_ inode: Inode, _ row: WorkingCopyRow) {
    inode.keptEmptyBy = row.author
    let draft = inode.draft(of: row.author)
    do {
      load(inode, draft)
      try beginSession(inode, draft, handle: nil, at: row.time)
      draft.session?.cause = row.cause
      try draft.working?.truncate(to: 0, from: self)
      // An autosave tries again what fails.
      draft.session?.hasWrites = true
      try makeVersion(inode, draft, cause: row.cause)
      try endSession(inode, draft)
    } catch {
      log.error("a document could not be emptied again", metadata: ["ino": "\(row.ino)", "error": "\(error)"])
    }
  }
}
