import SheafModel

/// Saves that follow each other faster than a person saves, and which of their versions nobody wants.
///
/// A series is the saves of one process to one document, each within a second of the one before. Processes that save once
/// each, one after the other as in a script's loop, make one series together. So a person who saves what a process is
/// rewriting makes a series of their own. Of a series these stay: the first ten, the last, and after the first ten one a
/// minute. The others are surplus.
struct RapidSaves {
  /// A save whose version is ended.
  struct Save: Hashable {
    let item: Int64
    /// Of the version.
    var number: Int64
    let time: Timestamp
    let author: Int64
    /// The process that saved; 0 where that is not one, or not known.
    let process: Int32
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

    init(_ save: Save) { (last, count, kept) = (save, 1, save.time) }

    /// Whether a save may go on with it.
    func goesOn(with save: Save) -> Bool {
      last.author == save.author && save.number > last.number && RapidSaves.follows(save.time, last.time)
    }

    /// Adds a save; returns the one before if it is surplus now.
    mutating func add(_ save: Save) -> Save? {
      let before = last
      let stays =
        count <= RapidSaves.first
        || !(0..<RapidSaves.interval).contains(before.time.nanoseconds &- kept.nanoseconds)
      if stays { kept = before.time }
      (last, count) = (save, count + 1)
      return stays ? nil : before
    }
  }

  /// The series of a document.
  private struct Document {
    /// Of processes that saved more than once.
    var processes: [Int32: Series] = [:]
    /// Of those that saved once each.
    var others: Series?
  }

  /// By item; those alone that may go on.
  private var series: [Int64: Document] = [:]
  private var surplus: [Save] = []

  /// Whether a version may be surplus, or a series go on.
  var isEmpty: Bool { series.isEmpty && surplus.isEmpty }

  /// Notes a save that a program made.
  mutating func note(_ save: Save) {
    var document = series[save.item] ?? Document()
    var superseded: Save?
    if let known = document.processes[save.process], known.goesOn(with: save) {
      superseded = document.processes[save.process]?.add(save)
    } else if var others = document.others, others.goesOn(with: save) {
      let isItsSecond = save.process != 0 && others.last.process == save.process
      superseded = others.add(save)
      if isItsSecond {
        (document.processes[save.process], document.others) = (others, nil)
      } else {
        document.others = others
      }
    } else {
      document.others = Series(save)
    }
    if let superseded { surplus.append(superseded) }
    series[save.item] = document
  }

  /// Notes that a person made a version by a command: later saves of programs are another series.
  mutating func end(_ item: Int64) { series[item] = nil }

  /// Notes that the versions of an item have other numbers; later saves are another series.
  ///
  /// - Parameter numbers: The numbers of the versions that are there, by those that they had.
  mutating func renumber(_ item: Int64, _ numbers: [Int64: Int64]) {
    end(item)
    surplus = surplus.compactMap { save in
      guard save.item == item else { return save }
      var save = save
      guard let number = numbers[save.number] else { return nil }
      save.number = number
      return save
    }
  }

  /// Takes the surplus of some documents, `limit` versions at most; forgets series that do not go on.
  mutating func takeSurplus(_ limit: Int, at time: Timestamp) -> [Save] {
    let taken = Array(surplus.prefix(limit))
    surplus.removeFirst(taken.count)
    if surplus.isEmpty {
      series = series.compactMapValues { document in
        var document = document
        document.processes = document.processes.filter { Self.follows(time, $0.value.last.time) }
        if let others = document.others, !Self.follows(time, others.last.time) { document.others = nil }
        return document.processes.isEmpty && document.others == nil ? nil : document
      }
    }
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
