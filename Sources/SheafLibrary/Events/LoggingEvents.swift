import Foundation
import SheafModel
import SheafStore

/// Logging what was done, and settling what it means.
/// Waiting events looked at in their order, some at a time, for those whose meaning is settled.
///
/// The events of an item keep their order: an open one holds back those after it, and the deletion of a folder that
/// tells of the item.
struct SettlingScan {
  /// Events looked at with the lock held at most.
  static let step = 1024

  /// The last number that is looked at: events that are noted meanwhile are left for the next time.
  let upTo: Int64
  /// All up to this number were looked at before; those of them that wait hold back what follows of their items.
  private let start: Int64
  /// The number that was looked at last.
  fileprivate var position: Int64
  var isOver = false
  fileprivate var held: Set<Int64> = []
  fileprivate var heldEvents: Set<Int64> = []

  /// Whether the events were not looked at, since nothing that follows needs it.
  fileprivate var isDeclined = false

  init(after start: Int64 = 0, upTo: Int64) { (self.start, position, self.upTo) = (start, start, upTo) }

  /// Goes on after an event, or ends where that is the last that is looked at, or there was none.
  fileprivate mutating func goOn(after number: Int64?) {
    guard let number, number < upTo else { return isOver = true }
    position = number
  }

  /// Ends it without a look at the events.
  mutating func decline() { (isOver, isDeclined) = (true, true) }

  fileprivate func isHeld(_ event: EventLog.Pending, _ events: EventLog) -> Bool {
    held.contains(event.row.item)
      || start > 0 && (events.of(event.row.item).first.map { $0.row.number <= start } ?? false)
  }
}

/// Rooms: `ConnectedAccounts`, `EventLog`, `EventObservers`, `Identity`, `InodeTable`, `LatestTime`, `Numbers`,
/// `RapidSaves`, `ShareBook`.
extension Library {
  /// Events settled in one transaction at most, so that nobody waits long for it.
  private static let settleBatch = 32
  /// Entries of ``EventLog`` that are cleared with the lock held at most.
  private static let clearingStep = 256

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

  /// Logs an action.
  ///
  /// - Parameters:
  ///   - opens: whether its meaning stays open until the program of `thread` ends or the window has passed. It stays
  ///     open in any case while an earlier action on the item is.
  ///   - folder: that from which the item was deleted, for that folder's own deletion to tell of it; 0 for other actions.
  ///   - absorbed: the deletions of which this one tells.
  ///   - time: that of the action; nil for now.
  func logEvent(
    _ type: EventType, _ item: ItemRow, ino: Int64, _ data: EventData, actor: Int64, thread: Int32, opens: Bool,
    folder: Int64 = 0, absorbed: FolderDeletions.Key? = nil, at time: Timestamp? = nil, _ change: Change
  ) throws {
    // The hub tells of what was done elsewhere.
    guard !item.isQuiet, !change.caller.isReplica else { return }
    let time = time ?? clock()
    let process = opens ? Caller.process(of: thread) : 0
    let row = EventRow(
      number: 0, uuid: .timeOrdered(time), type: type.rawValue, time: time, actor: actor, owner: item.owner,
      item: item.id, data: data.json, share: data.share, previousShare: data.previousShare, process: Int64(process))
    if opens || events.has(item.id) || !change.logged(of: item.id).isEmpty {
      var pending = row
      pending.number = numbers.nextPending()
      try change.rows.insertPending(pending)
      let event = EventLog.Pending(
        row: pending, process: process, ino: ino, data: data, folder: opens ? folder : 0,
        contentCount: data.contentCount ?? 0)
      change.noteLogged(event)
      change.whenRecorded { [self] in
        if !opens, let absorbed { events.absorb(absorbed, into: 0) }
        events.append(event, absorbing: opens ? absorbed : nil)
      }
    } else {
      if let absorbed { change.whenRecorded { [self] in events.absorb(absorbed, into: 0) } }
      try tell(row, isLate: false, doneBy: time, change)
    }
  }

  /// Gives an event its number, or has it wait for the hub to give it one, where the item is a connected account's.
  ///
  /// - Parameters:
  ///   - isLate: Whether its deed was done before this change.
  ///   - time: When all of the deed was done.
  private func tell(_ row: EventRow, isLate: Bool, doneBy time: Timestamp, _ change: Change) throws {
    if connectedAccounts.contains(row.owner) { return try keepWaiting(row, isLate: isLate, change) }
    var row = row
    if let joining = firstJoining(after: time, row, change) {
      var data = try EventData(row)
      data.before = joining
      row.data = data.json
    }
    try number(row, change)
  }

  /// The number of the event by which somebody joined a share of an event first since a deed; nil where nobody did.
  private func firstJoining(after time: Timestamp, _ row: EventRow, _ change: Change) -> Int64? {
    // Most events are told in the change that does it.
    guard time < change.time else { return nil }
    let marks = [row.share, row.previousShare].compactMap { $0 }
    let people: [ParticipantRow] = marks.flatMap { shares.active($0.share)?.members ?? [] }
    let later = people.filter { $0.since > time }
    // Where the clock was put back since somebody joined, their time says nothing.
    return later.filter { $0.since <= change.time && latestTime.isInOrder(since: $0.since) }.compactMap { $0.joined }
      .min()
  }

  /// Gives an event its number, and wakes those whom it may concern.
  @discardableResult
  func number(_ row: EventRow, about account: Int64? = nil, _ change: Change) throws -> Int64 {
    var row = row
    row.number = numbers.nextEvent()
    row.process = 0
    try change.rows.insert(row)
    eventObservers.note(row, about: account)
    return row.number
  }

  /// Logs the end of a session: `edit`, or nothing if `created` will have the version.
  ///
  /// - Parameter saver: The one that saved.
  func logSave(
    _ version: VersionRow, of item: ItemRow, inode: InodeRow, by saver: SavingProcess, _ change: Change
  ) throws {
    noteRapidSave(version, of: item, by: saver, change)
    if version.number == 1, events.has(item.id, type: .created) { return }
    var data = try eventData(item, parent: inode.parent, name: inode.name)
    data.version = .init(version)
    // Someone goes on writing what was deleted before its folder came into the share: its participants never saw it,
    // whether or not the shared folder is deleted, too, by now.
    if inode.nlink == 0, let share = data.share.flatMap({ shares.active($0.share) }),
      let deleted = try change.rows.deleted(inode.ino),
      try deleted.time < entryTime(of: self.inode(inode.parent), in: share)
    {
      data.share = nil
    }
    // A session may end long after what was saved last: with the next process, where this one is killed.
    try logEvent(
      .edit, item, ino: inode.ino, data, actor: version.author, thread: 0, opens: false, at: version.time, change)
  }

  /// Notes a version that ended, for upkeep to thin.
  private func noteRapidSave(_ version: VersionRow, of item: ItemRow, by saver: SavingProcess, _ change: Change) {
    // The save's own event gets its number later in this change.
    let event = numbers.event
    change.whenRecorded { [self] in
      switch version.cause {
      case .save, .autosave, .replace:
        rapidSaves.note(
          .init(
            item: item.id, number: version.number, time: version.time, author: version.author, by: saver,
            size: version.size, event: event), lives: Caller.lives)
        maintenance.wake()
      case .restore, .recover, .merge: rapidSaves.end(item.id)
      }
    }
  }

  /// Takes back actions on an item that turned out not to be what they looked like; returns whether there were any.
  ///
  /// - Parameters:
  ///   - first: number of the first one to take back.
  ///   - versions: those alone whose saves are taken back; nil where it does not matter.
  @discardableResult
  func dropPending(
    _ item: Int64, types: [EventType]? = nil, ofVersions versions: Set<Int64>? = nil, since first: Int64 = 0,
    _ change: Change
  ) throws -> Bool {
    let dropped = (events.of(item) + change.logged(of: item)).filter { event in
      event.row.number >= first && types.map { $0.contains { $0.rawValue == event.row.type } } ?? true
        && versions.map { event.data?.version.map { $0.number }.map($0.contains) ?? false } ?? true
    }
    for event in dropped { try change.rows.removePending(event.row.number) }
    let numbers = Set(dropped.map(\.row.number))
    guard !numbers.isEmpty else { return false }
    change.removeLogged(numbers)
    change.whenRecorded { [self] in events.remove(numbers) }
    return true
  }

  /// Lets the deletion of a folder tell of what the same program deleted from it just before (`rm -r`): one thing that
  /// a person did. Returns these deletions.
  func absorbDeletions(
    from folder: Int64, into data: inout EventData, by process: Int32, _ change: Change
  ) throws -> FolderDeletions.Key? {
    let key = FolderDeletions.Key(folder: folder, process: process, share: data.share?.share)
    guard let deletions = events.deletions(key) else { return nil }
    data.contents = []
    data.contentCount = 0
    // Deletions that the event no longer names need not be read.
    for event in events.oldest(EventData.contentLimit, of: deletions) where !data.namesAll {
      if let deleted = try self.data(of: event, change) { data.include(deleted) }
    }
    data.contentCount = deletions.contentCount
    try change.rows.removePending(deletions.runs)
    return key
  }

  /// The data of a pending event; nil for an event that a crash left.
  private func data(of event: EventLog.Pending, _ change: Change) throws -> EventData? {
    guard event.isInStore else { return event.data }
    return try EventData(stored(event, change))
  }

  /// The whole row of a waiting event.
  private func stored(_ event: EventLog.Pending, _ change: Change) throws -> EventRow {
    guard event.isInStore else { return event.row }
    guard let row = try change.rows.pendingEvent(event.row.number) else {
      throw SheafError(.corrupt, subject: "pending event \(event.row.number)", advice: "run sheaf check")
    }
    return row
  }

  /// Numbers the events whose meaning is settled: their program ended, or the window has passed.
  func settleEvents(all: Bool = false) throws {
    while try settleSomeEvents(all: all) {}
  }

  /// As ``settleEvents(all:)``, with the lock free in between: for what is then settled with it held nobody waits long.
  func settleEventsInSteps() throws {
    var hasSettled = true
    while hasSettled {
      hasSettled = false
      var scan = locked { SettlingScan(upTo: numbers.pending) }
      while !scan.isOver {
        if try locked({ try settle(settledEvents(all: true, in: &scan)) }) { hasSettled = true }
      }
    }
  }

  /// As ``settleEvents(all:)``, of the oldest, not more than a transaction takes; returns whether there were any.
  func settleSomeEvents(all: Bool = false) throws -> Bool {
    var scan = SettlingScan(upTo: numbers.pending)
    repeat {
      if try settle(settledEvents(all: all, in: &scan)) { return true }
    } while !scan.isOver
    return false
  }

  /// Numbers the events whose meaning is settled, and looks at some at a time, with the lock free in between. On a full
  /// disk they wait until there is room, or a change needs them: this would give up the reserve for nothing, and whatever
  /// fills the disk would take that.
  func settleDueEventsInSteps() throws {
    var scan = locked { SettlingScan(upTo: numbers.pending) }
    while !scan.isOver {
      do {
        try locked { _ = try settle(settledEvents(all: false, in: &scan), freesSpace: false) }
      } catch let error as SheafError where error.kind == .noSpace {
        break
      }
    }
    while locked({ events.clear(Self.clearingStep) }) {}
  }

  /// Numbers what waits of items whose events are about to be settled anyway, with the lock free in between, where much
  /// waits.
  ///
  /// - Parameter someItems: Looks them up with the lock held, those of some events at a time.
  /// - Returns: The number of the last event that was looked at; 0 where none was.
  @discardableResult
  func settleEventsInSteps(of someItems: (inout SettlingScan) throws -> Set<Int64>) throws -> Int64 {
    let (count, upTo) = locked { (events.count, numbers.pending) }
    guard count > Self.settleBatch else { return 0 }
    var items: Set<Int64> = []
    var gathering = SettlingScan(upTo: upTo)
    while !gathering.isOver { items.formUnion(try locked { try someItems(&gathering) }) }
    if gathering.isDeclined { return 0 }
    var scan = SettlingScan(upTo: upTo)
    while !items.isEmpty, !scan.isOver {
      try locked { _ = try settle(settledEvents(all: true, of: items, in: &scan)) }
    }
    return upTo
  }

  /// Numbers the pending events of items below a folder that is about to get another place, since their actions came
  /// before. The event of an item that is still being made comes later, with the place that it has then, and so do the
  /// events in a folder that its program is still making.
  ///
  /// - Parameter start: The number of the last event that was looked at just before.
  func settleEvents(below folder: Inode, after start: Int64, _ caller: Caller, _ time: Timestamp) throws {
    guard !identity.isOwn(folder.ino, of: caller.process, at: time) else { return }
    try settleEvents(below: folder, after: start)
  }

  /// Numbers what waits of items below a folder, before that goes or gets another place.
  ///
  /// - Parameter start: The number of the last event that was looked at just before.
  func settleEvents(below folder: Inode, after start: Int64) throws {
    var items: Set<Int64> = []
    var gathering = SettlingScan(after: start, upTo: numbers.pending)
    while !gathering.isOver { items.formUnion(try waitingItems(below: folder, in: &gathering)) }
    guard !items.isEmpty else { return }
    var scan = SettlingScan(after: start, upTo: numbers.pending)
    while !scan.isOver { _ = try settle(settledEvents(all: true, of: items, in: &scan)) }
  }

  /// Items below a folder of which events wait that a scan comes to next.
  func waitingItems(below folder: Inode, in scan: inout SettlingScan) throws -> Set<Int64> {
    guard folder.isFolder else {
      scan.decline()
      return []
    }
    let prefix = try path(folder.row.parent, folder.row.name) + [UInt8(ascii: "/")]
    return waitingItems(in: &scan) { event in
      guard event.row.owner == folder.row.owner, let path = event.data?.item.path else { return false }
      // A path without its middle does not tell.
      return path.utf8.starts(with: prefix) || ToldPlace.isShortened(path)
    }
  }

  /// Items of waiting events that a scan comes to next, where something holds for the event.
  func waitingItems(
    in scan: inout SettlingScan, where isMeant: (EventLog.Pending) throws -> Bool
  ) rethrows -> Set<Int64> {
    var items: Set<Int64> = []
    let (waiting, last) = events.pending(after: scan.position, looking: SettlingScan.step)
    for event in waiting where event.row.number <= scan.upTo {
      if try isMeant(event) { items.insert(event.row.item) }
    }
    scan.goOn(after: last)
    return items
  }

  /// Numbers events; returns whether there were any.
  ///
  /// - Parameter freesSpace: Whether a change that frees space needs that, so that it may use the reserve.
  private func settle(_ ready: [EventLog.Pending], freesSpace: Bool = true) throws -> Bool {
    guard !ready.isEmpty else { return false }
    try makeChange(.settle, freesSpace: freesSpace) { change in
      for event in ready { try settle(event, change) }
      let numbers = Set(ready.map(\.row.number))
      change.whenRecorded { [self] in events.remove(numbers) }
    }
    return true
  }

  /// Whether a file can still prove to be a temporary one, or has no version for an event.
  func isBeingMade(_ event: EventLog.Pending) -> Bool {
    guard event.row.type == EventType.created.rawValue, let inode = inodes[event.ino], inode.isRegular else {
      return false
    }
    return inode.hasSession || !isProved(inode, inode.row.name)
  }

  /// When the first version of an item was closed; nil before.
  private func firstSave(of item: Int64) -> Timestamp? {
    guard let version = try? read({ try $0.version(item, 1) }), !version.isOpen else { return nil }
    return version.time
  }

  /// The next events that are settled, not more than a transaction takes; none may be so far, where the scan is not
  /// over.
  ///
  /// - Parameter items: Those of which events are wanted; nil for all.
  private func settledEvents(
    all: Bool, of items: Set<Int64>? = nil, in scan: inout SettlingScan
  ) -> [EventLog.Pending] {
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
        // A file that is still being written has no version for an event, and may be a temporary one.
        let saved = firstSave(of: event.row.item)
        if saved == nil, let inode = inodes[event.ino], inode.hasSession || inode.writerCount > 0 { return false }
        // Known, it is a document whatever its program does.
        guard let made = identity.time(of: event.ino) else { return true }
        // A program that goes on saving is not waited for.
        since = max(since, saved ?? made)
      }
      if events.isInBurst(event, at: time) { return false }
      let age = time.nanoseconds - since.nanoseconds
      if age < 0 || age >= Identity.window { return true }
      if event.process == 0 { return true }
      return age >= EventLog.grace && !lives(event.process)
    }
    var excess = items == nil ? events.count - EventLog.limit : 0
    var ready: [EventLog.Pending] = []
    let (waiting, last) = events.pending(after: scan.position, looking: SettlingScan.step)
    for event in waiting where event.row.number <= scan.upTo {
      scan.position = event.row.number
      if !scan.isHeld(event, events) {
        if !scan.heldEvents.contains(event.row.number), !events.isHeld(event), isSettled(event) || excess > 0 {
          ready.append(event)
          excess -= 1
        } else {
          scan.held.insert(event.row.item)
          if let absorber = events.absorber(of: event.row.item) { scan.heldEvents.insert(absorber) }
        }
      }
      if ready.count >= Self.settleBatch { return ready }
    }
    scan.goOn(after: last)
    return ready
  }

  func settle(_ event: EventLog.Pending, _ change: Change) throws {
    var row = try stored(event, change)
    try change.rows.removePending(row.number)
    guard var item = try change.rows.item(event.row.item), !item.isQuiet else { return }
    var time = row.time
    if row.type == EventType.created.rawValue {
      var data = try event.data ?? EventData(row)
      if item.kind != .folder {
        let isQuiet = try FileRole(Array(data.item.name.utf8)).isQuiet {
          let parent = try change.rows.inode(item: item.id)?.parent ?? 0
          return try change.rows.entry(parent, hash: nameHash($0), name: $0) != nil
        }
        if isQuiet {
          item.isQuiet = true
          try change.rows.update(item)
          // Its name may be another inode's by now.
          let ino = try change.rows.inode(item: item.id)?.ino ?? event.ino
          change.whenRecorded { [self] in inodes[ino]?.item = nil }
          return
        }
      }
      if !isMovedOrDeleted(item.id, after: event), let inode = try inodeRow(of: event, change), inode.nlink > 0 {
        // A folder above may have been moved, shared or given away since.
        let here = try eventData(item, parent: inode.parent, name: inode.name)
        (data.item, row.share, row.owner) = (here.item, here.share, inode.owner)
        // To those who are in the share, it came there as it entered.
        if let share = here.share.flatMap({ shares.active($0.share) }) {
          time = try max(time, entryTime(of: self.inode(inode.ino), in: share))
        }
      }
      if let version = try change.rows.version(item.id, 1) {
        data.version = .init(version)
        // Who joined while it was being written is told that it was made.
        time = max(time, version.time)
      }
      row.data = data.json
    }
    try tell(row, isLate: true, doneBy: time, change)
  }

  /// Whether another waiting event tells that the item of `event` left the place where that has it.
  func isMovedOrDeleted(_ item: Int64, after event: EventLog.Pending) -> Bool {
    let types = [EventType.renamed, .moved, .deleted].map(\.rawValue)
    return events.of(item).contains { $0.row.number > event.row.number && types.contains($0.row.type) }
  }

  /// The row of the inode that an event's item is; nil where it is none any more.
  private func inodeRow(of event: EventLog.Pending, _ change: Change) throws -> InodeRow? {
    if let row = inodes[event.ino]?.row, row.item == event.row.item { return row }
    return try change.rows.inode(item: event.row.item)
  }
}
