import SheafModel

/// A process that saves, and those of its process group that started it.
struct SavingProcess: Hashable {
  /// 0 where that is not one, or not known; -1 where several saved one version.
  let process: Int32
  /// The processes above it in its process group, the nearest first. A shell in which people type gives each command a
  /// group of its own (credentials(7)), so it is none of them, and nor is what started it.
  let ancestors: [Int32]
  /// Its process group (getpgid(2)).
  let group: Int32
  /// Its session (setsid(2)), which has the number of its first process; 0 where that is outside the PID namespace
  /// (pid_namespaces(7)), nil where it is not known.
  let session: Int32?

  static let unknown = SavingProcess(process: 0, ancestors: [], group: 0, session: nil)
  static let several = SavingProcess(process: -1, ancestors: [], group: 0, session: nil)

  /// Processes above one that count: a script's shell starts a program by others (`sh -c`, make).
  private static let depth = 4

  /// - Parameter process: One that is in a system call now, so that it has a parent.
  init(_ process: Int32) {
    let group = Caller.group(of: process) ?? 0
    var ancestors: [Int32] = []
    var next = process
    while ancestors.count < Self.depth, let parent = Caller.parent(of: next), parent > 1,
      Caller.group(of: parent) == group
    {
      ancestors.append(parent)
      next = parent
    }
    self.init(process: process, ancestors: ancestors, group: group, session: Caller.session(of: process))
  }

  init(process: Int32, ancestors: [Int32], group: Int32, session: Int32?) {
    (self.process, self.ancestors, self.group, self.session) = (process, ancestors, group, session)
  }

  /// Whether it goes on with what another one did that has ended: one process started both in the same way, as a
  /// script's shell does one after the other, and what that had started the former one by has ended, too.
  ///
  /// What a session's first process started by others counts for none, since people type their commands there; where
  /// that process is outside, the same holds for every other one.
  ///
  /// - Parameter lives: Whether a process has not ended.
  func follows(_ other: SavingProcess, _ lives: (Int32) -> Bool) -> Bool {
    guard let session, session == other.session, group == other.group, !lives(other.process) else { return false }
    for (index, (own, former)) in zip(ancestors, other.ancestors).enumerated() {
      if own == former { return index == 0 || session != 0 && own != session }
      if lives(former) { return false }
    }
    return false
  }
}

/// Saves that follow each other faster than a person saves, and which of their versions nobody wants.
///
/// A series is the saves of one process to one document, each within a second of the one before. If the process has
/// ended, another one that was started in the same way goes on with it, as a script's programs do one after the other.
/// So a person who saves what a program or a script is rewriting makes a series of their own. Of a series these stay: the
/// first ten, the last, and after the first ten one a minute. The others are surplus. A series that begins within a
/// minute of one of ten saves or more has no first ten of its own: a program on a busy machine pauses, too. What several
/// processes saved in one version is in no series, nor is what a process saved that is not known, as one outside the PID
/// namespace.
struct RapidSaves {
  /// A save whose version is ended.
  struct Save: Hashable {
    let item: Int64
    /// Of the version.
    var number: Int64
    let time: Timestamp
    let author: Int64
    let by: SavingProcess
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

    /// - Parameter former: One of the same program, just before.
    init(_ save: Save, after former: Series?) {
      (last, count, kept) = (save, former?.hasItsFirst ?? false ? RapidSaves.first : 1, save.time)
    }

    /// Whether its first ten, or those of one before it, were kept.
    private var hasItsFirst: Bool { count >= RapidSaves.first }

    /// Whether a save is of the same process.
    func isContinued(by save: Save) -> Bool {
      last.by.process == save.by.process && save.by.process > 0 && precedes(save)
    }

    /// Whether a save is of another process that goes on with it, since its own has ended.
    func isTakenOver(by save: Save, _ lives: (Int32) -> Bool) -> Bool {
      precedes(save) && save.by.follows(last.by, lives)
    }

    private func precedes(_ save: Save) -> Bool { last.author == save.author && save.number > last.number }

    /// Whether a save at this time may go on with it.
    func isOpen(at time: Timestamp) -> Bool { RapidSaves.isWithin(RapidSaves.gap, time, last.time) }

    /// Whether a later save at this time may depend on it.
    func counts(at time: Timestamp) -> Bool {
      RapidSaves.isWithin(hasItsFirst ? RapidSaves.interval : RapidSaves.gap, time, last.time)
    }

    /// Adds a save; returns the one before if it is surplus now.
    mutating func add(_ save: Save) -> Save? {
      let before = last
      let stays =
        count <= RapidSaves.first
        || !RapidSaves.isWithin(RapidSaves.interval, before.time, kept)
      if stays { kept = before.time }
      (last, count) = (save, count + 1)
      return stays ? nil : before
    }
  }

  /// By item; those alone on which later saves may depend.
  private var series: [Int64: [Series]] = [:]
  private var surplus: [Save] = []

  /// Whether a version may be surplus, or a series go on.
  var isEmpty: Bool { series.isEmpty && surplus.isEmpty }

  /// Notes a save that a program made.
  ///
  /// - Parameter lives: Whether a process has not ended.
  mutating func note(_ save: Save, lives: (Int32) -> Bool) {
    var known = (series[save.item] ?? []).filter { $0.counts(at: save.time) }
    let index =
      known.firstIndex { $0.isContinued(by: save) } ?? known.firstIndex { $0.isTakenOver(by: save, lives) }
    if let index, known[index].isOpen(at: save.time) {
      if let superseded = known[index].add(save) { surplus.append(superseded) }
    } else if let index {
      known[index] = Series(save, after: known[index])
    } else {
      known.append(Series(save, after: nil))
    }
    series[save.item] = known
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
      series = series.compactMapValues { known in
        let left = known.filter { $0.counts(at: time) }
        return left.isEmpty ? nil : left
      }
    }
    return taken
  }

  /// Puts back what was taken and could not be removed yet.
  mutating func putBack(_ saves: [Save]) { surplus.insert(contentsOf: saves, at: 0) }

  /// Forgets all: every save is to stay.
  mutating func removeAll() { self = RapidSaves() }

  private static func isWithin(_ span: Int64, _ time: Timestamp, _ last: Timestamp) -> Bool {
    (0..<span).contains(time.nanoseconds &- last.nanoseconds)
  }
}
