import SheafModel
import SheafStore

/// Making changes: each is one transaction, whatever rooms it spans.
///
/// Rooms: `LatestTime`.
extension Library {
  /// Makes one change in one transaction; what ``Change/whenRecorded(_:)`` was given happens if that succeeds.
  ///
  /// - Parameters:
  ///   - freesSpace: whether the operation may use the reserve when the disk is full, and `body` may run twice: it
  ///     changes nothing but what its change holds. Every other one is refused while the reserve cannot be held.
  ///   - caller: the caller that asked for it; the library itself if nobody did.
  ///   - time: that of the change; now where nil.
  func makeChange<Value>(
    _ step: DurableStep, freesSpace: Bool = false, by caller: Caller = .library, at time: Timestamp? = nil,
    _ body: (Change) throws -> Value
  ) throws -> Value {
    if freesSpace { try store.spareReserve(for: step) } else { try requireRoom(for: 0) }
    let time = time ?? clock()
    do {
      return try attempt(step, caller, time, body)
    } catch let error as SheafError where error.kind == .noSpace && freesSpace {
      let value = try store.withReleasedRoom { try attempt(step, caller, time, body) }
      store.reserve.establish()  // Before the log takes up the room of what comes next.
      return value
    }
  }

  /// - Throws: `noSpace` where `bytes` more would use up what freeing space needs.
  func requireRoom(for bytes: Int64) throws {
    guard store.reserve.establish(), store.hasRoom(for: bytes) else {
      sweepDiscarded()
      throw SheafError(.noSpace, subject: location.path)
    }
  }

  static let latestTimeSetting = "latestTime"

  private func attempt<Value>(
    _ step: DurableStep, _ caller: Caller, _ time: Timestamp, _ body: (Change) throws -> Value
  ) throws -> Value {
    var (change, absent): (Change?, AbsentContents?)
    do {
      let value = try store.write(step) { rows in
        let begun = Change(self, by: caller, at: time, rows)
        change = begun
        try endNotedSessions(begun)
        let value: Value
        do { value = try body(begun) } catch let error as AbsentContents {
          absent = error
          throw error
        }
        try begun.recordEndedNames()
        if let passed = latestTime.note(time) {
          try rows.setSetting(Self.latestTimeSetting, passed.nanoseconds)
          begun.whenRecorded { [self] in latestTime.noteRecorded(passed) }
        }
        return value
      }
      maintenance.wake()
      change?.finish()
      return value
    } catch {
      change?.undo()
      throw absent ?? error
    }
  }

  /// Reads, with the lock held: in the change that is being made, or outside of one.
  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value { try store.read(body) }
}
