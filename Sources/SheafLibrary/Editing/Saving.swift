import Foundation
import SheafModel
import SheafStore

/// Editing sessions: how writes become versions (docs/ARCHITECTURE.md, "Versions").
///
/// ```
///            first write            autosave, flush, fsync         last writable close, 10 minutes,
///   none ───────────────► dirty ───────────────────────► numbered ──────────────────────────────► none
///        beginSession(_:)        makeVersion(_:_:cause:)    ▲      │      endSession(_:)            version immutable,
///                                                   └──────┘                                       event logged
///                                              renewed by each save
/// ```
///
/// Rooms: `EditingSessions`, `OpenFiles`.
extension Library {
  /// Seconds after which autosave makes a version of unsaved writes.
  static let autosaveSeconds: Int64 = 1
  /// How long the session of a document that was only emptied waits for its next writer.
  private static let emptyNanoseconds: Int64 = 2_000_000_000
  /// Seconds after which a session's version ends though the document stays open.
  static let sessionSeconds: Int64 = 600
  /// Seconds without a write after which a database is quiet, and for how long its session waits for that at most.
  static let quietSeconds: Int64 = 1
  static let databaseSessionSeconds: Int64 = 3600

  /// Loads the contents of a regular file for reading or changing.
  func load(_ inode: Inode, _ draft: Draft) {
    guard draft.working == nil else { return }
    draft.working = WorkingCopy(inode.row.content ?? .empty)
    // Two drafts now hold the chunks of the other's open version.
    for other in inode.drafts where other !== draft { shareChunks(of: other) }
  }

  /// Notes that `draft` changes now, through `handle` where there is one.
  ///
  /// A write through another handle than those that wrote so far, all of which were closed, begins a new session: the
  /// kernel tells of the last close later than close(2) returns. Where some of them have yet to close, the session goes on,
  /// and the version ends that the last one saved by its close. A program that goes on to write through a handle which
  /// it had before goes on with its own version.
  ///
  /// - Parameters:
  ///   - basis: the contents on which the change through `handle` is based.
  ///   - caller: the caller that truncates the document by its name; nil for a change through `handle`, and for one by
  ///     the library.
  ///   - thread: the thread that makes the change through `handle`, which another program may have opened; 0 if it is
  ///     not known.
  func beginSession(
    _ inode: Inode, _ draft: Draft, handle: UInt64?, basis: ChangeBasis = .reading, by caller: Caller? = nil,
    thread: Int32 = 0, at time: Timestamp
  ) throws {
    if let session = draft.session, handle.map({ session.writers[$0] == nil }) ?? true, !session.writers.isEmpty,
      session.isClosed, session.dirtySince == nil
    {
      if isEmptied(inode, draft, at: time) {
        // The bytes that follow are the contents of this version; the program that emptied it begins another.
        draft.session?.writers = [:]
      } else {
        try endSession(inode, draft)
        // The last session of a file that nobody has open takes the contents with it.
        load(inode, draft)
      }
    } else if let session = draft.session, session.dirtySince == nil, let closed = session.closedBy,
      handle.flatMap({ session.writers[$0] })?.saver.process != closed.process
    {
      try endClosedVersion(inode, draft, by: closed)
    }
    if basis == .end, draft.session?.onlyAppends == false, inode.drafts.contains(where: { $0 !== draft && !$0.isIdle })
    {
      // What was emptied or written before is a version of its own, so that what several people append from here on is
      // no conflict.
      try endSession(inode, draft)
      load(inode, draft)
    }
    let writer = handle.flatMap { draft.session?.writers[$0] }
    let appends = basis == .end && (draft.session?.onlyAppends ?? !draft.isChanged)
    if draft.session == nil {
      let base = try base(of: inode, changedThrough: handle, basis, by: caller)
      try endVersion(base, ofOthersThan: draft, inode)
      // It begins with the current contents, whichever version the program knew. If they are saved again, they stay.
      try endVersion(try item(of: inode)?.version, ofOthersThan: draft, inode)
      draft.session = EditingSession(
        author: draft.account, base: base,
        baseContent: inode.row.content ?? .empty, began: time, cause: .save)
    } else if basis == .reading || basis == .nothing, writer?.onlyAppends ?? true {
      try rebase(draft, inode, changedThrough: handle, basis, by: caller)
    }
    draft.session?.onlyAppends = appends
    if let caller { draft.session?.truncater = caller }
    draft.session?.lastWriter = handle
    draft.session?.closedBy = nil
    if let handle {
      let file = files[handle]
      draft.session?.writers[handle] = SessionWriter(
        account: file?.account,
        saver: file.map { saver($0.process, after: writer) } ?? .unknown,
        onlyAppends: basis == .end && writer?.onlyAppends ?? true)
    }
    if inode.isOrphan, let file = handle.flatMap({ files[$0] }) { noteReplacedWork(through: file, by: thread) }
    if draft.session?.dirtySince == nil { draft.session?.dirtySince = time }
    draft.session?.lastWrite = time
    sessions.insert(inode)
    maintenance.wake()
  }

  /// Ends the version that was saved when its writer closed the document: what a program writes that keeps it open does
  /// not renew that.
  private func endClosedVersion(_ inode: Inode, _ draft: Draft, by saver: SavingProcess) throws {
    // It may have been kept, and wait to be stored.
    try makeVersion(inode, draft, cause: .save)
    try makeChange(.endSession, freesSpace: true) { try endVersion(of: draft, inode, savedBy: saver, $0) }
    guard let writers = draft.session?.writers else { return load(inode, draft) }
    draft.session?.writers = writers.filter { !$0.value.isFlushed }
  }

  /// - Parameter writer: The same handle, as it wrote before.
  private func saver(_ process: Int32, after writer: SessionWriter?) -> SavingProcess {
    if let known = writer?.saver, known.process == process { return known }
    return SavingProcess(process)
  }

  /// The version that a change which begins now is based on; nil before any.
  private func base(
    of inode: Inode, changedThrough handle: UInt64?, _ basis: ChangeBasis, by caller: Caller?
  ) throws -> Int64? {
    guard let item = try item(of: inode), item.version > 0 else { return nil }
    if let file = handle.flatMap({ files[$0] }) {
      return basis == .reading ? try base(of: item, inode, writtenThrough: file) : item.version
    }
    guard handle == nil, let caller else { return item.version }
    return try base(of: item, inode, savedBy: caller, orReadBy: basis == .nothing ? .session : .program)
  }

  /// Bases the next version of a session on the version that the program knew which changes the document now, if that
  /// is older than the session's base: its changes ignore everything after that.
  private func rebase(
    _ draft: Draft, _ inode: Inode, changedThrough handle: UInt64?, _ basis: ChangeBasis, by caller: Caller?
  ) throws {
    guard let began = draft.session?.base, handle != nil || caller != nil else { return }
    let base = try base(of: inode, changedThrough: handle, basis, by: caller)
    guard base ?? 0 < began else { return }
    // The writes of others in this session ignored nothing, so they end as a version of their own.
    try makeChange(.endSession, freesSpace: true) { try endVersion(of: draft, inode, $0) }
    draft.session?.base = base
  }

  /// Ends a draft's session after the last writer closed it; one that only emptied the document goes on for a moment.
  func endAfterClose(_ inode: Inode, _ draft: Draft) throws {
    if draft.working?.size == 0, draft.isChanged { try makeVersion(inode, draft, cause: .save) }
    if !isEmptied(inode, draft, at: clock()) { try endSession(inode, draft) }
  }

  /// Whether a session has only emptied the document, or made an empty file of a passing name as mktemp(1) does, just
  /// now: what some programs do with one open file before they write with the next, and scripts with one command before
  /// the next. The empty version is stored by then, and open.
  private func isEmptied(_ inode: Inode, _ draft: Draft, at time: Timestamp) -> Bool {
    guard let session = draft.session, session.number != nil, draft.working?.size == 0,
      !Self.hasPassed(Self.emptyNanoseconds, since: session.began, at: time)
    else { return false }
    return session.baseContent.length > 0 || session.base == nil && FileRole.looksPassing(inode.row.name)
  }

  /// Makes a version of what was written to each draft of `inode`.
  func makeVersions(_ inode: Inode) throws {
    for draft in inode.drafts where draft.session != nil { try makeVersion(inode, draft, cause: .autosave) }
  }

  /// Stores what was written to `draft` and makes or renews its session's version of it.
  ///
  /// - Parameter ends: whether the session ends with it.
  func makeVersion(_ inode: Inode, _ draft: Draft, cause: VersionCause, ends: Bool = false) throws {
    guard let session = draft.session, let working = draft.working else { return }
    // A save is of the moment in which it was made, though it is stored later.
    let time = session.isKept ? session.kept ?? clock() : clock()
    if inode.isOrphan {
      // Nobody can find it any more: there is nothing to keep but what is open, and what another program wrote than the
      // one that replaced it.
      if ends {
        if needsRescue(inode, draft) { try rescue(draft, of: inode) }
        finish(inode, draft)
      }
      return
    }
    if working.isChanged, try !mayWrite(inode, draft) { return try rescueDenied(inode, draft) }
    var item = try item(of: inode)
    let isPlain = try item.map { try self.isPlain($0, inode) } ?? false
    let isFirst = item?.version == 0 && !isPlain
    guard working.isChanged || isFirst else {
      if ends {
        if let number = session.number, let item { noteEnd(of: number, item, inode, session) }
        finish(inode, draft)
      }
      return
    }
    let formerSize = inode.row.size
    // A file that no rule ignores any more is a document from now on (Ignoring.swift).
    let isProved =
      isFirst && item?.isQuiet == true && formerSize > 0 && FileRole(inode.row.name) == .document
    if isProved {
      item?.isQuiet = false
      shareChunks(of: inode)
    }
    try makeChange(.save) { [item] change in
      var (item, base) = (item, session.base)
      if isProved, var proved = item {
        try makeDocument(of: &proved, inode, by: session.author, change)
        (item, base) = (proved, proved.version > 0 ? proved.version : base)
      }
      var content = try working.stored(in: change)
      let references = content.references
      var stored = try content.stored(in: change)
      if session.number == nil, !isFirst, stored != session.baseContent, isSame(stored, session.baseContent) {
        // The same bytes, divided into other chunks: the old chunks stay.
        stored = session.baseContent
        content = Content(stored)
        try change.deleteStored()
      }
      var row = inode.row
      row.content = stored
      row.size = stored.length
      var result = (number: session.number, isOnTop: session.isOnTop, item: item)
      if let item, !isPlain {
        let version = VersionRow(
          item: item.id, number: session.number ?? item.lastVersion + 1, time: time, author: session.author,
          size: row.size, cause: cause, base: base, content: stored, isOpen: !ends)
        result = try place(version, of: item, session, draft, inode, change)
        // Back to what it began from, while another account saved something else: that stays.
        if result.number == nil, result.item?.version == item.version, !isFirst { row.content = inode.row.content }
        row.size = row.content?.length ?? 0
        if ends, result.number != nil, let item = result.item {
          var ended = version
          ended.isOpen = false
          try logSave(ended, of: item, inode: row, by: session.saver, change)
        }
      }
      if row.content != inode.row.content { try endOthers(than: draft, of: inode, change) }
      try change.rows.update(row, keepsItem: true)
      if session.kept != nil || inode.keptEmptyBy != nil { try change.rows.deleteWorkingCopy(row.ino) }
      let freed = try freeReplaced(references, session, inode, change)
      change.whenRecorded { [self, storedNow = change.storedChunks, result] in
        let isNew = row.content != inode.row.content
        inode.row.content = row.content
        inode.row.size = row.size
        inode.item = result.item
        inode.keptEmptyBy = nil
        sessions.addUnsaved(-draft.unsavedBytes)
        if row.content == stored {
          draft.working?.adopt(content)
          draft.working?.markUnchanged()
        } else {
          draft.working = WorkingCopy(row.content ?? .empty)
        }
        draft.session?.number = result.number
        draft.session?.isOnTop = result.isOnTop
        draft.session?.isPassedOver = row.content != stored
        draft.session?.cause = cause
        draft.session?.dirtySince = nil
        draft.session?.kept = nil
        draft.session?.hasWrites = false
        if let number = result.number, let item { noteSaved(.init(item: item.id, number: number), by: session, inode) }
        claim(storedNow, inode, draft)
        for (chunk, difference) in references { draft.session?.ownChunks[chunk]? += difference }
        if isPlain { noteDiscarded(bytes: formerSize) }
        noteRules(savedIn: inode)
        disown(freed, draft)
        if isNew {
          adoptSaved(in: inode, by: draft)
          tellSaved(inode, draft)
        }
        if ends { finish(inode, draft) }
      }
    }
  }

  private func isSame(_ left: StoredContent, _ right: StoredContent) -> Bool {
    // Damage in the old contents must not prevent storing the new ones.
    (try? Content.areSame(left, right, from: self)) ?? false
  }

  /// Stores a session's version: a new one, its renewal, or none where the contents are those it began from.
  ///
  /// - Returns: The session's version and whether that was made on top of the current one, and the item as it is then.
  private func place(
    _ version: VersionRow, of item: ItemRow, _ session: EditingSession, _ draft: Draft, _ inode: Inode,
    _ change: Change
  ) throws -> (number: Int64?, isOnTop: Bool, item: ItemRow?) {
    var item = item
    if let open = session.number, session.isOnTop, let base = session.base, version.content == session.baseContent,
      inode.drafts.allSatisfy({ $0 === draft || $0.isIdle }),
      try change.rows.version(item.id, open)?.label == nil, try change.rows.version(item.id, base) != nil
    {
      // Back to the base: contents equal to the version before make no version, if nobody purged that one meanwhile and
      // no other account has the file open, which may go on from what it saw. Others remember a version that they saw
      // by its number, so the number is not given again then.
      try change.rows.deleteVersion(item.id, open)
      item.version = base
      if try share(of: inode) == nil { item.lastVersion = max(base, open - 1) }
      try change.rows.update(item)
      return (nil, true, item)
    }
    if session.number != nil {
      try change.rows.update(version)
      return (session.number, session.isOnTop, item)
    }
    let isFirst = item.version == 0
    let isOnTop = isFirst || session.base == item.version
    guard isFirst || version.content != session.baseContent else { return (nil, true, item) }
    if !isOnTop, isSame(version.content, inode.row.content ?? .empty) {
      // They are what another account saved, whose session must not renew that version any more.
      try endOthers(than: draft, of: inode, change)
      return (nil, true, item)
    }
    try change.rows.insert(version)
    // A save on top of the current version has seen everything; any other save is told which version it ignored.
    item.conflict = isOnTop ? nil : item.version
    item.version = version.number
    item.lastVersion = version.number
    try change.rows.update(item)
    return (version.number, isOnTop, item)
  }

  /// Ends the numbered session of another draft: its version is current no longer.
  private func endOthers(than draft: Draft, of inode: Inode, _ change: Change) throws {
    for other in inode.drafts where other !== draft { try endVersion(of: other, inode, change) }
  }

  /// Ends the version of a session that goes on: later writes make the next version.
  func endVersion(of draft: Draft, _ inode: Inode, savedBy saver: SavingProcess? = nil, _ change: Change) throws {
    guard let session = draft.session, let number = session.number, let item = try item(of: inode) else { return }
    try change.rows.closeVersion(item.id, number, cause: session.cause)
    if let version = try change.rows.version(item.id, number) {
      try logSave(version, of: item, inode: inode.row, by: saver ?? session.saver, change)
    }
    let content = inode.row.content ?? .empty
    change.whenRecorded { [self] in
      shareChunks(of: draft)
      // Its next version is based on its own last one.
      draft.session?.number = nil
      draft.session?.base = number
      draft.session?.baseContent = content
    }
  }

  /// Ends the version from which `draft` begins to change the document, where another account's session goes on with
  /// it: renewed, it would hold what that account wrote since, and what is made of it now would pass over that in
  /// silence.
  private func endVersion(_ number: Int64?, ofOthersThan draft: Draft, _ inode: Inode) throws {
    guard let number, let other = inode.drafts.first(where: { $0 !== draft && $0.session?.number == number }) else {
      return
    }
    try makeChange(.endSession, freesSpace: true) { try endVersion(of: other, inode, $0) }
  }

  /// Makes the drafts of other accounts show what was saved; people who are editing go on with what they have. Whoever
  /// may not save it any more is shown nothing of it.
  func adoptSaved(in inode: Inode, by draft: Draft) {
    for other in inode.drafts where other !== draft {
      if let session = other.session {
        if session.dirtySince == nil, !session.isKept, session.isClosed {
          // All of it was closed and saved, and waited for its next writer, who begins from this now.
          other.session?.isPassedOver = true
          finish(inode, other)
          continue
        }
        let maySave = (try? mayWrite(inode, other)) ?? false
        if !maySave || !appendAgain(other, inode) { other.session?.isPassedOver = true }
      } else if other.working != nil, !other.isChanged {
        other.working = WorkingCopy(inode.row.content ?? .empty)
      }
    }
  }

  /// Bytes that are appended again at most.
  private static let appendedLimit: Int64 = 4 << 20

  /// Appends what an account only appended to what another one has saved now, as each append goes to the end of what is
  /// there then. So it passes over nothing, and those who append to one log see each other's lines.
  ///
  /// - Returns: whether it did.
  private func appendAgain(_ draft: Draft, _ inode: Inode) -> Bool {
    guard let session = draft.session, session.onlyAppends, session.number == nil, session.kept == nil,
      var former = draft.working, let version = inode.item?.version, version > 0
    else { return false }
    let (start, content) = (session.baseContent.length, inode.row.content ?? .empty)
    guard (0...Self.appendedLimit).contains(former.size - start) else { return false }
    var working = WorkingCopy(content)
    do {
      var bytes = [UInt8](repeating: 0, count: Int(former.size - start))
      let count = try bytes.withUnsafeMutableBytes { try former.read(at: start, into: $0, from: self) }
      guard count == bytes.count else { return false }
      try bytes.withUnsafeBytes { try working.write($0, at: content.length, from: self) }
    } catch {
      log.error("appending again failed", metadata: ["ino": "\(inode.ino)", "error": "\(error)"])
      return false
    }
    shareChunks(of: draft)
    let before = draft.unsavedBytes
    draft.working = working
    sessions.addUnsaved(draft.unsavedBytes - before)
    draft.session?.base = version
    draft.session?.baseContent = content
    draft.session?.isPassedOver = false
    return true
  }

  /// Makes the next transaction end a version that is stored already.
  ///
  /// The kernel tells of the last close after close(2) has returned, so nobody waits for it, and a crash ends the
  /// version all the same (``recoverFromCrash()``): no transaction of its own is needed.
  private func noteEnd(of number: Int64, _ item: ItemRow, _ inode: Inode, _ session: EditingSession) {
    let version = VersionRow(
      item: item.id, number: number, time: clock(), author: session.author, size: inode.row.size,
      cause: session.cause, base: session.base, content: inode.row.content ?? .empty, isOpen: false)
    sessions.insert(EndedSession(version: version, item: item, inode: inode.row, saver: session.saver))
    maintenance.wake()
    maintenance.endSessionsSoon()
  }

  /// Ends the versions that wait for it.
  func endNotedSessions(_ change: Change) throws {
    guard !sessions.ended.isEmpty else { return }
    for ended in sessions.ended {
      try change.rows.closeVersion(ended.version.item, ended.version.number, cause: ended.version.cause)
      // The item may have gone with its history meanwhile.
      if let item = try change.rows.item(ended.item.id) {
        try logSave(ended.version, of: item, inode: ended.inode, by: ended.saver, change)
      }
    }
    let count = sessions.ended.count
    change.whenRecorded { [self] in sessions.removeEnded(count) }
  }

  /// Ends the versions that wait for it now, before someone looks at them.
  func settleSessions() throws {
    if !sessions.ended.isEmpty { try makeChange(.endSession, freesSpace: true) { _ in } }
  }

  /// As ``settleSessions()``, where nobody waits for it: on a full disk the next change does it. It would give up the
  /// reserve for nothing, and whatever fills the disk would take that.
  func settleSessionsWithRoom() throws {
    guard !sessions.ended.isEmpty else { return }
    do {
      try makeChange(.endSession) { _ in }
    } catch let error as SheafError where error.kind == .noSpace {
      return
    }
  }

  /// Ends the versions now that wait for it, where one is of a file that is about to go or to be another document: its
  /// event is to be told of what it was.
  func settleSession(of inode: Inode) throws {
    if sessions.ended.contains(where: { $0.inode.ino == inode.ino && $0.version.number > 1 }) { try settleSessions() }
  }

  /// Ends the sessions of every draft.
  func endSession(_ inode: Inode, cause: VersionCause = .save) throws {
    for draft in inode.drafts { try endSession(inode, draft, cause: cause) }
  }

  /// Ends a draft's session: its version is immutable from here on, and its event is logged.
  func endSession(_ inode: Inode, _ draft: Draft, cause: VersionCause = .save) throws {
    guard draft.session != nil else { return }
    try makeVersion(inode, draft, cause: cause, ends: true)
  }

  func finish(_ inode: Inode, _ draft: Draft) {
    shareChunks(of: draft)
    if draft.session?.isPassedOver ?? false, !draft.isChanged, !inode.isOrphan {
      // From here on the account sees what someone else saved meanwhile.
      draft.working = WorkingCopy(inode.row.content ?? .empty)
      tell(.saved(inode.ino), to: draft.account)
    }
    draft.session = nil
    sessions.removeIfEnded(inode)
    releaseContents(inode, draft)
  }

  /// Makes a draft show what another account saved since, where all that was written to it is saved.
  func showSaved(in inode: Inode, _ draft: Draft) {
    guard let session = draft.session, session.isPassedOver, session.dirtySince == nil, !session.isKept,
      session.number == nil
    else { return }
    finish(inode, draft)
  }

  /// Lets go of contents that nobody has open.
  func releaseContents(_ inode: Inode, _ draft: Draft) {
    guard draft.isIdle, !inode.isOrphan else { return }
    draft.working = nil
    inode.dropIdleDrafts()
  }

  /// Stores what was written to `draft` as chunks, without a version.
  func storeChunks(of inode: Inode, _ draft: Draft) throws {
    guard let working = draft.working, !working.dirty.isEmpty else { return }
    try makeChange(.spill) { change in
      let content = try working.stored(in: change)
      change.whenRecorded { [self, storedNow = change.storedChunks] in
        sessions.addUnsaved(-draft.unsavedBytes)
        // The session's version refers to these chunks until it is renewed, and that does not know of them.
        disown(content.references.keys, draft)
        draft.working?.adopt(content)
        if draft.session != nil { claim(storedNow.subtracting(content.references.keys), inode, draft) }
      }
    }
  }

  /// Forgets what was written to a file that went and that nobody has open.
  func discardUnsaved(_ draft: Draft) {
    guard draft.openCount == 0 else { return }
    sessions.addUnsaved(-draft.unsavedBytes)
    draft.working = nil
  }

  /// Documents that are looked at with the lock held.
  private static let autosaveStep = 32

  /// Makes versions of what has waited long enough, and ends sessions that last too long; tries failures again. It takes
  /// some documents at a time: a program may have very many open.
  func autosaveInSteps() {
    let (time, edited) = locked { () -> (Timestamp, [Int64]) in
      do {
        try settleSessions()
      } catch {
        log.error("ending sessions failed", metadata: ["error": "\(error)"])
      }
      return (clock(), sessions.inodes.map(\.ino))
    }
    for start in stride(from: 0, to: edited.count, by: Self.autosaveStep) {
      locked {
        for ino in edited[start...].prefix(Self.autosaveStep) {
          // Also one that went, and that nobody has open, if it waits for room.
          guard let inode = sessions.inode(ino) else { continue }
          for draft in inode.drafts { autosave(inode, draft, time) }
          sessions.removeIfEnded(inode)
        }
      }
    }
    // A replica sends what ended, and no call of a program told it of that.
    locked { for ended in sessions.ended { tell(.appearance(ended.inode.ino), to: ended.item.owner) } }
  }

  /// Whether so much time has passed since `start`. Where the clock was put back nobody knows, and waiting would take
  /// as long as that.
  private static func hasPassed(_ nanoseconds: Int64, since start: Timestamp, at time: Timestamp) -> Bool {
    !(0..<nanoseconds).contains(time.nanoseconds &- start.nanoseconds)
  }

  /// Whether a document was truncated and waits to be written: its empty moment makes no version.
  private static func isEmptied(_ draft: Draft) -> Bool {
    guard let session = draft.session else { return false }
    return !session.hasWrites && draft.working?.size ?? 0 == 0 && session.baseContent.length > 0
  }

  private func autosave(_ inode: Inode, _ draft: Draft, _ time: Timestamp) {
    guard let session = draft.session else { return }
    do {
      if try isOver(session, draft, at: time) {
        try endSession(inode, draft, cause: .autosave)
      } else if let since = session.dirtySince,
        Self.hasPassed(Self.autosaveSeconds * 1_000_000_000, since: since, at: time), !Self.isEmptied(draft)
      {
        if try keep(inode, draft, cause: .autosave) { return }
        try makeVersion(inode, draft, cause: .autosave)
        if draft.writerCount == 0 { try endAfterClose(inode, draft) }
      } else if draft.writerCount == 0, session.dirtySince == nil, !session.isKept {
        try endAfterClose(inode, draft)
      }
    } catch {
      log.error("autosave failed", metadata: ["ino": "\(inode.ino)", "error": "\(error)"])
      if draft.session?.dirtySince != nil { draft.session?.dirtySince = time }
    }
  }

  /// Whether a session has lasted long enough though the document is open: that of a database waits for a quiet moment,
  /// in which no transaction is half written.
  private func isOver(_ session: EditingSession, _ draft: Draft, at time: Timestamp) throws -> Bool {
    func hasPassed(_ seconds: Int64, since start: Timestamp) -> Bool {
      Self.hasPassed(seconds * 1_000_000_000, since: start, at: time)
    }
    guard session.number != nil, hasPassed(Self.sessionSeconds, since: session.began) else { return false }
    if hasPassed(Self.quietSeconds, since: session.lastWrite ?? session.began) { return true }
    return try hasPassed(Self.databaseSessionSeconds, since: session.began) || !isDatabase(draft)
  }

  /// The beginning of an SQLite database (its file format, section 1.3).
  private static let databaseHeader = Array("SQLite format 3\0".utf8)

  private func isDatabase(_ draft: Draft) throws -> Bool {
    guard var working = draft.working, working.size % 512 == 0 else { return false }
    var header = [UInt8](repeating: 0, count: Self.databaseHeader.count)
    let count = try header.withUnsafeMutableBytes { try working.read(at: 0, into: $0, from: self) }
    return count == header.count && header == Self.databaseHeader
  }

  /// Saves what no program can write any more, and makes everything that returned survive power loss.
  ///
  /// - Throws: also for what could not be saved when it was closed; autosave goes on trying.
  package func saveClosed() throws {
    // The working file keeps these bytes safe.
    try locked { try endSessions { $0.writerCount == 0 && $0.session?.isKept == false && !Self.isEmptied($0) } }
    try store.sync()
  }

  /// Ends every session, as the end of the process does.
  func endAllSessions() throws { try endSessions { _ in true } }

  /// Ends the sessions of some drafts; a failed one keeps no other from ending.
  private func endSessions(where isMeant: (Draft) -> Bool) throws {
    var failure: (any Error)?
    for inode in Array(sessions.inodes) {
      for draft in inode.drafts where isMeant(draft) {
        do {
          try endSession(inode, draft, cause: draft.writerCount > 0 ? .autosave : .save)
        } catch {
          failure = failure ?? error
        }
      }
    }
    try settleSessions()
    if let failure { throw failure }
  }
}
