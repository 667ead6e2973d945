import SheafStore

/// When the upkeep thread runs: every quarter of a second while there is something to do, never while there is not.
// Sendable: everything that changes is touched only with the worker's lock held.
final class MaintenanceSchedule: @unchecked Sendable {
  /// The work of a round.
  enum Round {
    case everything
    /// Versions that wait to be ended, whose events others wait for.
    case sessions
  }

  private let worker = Worker()
  private var isBusy = true
  private var nextRound = Moment.past
  private var sessionsDue: Moment?
  private var nextSync = Moment.past
  /// Nil while nothing is tidied.
  private var nextTidying: Moment?
  /// Whether the thread runs for ``nextTidying`` though there is nothing else to do.
  private var isTidyingAwaited = false
  private var isTidying = false
  /// Whether there is much that nothing refers to any more, and from when on that may be freed.
  private var isSweepWanted = false
  private var nextSweep = Moment.past
  /// From when on the little may be freed that nothing refers to any more; nil if there is none.
  private var littleSweepDue: Moment?
  private var nextLittleSweep = Moment.past
  private var sweepBegan: Moment?
  /// When the sweep had found what to free.
  private var sweepFound: Moment?
  /// From when on the file may be shrunk, if sweeps freed much of it or the disk is nearly full.
  private var shrinkDue: Moment?
  private let shrinkDelay: Double
  private let littleSweepDelay: Double
  /// Whether there is an index of contents, whether it may be behind, and from when on it may be brought up to date.
  private var hasIndex = false
  private var isIndexBehind = false
  private var nextIndexing = Moment.past
  private var indexingBegan: Moment?

  /// Seconds between rounds, and between syncs: a closed document survives power loss 5 s later.
  private static let interval = 0.25
  private static let syncInterval = 2.0
  /// Seconds that a version waits for the next transaction to end it; while documents are made one comes sooner.
  private static let sessionDelay = 0.01
  /// Seconds between two tidyings.
  private static let tidyInterval = 4 * 3600.0
  /// Seconds from one sweep to the next: twenty times what it took to look at all that there is. The more there is to
  /// free, the more was saved, so that the time for freeing does not count.
  private static let sweepIntervals = 0.1...60
  private static let sweepShare = 20.0
  /// The same for a sweep for little: where there is much to look at, that waits for longer.
  private static let littleSweepShare = 200.0
  /// The same for the index of contents, for which all documents are looked at.
  private static let indexIntervals = 2.0...300
  /// Seconds that a library was in use before it is tidied: people who open it have something else to do first.
  private static let tidyDelay = 300.0

  /// - Parameters:
  ///   - shrinkDelay: Seconds without a sweep after which what the last one freed counts as left over.
  ///   - littleSweepDelay: Seconds for which the little that nothing refers to any more may stay.
  init(shrinkDelay: Double = 10, littleSweepDelay: Double = 60) {
    (self.shrinkDelay, self.littleSweepDelay) = (shrinkDelay, littleSweepDelay)
  }

  /// Starts the thread, which ends with `body`: that goes on for as long as ``wait()`` has rounds.
  func start(_ body: @escaping @Sendable () -> Void) { worker.start("sheaf-upkeep", body) }

  /// Waits for the next round; nil once stopped.
  func wait() -> Round? {
    worker.wait {
      let now = Moment.now
      let planned = [isTidyingAwaited ? nextTidying : nil, shrinkDue, littleSweepDue].compactMap(\.self).min()
      if let planned, now >= planned { isBusy = true }
      if isBusy, now >= nextRound {
        nextRound = now.after(seconds: Self.interval)
        sessionsDue = nil
        // Later changes may be too late for this round.
        isBusy = false
        return .work(.everything)
      }
      if let due = sessionsDue, now >= due {
        sessionsDue = nil
        return .work(.sessions)
      }
      if isBusy { return .pause(until: min(nextRound, sessionsDue ?? nextRound)) }
      if let due = sessionsDue ?? planned { return .pause(until: due) }
      return .sleep
    }
  }

  /// Wakes the thread if it rests: there is something to do.
  ///
  /// - Parameter isChanged: Whether something changed that can be searched.
  func wake(isChanged: Bool = true) {
    worker.change {
      let rested = !isBusy
      isBusy = true
      if isChanged { isIndexBehind = hasIndex }
      return rested
    }
  }

  /// Makes the thread end versions soon.
  func endSessionsSoon() {
    worker.change {
      guard sessionsDue == nil else { return false }
      sessionsDue = .now.after(seconds: Self.sessionDelay)
      return true
    }
  }

  /// Notes whether a round has left anything for another one.
  func note(busy: Bool) { worker.locked { isBusy = isBusy || busy || isIndexBehind } }

  /// Whether no round comes before something changes.
  var isResting: Bool { worker.locked { !isBusy && sessionsDue == nil } }

  func isTimeToSync() -> Bool {
    worker.locked {
      let now = Moment.now
      guard now >= nextSync else { return false }
      nextSync = now.after(seconds: Self.syncInterval)
      return true
    }
  }

  /// Plans the first tidying for when it is due after the last one, which an earlier process may have done: so a
  /// library that is never open for long is tidied, too. Until then nothing is tidied; a second call changes nothing.
  func planTidying(secondsSinceLast seconds: Int64) {
    worker.change {
      guard nextTidying == nil else { return false }
      nextTidying = .now.after(seconds: Self.secondsToTidying(afterLast: seconds))
      isTidyingAwaited = true
      return true
    }
  }

  /// Whether the library is tidied by itself.
  var isTidyingPlanned: Bool { worker.locked { nextTidying != nil } }

  /// Seconds until a library that was just opened is to be tidied; at once, nearly, where the clock was put back since.
  static func secondsToTidying(afterLast seconds: Int64) -> Double {
    seconds < 0 ? tidyDelay : max(tidyDelay, tidyInterval - Double(seconds))
  }

  /// Whether to tidy now; it is going on then until ``endTidying()``.
  func isTimeToTidy() -> Bool {
    worker.locked {
      let now = Moment.now
      guard !worker.isStopped, !isTidying, let due = nextTidying, now >= due else { return false }
      nextTidying = now.after(seconds: Self.tidyInterval)
      isTidyingAwaited = false
      isTidying = true
      return true
    }
  }

  /// Asks for a sweep soon, of what nothing refers to any more.
  func sweepSoon() {
    worker.locked { isSweepWanted = true }
    wake()
  }

  /// Asks for a sweep in a while, of the little that nothing refers to any more.
  func sweepLater() {
    worker.change {
      guard littleSweepDue == nil else { return false }
      littleSweepDue = max(Moment.now.after(seconds: littleSweepDelay), nextLittleSweep)
      return true
    }
  }

  /// Whether to sweep now; it is going on then until ``endTidying()``.
  func isTimeToSweep() -> Bool {
    worker.locked {
      let now = Moment.now
      let isDue = isSweepWanted && now >= nextSweep || littleSweepDue.map { now >= $0 } ?? false
      guard isDue, !worker.isStopped, !isTidying else { return false }
      (sweepBegan, sweepFound) = (now, nil)
      (isSweepWanted, littleSweepDue) = (false, nil)
      isTidying = true
      return true
    }
  }

  /// Notes that the sweep has found what to free.
  func noteSearched() { worker.locked { sweepFound = sweepFound ?? .now } }

  /// Whether to give free space back to the disk now; it is going on then until ``endTidying()``.
  func isTimeToShrink() -> Bool {
    worker.locked {
      guard let due = shrinkDue, !isSweepWanted, !worker.isStopped, !isTidying, Moment.now >= due else { return false }
      shrinkDue = nil
      isTidying = true
      return true
    }
  }

  /// Asks for an index of contents, which is kept from now on, or for none.
  func keepIndex(_ isKept: Bool) {
    worker.locked {
      hasIndex = isKept
      isIndexBehind = isKept
      nextIndexing = .past
    }
    wake()
  }

  /// Whether to bring the index of contents up to date now; it is going on then until ``endTidying()``.
  func isTimeToIndex() -> Bool {
    worker.locked {
      let now = Moment.now
      guard isIndexBehind, !worker.isStopped, !isTidying, now >= nextIndexing else { return false }
      indexingBegan = now
      isIndexBehind = false
      isTidying = true
      return true
    }
  }

  func endTidying() {
    worker.change {
      isTidying = false
      if let began = indexingBegan {
        let now = Moment.now
        let pause = max(now.seconds(since: began) * Self.sweepShare, Self.indexIntervals.lowerBound)
        nextIndexing = now.after(seconds: min(pause, Self.indexIntervals.upperBound))
        indexingBegan = nil
      }
      if let began = sweepBegan {
        let now = Moment.now
        let search = (sweepFound ?? now).seconds(since: began)
        let pause = max(search * Self.sweepShare, Self.sweepIntervals.lowerBound)
        nextSweep = now.after(seconds: min(pause, Self.sweepIntervals.upperBound))
        nextLittleSweep = now.after(seconds: search * Self.littleSweepShare)
        // What was asked for meanwhile.
        littleSweepDue = littleSweepDue.map { max($0, nextLittleSweep) }
        sweepBegan = nil
        shrinkDue = now.after(seconds: shrinkDelay)
      }
      return true
    }
  }

  /// Whether the library is being closed, so that long work should end.
  var isStopping: Bool { worker.locked { worker.isStopped } }

  /// Returns when neither the thread nor a tidying does anything any more.
  func stop() { worker.stop(while: { isTidying }) }
}
