import Foundation
import SheafModel
import SheafStore

/// Open files: reading, writing and what close(2) promises.
///
/// Rooms: `EditingSessions`, `Identity`, `OpenFiles`.
extension Library {
  /// Makes a file and opens it, as open(2) with O_CREAT does where there was none.
  ///
  /// - Parameter flags: open(2)'s.
  /// - Returns: whether it is new, besides: without O_EXCL somebody else may have been faster, and it is opened as it
  ///   is.
  /// - Throws: as ``make(_:_:_:mode:_:)`` and ``open(_:flags:_:)``; `exists` also without O_EXCL, for what is no
  ///   regular file.
  package func create(
    _ parent: Int64, _ name: [UInt8], mode: UInt32, flags: Int32, _ caller: Caller
  ) throws -> (attributes: Attributes, handle: UInt64, isNew: Bool) {
    while true {
      let (ino, made) = try lockedNear([parent]) { () -> (Int64, (attributes: Attributes, handle: UInt64)?) in
        do {
          let inode = try makeInode(.file, parent, name, mode: mode, caller)
          return (inode.ino, (try attributes(inode, caller), register(OpenFile(inode: inode, flags: flags, caller))))
        } catch let error as SheafError where error.kind == .exists && flags & O_EXCL == 0 {
          guard let entry = try entry(parent, name), try inode(entry.ino).isRegular else { throw error }
          return (entry.ino, nil)
        }
      }
      if let made { return (made.attributes, made.handle, isNew: true) }
      // Someone else was faster: without O_EXCL that is as good, unless they have taken the file away again.
      let handle: UInt64
      do {
        handle = try open(ino, flags: flags, allowsUnlinked: false, caller)
      } catch let error as SheafError where error.kind == .notFound {
        continue
      }
      do {
        return (try attributes(ino, caller), handle, isNew: false)
      } catch {
        try? release(handle)
        throw error
      }
    }
  }

  /// Opens a file, truncating it where `flags` has O_TRUNC.
  ///
  /// - Parameter allowsUnlinked: whether a file may be opened whose last name was removed; one that never had a name
  ///   always may, while somebody has it open.
  /// - Throws: `notFound`, `accessDenied`, `isDirectory`, `noSpace`.
  package func open(_ ino: Int64, flags: Int32, allowsUnlinked: Bool = true, _ caller: Caller) throws -> UInt64 {
    // Another save begins when the one before is stored.
    if flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0 { completeSaves(of: ino) }
    if flags & O_TRUNC != 0 { collectMapped(0, of: ino, caller) }
    return try locked {
      let inode = try inode(ino)
      guard !inode.isFolder else { throw SheafError(.isDirectory) }
      let file = OpenFile(inode: inode, flags: flags, caller)
      // The kernel found it before its name went, and looks again.
      guard !inode.isOrphan || file.draft.openCount > 0 else { throw SheafError(.notFound) }
      guard inode.row.nlink > 0 || inode.isNameless || allowsUnlinked else { throw SheafError(.notFound) }
      if file.truncates { try allow(.write, inode, caller) }
      try permit(inode, caller, file.wanted)
      if file.mayChange { try clearForeignSetID(of: inode, caller) }
      load(inode, file.draft)
      if file.truncates {
        let wasEmpty = file.draft.working?.size == 0
        let base = try item(of: inode).flatMap { try self.base(of: $0, inode, savedBy: caller, orReadBy: .session) }
        try truncate(inode, to: 0, handle: nil, caller)
        if file.draft.session?.number == nil {
          // A session that goes on may have begun from an earlier version.
          file.draft.session?.base = base
          file.draft.session?.baseContent = inode.row.content ?? .empty
        }
        file.hasOnlyTruncated = !wasEmpty
        // No version will be made that would store the times along.
        if wasEmpty { try updateAttributes(inode.row, of: inode) }
      }
      noteReading(file, opens: true)
      try noteSeen(file)
      return register(file)
    }
  }

  /// Takes set-id bits from another user's file that whoever a mount is given to opens for writing: the kernel tells of
  /// no change that comes through a mapping.
  private func clearForeignSetID(of inode: Inode, _ caller: Caller) throws {
    guard let user = caller.user, user.ownsAll, caller.uid != 0, inode.row.mode & 0o6000 != 0,
      inode.row.uid != user.uid || inode.row.gid != user.gid
    else { return }
    var row = inode.row
    row.mode &= ~0o6000
    try updateAttributes(row, of: inode)
    tell(.attributes(inode.ino), from: 0)
  }

  func register(_ file: OpenFile) -> UInt64 {
    let handle = files.insert(file)
    load(file.inode, file.draft)
    file.draft.openCount += 1
    if file.mayChange {
      if file.inode.writerCount == 0 { expireIdentity(of: file.inode.ino) }
      file.draft.writerCount += 1
    }
    return handle
  }

  private func file(_ handle: UInt64) throws -> OpenFile {
    guard let file = files[handle] else { throw SheafError(.badDescriptor) }
    return file
  }

  // MARK: - Reading and writing

  /// Reads into `buffer` from `offset`; returns the number of bytes, 0 at the end.
  package func read(_ handle: UInt64, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    try read(handle, at: offset, into: buffer) {}
  }

  /// - Parameter beforeFetching: called without the lock, if chunks have to be fetched.
  func read(
    _ handle: UInt64, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer, beforeFetching: () -> Void
  ) throws -> Int {
    try readBeside(into: buffer, beforeFetching) {
      let file = try file(handle)
      guard file.canRead || file.canWrite else { throw SheafError(.badDescriptor) }
      try allow(.read, file)
      let plan = try file.draft.working?.plan(at: offset, count: buffer.count, from: self)
      if file.notesAccess { noteAccess(file.inode) }
      noteReading(file)
      try noteSeen(file)
      return plan ?? ReadPlan(count: 0)
    }
  }

  /// Writes all of `data`, or nothing.
  ///
  /// - Parameters:
  ///   - offset: where.
  ///   - appends: whether the end counts instead, which may not be where a mount's kernel takes it to be.
  ///   - isWriteBack: whether a kernel writes back what a mapping changed.
  ///   - writer: the caller whose write clears set-id bits (inode(7)); nil for root and for the kernel.
  ///   - thread: the thread that writes; 0 if it is not known.
  ///   - clearsCapability: whether `security.capability` goes, too, as the kernel sees to by itself for what it has
  ///     pages of.
  /// - Throws: `noSpace` before anything is written; `tooLarge`, `badDescriptor`.
  package func write(
    _ handle: UInt64, at offset: Int64, _ data: UnsafeRawBufferPointer, appends: Bool = false,
    isWriteBack: Bool = false, by writer: Caller? = nil, thread: Int32 = 0, clearsCapability: Bool = false
  ) throws {
    if !isWriteBack { collectMapped(offset, appends ? nil : Int64(data.count), of: handle) }
    let full: Int64? = try locked {
      let file = try file(handle)
      try allow(.write, file)
      let (inode, draft) = (file.inode, file.draft)
      let last = WorkingCopy.maximumSize - Int64(data.count)
      guard appends || offset >= 0 && offset <= last else { throw SheafError(.tooLarge) }
      try requireContents(draft.working)
      try makeRoom(for: data.count, in: inode, draft)
      if clearsCapability { try clearCapability(of: inode, from: file.door) }
      try clearPrivileges(of: inode, changedBy: draft.account, from: file.door)
      let time = clock()
      let basis: ChangeBasis = isWriteBack ? .mapping : appends ? .end : .reading
      try beginSession(inode, draft, handle: handle, basis: basis, thread: thread, at: time)
      // Where that ended the session before, the contents may be what somebody else saved: their end is looked at now.
      let start = appends ? draft.working?.size ?? 0 : offset
      guard start <= last else { throw SheafError(.tooLarge) }
      let before = draft.unsavedBytes
      if data.count >= Self.directLength, draft.working?.area != nil, mayKeep(inode, draft) {
        try draft.working?.write(data, at: start, spillingTo: store.working, from: self)
      } else {
        try draft.working?.write(data, at: start, from: self)
      }
      sessions.addUnsaved(draft.unsavedBytes - before)
      draft.session?.hasWrites = true
      file.hasOnlyTruncated = false
      file.hasUnflushed = true
      inode.row.mtime = time
      inode.row.ctime = time
      if let writer { inode.row.mode = modeWithoutSetID(inode, changedBy: writer) }
      if !file.isReceived { tell(.contents(inode.ino), of: draft, from: file.door) }
      // Its kernel has the bytes where it took the end to be.
      if start != offset { tell(.contents(inode.ino), back: file.door) }
      boundUnsaved(inode, draft)
      return isFull(draft) ? inode.ino : nil
    }
    // A program that writes faster than can be stored waits here, where nobody else has to.
    if let full {
      do {
        try makeVersionsInSteps(full)
      } catch {
        // The next write finds out what is wrong; this one is safe.
        noteFailure(error)
      }
    }
  }

  /// Bounds what is unsaved, and refuses what the disk cannot hold while the person still has it elsewhere.
  private func makeRoom(for count: Int, in inode: Inode, _ draft: Draft) throws {
    if draft.unsavedBytes + count > Self.spillLimit || draft.working?.dirty.memoryRuns ?? 0 >= Self.runLimit
      || sessions.unsavedBytes + count > Self.unsavedLimit
    {
      try spill(inode, draft)
    }
    try requireRoom(for: Int64(sessions.unsavedBytes + count) + store.working.liveBytes)
  }

  /// Stores what was written where too much is unsaved of all documents together, each of which may have little. Nothing
  /// saves what has no name, so it leaves room for others.
  private func boundUnsaved(_ inode: Inode, _ draft: Draft) {
    guard sessions.unsavedBytes > (inode.isOrphan ? Self.unsavedLimit / 2 : Self.unsavedLimit) else { return }
    do {
      try spill(inode, draft)
    } catch {
      // The next write finds out what is wrong; this one is safe.
      noteFailure(error)
    }
  }

  /// Carries out the promise of close(2): all written bytes survive the end of this process.
  package func flush(_ handle: UInt64) throws {
    try locked {
      let file = try file(handle)
      guard file.mayChange else { return }
      if file.hasLostChanges { throw Self.denied }
      if file.draft.session?.dirtySince != nil { try allow(.write, file) }
      try requireRoomForRescue(of: file.inode, file.draft)
      if try !keepClosed(of: file.inode, file.draft) { try save(file.inode, file.draft) }
      identity.closed(file.inode.ino, at: clock())
      noteProof(of: file)
      if let writer = file.draft.session?.writers[handle], !writer.isFlushed {
        file.draft.session?.writers[handle]?.isFlushed = true
        // One that only emptied it saved nothing that could be missed.
        if file.draft.session?.lastWriter == handle, file.draft.working?.size ?? 0 > 0 {
          file.draft.session?.closedBy = writer.saver
        }
        if file.draft.session?.isClosed ?? false { showSaved(in: file.inode, file.draft) }
      }
      if file.hasUnflushed {
        file.hasUnflushed = false
        file.isToldClosed = true
        tell(.closed(file.inode.ino), from: file.door)
      }
    }
  }

  /// Makes a version of the document's contents now; a document that was only made gets an empty first one.
  private func save(_ inode: Inode, _ draft: Draft) throws {
    if try item(of: inode)?.version == 0 || draft.working?.isChanged ?? false { try resumeSession(inode, draft) }
    try makeVersion(inode, draft, cause: .save)
    // Contents that fsync(2) stored before count as saved by the close, too.
    draft.session?.cause = .save
  }

  /// Begins a session where there is none: a document that was only truncated loses its own while names change places.
  func resumeSession(_ inode: Inode, _ draft: Draft) throws {
    guard draft.session == nil, !inode.isOrphan else { return }
    try beginSession(inode, draft, handle: nil, at: clock())
  }

  /// fsync(2): the written bytes survive power loss.
  package func fsync(_ ino: Int64) throws {
    try makeVersionsInSteps(ino)
    try locked {
      let inode = try inode(ino)
      try makeVersions(inode)
      noteProof(inode, size: inode.row.size, by: nil)
    }
    try store.sync()
  }

  /// Makes everything that returned survive power loss.
  package func sync() throws { try store.sync() }

  /// The last reference to an open file is gone; the last one that could write ends the session.
  package func release(_ handle: UInt64) throws {
    try locked {
      guard let file = files.remove(handle) else { return }
      let (inode, draft) = (file.inode, file.draft)
      draft.openCount -= 1
      defer { releaseContents(inode, draft) }
      if file.mayChange {
        defer { tellClosed(file) }
        draft.writerCount -= 1
        if draft.writerCount == 0 {
          if draft.working?.isChanged ?? false { try resumeSession(inode, draft) }
          noteProof(of: file)
          if try !keepClosed(of: inode, draft) { try endAfterClose(inode, draft) }
        }
      }
      if inode.openCount == 0 { inode.savers = [:] }
      discardUnopened(inode, draft)
    }
  }

  /// Discards the contents of a file without a row: a draft's once nobody has that open, and all once nobody has the
  /// file open.
  func discardUnopened(_ inode: Inode, _ draft: Draft) {
    guard draft.openCount == 0, inode.isOrphan else { return }
    for draft in inode.openCount == 0 ? Array(inode.drafts) : [draft] {
      sessions.addUnsaved(-draft.unsavedBytes)
      draft.working = WorkingCopy(.empty)
    }
  }

  /// Tells watchers (inotify(7)) that a file was closed which was open for writing.
  private func tellClosed(_ file: OpenFile) {
    // The kernel tells them of a truncation by open(2) where it makes that itself; FUSE makes it.
    if file.hasOnlyTruncated { tell(.contents(file.inode.ino), back: file.door) }
    if !file.isReceived, !file.isToldClosed || file.hasUnflushed { tell(.closed(file.inode.ino), from: file.door) }
  }

  // MARK: - Size and space

  func truncate(_ inode: Inode, to size: Int64, handle: UInt64?, _ caller: Caller) throws {
    guard size <= WorkingCopy.maximumSize else { throw SheafError(.tooLarge) }
    let draft = inode.draft(of: caller.account)
    load(inode, draft)
    try clearPrivileges(of: inode, changedBy: draft.account, from: caller.door)
    let time = clock()
    let before = draft.unsavedBytes
    if draft.working?.size != size {
      // Refused as a whole, and not once it is done: what was refused would be the next save.
      try requireRoom(for: 0)
      if size > 0 { try requireContents(draft.working) }
      let isEmptied = handle == nil && size == 0
      try beginSession(
        inode, draft, handle: handle, basis: isEmptied ? .nothing : .reading, by: handle == nil ? caller : nil,
        at: time)
      // Nobody counts the chunks of the session any more, and they may soon have no use: a sweep finds out.
      noteDiscarded(bytes: Int64(draft.session?.ownChunks.count ?? 0) * Int64(Chunker.normal))
      shareChunks(of: draft)
      try draft.working?.truncate(to: size, from: self)
      sessions.addUnsaved(draft.unsavedBytes - before)
      if size > 0 { draft.session?.hasWrites = true }
      tell(.contents(inode.ino), of: draft, from: caller.door)
    }
    inode.row.mtime = time
    inode.row.ctime = time
    // A change of contents takes set-id bits away (truncate(2)).
    if caller.uid != 0 { inode.row.mode = modeWithoutSetID(inode, changedBy: caller) }
  }

  /// The mode without the set-id bits that a change by somebody without privileges takes away (inode(7)).
  ///
  /// A set-group-ID bit without the group's right to execute stays where root or a member of the group makes the change
  /// (fs/attr.c, `setattr_should_drop_sgid`).
  ///
  /// - Parameter caller: the caller that makes the change; nil for one whose groups mean nothing here.
  func modeWithoutSetID(_ inode: Inode, changedBy caller: Caller?) -> UInt32 {
    let mode = inode.row.mode & ~UInt32(S_ISUID)
    guard mode & UInt32(S_ISGID) != 0 else { return mode }
    if mode & 0o010 == 0, let caller, caller.uid == 0 || caller.belongs(to: shownUser(of: inode, caller).gid) {
      return mode
    }
    return mode & ~UInt32(S_ISGID)
  }

  /// The effect of fallocate(2) on a range.
  package enum Allocation: Sendable {
    /// Room for `range`; the file grows unless it keeps its size.
    case preallocate(keepsSize: Bool)
    case punchHole
    case zero(keepsSize: Bool)
  }

  /// - Throws: `noSpace` where the disk has less room than asked for.
  package func allocate(_ handle: UInt64, _ range: Range<Int64>, _ allocation: Allocation) throws {
    collectMapped(range.lowerBound, Int64(range.count), of: handle)
    try locked {
      let file = try file(handle)
      guard file.canWrite else { throw SheafError(.badDescriptor) }
      try allow(.write, file)
      let (inode, draft) = (file.inode, file.draft)
      guard range.upperBound <= WorkingCopy.maximumSize else { throw SheafError(.tooLarge) }
      try requireContents(draft.working)
      let time = clock()
      if case .punchHole = allocation {
      } else {
        try requireRoom(for: Int64(range.count))
      }
      try clearPrivileges(of: inode, changedBy: draft.account, from: file.door)
      try beginSession(inode, draft, handle: handle, at: time)
      // As a write does, after a session that ended.
      let size = draft.working?.size ?? 0
      let within = min(range.lowerBound, size)..<min(range.upperBound, size)
      shareChunks(of: draft)
      let before = draft.unsavedBytes
      switch allocation {
      case .preallocate(let keepsSize):
        if !keepsSize, range.upperBound > size { try draft.working?.truncate(to: range.upperBound, from: self) }
      case .punchHole:
        if !within.isEmpty { try draft.working?.replace(within, with: [.hole(Int64(within.count))], from: self) }
      case .zero(let keepsSize):
        if !within.isEmpty { try draft.working?.replace(within, with: [.hole(Int64(within.count))], from: self) }
        if !keepsSize, range.upperBound > size { try draft.working?.truncate(to: range.upperBound, from: self) }
      }
      sessions.addUnsaved(draft.unsavedBytes - before)
      draft.session?.hasWrites = true
      file.hasUnflushed = true
      inode.row.mtime = time
      inode.row.ctime = time
      // Room alone, or zeros where there were none to change.
      if !draft.isChanged { try updateAttributes(inode.row, of: inode) }
      tell(.contents(inode.ino), of: draft, from: file.door)
    }
  }

  /// lseek(2) with SEEK_DATA or SEEK_HOLE; the end of the file is a hole.
  ///
  /// - Throws: `noSuchAddress` past the end, or where no data follows.
  package func seek(_ handle: UInt64, _ offset: Int64, hole: Bool) throws -> Int64 {
    try locked {
      let file = try file(handle)
      try allow(.read, file)
      let size = file.draft.working?.size ?? 0
      guard offset >= 0, offset < size else { throw SheafError(.noSuchAddress) }
      if let found = try file.draft.working?.next(hole: hole, at: offset, from: self) { return found }
      guard hole else { throw SheafError(.noSuchAddress) }
      return size
    }
  }

  /// copy_file_range(2): chunks are shared, no data is copied. Returns the bytes copied, 0 at the source's end.
  package func copy(
    from sourceHandle: UInt64, at offset: Int64, to target: UInt64, at targetOffset: Int64, count: Int64
  ) throws -> Int64 {
    collectMapped(targetOffset, count, of: target)
    if let source = locked({ files[sourceHandle]?.inode.ino }) { storeSpilled(source) }
    return try locked {
      let (from, to) = (try file(sourceHandle), try file(target))
      guard from.canRead, to.canWrite else { throw SheafError(.badDescriptor) }
      try allow(.read, from)
      try allow(.write, to)
      let (source, draft) = (from.draft, to.draft)
      let length = min(count, max(0, (source.working?.size ?? 0) - offset))
      guard length > 0 else { return 0 }
      guard targetOffset <= WorkingCopy.maximumSize - length else { throw SheafError(.tooLarge) }
      let range = offset..<(offset + length)
      let targetRange = targetOffset..<(targetOffset + length)
      guard source !== draft || !range.overlaps(targetRange) else { throw SheafError(.invalid) }
      try requireContents(source.working)
      try requireContents(draft.working)
      try storeChunks(of: from.inode, source)
      shareChunks(of: from.inode)
      shareChunks(of: draft)
      let extents = try source.working?.extents(of: range, from: self) ?? []
      try clearPrivileges(of: to.inode, changedBy: draft.account, from: to.door)
      let time = clock()
      try beginSession(to.inode, draft, handle: target, at: time)
      let before = draft.unsavedBytes
      if let size = draft.working?.size, size < targetRange.upperBound {
        try draft.working?.truncate(to: targetRange.upperBound, from: self)
      }
      try draft.working?.replace(targetRange, with: extents, from: self)
      sessions.addUnsaved(draft.unsavedBytes - before)
      draft.session?.hasWrites = true
      to.hasUnflushed = true
      to.inode.row.mtime = time
      to.inode.row.ctime = time
      if !to.isReceived { tell(.contents(to.inode.ino), of: draft, from: to.door) }
      if from.notesAccess { noteAccess(from.inode) }
      return length
    }
  }

  /// Gives an open file its length, and parts of stored contents, each at an offset. What is no part reads as zeros.
  func assemble(
    _ parts: [(offset: Int64, range: Range<Int64>)], of stored: StoredContent, size: Int64, in handle: UInt64
  ) throws {
    let file = try file(handle)
    guard file.canWrite else { throw SheafError(.badDescriptor) }
    let draft = file.draft
    try beginSession(file.inode, draft, handle: handle, at: clock())
    let before = draft.unsavedBytes
    try draft.working?.truncate(to: size, from: self)
    var source = WorkingCopy(stored)
    for (offset, range) in parts {
      let extents = try source.extents(of: range, from: self)
      try draft.working?.replace(offset..<(offset + Int64(range.count)), with: extents, from: self)
    }
    sessions.addUnsaved(draft.unsavedBytes - before)
    draft.session?.hasWrites = true
    file.hasUnflushed = true
  }

  // MARK: - The disk

  /// The answer of statfs(2), in bytes: the library's disk, less the reserve and the bytes that wait to be stored.
  package func space() -> (total: Int64, free: Int64, available: Int64) {
    let space = store.reserve.space()
    let unsaved = Int64(locked { sessions.unsavedBytes }) + store.working.liveBytes
    return (space.total, max(0, space.free - unsaved), max(0, store.availableBytes - unsaved))
  }
}
