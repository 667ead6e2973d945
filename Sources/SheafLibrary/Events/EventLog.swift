import SheafModel
import SheafStore

/// Events whose meaning is still open, in the order of the deeds (CONTRACT.md, "Events").
struct EventLog {
  struct Pending {
    /// Without its data where those are in the store alone.
    var row: EventRow
    /// The program that did it; 0 where none did.
    let process: Int32
    /// The inode of the item at the time of the deed.
    let ino: Int64
    /// What `row.data` says; nil for what a crash left, and where that is in the store alone.
    var data: EventData?
    /// The folder that a deletion was from; 0 for other deeds.
    var folder: Int64 = 0
    /// How much else a deletion tells of (``EventData/contentCount``).
    var contentCount: Int64 = 0

    var isInStore: Bool { row.data.isEmpty }
  }

  /// Events kept open at most; the oldest are settled early. So many documents of one folder can be deleted at once and be
  /// told as one thing; those of a folder that went already do not count any more.
  static let limit = 65_536
  /// Deletions kept in memory with all that they say; what more say is read from the store.
  private static let memoryLimit = 1024
  /// Deletions by one program, none a ``grace`` after the one before, from which on they wait for its end.
  private static let sweepLength = 1000
  /// Nanoseconds for which they wait though their program ended: a script may go on with what it made (rule 14 of
  /// ``Identity``).
  static let grace: Int64 = 1_000_000_000

  private var events: [Int64: Pending] = [:]
  private var numbersByItem: [Int64: [Int64]] = [:]
  private var deletionsByFolder: [Int64: [Int64]] = [:]
  /// The deletions that open ones of folders tell of.
  private var absorptions = Absorptions()
  /// By program: how many deletions came in a row, and when the last of them was.
  private var sweeps: [Int32: (count: Int, last: Timestamp)] = [:]
  /// Numbers in ascending order, with those that are gone among them.
  private var order: [Int64] = []
  /// Events whose deed goes on, and which are not settled before its end.
  private var growing: Set<Int64> = []
  /// Programs whose deletions are being undone, with how often.
  private var holding: [Int32: Int] = [:]

  var isEmpty: Bool { events.isEmpty }
  var count: Int { events.count }

  /// All, oldest first.
  var pending: some Sequence<Pending> { order.lazy.compactMap { events[$0] } }

  func of(_ item: Int64) -> [Pending] { numbersByItem[item]?.compactMap { events[$0] } ?? [] }

  func has(_ item: Int64) -> Bool { numbersByItem[item] != nil }

  func has(_ item: Int64, type: EventType) -> Bool { of(item).contains { $0.row.type == type.rawValue } }

  /// Deletions from a folder by a program, oldest first.
  func deletions(from folder: Int64, by process: Int32) -> [Pending] {
    guard process != 0 else { return [] }
    return deletionsByFolder[folder]?.compactMap { events[$0] }.filter { $0.process == process } ?? []
  }

  /// Whether the deletion of an item is told by that of a folder, and nobody has heard of it yet.
  func isAbsorbed(_ item: Int64) -> Bool { absorptions.contains(item) }

  /// The deletion of a folder that tells of an item's.
  mutating func absorber(of item: Int64) -> Int64? { absorptions.event(for: item) }

  /// Whether a deletion is one of very many that its program is still at: most likely of one `rm -r`, which its last one
  /// will tell of.
  func isOfSweep(_ event: Pending, at time: Timestamp) -> Bool {
    guard event.folder != 0, let sweep = sweeps[event.process], sweep.count >= Self.sweepLength else { return false }
    return time.nanoseconds - sweep.last.nanoseconds < Self.grace
  }

  /// - Parameter absorbed: deletions that wait, and of which this one tells from now on.
  mutating func append(_ event: Pending, absorbing absorbed: [Int64] = []) {
    var event = event
    let deletions = absorbed.compactMap { number in
      events[number].map { Absorptions.Deletion(event: number, item: $0.row.item) }
    }
    absorptions.take(deletions, into: event.row.number)
    drop(absorbed)
    if event.folder != 0 {
      deletionsByFolder[event.folder, default: []].append(event.row.number)
      noteSweep(event)
      if events.count >= Self.memoryLimit { (event.row.data, event.data) = ("", nil) }
    }
    events[event.row.number] = event
    numbersByItem[event.row.item, default: []].append(event.row.number)
    order.append(event.row.number)
  }

  /// Has an event wait for the end of its deed.
  mutating func beginGrowing(_ number: Int64) { growing.insert(number) }

  mutating func endGrowing(_ numbers: [Int64]) { growing.subtract(numbers) }

  /// Has the deletions by a program wait for being undone.
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
    if events[event.row.number] != nil { events[event.row.number] = event }
  }

  private mutating func noteSweep(_ event: Pending) {
    let time = event.row.time
    var sweep = sweeps[event.process] ?? (0, time)
    if time.nanoseconds - sweep.last.nanoseconds >= Self.grace { sweep.count = 0 }
    sweeps[event.process] = (sweep.count + 1, time)
    if sweeps.count > Self.memoryLimit {
      sweeps = sweeps.filter { time.nanoseconds - $0.value.last.nanoseconds < Self.grace }
    }
  }

  mutating func remove(_ numbers: some Collection<Int64>) {
    for number in numbers { absorptions.forget(number) }
    drop(numbers)
  }

  private mutating func drop(_ numbers: some Collection<Int64>) {
    var folders: Set<Int64> = []
    for number in numbers {
      guard let event = events.removeValue(forKey: number) else { continue }
      numbersByItem[event.row.item]?.removeAll { $0 == number }
      if numbersByItem[event.row.item]?.isEmpty ?? false { numbersByItem[event.row.item] = nil }
      guard event.folder != 0 else { continue }
      folders.insert(event.folder)
    }
    for folder in folders {
      deletionsByFolder[folder]?.removeAll { events[$0] == nil }
      if deletionsByFolder[folder]?.isEmpty ?? false { deletionsByFolder[folder] = nil }
    }
    if order.count > 2 * events.count + 64 { order.removeAll { events[$0] == nil } }
  }
}
