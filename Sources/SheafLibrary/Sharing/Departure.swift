import SheafModel
import SheafStore

/// The items that a program has deleted, without a pause, from what someone else shares.
struct Departure {
  /// Of each kind as many are remembered at most.
  static let limit = 16_384

  /// When it deleted something first.
  let since: Timestamp
  /// When it deleted something last.
  private var last: Timestamp
  /// The latest time at which it deleted something: a clock may be put back.
  private(set) var latest: Timestamp
  /// The inodes that are among the deleted.
  private var deleted: Set<Int64> = []
  /// When it deleted the first item that was too much to remember: everything that its account has deleted since counts
  /// as its own.
  private var overflow: Timestamp?
  /// Removed names that leave nothing in the trash, in the order of removal: those of fifos and sockets, and of files
  /// that have other names.
  private(set) var removedNames: [RemovedName] = []

  init(at time: Timestamp) { (since, last, latest) = (time, time, time) }

  /// The items that an account has deleted since a time, with whatever program.
  init(ofAllSince time: Timestamp) { (since, last, latest, overflow) = (time, time, time, time) }

  /// A name that was taken away and left no row behind.
  enum RemovedName {
    /// One of several names of a file.
    case link(EntryRow)
    /// A fifo or socket.
    case special(InodeRow)
  }

  /// Whether its next deletions are another action, since everybody has seen the events of the earlier ones by now.
  func isOver(at time: Timestamp) -> Bool { time.nanoseconds - last.nanoseconds >= Identity.window }

  mutating func note(_ ino: Int64, at time: Timestamp) {
    noteTime(time)
    if deleted.count < Self.limit { deleted.insert(ino) } else if overflow == nil { overflow = time }
  }

  mutating func note(_ name: RemovedName, at time: Timestamp) {
    noteTime(time)
    if removedNames.count < Self.limit { removedNames.append(name) }
  }

  private mutating func noteTime(_ time: Timestamp) { (last, latest) = (time, max(latest, time)) }

  /// Whether something that its account deleted was deleted by it.
  func includes(_ row: DeletedRow) -> Bool {
    deleted.contains(row.ino) || overflow.map { row.time >= $0 } ?? false
  }
}
