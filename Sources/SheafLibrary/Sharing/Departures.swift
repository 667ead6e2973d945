import SheafModel
import SheafStore

/// The items that programs delete from what others share; their number is bounded (rule 7 of docs/ARCHITECTURE.md).
struct Departures {
  /// A program that deletes something in a share of someone else.
  struct Program: Hashable {
    let share: Int64
    let account: Int64
    let process: Int32
  }

  /// Programs remembered at most.
  private static let limit = 1024

  /// Deletions that wait for their folder at most.
  private static let waitingLimit = 65_536

  private var departures: [Program: Departure] = [:]
  /// Deletions by people who left, from folders that somebody else has deleted: by folder.
  private var waiting: [Int64: [DeletedRow]] = [:]
  private var waitingCount = 0

  /// The items that a program has deleted without a pause until now; nil if it has deleted nothing, or paused.
  func departure(of program: Program, at time: Timestamp) -> Departure? {
    departures[program].flatMap { $0.isOver(at: time) ? nil : $0 }
  }

  /// The programs that have deleted something without a pause until now.
  func programs(at time: Timestamp) -> [Program] {
    departures.compactMap { $0.value.isOver(at: time) ? nil : $0.key }
  }

  /// Notes that a program deleted an inode that is among the deleted.
  mutating func note(_ ino: Int64, by program: Program, at time: Timestamp) {
    change(program, at: time) { $0.note(ino, at: time) }
  }

  /// Notes that a program took a name away that left no row behind.
  mutating func note(_ name: Departure.RemovedName, by program: Program, at time: Timestamp) {
    change(program, at: time) { $0.note(name, at: time) }
  }

  mutating func remove(_ program: Program) { departures[program] = nil }

  /// Keeps a deletion that cannot be undone before its folder is back.
  mutating func keepWaiting(_ row: DeletedRow) {
    if waitingCount >= Self.waitingLimit { (waiting, waitingCount) = ([:], 0) }
    waiting[row.parent, default: []].append(row)
    waitingCount += 1
  }

  /// Deletions that wait for a folder.
  func waiting(for folder: Int64) -> [DeletedRow] { waiting[folder] ?? [] }

  mutating func removeWaiting(for folder: Int64) {
    waitingCount -= waiting.removeValue(forKey: folder)?.count ?? 0
  }

  private mutating func change(_ program: Program, at time: Timestamp, _ body: (inout Departure) -> Void) {
    // In place: it may have very much in it.
    if let index = departures.index(forKey: program), !departures.values[index].isOver(at: time) {
      return body(&departures.values[index])
    }
    if departures[program] == nil, departures.count >= Self.limit {
      departures = departures.filter { !$0.value.isOver(at: time) }
      if departures.count >= Self.limit { departures = [:] }
    }
    var departure = Departure(at: time)
    body(&departure)
    departures[program] = departure
  }
}
