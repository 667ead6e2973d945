import SheafModel
import SheafStore

/// One change of a library, handed along to all functions that take part in it: the rows that it writes, the chunks
/// that it stores, and the changes of memory once it is recorded, or if it fails.
///
/// Rules:
/// - Memory follows the rows: it changes in ``whenRecorded(_:)`` only, so that a change that fails leaves both as they
///   were. The few places that must change it before say in ``whenFailed(_:)`` how to put it back.
/// - A change that may use the reserve on a full disk can be made twice (``Library/makeChange(_:freesSpace:_:)``), each
///   time as another value: its body changes nothing but the state of this value.
final class Change {
  let library: Library
  /// The caller that makes it: the library itself if nobody asked for it.
  let caller: Caller
  /// When it is made.
  let time: Timestamp
  /// The rows of the library as they are in this change, to be read and written.
  let rows: StoreTransaction
  /// Chunks that it stored.
  private(set) var storedChunks: Set<Int64> = []
  /// Events that it logged and that wait: the ``EventLog`` has them once the change is recorded.
  private var loggedEvents: [EventLog.Pending] = []
  /// The numbers that had been given when it began.
  private let numbers: Numbers
  /// Names that it takes from items.
  private var endedNames: [(row: PastNameRow, isKept: Bool)] = []
  private var actions: [() -> Void] = []
  private var restorations: [() -> Void] = []

  init(_ library: Library, by caller: Caller, at time: Timestamp, _ rows: StoreTransaction) {
    self.library = library
    self.caller = caller
    self.time = time
    self.rows = rows
    numbers = library.numbers
    library.inodes.beginChange()
  }

  /// Runs `action`, which changes memory, once the change is recorded.
  func whenRecorded(_ action: @escaping () -> Void) { actions.append(action) }

  /// Runs `action`, which puts memory back, if the change fails, for the few places that must change it before.
  func whenFailed(_ action: @escaping () -> Void) { restorations.append(action) }

  func noteStored(_ chunk: Int64) { storedChunks.insert(chunk) }

  /// Notes that a chunk has another user beside this change, if it is one that this change stored.
  func noteFound(_ chunk: Int64) { storedChunks.remove(chunk) }

  func noteLogged(_ event: EventLog.Pending) { loggedEvents.append(event) }

  /// Events of an item that it logged and that wait.
  func logged(of item: Int64) -> [EventLog.Pending] { loggedEvents.filter { $0.row.item == item } }

  /// Notes that events are taken back that it may have logged.
  func removeLogged(_ numbers: Set<Int64>) { loggedEvents.removeAll { numbers.contains($0.row.number) } }

  /// Deletes the chunks that it stored: nothing is to refer to them.
  func deleteStored() throws {
    for chunk in storedChunks { try rows.deleteChunk(chunk) }
    storedChunks = []
  }

  /// When the names that it gives and takes were given and taken: what was done on another machine was done before. How
  /// long something is in the trash counts from when it came there.
  var placed: Timestamp { caller.deed.map { min($0.time, time) } ?? time }

  /// Notes that it takes a name from what `inode` is, for whoever looks at the folder as it was.
  ///
  /// - Parameter entry: the entry as it was before this change.
  func noteEnd(of entry: EntryRow, _ inode: Inode) throws {
    guard let number = inode.row.item, let item = try library.item(of: inode) else { return }
    let row = PastNameRow(
      parent: entry.parent, name: entry.name, until: placed, item: number, since: entry.since,
      actor: caller.actor(in: inode.row))
    // Plain files and temporary ones have no past, also if they are documents later.
    endedNames.append((row, isKept: !item.isQuiet || item.lastVersion > 0))
  }

  // MARK: - The end

  /// Writes the names that it ended, of the items that remain: an item that goes without a trace leaves none.
  func recordEndedNames() throws {
    // A name that lasted no time leaves no row.
    for (row, isKept) in endedNames where isKept && row.since < row.until {
      if try rows.item(row.item) != nil { try rows.insert(row) }
    }
    for (row, _) in endedNames { try library.markTaken(row.name, from: row.parent, by: row.actor, self) }
    endedNames = []
  }

  /// Brings memory up to the rows, which are recorded.
  func finish() {
    let actions = actions
    (self.actions, restorations) = ([], [])
    library.inodes.endChange(isRecorded: true)
    for action in actions { action() }
  }

  /// Puts memory back to what it was, since the rows are not recorded.
  func undo() {
    let restorations = restorations
    (actions, self.restorations) = ([], [])
    for action in restorations.reversed() { action() }
    library.shares.forgetListings()
    library.shares.forgetEntryTimes()
    library.inodes.endChange(isRecorded: false)
    library.numbers.takeBackEvents(since: numbers)
  }
}
