import Foundation
import Logging
package import SheafModel
import SheafStore
import Synchronization

/// A library in use: accounts, items, versions and events of one file, owned by this process while it is open.
///
/// Rules that never break (docs/ARCHITECTURE.md), kept here:
/// - 1. One change, one transaction: every operation does all its rows in one ``Change``, and changes memory only once
///   that is recorded, so a failed operation leaves both as they were.
/// - 3. A call that returned is safe: operations return once their change is recorded.
/// - 7. Memory is bounded: inodes, chunks, unsaved bytes and pending events have limits.
///
/// The functions called by doors (mount, service) take the lock; those they call in turn expect it held.
// Sendable: every stored property that changes is touched only inside `locked`, which holds `lock`; the rest are
// constants of Sendable types.
package final class Library: InodeInterface, PathInterface, @unchecked Sendable {
  package let location: LibraryLocation
  let store: Store
  let log = Logger(label: "sheaf.library")
  let nameHash: NameHash
  /// The library's id: `source` of events, host of `sheaf://` URLs.
  package let id: String
  let clock: @Sendable () -> Timestamp
  let maintenance = MaintenanceSchedule()
  let storing = StoringSchedule()
  /// Locks of files, under a lock of their own.
  package let locks = FileLocks()

  private let lock = Mutex<Void>(())
  /// Held by whoever frees chunks or packs them, one at a time; taken before the lock.
  let packCare = Mutex(PackCare())
  /// Held by whoever searches contents or keeps their index, one at a time; taken before the lock.
  let searchedContents = Mutex(SearchedContents())
  /// Held by whoever gives a tree to another account, one at a time, until all rows follow; taken before the lock.
  let pendingTransfer = Mutex<PendingTransfer?>(nil)
  /// Needs no lock.
  let replicaTexts = ReplicaTexts()
  /// Threads that wait for the lock.
  let waiting = Atomic(0)

  // State under the lock.
  var holds = LockHolds()
  var inodes = InodeTable()
  var accessTimes = UnstoredAccessTimes()
  var files = OpenFiles()
  var sessions = EditingSessions()
  var accountTable: AccountTable
  var chunks: Chunks
  var identity = Identity()
  var ignored = IgnoredFolders()
  var events = EventLog()
  var shares = ShareBook()
  var connectedAccounts = ConnectedAccounts()
  var readings = Readings()
  var linkedPlaces = LinkedPlaces()
  var numbers: Numbers
  var doors = Doors()
  var eventObservers: EventObservers
  var shownEntries = ShownEntries()
  var departures = Departures()
  var leftEntries = LeftEntries()
  var temporaryFiles = TemporaryFiles()
  var versionReaders = VersionReaders()
  var purged: PurgedContents
  var rapidSaves = RapidSaves()
  var transferWatch = TransferWatch()
  var latestTime: LatestTime

  /// Opens the library, making it where there is none, and ends what a crash left open.
  ///
  /// - Parameter keepsItselfUp: whether threads of its own do its upkeep; else it is the caller's to call ``keepUp()``.
  /// - Throws: ``SheafError``: `busy` where another process owns it, `newerFormat`, `corrupt`, `noSpace`,
  ///   `inputOutput`.
  package static func open(
    _ location: LibraryLocation, keepsItselfUp: Bool = true,
    clock: @escaping @Sendable () -> Timestamp = Library.systemClock
  ) throws -> Library {
    do {
      return try openNamed(location, keepsItselfUp: keepsItselfUp, clock: clock)
    } catch let error as SheafError {
      throw error.naming(library: location.path)
    }
  }

  private static func openNamed(
    _ location: LibraryLocation, keepsItselfUp: Bool, clock: @escaping @Sendable () -> Timestamp
  ) throws -> Library {
    let store = try Store(path: location.path, lockPath: location.lockPath)
    let library = try Library(location: location, store: store, clock: clock)
    if let file = store.refusedChanges {
      library.log.error(
        "changes of an earlier time could not be stored; please report it, and remove the file when it is looked into",
        metadata: ["file": "\(file)"])
    }
    try library.resumeTransfer()
    try library.locked { try library.recoverFromCrash() }
    library.locked { library.restoreReadings() }
    library.resumeReturns()
    library.completeSaves()
    try library.locked { try library.settleEvents(all: true) }
    library.forgetGoneAccounts()
    if keepsItselfUp { library.startMaintenance() }
    return library
  }

  private init(location: LibraryLocation, store: Store, clock: @escaping @Sendable () -> Timestamp) throws {
    self.location = location
    self.store = store
    self.clock = clock
    (id, nameHash, numbers, accountTable, latestTime, purged) = try store.read {
      let noted = Timestamp(nanoseconds: try $0.numberSetting(Self.latestTimeSetting) ?? .min)
      return (
        try $0.setting("library") ?? "", NameHash(key: try $0.numberSetting("hashKey") ?? 0),
        Numbers(highest: try $0.highestNumbers()), AccountTable(try $0.accounts()),
        LatestTime(try $0.latestTime() ?? noted, noted: noted),
        PurgedContents(isFreed: try $0.numberSetting(PurgedContents.setting) == nil)
      )
    }
    eventObservers = EventObservers(after: numbers.event)
    chunks = Chunks(after: numbers.chunk)
    try store.read { transaction in
      ignored.restore(
        moved: try transaction.numberSettings(after: IgnoredFolders.movedKey + "."),
        rules: try transaction.numberSettings(after: IgnoredFolders.rulesKey + "."))
      for replica in try transaction.replicas() { connectedAccounts.insert(replica.account) }
      let participants = Dictionary(grouping: try transaction.participants(), by: \.share)
      for row in try transaction.shares() {
        let people = (participants[row.item] ?? []).map { ($0.account, $0) }
        shares.set(.init(row: row, participants: Dictionary(uniqueKeysWithValues: people)))
      }
    }
  }

  /// Saves everything, makes it durable and lets go of the lock.
  package func close() throws {
    freePurgedAtEnd()
    stopMaintenance()
    // Changes that cannot be saved stay beside the library for the next time; everything else becomes durable.
    let saved = Result {
      try locked {
        let ended = Result { try endAllSessions() }
        while try updateAccessTimes() {}
        try settleEvents(all: true)
        try ended.get()
      }
    }
    do {
      try storeReadings()
    } catch {
      log.error("what programs read could not be stored", metadata: ["error": "\(error)"])
    }
    closeSearchedContents()
    try store.close()
    try saved.get()
  }

  // MARK: - The lock

  /// Runs `body` with the lock held, then tells the doors and the observers of events what changed.
  func locked<Value>(_ body: () throws -> Value, operation: StaticString = #function) rethrows -> Value {
    var notifications = Doors.Notifications()
    var eventNotification: EventObservers.Notification?
    defer {
      notifications.deliver()
      eventNotification?.deliver()
    }
    waiting.add(1, ordering: .relaxed)
    return try lock.withLock { _ in
      waiting.subtract(1, ordering: .relaxed)
      let (start, looks) = (LockHolds.now, inodes.useCount)
      // A test may put a new table, which counts from the beginning, in the place of this one.
      defer {
        holds.note(operation, from: start, to: LockHolds.now, looks: inodes.useCount - min(looks, inodes.useCount))
      }
      defer {
        settleAccess()
        notifications = doors.takeNotifications()
        eventNotification = eventObservers.takeNotification(upTo: numbers.event, in: shares)
      }
      return try body()
    }
  }

  // MARK: - Inodes

  /// The inode numbered `ino`.
  ///
  /// - Throws: `notFound`.
  func inode(_ ino: Int64) throws -> Inode {
    if let inode = inodes.use(ino) { return inode }
    guard let row = try read({ try $0.inode(ino) }) else { throw SheafError(.notFound) }
    return inodes.insert(read: Inode(row))
  }
}
