import SheafModel
import SheafStore

/// Events whose meaning is still open, in the order of the actions (docs/REFERENCE.md, "Events").
struct EventLog {
  struct Pending {
    /// Without its data where those are in the store alone.
    var row: EventRow
    /// The program that did it; 0 where none did.
    let process: Int32
    /// The inode of the item at the time of the action.
    let ino: Int64
    /// The decoded `row.data`; nil for a row that a crash left, and if it is only in the store.
    var data: EventData?
    /// The folder that a deletion was from; 0 for other actions.
    var folder: Int64 = 0
    /// How many other items a deletion names (``EventData/contentCount``).
    var contentCount: Int64 = 0

    var isInStore: Bool { row.data.isEmpty }
  }

  /// Events kept open at most; the oldest are settled early. So many documents of one folder can be deleted at once and
  /// be told as one thing; those of a folder that went already do not count any more.
  static let limit = 65_536
  /// Deletions kept in memory with all their data; the data of further ones is read from the store.
  private static let memoryLimit = 1024
  /// Deletions by one program, none a ``grace`` after the one before, from which on they wait for its end.
  private static let burstLength = 1000
  /// Nanoseconds for which they wait though their program ended: a script may go on with what it made (rule 14 of
  /// ``Identity``).
  static let grace: Int64 = 1_000_000_000

  /// Entries that are cleared with each event that comes.
  private static let clearedByAppend = 16

  private struct AbsorbedDeletions {
    /// That of the folder.
    let event: Int64
    /// The number of the last of them.
    let last: Int64
    /// Those that are not cleared yet.
    var numbers: ArraySlice<Int64>
  }

  /// An event behind a reference: a table of so large values would take long whenever it grows.
  private final class Entry {
    let event: Pending

    init(_ event: Pending) { self.event = event }
  }

  private var events = SegmentedDictionary<Int64, Entry>()
  private var numbersByItem = SegmentedDictionary<Int64, [Int64]>()
  private var deletions: [FolderDeletions.Key: FolderDeletions] = [:]
  /// Deletions that the event of a folder's deletion names by now, and whose entries here are not all cleared.
  private var absorbed: [FolderDeletions.Key: AbsorbedDeletions] = [:]
  /// Their keys, the one last that is being cleared.
  private var absorbedKeys: [FolderDeletions.Key] = []
  /// How many entries are theirs.
  private var absorbedCount = 0
  /// The deletions that pending ones of folders name.
  private var absorptions = Absorptions()
  /// By program: how many deletions came in a row, and when the last of them was.
  private var bursts: [Int32: (count: Int, last: Timestamp)] = [:]
  private var order = AscendingNumbers()
  /// Events whose action goes on, and which are not settled before its end.
  private var growing: Set<Int64> = []
  /// Programs whose deletions are being undone, with how often.
  private var holding: [Int32: Int] = [:]

  var isEmpty: Bool { count == 0 }
  var count: Int { events.count - absorbedCount }

  /// All, oldest first.
  var pending: some Sequence<Pending> { order.all.lazy.compactMap(waiting) }

  /// Looks at some entries with a number past `number`, oldest first: those that wait among them, and the number of the
  /// last of all, from which to go on; nil where there are no more.
  ///
  /// - Parameter limit: Entries that are looked at. Very many in a row may wait no longer.
  func pending(after number: Int64, looking limit: Int) -> (waiting: [Pending], last: Int64?) {
    let numbers = Array(order.after(number).prefix(limit))
    return (numbers.compactMap(waiting), numbers.count < limit ? nil : numbers.last)
  }

  private func waiting(_ number: Int64) -> Pending? { events[number].flatMap { isAbsorbed($0.event) ? nil : $0.event } }

  func of(_ item: Int64) -> [Pending] { numbersByItem[item]?.compactMap(waiting) ?? [] }

  func has(_ item: Int64) -> Bool { numbersByItem[item]?.contains { waiting($0) != nil } ?? false }

  func has(_ item: Int64, type: EventType) -> Bool { of(item).contains { $0.row.type == type.rawValue } }

  /// Deletions from a folder by a program; nil where there are none.
  func deletions(_ key: FolderDeletions.Key) -> FolderDeletions? { key.process == 0 ? nil : deletions[key] }

  /// The oldest of them.
  func oldest(_ limit: Int, of deletions: FolderDeletions) -> some Sequence<Pending> {
    deletions.numbers.lazy.compactMap(waiting).prefix(limit)
  }

  /// Whether the event of a folder's deletion names that of an item, and nobody has seen it yet.
  mutating func isAbsorbed(_ item: Int64) -> Bool { absorber(of: item) != nil }

  /// The deletion of a folder that names an item's.
  mutating func absorber(of item: Int64) -> Int64? {
    var first = absorptions.event(for: item)
    if !absorbed.isEmpty {
      for number in numbersByItem[item] ?? [] {
        if let event = events[number]?.event, isAbsorbed(event), let list = absorbed[Self.key(event)] {
          first = list.event
        }
      }
    }
    while let next = first {
      let root = absorptions.root(of: next)
      guard let event = events[root]?.event else { return nil }
      guard isAbsorbed(event) else { return root }
      first = absorbed[Self.key(event)]?.event
    }
    return nil
  }

  /// Whether a deletion is one of very many that its program is still at: most likely of one `rm -r`, which its last
  /// one will tell of.
  func isInBurst(_ event: Pending, at time: Timestamp) -> Bool {
    guard event.folder != 0, let burst = bursts[event.process], burst.count >= Self.burstLength else { return false }
    return time.nanoseconds - burst.last.nanoseconds < Self.grace
  }

  /// - Parameter absorbed: deletions that wait, and of which this one tells from now on.
  mutating func append(_ event: Pending, absorbing absorbed: FolderDeletions.Key? = nil) {
    var event = event
    if let absorbed { absorb(absorbed, into: event.row.number) }
    if event.folder != 0 {
      deletions[Self.key(event), default: FolderDeletions()].append(
        event.row.number, contentCount: event.contentCount)
      noteBurst(event)
      if events.count >= Self.memoryLimit { (event.row.data, event.data) = ("", nil) }
    }
    events[event.row.number] = Entry(event)
    numbersByItem.update(event.row.item, default: []) { $0.append(event.row.number) }
    order.append(event.row.number)
    clear(Self.clearedByAppend)
  }

  private static func key(_ event: Pending) -> FolderDeletions.Key {
    .init(folder: event.folder, process: event.process, share: event.row.share?.share)
  }

  // MARK: - Deletions that a folder's tells of

  /// Makes `event` name pending deletions; if it is 0, they have no event.
  ///
  /// However many they are, that costs the same: their entries are cleared some at a time (``clear(_:)``).
  mutating func absorb(_ key: FolderDeletions.Key, into event: Int64) {
    guard let list = deletions.removeValue(forKey: key), let last = list.numbers.last else { return }
    // The folder is back and went again.
    if absorbed[key] != nil { clear(.max) }
    absorbed[key] = AbsorbedDeletions(event: event, last: last, numbers: list.numbers[...])
    absorbedKeys.append(key)
    absorbedCount += list.count
  }

  private func isAbsorbed(_ event: Pending) -> Bool {
    guard !absorbed.isEmpty, event.folder != 0, let list = absorbed[Self.key(event)] else { return false }
    return event.row.number <= list.last
  }

  /// Clears entries of deletions that wait no longer, `limit` at most; returns whether there may be more.
  @discardableResult
  mutating func clear(_ limit: Int) -> Bool {
    var limit = limit
    while limit > 0, let key = absorbedKeys.last, let event = absorbed[key]?.event {
      let isHeardOf = events[event] == nil && !absorptions.wasAbsorbed(event)
      while limit > 0, let number = absorbed[key]?.numbers.popFirst() {
        guard let deletion = removeEntry(number) else { continue }
        limit -= 1
        absorbedCount -= 1
        if !isHeardOf { absorptions.absorb(.init(event: number, item: deletion.row.item), into: event) }
      }
      guard absorbed[key]?.numbers.isEmpty ?? true else { break }
      absorbed[key] = nil
      absorbedKeys.removeLast()
    }
    absorptions.clear(&limit)
    return !absorbedKeys.isEmpty || !absorptions.isClear
  }

  /// Makes an event wait for the end of its action.
  mutating func beginGrowing(_ number: Int64) { growing.insert(number) }

  mutating func endGrowing(_ numbers: [Int64]) { growing.subtract(numbers) }

  /// Makes the deletions by a program wait until they are undone.
  mutating func beginHolding(_ process: Int32) { holding[process, default: 0] += 1 }

  mutating func endHolding(_ process: Int32) {
    guard let count = holding[process] else { return }
    holding[process] = count > 1 ? count - 1 : nil
  }

  /// Whether an event is not settled yet, whatever is asked for.
  func isHeld(_ event: Pending) -> Bool {
    growing.contains(event.row.number) || !holding.isEmpty && event.folder != 0 && holding[event.process] != nil
  }

  /// Puts an event in the place of the one of its number.
  mutating func replace(_ event: Pending) {
    guard let former = events[event.row.number]?.event, !isAbsorbed(former) else { return }
    var event = event
    (event.folder, event.contentCount) = (former.folder, former.contentCount)
    events[event.row.number] = Entry(event)
  }

  private mutating func noteBurst(_ event: Pending) {
    let time = event.row.time
    var burst = bursts[event.process] ?? (0, time)
    if time.nanoseconds - burst.last.nanoseconds >= Self.grace { burst.count = 0 }
    bursts[event.process] = (burst.count + 1, time)
    if bursts.count > Self.memoryLimit {
      bursts = bursts.filter { time.nanoseconds - $0.value.last.nanoseconds < Self.grace }
    }
  }

  mutating func remove(_ numbers: some Collection<Int64>) {
    for number in numbers {
      absorptions.end(number)
      guard let event = removeEntry(number) else { continue }
      if isAbsorbed(event) { absorbedCount -= 1 } else { removeDeletion(event) }
    }
  }

  private mutating func removeEntry(_ number: Int64) -> Pending? {
    guard let event = events.removeValue(forKey: number)?.event else { return nil }
    order.remove(number)
    numbersByItem[event.row.item]?.removeAll { $0 == number }
    if numbersByItem[event.row.item]?.isEmpty ?? false { numbersByItem[event.row.item] = nil }
    return event
  }

  private mutating func removeDeletion(_ event: Pending) {
    guard event.folder != 0 else { return }
    let key = Self.key(event)
    deletions[key]?.remove(contentCount: event.contentCount)
    deletions[key]?.compact { [events] in events[$0] != nil }
    if deletions[key]?.count ?? 0 == 0 { deletions[key] = nil }
  }
}
