import SheafStore

/// Freeing what was purged.
///
/// Rooms: `InodeTable`, `PurgedContents`, `VersionReaders`.
extension Library {
  /// Notes in a change that it purges something, whose contents ``freePurged()`` frees then.
  func notePurge(_ change: Change) throws {
    try change.rows.setSetting(PurgedContents.setting, 1)
    change.whenRecorded { [self] in purged.note() }
  }

  /// Frees what was purged, takes it out of what is searched, and gives its room back to the disk.
  ///
  /// Upkeep does it again for what a program still has open, once that is closed.
  ///
  /// - Throws: `corrupt` or `noSpace` where a pack still holds what was purged.
  func freePurged() throws {
    let (isHeld, count) = locked { (isPurgedHeld(), purged.count) }
    let swept = Result { try sweep(mustMend: true) }
    let forgotten = Result { try forgetPurgedContents() }
    try shrink()
    _ = try swept.get()
    try forgotten.get()
    if isHeld { return leaveToUpkeep() }
    try locked {
      guard purged.free(upTo: count) else { return }
      try makeChange(.sweep, freesSpace: true) { try $0.rows.setSetting(PurgedContents.setting, nil) }
    }
  }

  /// Runs a purge. If it ends early, upkeep frees what it has purged.
  func leavingRest<Value>(_ purge: () throws -> Value) rethrows -> Value {
    do {
      return try purge()
    } catch {
      if locked({ !purged.isFreed }) { leaveToUpkeep() }
      throw error
    }
  }

  /// Leaves what is purged to upkeep, which may have rested since the last change.
  private func leaveToUpkeep() {
    locked { purged.wait(true) }
    maintenance.wake(isChanged: false)
  }

  /// Whether what was purged is still to be freed, and whether nobody has any of it open.
  func purgedState() -> (isWaiting: Bool, canBeFreed: Bool) {
    purged.isWaiting ? (true, !isPurgedHeld()) : (false, false)
  }

  /// Frees what was purged and was open then; if that fails, the next process tries it again.
  func freeClosedPurged() throws {
    do {
      try freePurged()
    } catch {
      locked { purged.wait(false) }
      throw error
    }
  }

  private func isPurgedHeld() -> Bool {
    let isOpen = purged.isHeld { inodes[$0]?.openCount ?? 0 > 0 }
    // Which version they read is not known to them.
    return isOpen || !versionReaders.all.isEmpty
  }
}
