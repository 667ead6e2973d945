import SheafModel

/// Saves that follow each other faster than a person saves, and which of their versions nobody wants.
///
/// A series is the saves of one account to one document, each within a second of the one before. Of a series these stay:
/// the first ten, the last, and after the first ten one a minute. The others are surplus.
struct RapidSaves {
  /// A save whose version is ended.
  struct Save: Hashable {
    let item: Int64
    /// Of the version.
    let number: Int64
    let time: Timestamp
    let author: Int64
    /// Bytes of its contents.
    let size: Int64
    /// The newest event when it was noted: the event of the save is a later one.
    let event: Int64
  }

  /// Nanoseconds within which the next save of a series follows.
  static let gap: Int64 = 1_000_000_000
  /// Saves at the beginning of a series that all stay.
  static let first = 10
  /// Nanoseconds from a save that stays to the next one that does.
  static let interval: Int64 = 60_000_000_000

  private struct Series {
    var last: Save
    var count: Int
    /// When the last save was made that stays whatever follows.
    var kept: Timestamp
  }

  /// By item; those alone that may go on.
  private var series: [Int64: Series] = [:]
  private var surplus: [Save] = []

  /// Whether a version may be surplus, or a series go on.
  var isEmpty: Bool { series.isEmpty && surplus.isEmpty }

  /// Notes a save that a program made.
  mutating func note(_ save: Save) {
    guard var known = series[save.item], known.last.author == save.author, save.number > known.last.number,
      Self.follows(save.time, known.last.time)
    else {
      series[save.item] = Series(last: save, count: 1, kept: save.time)
      return
    }
    let last = known.last
    if known.count <= Self.first || !(0..<Self.interval).contains(last.time.nanoseconds &- known.kept.nanoseconds) {
      known.kept = last.time
    } else {
      surplus.append(last)
    }
    known.last = save
    known.count += 1
    series[save.item] = known
  }

  /// Notes that a person made a version by a command: later saves of programs are another series.
  mutating func end(_ item: Int64) { series[item] = nil }

  /// Takes the surplus of some documents, `limit` versions at most; forgets series that do not go on.
  mutating func takeSurplus(_ limit: Int, at time: Timestamp) -> [Save] {
    let taken = Array(surplus.prefix(limit))
    surplus.removeFirst(taken.count)
    if surplus.isEmpty { series = series.filter { Self.follows(time, $0.value.last.time) } }
    return taken
  }

  /// Puts back what was taken and could not be removed yet.
  mutating func putBack(_ saves: [Save]) { surplus.insert(contentsOf: saves, at: 0) }

  /// Forgets all: every save is to stay.
  mutating func removeAll() { self = RapidSaves() }

  private static func follows(_ time: Timestamp, _ last: Timestamp) -> Bool {
    (0..<gap).contains(time.nanoseconds &- last.nanoseconds)
  }
}
