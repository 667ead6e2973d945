/// Which pending event names which deletions: the event of a folder's deletion names those of its contents.
///
/// A folder's deletion takes over the lists of the deletions in it as a whole, so that each costs the same however deep
/// it is. Ended entries are cleared some at a time (``clear(_:)``).
struct Absorptions {
  /// By item, the event that absorbed its deletion first.
  private var events = SegmentedDictionary<Int64, Int64>()
  /// By absorbed event: the one that absorbed it, or one that absorbed that.
  private var absorbers = SegmentedDictionary<Int64, Int64>()
  /// By event: the deletions that it absorbed.
  private var absorbed: [Int64: [Deletion]] = [:]
  /// Events that wait no longer, and of which not all is cleared.
  private var ended: [Int64] = []

  struct Deletion {
    let event: Int64
    let item: Int64
  }

  /// The event that absorbed an item's deletion first; it may wait no longer.
  func event(for item: Int64) -> Int64? { events[item] }

  /// The event that names the items of `event` now: itself, unless it was absorbed.
  mutating func root(of event: Int64) -> Int64 {
    var event = event
    while let next = absorbers[event] {
      // The way is half as long next time.
      if let further = absorbers[next] { absorbers[event] = further }
      event = next
    }
    return event
  }

  func wasAbsorbed(_ event: Int64) -> Bool { absorbers[event] != nil }

  /// Makes `event` name a deletion, and the items that it named.
  mutating func absorb(_ deletion: Deletion, into event: Int64) {
    events[deletion.item] = event
    absorbers[deletion.event] = event
    absorbed[event, default: []].append(deletion)
  }

  /// Notes that an event waits no longer.
  mutating func end(_ event: Int64) {
    if absorbed[event] != nil { ended.append(event) }
  }

  /// Forgets what events told of that wait no longer, not more than `limit` deletions; takes from `limit` what it did.
  mutating func clear(_ limit: inout Int) {
    while limit > 0, let event = ended.last {
      guard let deletion = absorbed[event]?.popLast() else {
        absorbed[event] = nil
        ended.removeLast()
        continue
      }
      limit -= 1
      if events[deletion.item] == event { events[deletion.item] = nil }
      absorbers[deletion.event] = nil
      if absorbed[deletion.event] != nil { ended.append(deletion.event) }
    }
  }

  var isClear: Bool { ended.isEmpty }
}
