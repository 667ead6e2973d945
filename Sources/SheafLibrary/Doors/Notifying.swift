import SheafModel

/// Telling the doors of a library what changed, each what its account sees.
///
/// Rooms: `Doors`, `InodeTable`, `OpenFiles`, `ShareBook`, `ShownEntries`, `TransferWatch`.
extension Library {
  /// Opens a door: calls `observer` with what changes by other doors; returns the door's number, for ``Caller/door``.
  ///
  /// The observer is called without the lock, and makes the request wait that made the changes.
  ///
  /// - Parameter account: the account whose door it is, which is told what that account sees; nil for all there is.
  package func observe(account: Int64?, _ observer: @escaping @Sendable ([LibraryNews]) -> Void) -> Int {
    locked {
      let door = doors.open(account: account, observer)
      if let account { noteSharedEntries(of: account) }
      return door
    }
  }

  /// Closes a door, and releases everything that is open by it.
  package func endObserving(_ door: Int) {
    locks.ended(door)
    let handles = locked {
      doors.close(door)
      return files.handles(of: door)
    }
    defer {
      // With the last door, nobody is left who could come back for a file without a name.
      locked { if doors.isEmpty { inodes.removeClosedOrphans() } }
    }
    for handle in handles {
      do {
        try release(handle)
      } catch {
        log.error("a document could not be saved at the end of its mount", metadata: ["error": "\(error)"])
      }
    }
  }

  // MARK: - Noting what is told

  /// Tells the doors of those who see it of a change that came by `door`, once the lock is free.
  func tell(_ change: LibraryChange, from door: Int) {
    noteSharedEntry(change)
    noteRules(change)
    transferWatch.note(change)
    guard doors.hasOthers(than: door) else { return }
    guard case .renamed(let inode, let place, _, _) = change, inode.place.folder != place.folder,
      let left = audience(of: inode.place), let reached = audience(of: place)
    else { return doors.notify(news(change), audience(of: change), from: door) }
    // People who see one of the two folders are told of that half.
    for (audience, half) in [
      (left.intersection(reached), change), (left.subtracting(reached), .removed(inode)),
      (reached.subtracting(left), .made(NamedInode(ino: inode.ino, mode: inode.mode, place: place))),
    ] where !audience.isEmpty {
      doors.notify(news(half), audience, from: door)
    }
  }

  /// Tells the other doors of the account that its draft changed: nobody else sees that before it is saved.
  func tell(_ change: LibraryChange, of draft: Draft, from door: Int) {
    if doors.areSeveral { doors.notify(news(change), [draft.account], from: door) }
  }

  /// Tells the door itself of a change that came by it, where its kernel cannot know of it.
  func tell(_ change: LibraryChange, back door: Int) {
    if doors.isOpen(door) { doors.notify(news(change), only: door) }
  }

  /// Tells the doors of the other accounts that a draft was saved.
  func tellSaved(_ inode: Inode, _ draft: Draft) {
    guard !shares.isEmpty, !doors.isEmpty, var audience = audience(of: .saved(inode.ino)) else { return }
    audience.remove(draft.account)
    if !audience.isEmpty { doors.notify(news(.saved(inode.ino)), audience, from: 0) }
  }

  /// Tells every door of an account of a change, except the one by which it came.
  func tell(_ change: LibraryChange, to account: Int64, from door: Int = 0) {
    if !doors.isEmpty { doors.notify(news(change), [account], from: door) }
  }

  /// Notes that an account may do more or less now: its doors look at that anew, and the end of the operation looks at
  /// what the account is writing.
  func tellAccess(of account: Int64) {
    doors.noteAccessChange(of: account)
    tell(.access, to: account)
  }

  /// Ends an operation for those whose access it changed: keeps what they wrote and may write no longer, and tells what
  /// they find in their `Shared`.
  func settleAccess() {
    // Access ends with entries that go, too.
    tellSharedEntries()
    for account in doors.takeAccessChanges() { rescueDrafts(of: account) }
    shownEntries.endChange()
  }

  /// Notes that an entry of somebody's `Shared` may have changed, where a name changed that a shared item had.
  private func noteSharedEntry(_ change: LibraryChange) {
    if shares.isEmpty { return }
    let places: [LibraryPlace]
    switch change {
    case .made(let inode), .removed(let inode): places = [inode.place]
    case .renamed(let inode, let place, _, _): places = [inode.place, place]
    default: return
    }
    for place in places {
      guard case .inode(let parent) = place.folder else { continue }
      for item in shares.roots(at: .init(parent: parent, name: place.name)) { shares.forgetListings(of: item) }
    }
  }

  // MARK: - News and audience

  /// A change with where its inode is.
  private func news(_ change: LibraryChange) -> LibraryNews {
    guard let ino = change.ino, let inode = inodes[ino], inode.row.nlink > 0 else {
      return LibraryNews(change: change, subject: nil)
    }
    return LibraryNews(change: change, subject: NamedInode(inode, inode.row.parent, inode.row.name))
  }

  /// The accounts that see what changed; nil where that cannot be told.
  private func audience(of change: LibraryChange) -> Set<Int64>? {
    switch change {
    case .made(let inode), .removed(let inode), .renamed(let inode, _, _, _): audience(of: inode.place)
    default: change.ino.flatMap(audience(of:))
    }
  }

  private func audience(of place: LibraryPlace) -> Set<Int64>? {
    guard case .inode(let parent) = place.folder else { return nil }
    return audience(of: parent)
  }

  private func audience(of ino: Int64) -> Set<Int64>? {
    guard let inode = inodes[ino] else { return nil }
    var audience: Set<Int64> = [inode.row.owner]
    if let share = try? share(of: inode) { audience.formUnion(share.members.map(\.account)) }
    return audience
  }
}
