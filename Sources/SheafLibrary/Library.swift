import Foundation
import Logging
package import SheafModel
import SheafStore
import Synchronization

/// A library in use: accounts, items, versions and events of one file, owned by this process while it is open.
///
/// Rules that never break (docs/ARCHITECTURE.md), kept here:
/// - 1. One change, one transaction: every operation does all its rows in one ``transaction(_:_:)`` and changes memory
///   only in ``afterCommit``, so a failed operation leaves both as they were.
/// - 3. What returned is safe: operations return after the commit.
/// - 7. Memory is bounded: inodes, chunks, unsaved bytes and pending events have limits.
///
/// The functions called by doors (mount, service) take the lock; those they call in turn expect it held.
// Sendable: every stored property that changes is touched only inside `locked`, which holds `lock`; the rest are
// constants of Sendable types.
package final class Library: @unchecked Sendable {
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
  /// Threads that wait for the lock.
  let waiting = Atomic(0)

  // State under the lock.
  var holds = LockHolds()
  var inodes: [Int64: Inode] = [:]
  var files: [UInt64: OpenFile] = [:]
  var accountRows: [AccountRow] = []
  var chunks = ChunkCache(limit: 24 << 20)
  var identity = Identity()
  var events = EventLog()
  var shares = ShareBook()
  var readings = Readings()
  /// Names of remembered documents to which own files were linked (rule 5 of ``Identity``).
  var linkedPlaces: [Int64: Library.LinkedPlace] = [:]
  var dirtyInodes: [Int64: Inode] = [:]
  /// Those of them whose contents wait in the working file for being stored.
  var keptInodes: [Int64: Inode] = [:]
  /// Those whose access times wait to be stored.
  var accessedInodes: [Int64: Inode] = [:]
  var endedSessions: [EndedSession] = []
  var unsavedBytes = 0
  /// Bytes of files that went for good since the last sweep was asked for.
  var discardedBytes: Int64 = 0
  var numbers: (ino: Int64, item: Int64, chunk: Int64, event: Int64, pending: Int64)
  var nextHandle: UInt64 = 1
  private var nextDoor = 0
  private var useCount: UInt64 = 0
  /// The transaction that is running.
  private(set) var current: StoreTransaction?
  private var afterCommit: [() -> Void] = []
  private var afterFailure: [() -> Void] = []
  private var changes: [Told] = []
  var observers: [Int: Observer] = [:]
  /// What the observers of the log are to be told once the lock is free.
  var untold: UntoldEvents
  var eventObservers: [Int: @Sendable (EventNews) -> Void] = [:]
  /// Whether entries of `Shared` may be others than those last shown.
  var sharedEntriesAreStale = false
  /// The change of entries that is going on, where a mount's kernel asked for it.
  var entryChange: EntryChange?
  /// What programs delete of what others share (``noteDeparture(_:of:_:_:)``).
  var departures: [Departing: Departure] = [:]
  /// Documents whose entries of `Shared/OWNER` a program took away just now.
  var leftEntries: [LeftEntry.Name: LeftEntry] = [:]
  /// Accounts that may have lost the right to write something that they are writing.
  private var demoted: Set<Int64> = []
  /// Chunks stored by the transaction that is running.
  var storedNow: Set<Int64> = []
  var soundChunks: SoundChunks
  /// The session whose version alone holds a chunk, so that a renewal can free it.
  var chunkOwners: [Int64: Int64] = [:]
  /// Chunks that a running sweep must spare; nil while none runs.
  var sweepSpares: Set<Int64>?
  /// Held by who frees chunks or packs them, one at a time; taken before the lock.
  let sweeping = Mutex<Void>(())
  /// Touched only with ``sweeping`` held.
  var packCare = PackCare()
  /// Versions that someone reads, whose chunks outlast them.
  var versionReaders: [ObjectIdentifier: WeakReader] = [:]

  /// Inodes kept in memory that nobody uses.
  static let inodeLimit = 16_384
  /// Inodes in memory at which those that nobody uses are let go: never less than twice of what stayed last time, so
  /// that many inodes in use do not have every look-up go through them all.
  private var evictionLimit = Library.inodeLimit

  /// Opens the library, making it where there is none, and ends what a crash left open.
  ///
  /// - Throws: ``SheafError``: `busy` where another process owns it, `newerFormat`, `corrupt`, `noSpace`, `inputOutput`.
  package static func open(
    _ location: LibraryLocation, clock: @escaping @Sendable () -> Timestamp = Library.systemClock
  ) throws -> Library {
    let store = try Store(path: location.path, lockPath: location.lockPath)
    let library = try Library(location: location, store: store, clock: clock)
    if let file = store.refusedChanges {
      library.log.error(
        "changes of an earlier time could not be stored; please report it, and remove the file when it is looked into",
        metadata: ["file": "\(file)"])
    }
    try library.locked { try library.recoverFromCrash() }
    try library.resumeReturns()
    library.storeClosed()
    try library.locked { try library.settleEvents(all: true) }
    library.startMaintenance()
    return library
  }

  /// Refuses a file that is there and no library, a place where a library was, and a disk that cannot be written, before
  /// anything is made beside it.
  ///
  /// - Throws: ``SheafError``: `corrupt`, `newerFormat`; `notFound` for what is left of a former library; `readOnly`; what the
  ///   file cannot be read for.
  package static func refuseStranger(at location: LibraryLocation) throws(SheafError) {
    try Store.refuseStranger(at: location.path, lockPath: location.lockPath)
  }

  private init(location: LibraryLocation, store: Store, clock: @escaping @Sendable () -> Timestamp) throws {
    self.location = location
    self.store = store
    self.clock = clock
    (id, nameHash, numbers, accountRows) = try store.read {
      (
        try $0.setting("library") ?? "", NameHash(key: try $0.numberSetting("hashKey") ?? 0), try $0.highestNumbers(),
        try $0.accounts()
      )
    }
    untold = UntoldEvents(after: numbers.event)
    soundChunks = SoundChunks(after: numbers.chunk)
    try store.read { transaction in
      let participants = Dictionary(grouping: try transaction.participants(), by: \.share)
      for row in try transaction.shares() {
        let people = (participants[row.item] ?? []).map { ($0.account, $0) }
        shares.set(.init(row: row, participants: Dictionary(uniqueKeysWithValues: people)))
      }
    }
    // Inode 1 is the root of mounts, 2 their `Shared`.
    numbers.ino = max(numbers.ino, 15)
  }

  /// Saves everything, makes it durable and lets go of the lock.
  package func close() throws {
    stopMaintenance()
    // What cannot be saved stays beside the library for the next time; all else is made durable.
    let saved = Result {
      try locked {
        let ended = Result { try endAllSessions() }
        while try storeAccessTimes() {}
        try settleEvents(all: true)
        try ended.get()
      }
    }
    try store.close()
    try saved.get()
  }

  // MARK: - The lock

  /// Runs `body` with the lock held, then tells the observers what changed.
  func locked<Value>(_ body: () throws -> Value, operation: StaticString = #function) rethrows -> Value {
    var told: [Told] = []
    var listeners: [Int: Observer] = [:]
    var eventNews: EventNews?
    var eventListeners: [@Sendable (EventNews) -> Void] = []
    defer {
      for (door, observer) in listeners {
        let foreign = told.filter { $0.isFor(door, observer.account) }.map(\.news)
        if !foreign.isEmpty { observer.listen(foreign) }
      }
      if let eventNews { for listener in eventListeners { listener(eventNews) } }
    }
    waiting.add(1, ordering: .relaxed)
    return try lock.withLock { _ in
      waiting.subtract(1, ordering: .relaxed)
      let start = LockHolds.now
      defer { holds.note(operation, from: start, to: LockHolds.now) }
      defer {
        if !demoted.isEmpty {
          for account in demoted { rescueDrafts(of: account) }
          demoted = []
        }
        if sharedEntriesAreStale {
          sharedEntriesAreStale = false
          tellSharedEntries()
        }
        entryChange = nil
        if !changes.isEmpty {
          told = changes
          changes = []
          listeners = observers
        }
        eventNews = untold.take(upTo: numbers.event, in: shares)
        if eventNews != nil { eventListeners = Array(eventObservers.values) }
      }
      return try body()
    }
  }

  /// Opens a door: calls `observer` with what changes by other doors; returns the door's number, for ``Caller/door``.
  ///
  /// The observer is called without the lock, and makes the request wait that made the changes.
  ///
  /// - Parameter account: the account whose door it is, which is told what that account sees; nil for all there is.
  package func observe(account: Int64?, _ observer: @escaping @Sendable ([LibraryNews]) -> Void) -> Int {
    locked {
      nextDoor += 1
      observers[nextDoor] = Observer(account: account, listen: observer)
      if let account { noteSharedEntries(of: account) }
      return nextDoor
    }
  }

  /// The accounts that have doors of their own.
  var observedAccounts: [Int64] { observers.values.compactMap(\.account) }

  /// Closes a door: what is open by it is released.
  package func endObserving(_ door: Int) {
    locks.ended(door)
    let handles = locked {
      observers[door] = nil
      return files.filter { $0.value.door == door }.map(\.key)
    }
    defer {
      // With the last door, nobody is left who could come back for a file without a name.
      locked { if observers.isEmpty { inodes = inodes.filter { !$0.value.isOrphan || $0.value.openCount > 0 } } }
    }
    for handle in handles {
      do {
        try release(handle)
      } catch {
        log.error("a document could not be saved at the end of its mount", metadata: ["error": "\(error)"])
      }
    }
  }

  /// Has the doors of those who see it told of a change that came by `door`, once the lock is free.
  func tell(_ change: LibraryChange, from door: Int) {
    noteSharedEntry(change)
    guard observers.contains(where: { $0.key != door }) else { return }
    guard case .renamed(let inode, let place, _, _) = change, inode.place.folder != place.folder,
      let left = audience(of: inode.place), let reached = audience(of: place)
    else { return changes.append(Told(door: door, audience: audience(of: change), news: news(change))) }
    // Who sees one of the two folders is told of that half.
    for (audience, half) in [
      (left.intersection(reached), change), (left.subtracting(reached), .removed(inode)),
      (reached.subtracting(left), .made(NamedInode(ino: inode.ino, mode: inode.mode, place: place))),
    ] where !audience.isEmpty {
      changes.append(Told(door: door, audience: audience, news: news(half)))
    }
  }

  /// Has the other doors of the account told that its draft changed: nobody else sees that before it is saved.
  func tell(_ change: LibraryChange, of draft: Draft, from door: Int) {
    if observers.count > 1 { changes.append(Told(door: door, audience: [draft.account], news: news(change))) }
  }

  /// Has the door itself told by which a change came, where its kernel cannot know of it.
  func tell(_ change: LibraryChange, back door: Int) {
    if observers[door] != nil { changes.append(Told(door: 0, audience: nil, only: door, news: news(change))) }
  }

  /// Has the doors of the other accounts told that a draft was saved.
  func tellSaved(_ inode: Inode, _ draft: Draft) {
    guard !shares.isEmpty, !observers.isEmpty, var audience = audience(of: .saved(inode.ino)) else { return }
    audience.remove(draft.account)
    if !audience.isEmpty { changes.append(Told(door: 0, audience: audience, news: news(.saved(inode.ino)))) }
  }

  /// Has every door of an account told of a change, but the one by which it came.
  func tell(_ change: LibraryChange, to account: Int64, from door: Int = 0) {
    if !observers.isEmpty { changes.append(Told(door: door, audience: [account], news: news(change))) }
  }

  /// Has what an account may do be looked at anew: by its doors, and in what it is writing.
  func tellAccess(of account: Int64) {
    demoted.insert(account)
    tell(.access, to: account)
  }

  /// Notes that an entry of somebody's `Shared` may have changed, where a name changed that a shared item had.
  private func noteSharedEntry(_ change: LibraryChange) {
    if shares.isEmpty || sharedEntriesAreStale { return }
    let places: [LibraryPlace]
    switch change {
    case .made(let inode), .removed(let inode): places = [inode.place]
    case .renamed(let inode, let place, _, _): places = [inode.place, place]
    default: return
    }
    sharedEntriesAreStale = places.contains { place in
      guard case .inode(let parent) = place.folder else { return false }
      return shares.isRoot(.init(parent: parent, name: place.name))
    }
  }

  /// A change with where its inode is.
  private func news(_ change: LibraryChange) -> LibraryNews {
    guard let ino = change.ino, let inode = inodes[ino], inode.row.nlink > 0 else {
      return LibraryNews(change: change, subject: nil)
    }
    return LibraryNews(change: change, subject: NamedInode(inode, inode.row.parent, inode.row.name))
  }

  /// The accounts that see what changed; nil where that cannot be told.
  private func audience(of change: LibraryChange) -> Set<Int64>? {
    switch change {
    case .made(let inode), .removed(let inode), .renamed(let inode, _, _, _): audience(of: inode.place)
    default: change.ino.flatMap(audience(of:))
    }
  }

  private func audience(of place: LibraryPlace) -> Set<Int64>? {
    guard case .inode(let parent) = place.folder else { return nil }
    return audience(of: parent)
  }

  private func audience(of ino: Int64) -> Set<Int64>? {
    guard let inode = inodes[ino] else { return nil }
    var audience: Set<Int64> = [inode.row.owner]
    if let share = try? share(of: inode) { audience.formUnion(share.members.map(\.account)) }
    return audience
  }

  /// A change with those who are told of it.
  private struct Told {
    /// The door by which it came, which knows.
    let door: Int
    let audience: Set<Int64>?
    /// The one door that is told, where it is one.
    var only: Int?
    let news: LibraryNews

    func isFor(_ door: Int, _ account: Int64?) -> Bool {
      if let only { return door == only }
      guard door != self.door else { return false }
      guard let account, let audience else { return true }
      return audience.contains(account)
    }
  }

  // MARK: - Transactions

  /// Runs one change's statements in one transaction; what it put in ``whenCommitted(_:)`` happens if that succeeds.
  ///
  /// - Parameter freesSpace: whether the operation may use the reserve when the disk is full, and `body` may run twice: it
  ///   changes nothing outside of it. Every other one is refused while the reserve cannot be held.
  func transaction<Value>(
    _ step: DurableStep, freesSpace: Bool = false, _ body: (StoreTransaction) throws -> Value
  ) throws -> Value {
    if !freesSpace { try requireRoom(for: 0) }
    do {
      return try attempt(step, body)
    } catch let error as SheafError where error.kind == .noSpace && freesSpace {
      try store.releaseRoom()
      return try attempt(step, body)
    }
  }

  /// - Throws: `noSpace` where `bytes` more would use up what freeing space needs.
  func requireRoom(for bytes: Int64) throws {
    guard store.reserve.establish(), store.hasRoom(for: bytes) else {
      sweepDiscarded()
      throw SheafError(.noSpace, subject: location.path)
    }
  }

  private func attempt<Value>(_ step: DurableStep, _ body: (StoreTransaction) throws -> Value) throws -> Value {
    precondition(current == nil, "transactions do not nest")
    afterCommit = []
    afterFailure = []
    storedNow = []
    defer { current = nil }
    let numbersBefore = (events: numbers.event, pending: numbers.pending)
    do {
      let value = try store.write(step) {
        current = $0
        try endNotedSessions($0)
        return try body($0)
      }
      current = nil
      maintenance.wake()
      let actions = afterCommit
      afterCommit = []
      afterFailure = []
      for action in actions { action() }
      return value
    } catch {
      afterCommit = []
      for action in afterFailure.reversed() { action() }
      afterFailure = []
      // Sequence numbers have no gaps.
      numbers.event = numbersBefore.events
      numbers.pending = numbersBefore.pending
      throw error
    }
  }

  /// Has `action` change memory once the running transaction is committed.
  func whenCommitted(_ action: @escaping () -> Void) { afterCommit.append(action) }

  /// Has `action` put memory back if the running transaction fails, for the few places that must change it before.
  func whenFailed(_ action: @escaping () -> Void) { afterFailure.append(action) }

  /// Reads in the running transaction, or outside of one.
  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    if let current { return try body(current) }
    return try store.read(body)
  }

  // MARK: - Inodes

  /// The inode numbered `ino`.
  ///
  /// - Throws: `notFound`.
  func inode(_ ino: Int64) throws -> Inode {
    useCount += 1
    if let inode = inodes[ino] {
      inode.used = useCount
      return inode
    }
    guard let row = try read({ try $0.inode(ino) }) else { throw SheafError(.notFound) }
    // What a transaction reads of its own changes is not so where it fails.
    if current != nil { whenFailed { [self] in inodes[ino] = nil } }
    return remember(Inode(row))
  }

  @discardableResult
  func remember(_ inode: Inode) -> Inode {
    inode.used = useCount
    inodes[inode.ino] = inode
    if inodes.count > evictionLimit {
      let oldest = useCount - min(useCount, UInt64(Self.inodeLimit / 2))
      inodes = inodes.filter { $0.value.isPinned || $0.value.used > oldest }
      evictionLimit = max(Self.inodeLimit, inodes.count * 2)
    }
    return inode
  }
}
