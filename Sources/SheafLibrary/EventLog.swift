import Foundation
import SheafModel
import SheafStore

/// Events whose meaning is still open, in the order of the deeds (docs/REFERENCE.md, "Events").
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

extension Library {
  /// Events settled in one transaction at most, so that nobody waits long for it.
  private static let settleBatch = 128

  func eventData(_ item: ItemRow, parent: Int64, name: [UInt8]) throws -> EventData {
    let place = try place(parent, name, item: item.id)
    var data = EventData(
      item: .init(
        id: item.uuid.text, kind: item.kind.word, name: String(decoding: name, as: UTF8.self),
        path: String(decoding: place.path, as: UTF8.self)))
    data.share = place.share
    return data
  }

  /// Notes in `data` where `item` was before.
  func setPrevious(_ data: inout EventData, _ item: ItemRow, parent: Int64, name: [UInt8]) throws {
    let place = try place(parent, name, item: item.id)
    data.previousPath = String(decoding: place.path, as: UTF8.self)
    data.previousName = String(decoding: name, as: UTF8.self)
    data.previousShare = place.share
  }

  /// Logs a deed in the running transaction.
  ///
  /// - Parameters:
  ///   - opens: whether its meaning stays open until the program of `thread` ends or the window has passed. It stays open in
  ///     any case while an earlier deed on the item is.
  ///   - folder: that from which the item was deleted, for that folder's own deletion to tell of it; 0 for other deeds.
  ///   - absorbed: numbers of the deletions of which this one tells.
  ///   - time: that of the deed; nil for now.
  func logEvent(
    _ type: EventType, _ item: ItemRow, ino: Int64, _ data: EventData, actor: Int64, thread: Int32, opens: Bool,
    folder: Int64 = 0, absorbed: [Int64] = [], at time: Timestamp? = nil, _ transaction: StoreTransaction
  ) throws {
    guard !item.isQuiet else { return }
    let time = time ?? clock()
    let process = opens ? Caller.process(of: thread) : 0
    let row = EventRow(
      number: 0, uuid: .timeOrdered(time), type: type.rawValue, time: time, actor: actor, owner: item.owner,
      item: item.id, data: data.json, share: data.share, previousShare: data.previousShare, process: Int64(process))
    if opens || events.has(item.id) {
      numbers.pending += 1
      var pending = row
      pending.number = numbers.pending
      try transaction.insertPending(pending)
      let event = EventLog.Pending(
        row: pending, process: process, ino: ino, data: data, folder: opens ? folder : 0,
        contentCount: data.contentCount ?? 0)
      whenCommitted { [self] in
        if !opens { events.remove(absorbed) }
        events.append(event, absorbing: opens ? absorbed : [])
      }
    } else {
      if !absorbed.isEmpty { whenCommitted { [self] in events.remove(absorbed) } }
      try number(row, transaction)
    }
  }

  /// Gives an event its number in the running transaction; those whom it may concern are told of it.
  @discardableResult
  func number(_ row: EventRow, about account: Int64? = nil, _ transaction: StoreTransaction) throws -> Int64 {
    numbers.event += 1
    var row = row
    row.number = numbers.event
    row.process = 0
    try transaction.insert(row)
    untold.note(row, about: account)
    return row.number
  }

  /// Logs the end of a session: `edit`, or nothing where `created` will tell of the version.
  func logSave(_ version: VersionRow, of item: ItemRow, inode: InodeRow, _ transaction: StoreTransaction) throws {
    if version.number == 1, events.has(item.id, type: .created) { return }
    var data = try eventData(item, parent: inode.parent, name: inode.name)
    data.version = .init(version)
    // Someone goes on writing what was deleted before its folder came into the share: its participants never saw it.
    if inode.nlink == 0, data.share != nil, let share = try share(ofFolder: inode.parent),
      let deleted = try transaction.deleted(inode.ino),
      try deleted.time < entryTime(of: self.inode(inode.parent), in: share)
    {
      data.share = nil
    }
    // A session may end long after what was saved last: with the next process, where this one is killed.
    try logEvent(
      .edit, item, ino: inode.ino, data, actor: version.author, thread: 0, opens: false, at: version.time, transaction)
  }

  /// Takes back deeds on an item that turned out not to be what they looked like; returns whether there were any.
  ///
  /// - Parameter first: number of the first one to take back.
  @discardableResult
  func dropPending(
    _ item: Int64, types: [EventType]? = nil, since first: Int64 = 0, _ transaction: StoreTransaction
  ) throws -> Bool {
    let dropped = events.of(item).filter { event in
      event.row.number >= first && types.map { $0.contains { $0.rawValue == event.row.type } } ?? true
    }
    for event in dropped { try transaction.removePending(event.row.number) }
    let numbers = Set(dropped.map(\.row.number))
    if !numbers.isEmpty { whenCommitted { [self] in events.remove(numbers) } }
    return !numbers.isEmpty
  }

  /// Has the deletion of a folder tell of what the same program deleted from it just before (`rm -r`): one thing that a
  /// person did. What was a share of its own is told by itself, to its participants. Returns the numbers of these deletions.
  func absorbDeletions(
    from folder: Int64, into data: inout EventData, by process: Int32, _ transaction: StoreTransaction
  ) throws -> [Int64] {
    let share = data.share?.share
    let deletions = events.deletions(from: folder, by: process).filter { $0.row.share?.share == share }
    guard !deletions.isEmpty else { return [] }
    data.contents = []
    data.contentCount = 0
    for event in deletions {
      // What the event names no more of is not read.
      if data.namesAll {
        data.contentCount = (data.contentCount ?? 0) + 1 + event.contentCount
      } else if let deleted = try self.data(of: event, transaction) {
        data.include(deleted)
      }
    }
    try transaction.removePending(deletions.map(\.row.number))
    return deletions.map(\.row.number)
  }

  /// What a waiting event says; nil for what a crash left.
  private func data(of event: EventLog.Pending, _ transaction: StoreTransaction) throws -> EventData? {
    guard event.isInStore else { return event.data }
    return try JSONDecoder().decode(EventData.self, from: Data(stored(event, transaction).data.utf8))
  }

  /// The whole row of a waiting event.
  private func stored(_ event: EventLog.Pending, _ transaction: StoreTransaction) throws -> EventRow {
    guard event.isInStore else { return event.row }
    guard let row = try transaction.pendingEvent(event.row.number) else {
      throw SheafError(.corrupt, subject: "pending event \(event.row.number)", advice: "run sheaf check")
    }
    return row
  }

  /// Numbers the events whose meaning is settled: their program ended, or the window has passed.
  func settleEvents(all: Bool = false) throws {
    while try settleSomeEvents(all: all) {}
  }

  /// As ``settleEvents(all:)``, with the lock free in between: for what is then settled with it held nobody waits long.
  func settleEventsByAndBy() throws {
    while try locked({ try settleSomeEvents(all: true) }) {}
  }

  /// As ``settleEvents(all:)``, of the oldest, not more than a transaction takes; returns whether there were any.
  func settleSomeEvents(all: Bool = false) throws -> Bool { try settle(settledEvents(all: all)) }

  /// Numbers what waits of items below a folder that is about to get another place: it was done before. What is still
  /// being made is told later, with the place that it has then, and so is all in a folder that is part of what its
  /// program makes.
  func settleEvents(below folder: Inode, _ caller: Caller, _ time: Timestamp) throws {
    guard !identity.isOwn(folder.ino, of: caller.process, at: time) else { return }
    try settleEvents(below: folder)
  }

  /// Numbers what waits of items below a folder, before that goes or gets another place.
  func settleEvents(below folder: Inode) throws {
    guard folder.isFolder, !events.isEmpty else { return }
    let prefix = String(decoding: try path(folder.row.parent, folder.row.name), as: UTF8.self) + "/"
    var items: Set<Int64> = []
    for event in events.pending where event.row.owner == folder.row.owner {
      guard let path = event.data?.item.path else { continue }
      // A path without its middle does not tell.
      if path.hasPrefix(prefix) || ToldPlace.isShortened(path) { items.insert(event.row.item) }
    }
    guard !items.isEmpty else { return }
    while try settle(settledEvents(all: true, of: items)) {}
  }

  /// Numbers events; returns whether there were any.
  private func settle(_ ready: [EventLog.Pending]) throws -> Bool {
    guard !ready.isEmpty else { return false }
    try transaction(.settle, freesSpace: true) { transaction in
      for event in ready { try settle(event, transaction) }
      let numbers = Set(ready.map(\.row.number))
      whenCommitted { [self] in events.remove(numbers) }
    }
    return true
  }

  /// Whether a file may yet turn out to be a temporary one, or has no version to tell of.
  func isBeingMade(_ event: EventLog.Pending) -> Bool {
    guard event.row.type == EventType.created.rawValue, let inode = inodes[event.ino], inode.isRegular else {
      return false
    }
    return inode.hasSession || !isProved(inode, inode.row.name)
  }

  /// The oldest events that are settled, not more than a transaction takes.
  ///
  /// - Parameter items: Those of which events are wanted; nil for all.
  private func settledEvents(all: Bool, of items: Set<Int64>? = nil) -> [EventLog.Pending] {
    guard !events.isEmpty else { return [] }
    let time = clock()
    var alive: [Int32: Bool] = [:]
    func lives(_ process: Int32) -> Bool {
      if let known = alive[process] { return known }
      let lives = Caller.lives(process)
      alive[process] = lives
      return lives
    }
    func isSettled(_ event: EventLog.Pending) -> Bool {
      if let items {
        return items.contains(event.row.item)
          && (!isBeingMade(event) || isMovedOrDeleted(event.row.item, after: event))
      }
      if all { return true }
      var since = event.row.time
      let isCreation = event.row.type == EventType.created.rawValue
      // Most of them, each time: nothing that follows says otherwise of what a program does that goes on.
      let passed = time.nanoseconds - since.nanoseconds
      if passed >= 0, passed < Identity.window, event.process != 0, lives(event.process),
        !isCreation || identity.time(of: event.ino) != nil
      {
        return false
      }
      if isCreation {
        // A file that is still being written has no version to tell of, and may be a temporary one.
        if let inode = inodes[event.ino], inode.hasSession || inode.writerCount > 0 { return false }
        // Known, it is a document whatever its program does.
        guard let made = identity.time(of: event.ino) else { return true }
        since = max(since, made)
      }
      if events.isOfSweep(event, at: time) { return false }
      let age = time.nanoseconds - since.nanoseconds
      if age < 0 || age >= Identity.window { return true }
      if event.process == 0 { return true }
      return age >= EventLog.grace && !lives(event.process)
    }
    var excess = items == nil ? events.count - EventLog.limit : 0
    // The events of an item keep their order: an open one holds back those after it, and the deletion of a folder that
    // tells of the item.
    var held: Set<Int64> = []
    var heldEvents: Set<Int64> = []
    held.reserveCapacity(events.count)
    var ready: [EventLog.Pending] = []
    for event in events.pending {
      if held.contains(event.row.item) { continue }
      if !heldEvents.contains(event.row.number), !events.isHeld(event), isSettled(event) || excess > 0 {
        ready.append(event)
        excess -= 1
        if ready.count >= Self.settleBatch { break }
      } else {
        held.insert(event.row.item)
        if let absorber = events.absorber(of: event.row.item) { heldEvents.insert(absorber) }
      }
    }
    return ready
  }

  func settle(_ event: EventLog.Pending, _ transaction: StoreTransaction) throws {
    var row = try stored(event, transaction)
    try transaction.removePending(row.number)
    guard var item = try transaction.item(event.row.item), !item.isQuiet else { return }
    if row.type == EventType.created.rawValue {
      var data = try event.data ?? JSONDecoder().decode(EventData.self, from: Data(row.data.utf8))
      if item.kind != .folder {
        let isQuiet = try FileRole(Array(data.item.name.utf8)).isQuiet {
          let parent = try transaction.inode(item: item.id)?.parent ?? 0
          return try transaction.entry(parent, hash: nameHash($0), name: $0) != nil
        }
        if isQuiet {
          item.isQuiet = true
          try transaction.update(item)
          // Its name may be another inode's by now.
          let ino = try transaction.inode(item: item.id)?.ino ?? event.ino
          whenCommitted { [self] in inodes[ino]?.item = nil }
          return
        }
      }
      if !isMovedOrDeleted(item.id, after: event), let inode = try inodeRow(of: event, transaction), inode.nlink > 0 {
        // A folder above may have been moved or shared since.
        let here = try eventData(item, parent: inode.parent, name: inode.name)
        (data.item, row.share) = (here.item, here.share)
      }
      if let version = try transaction.version(item.id, 1) { data.version = .init(version) }
      row.data = data.json
    }
    try number(row, transaction)
  }

  /// Whether another waiting event tells that the item of `event` left the place where that has it.
  private func isMovedOrDeleted(_ item: Int64, after event: EventLog.Pending) -> Bool {
    let types = [EventType.renamed, .moved, .deleted].map(\.rawValue)
    return events.of(item).contains { $0.row.number > event.row.number && types.contains($0.row.type) }
  }

  /// The row of the inode that an event's item is; nil where it is none any more.
  private func inodeRow(of event: EventLog.Pending, _ transaction: StoreTransaction) throws -> InodeRow? {
    if let row = inodes[event.ino]?.row, row.item == event.row.item { return row }
    return try transaction.inode(item: event.row.item)
  }
}
