import Foundation
package import SheafModel
import SheafStore

/// The work that the library does by itself: autosave, settling events, syncing, ending sessions that a crash left
/// open.
///
/// Rooms: `EditingSessions`, `EventLog`, `Identity`, `PurgedContents`, `RapidSaves`, `TransferWatch`,
/// `UnstoredAccessTimes`.
extension Library {
  /// CLOCK_REALTIME.
  @Sendable package static func systemClock() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  /// Ends the sessions that a crash cut off, and takes up what it left to be stored and told.
  func recoverFromCrash() throws {
    let open = try read { try $0.openVersions() }
    for event in try read({ try $0.pendingEvents() }) {
      let ino = try read { try $0.inode(item: event.item) }?.ino ?? 0
      events.append(.init(row: event, process: 0, ino: ino, data: nil))
    }
    if !open.isEmpty {
      try makeChange(.endSession, freesSpace: true) { change in
        for version in open {
          // Its cause is that of its last renewal: a version that a close stored is a save, whatever came then.
          try change.rows.closeVersion(version.item, version.number, cause: version.cause)
          guard let item = try change.rows.item(version.item), let inode = try change.rows.inode(item: version.item)
          else { continue }
          var ended = version
          ended.isOpen = false
          try logSave(ended, of: item, inode: inode, by: .unknown, change)
        }
      }
    }
    try recoverWorkingCopies()
  }

  /// Has upkeep thin history and empty the trash, as retention says, from now on.
  ///
  /// Whoever has a library open calls it once somebody may write to it. One that people only look into, such as a
  /// backup, stays as it is: what they look for may be what retention has passed since.
  package func planTidying() throws {
    let last = try store.read { try $0.numberSetting("thinned") ?? $0.numberSetting("created") }
    let now = clock()
    maintenance.planTidying(secondsSinceLast: now.seconds - Timestamp(nanoseconds: last ?? now.nanoseconds).seconds)
  }

  /// Starts the thread that looks after the library until ``close()``.
  func startMaintenance() {
    maintenance.start { [weak self, maintenance] in
      while let round = maintenance.wait() {
        guard let self else { return }
        if round == .sessions {
          self.attempt("ending sessions") { try self.locked { try self.settleSessionsWithRoom() } }
          continue
        }
        let busy = self.keepUp()
        if maintenance.isTimeToSync() {
          self.attempt("updating access times") { while try self.locked({ try self.updateAccessTimes() }) {} }
          self.attempt("storing what was read") { try self.storeReadings() }
          self.attempt("syncing") {
            try self.makeDurable()
            try self.store.checkpoint()
          }
          self.store.reserve.establish()
        }
        if maintenance.isTimeToTidy() {
          self.startThread("tidying") { try self.tidy() }
        } else if maintenance.isTimeToSweep() {
          self.startThread("sweeping") {
            guard self.locked({ self.purgedState().canBeFreed }) else {
              _ = try self.sweep()
              return
            }
            try self.freeClosedPurged()
          }
        } else if maintenance.isTimeToShrink() {
          self.startThread("shrinking") { if try self.store.shouldShrink { try self.shrink() } }
        } else if maintenance.isTimeToIndex() {
          self.startThread("indexing contents") { try self.updateSearchedContents() }
        }
        maintenance.note(busy: busy || !self.store.isDurable || self.hasUnstoredReadings)
      }
    }
    attempt("indexing contents") { if try locked({ try searchesContents() }) { maintenance.keepIndex(true) } }
    startStoring()
    if locked({ sessions.hasKept }) { storing.wake() }
  }

  /// Syncs the log, after which what nothing refers to any more in the working file can go.
  private func makeDurable() throws {
    let released = store.working.takeReleased()
    guard !released.isEmpty else { return try store.sync(log: true) }
    do {
      // The record may have been synced instead, and holds rows that refer to these places until all is in the log.
      try store.syncLog()
      store.working.free(released)
    } catch {
      store.working.putBack(released)
      throw error
    }
  }

  /// One round of upkeep: stores what has been unsaved for long, settles what is due, forgets what is old.
  ///
  /// - Returns: whether anything is left for a later round.
  @discardableResult
  package func keepUp() -> Bool {
    autosaveInSteps()
    // Some at a time: nobody waits for all that a program made.
    attempt("settling events") { try settleDueEventsInSteps() }
    attempt("giving what was transferred to its new owner") { try continueTransfer() }
    attempt("thinning rapid saves") { while try locked({ try thinRapidSaves() }) {} }
    expireIdentity()
    let waitsToDissolve = dissolveTemporaryFiles()
    let purged = locked { purgedState() }
    if purged.canBeFreed { maintenance.sweepSoon() }
    return locked {
      waitsToDissolve || purged.isWaiting || transferWatch.isPending || !sessions.isEmpty
        || !rapidSaves.isEmpty || !events.isEmpty || identity.expires || !accessTimes.isEmpty
    }
  }

  /// Tidies on a thread of its own, which nobody waits for but ``stopMaintenance()``.
  private func startThread(_ what: String, _ body: @escaping @Sendable () throws -> Void) {
    let thread = Thread { [self] in
      attempt(what, body)
      maintenance.endTidying()
    }
    thread.name = "sheaf-tidy"
    thread.stackSize = 1 << 20
    thread.start()
  }

  /// Frees what was purged while programs had it open that have ended since, before upkeep is over.
  func freePurgedAtEnd() {
    if locked({ purgedState().canBeFreed }) { attempt("freeing what was purged") { try freeClosedPurged() } }
  }

  /// Ends upkeep, and returns once its threads do nothing any more.
  func stopMaintenance() {
    storing.stop()
    maintenance.stop()
  }

  private func attempt(_ what: String, _ body: () throws -> Void) {
    do {
      try body()
    } catch {
      log.error("\(what) failed", metadata: ["error": "\(error)"])
    }
  }
}
