/// Which waiting event tells of which deletions: that of a folder tells of those of what was in it.
///
/// A folder's deletion takes over as a whole what the deletions in it told of, so that each costs the same however deep it is.
struct Absorptions {
  /// By item, the event that took in its deletion first.
  private var events: [Int64: Int64] = [:]
  /// By event that was taken in itself: one that has it by now.
  private var successors: [Int64: Int64] = [:]
  /// By event: the deletions that it took in.
  private var taken: [Int64: [Deletion]] = [:]

  struct Deletion {
    let event: Int64
    let item: Int64
  }

  func contains(_ item: Int64) -> Bool { events[item] != nil }

  /// The event that tells of an item's deletion; nil where that has an event of its own, or none.
  mutating func event(for item: Int64) -> Int64? {
    guard var event = events[item] else { return nil }
    while let next = successors[event] {
      // The way is half as long next time.
      if let further = successors[next] { successors[event] = further }
      event = next
    }
    return event
  }

  /// Has `event` tell of deletions, and of what they told of.
  mutating func take(_ deletions: [Deletion], into event: Int64) {
    for deletion in deletions {
      events[deletion.item] = event
      successors[deletion.event] = event
    }
    if !deletions.isEmpty { taken[event, default: []] += deletions }
  }

  /// Forgets what an event tells of: it waits no longer.
  mutating func forget(_ event: Int64) {
    var open = [event]
    while let next = open.popLast() {
      for deletion in taken.removeValue(forKey: next) ?? [] {
        if events[deletion.item] == next { events[deletion.item] = nil }
        successors[deletion.event] = nil
        open.append(deletion.event)
      }
    }
  }
}
