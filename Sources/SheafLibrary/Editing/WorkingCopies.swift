import Foundation
import SheafModel
import SheafStore

/// Contents that wait in the working file: a large save is promised first, and stored behind the writer's back.
///
/// ```
///            8 MiB or 4096 runs           close, 1 s            all of it in chunks
///   memory ─────────────────────► area ──────────────► kept ──────────────────────────► a version
///             spill(_:_:)                keep(_:_:cause:)      storeSome(of:_:), cut
/// ```
/// Rules:
/// 1. What is kept has a row (`working_copies`) that says how to make the contents again of those that are stored, and is
///    as safe as a version: who opens the library after a crash stores it first (``recoverWorkingCopies()``).
/// 2. The row goes in the transaction that makes the version, or takes the inode away.
/// 3. Nobody sees the difference: whoever asks for versions, or for what Sheaf tells of the document, waits until it is
///    stored (``storeClosed(_:)``), without the lock. What is in a share, so that others see it, is stored at once.
/// 4. Storing goes in steps, so that others wait for one at most.
extension Library {
  /// Bytes in memory of one document past which they are spilled; `SHEAF_SPILL_LIMIT` lowers it for tests, and what
  /// depends on it.
  static let spillLimit = ProcessInfo.processInfo.environment["SHEAF_SPILL_LIMIT"].flatMap { Int($0) } ?? 8 << 20
  /// Those of all documents.
  static let unsavedLimit = 8 * spillLimit
  /// Runs in memory of one document.
  static let runLimit = 4096
  /// Bytes of a write that goes to the working file without being gathered in memory.
  static let directLength = spillLimit / 128
  /// Bytes of a document's area past which its writer waits until they are stored.
  static let areaLimit = 128 * Int64(spillLimit)
  /// Bytes that are stored at a time with the lock held.
  private static let stepLength = spillLimit / 8

  // MARK: - Spilling

  /// Bounds what a draft has in memory (rule 7 of docs/ARCHITECTURE.md).
  func spill(_ inode: Inode, _ draft: Draft) throws {
    guard mayKeep(inode, draft) else { return try storeUnsaved(inode, draft) }
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

  /// What close(2) does for a document of which much is in the working file; false where it is to be stored at once.
  func keepSave(of inode: Inode, _ draft: Draft) throws -> Bool {
    guard draft.working?.dirty.hasSpilled ?? false || draft.session?.isKept ?? false else { return false }
    try resumeSession(inode, draft)
    if draft.session?.isKept ?? false, !(draft.working?.dirty.hasSpilled ?? false) {
      // All of it is stored but for the version, which the other thread is about to make.
      draft.session?.cause = .save
      return true
    }
    return try keep(inode, draft, cause: .save)
  }

  // MARK: - Storing

  /// Starts the thread that stores what is kept.
  func startStoring() {
    storing.start { [weak self] in
      guard let self else { return true }
      var failed: Set<Int64> = []
      while let ino = self.locked({ self.sessions.keptInodes.lazy.map(\.ino).filter { !failed.contains($0) }.min() }) {
        do {
          try self.store(kept: ino, givesWay: true)
        } catch {
          // The others need not wait for it.
          failed.insert(ino)
          self.noteFailure(error)
        }
      }
      return failed.isEmpty
    }
  }

  /// Has what was closed, but waits in the working file, be a version, and returns when it is.
  ///
  /// Where that fails, on a full disk, it goes on waiting.
  ///
  /// - Parameter ino: the document's; nil for all of them.
  package func storeClosed(_ ino: Int64? = nil) {
    do { try tryToStoreClosed(ino) } catch { noteFailure(error) }
  }

  /// As ``storeClosed(_:)``, for who cannot do without.
  ///
  /// - Throws: `noSpace`, `inputOutput`, where some of it goes on waiting.
  func tryToStoreClosed(_ ino: Int64? = nil) throws {
    var failed: Set<Int64> = []
    var failure: (any Error)?
    while let next = locked({ closedInode(ino, but: failed) }) {
      do {
        try store(kept: next)
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

  /// Has what is kept of the file or below the folder of a name be stored, before that goes elsewhere.
  func storeKept(_ parent: Int64, _ name: [UInt8]) {
    let found: Int64?? = locked {
      guard sessions.hasKept, let entry = try? entry(parent, name) else { return nil }
      return .some(inodes[entry.ino]?.isFolder ?? false ? nil : entry.ino)
    }
    if let found { storeKept(found) }
  }

  /// As ``storeClosed(_:)``, with what is still being written: what is left to be stored with the lock held is little then.
  func storeKept(_ ino: Int64? = nil) {
    storeClosed(ino)
    for open in locked({ sessions.keptInodes.map(\.ino).filter { ino == nil || $0 == ino } }) { storeSpilled(open) }
  }

  /// Has what a document has in the working file be stored, but for its version.
  func storeSpilled(_ ino: Int64) {
    guard locked({ inodes[ino]?.own.working?.dirty.hasSpilled ?? false }) else { return }
    do {
      try inSteps { try inodes[ino].map { try storeSome(of: $0, $0.own) } ?? false }
    } catch {
      noteFailure(error)
    }
  }

  func noteFailure(_ error: any Error) {
    log.error(
      "what was written is not stored yet; the working file beside the library has it",
      metadata: ["error": "\(error)"])
  }

  /// - Parameter givesWay: whether nobody waits for it, so that who has other work goes first.
  private func store(kept ino: Int64, givesWay: Bool = false) throws {
    // First, so that no transaction has to wait for the disk. Where that fails, storing is what helps.
    try? store.working.sync()
    try inSteps(givesWay: givesWay) {
      guard let inode = sessions.keptInode(ino) else { return false }
      if try storeSome(of: inode, inode.own) { return true }
      try finishKept(inode)
      return false
    }
  }

  /// Has what is written to a document so far be stored, as an autosave does.
  func storeWritten(_ ino: Int64) throws {
    guard locked({ inodes[ino]?.own.working?.dirty.hasSpilled ?? false }) else { return }
    try inSteps {
      guard let inode = inodes[ino] else { return false }
      if try storeSome(of: inode, inode.own) { return true }
      try cut(inode, inode.own, cause: inode.own.session?.cause ?? .autosave)
      return false
    }
  }

  /// Runs `step` with the lock held, again and again while it says so, and lets others have the lock in between: those who
  /// wait, or, where it gives way, for as long as it had it itself.
  private func inSteps(givesWay: Bool = false, _ step: () throws -> Bool) throws {
    let clock = ContinuousClock()
    while true {
      var begun = clock.now
      let goesOn = try locked {
        begun = clock.now
        return try step()
      }
      let took = clock.now - begun
      guard goesOn else { return }
      // What goes wrong with that is told by who does it regularly.
      if store.hasLongLog { try? store.checkpoint() }
      guard waiting.load(ordering: .relaxed) > 0 else { continue }
      if givesWay {
        Thread.sleep(forTimeInterval: took / .seconds(1))
      } else {
        // Whoever lets go of the lock and takes it again would have it first.
        let end = clock.now + .milliseconds(1)
        while waiting.load(ordering: .relaxed) > 0, clock.now < end { sched_yield() }
      }
    }
  }

  /// Stores a piece of what is in the working file; says whether there was one.
  private func storeSome(of inode: Inode, _ draft: Draft) throws -> Bool {
    guard let working = draft.working, working.dirty.hasSpilled, !inode.isOrphan else { return false }
    try makeChange(.spill) { change in
      let (content, part) = try working.flushed(first: Self.stepLength, into: change)
      change.whenRecorded { [self, storedNow = change.storedChunks] in
        let before = draft.unsavedBytes
        draft.working?.adopt(content, of: part)
        sessions.addUnsaved(draft.unsavedBytes - before)
        if draft.session != nil { claim(storedNow, inode, draft) }
      }
    }
    return true
  }

  /// Makes the version of what is stored, and ends the session if its last writer is gone.
  func finishKept(_ inode: Inode) throws {
    let draft = inode.own
    if let session = draft.session, session.kept != nil {
      try cut(inode, draft, cause: session.cause)
      if draft.writerCount == 0 { try endAfterClose(inode, draft) }
    }
    sessions.removeKept(inode.ino)
  }

  // MARK: - After a crash

  /// Takes up what an earlier process kept, to be stored.
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
}
