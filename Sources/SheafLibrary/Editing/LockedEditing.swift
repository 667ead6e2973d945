import SheafModel
import SheafStore

/// What a program writes while it holds a lock (flock(2), fcntl(2)) is there for whoever has the lock next.
///
/// Each account has a draft of its own, and programs that lock a file, such as databases, count on seeing everything that
/// was written under the lock before. They may write other files than the one that they lock, so this is about all that
/// a program writes in a share.
///
/// Rooms: `Doors`, `EditingSessions`, `InodeTable`, `OpenFiles`.
extension Library {
  /// Checks that an open file may be locked: everyone who may read it may lock it.
  ///
  /// - Returns: whether other accounts have mounts, so that what a lock is about may be theirs, too.
  /// - Throws: `accessDenied`.
  package func permitLock(_ handle: UInt64) throws -> Bool {
    try locked {
      guard let file = files[handle] else { return false }
      try allow(.read, file)
      return hasOthers(than: file.account)
    }
  }

  private func hasOthers(than account: Int64?) -> Bool { doors.accounts.contains { $0 != account } }

  /// Saves what a program wrote in shares, before it frees or weakens a lock.
  ///
  /// - Parameters:
  ///   - account: The account of its mount.
  ///   - thread: The one that asks.
  package func saveBeforeUnlocking(_ account: Int64, thread: Int32) {
    let written = locked {
      hasOthers(than: account) ? sessions.inodes.filter { isWritten($0, by: account, thread: thread) }.map(\.ino) : []
    }
    for ino in written {
      do {
        try makeVersionsInSteps(ino)
        try locked {
          guard let inode = inodes[ino], isWritten(inode, by: account, thread: thread) else { return }
          try makeVersion(inode, inode.draft(of: account), cause: .autosave)
        }
      } catch {
        // Autosave tries again, and close(2) tells.
        noteFailure(error)
      }
    }
  }

  /// Whether a program has written to a document of a share what is not saved yet.
  private func isWritten(_ inode: Inode, by account: Int64, thread: Int32) -> Bool {
    guard !inode.isOrphan, let session = inode.drafts.first(where: { $0.account == account })?.session,
      session.dirtySince != nil, let file = session.lastWriter.flatMap({ files[$0] }),
      thread == 0 || file.thread == thread || file.process == Caller.process(of: thread)
    else { return false }
    return (try? share(of: inode)) != nil
  }

  /// Shows an account what others saved of documents that it has open to write, once it has a lock. What it has not saved
  /// itself stays.
  package func showSavedAfterLocking(_ account: Int64) {
    locked {
      for inode in Array(sessions.inodes) where !inode.isOrphan {
        if let draft = inode.drafts.first(where: { $0.account == account }) { showSaved(in: inode, draft) }
      }
    }
  }
}
