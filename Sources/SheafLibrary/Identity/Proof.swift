import SheafModel
import SheafStore

/// Finds out whether only its maker, or nobody at all, would miss a file (rules 2 and 6 of ``Identity``).
///
/// Rooms: `EditingSessions`, `Identity`, `LinkedPlaces`, `OpenFiles`.
extension Library {
  /// Whether a file was closed with contents, and its name is no temporary file's (rule 2 of ``Identity``).
  func isProved(_ inode: Inode, _ name: [UInt8]) -> Bool {
    guard isSaved(inode), let item = try? item(of: inode), !item.isQuiet else { return false }
    return !FileRole.looksPassing(name)
  }

  /// Whether contents of a file were closed: it was proved, or has some and is not being written.
  func isSaved(_ inode: Inode) -> Bool {
    guard inode.isRegular, let item = try? item(of: inode), item.version > 0 else { return false }
    return identity.wasProved(inode.ino) || inode.row.size > 0 && !isBeingWritten(inode)
  }

  /// Whether people miss a file that its maker alone wrote, if it goes (rules 2, 3 and 6 of ``Identity``).
  func isMissed(_ inode: Inode, _ name: [UInt8], _ time: Timestamp) -> Bool {
    if identity.wasProved(inode.ino) || isProved(inode, name) { return true }
    return hasStood(inode, name, time)
  }

  /// Whether contents have stood for two seconds under a name that only looks like a temporary file's.
  private func hasStood(_ inode: Inode, _ name: [UInt8], _ time: Timestamp) -> Bool {
    guard FileRole(name) == .document, inode.isRegular, let item = try? item(of: inode), !item.isQuiet else {
      return false
    }
    return item.version > 0 && identity.hasStood(inode.ino, at: time)
  }

  /// Notes that a file has stood under a name, before it may get another one.
  func noteStanding(_ inode: Inode, _ name: [UInt8], _ time: Timestamp) {
    if !identity.wasProved(inode.ino), hasStood(inode, name, time) { identity.prove(inode.ino) }
  }

  /// Notes that what was written through an open file was closed (rules 2 and 6 of ``Identity``).
  func noteProof(of file: OpenFile) {
    guard !identity.isEmpty else { return }
    let size = file.draft.working?.size ?? file.inode.row.size
    // The close of one that changed nothing saves what was written through others.
    let isWriter = file.hasUnflushed || file.truncates
    noteProof(file.inode, size: size, by: isWriter ? (file.process, file.draft.account) : nil)
  }

  /// Notes that contents of `size` bytes were closed, or synced where `saver` is nil.
  func noteProof(_ inode: Inode, size: Int64, by saver: (process: Int32, account: Int64)?) {
    guard size > 0, !identity.isEmpty else { return }
    identity.saved(inode.ino, by: saver, under: inode.row.name, at: clock())
  }

  /// Whether a file is own, and nobody but its maker wrote anything to it (rule 2 of ``Identity``).
  func isOwnAlone(_ inode: Inode, _ caller: Caller, _ time: Timestamp) -> Bool {
    identity.isOwn(inode.ino, of: caller.process, at: time) && !holdsOthersWork(inode, caller)
  }

  /// Whether another program than that of `caller` wrote to a file, or may be about to.
  private func holdsOthersWork(_ inode: Inode, _ caller: Caller) -> Bool {
    if identity.holdsOthersWork(inode.ino) || hasOthersChanges(inode, caller) { return true }
    guard inode.writerCount > 0 else { return false }
    // Another program has yet to close the file, to which it may have written.
    return files.all.contains { file in
      file.inode === inode && file.canWrite && file.process != caller.process
    }
  }

  /// Whether another account than that of `caller` is changing the file.
  func hasOthersChanges(_ inode: Inode, _ caller: Caller) -> Bool {
    let account = caller.account ?? inode.row.owner
    return inode.drafts.contains { $0.account != account && ($0.session != nil || $0.isChanged) }
  }

  /// Whether someone has yet to close the file after writing to it, or has yet to write to a new one.
  func isBeingWritten(_ inode: Inode) -> Bool {
    let sessions = inode.drafts.compactMap(\.session).filter { !$0.writers.isEmpty }
    if !sessions.isEmpty { return sessions.contains { !$0.isClosed } }
    return inode.writerCount > 0 && ((try? item(of: inode))?.version ?? 0) == 0
  }

  /// Whether a file goes for good with its last name (rules 6 and 13 of ``Identity``).
  func leavesNoTrace(_ inode: Inode, _ name: [UInt8], _ caller: Caller, _ time: Timestamp) -> Bool {
    guard inode.row.item != nil else { return true }
    guard let item = try? item(of: inode) else { return false }
    if (try? isPlain(item, inode)) ?? false { return true }
    let isChanged = item.lastVersion > 1 || inode.hasSession
    if FileRole(name) == .scratch, !identity.wasProved(inode.ino) {
      if identity.isRemainder(inode.ino), isChanged { return false }
      return identity.isMaker(caller.process, of: inode.ino) && !holdsOthersWork(inode, caller)
    }
    // It was linked to a document's name, and another program was faster to take that.
    if linkedPlaces[inode.ino] != nil { return false }
    // Bytes that someone wrote to a backup since it was separated from its document are nowhere else.
    if item.isQuiet, isChanged { return false }
    return !isMissed(inode, name, time) && isOwnAlone(inode, caller, time)
  }
}
