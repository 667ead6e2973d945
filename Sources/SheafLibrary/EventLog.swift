import Foundation
import SheafModel
import SheafStore

/// Events whose meaning is still open, in the order of the deeds (CONTRACT.md, "Events").
struct EventLog {
  struct Pending {
    let row: EventRow
    let thread: Int32
    /// The inode of the item at the time of the deed.
    let ino: Int64
  }

  private(set) var pending: [Pending] = []

  func has(_ item: Int64) -> Bool { pending.contains { $0.row.item == item } }

  func has(_ item: Int64, type: EventType) -> Bool {
    pending.contains { $0.row.item == item && $0.row.type == type.rawValue }
  }

  mutating func append(_ event: Pending) { pending.append(event) }

  mutating func remove(_ numbers: Set<Int64>) { pending.removeAll { numbers.contains($0.row.number) } }
}

/// The types of CONTRACT.md that a library logs by itself.
enum EventType: String {
  case edit = "sheaf.change.edit"
  case created = "sheaf.persistence.created"
  case deleted = "sheaf.persistence.deleted"
  case renamed = "sheaf.persistence.renamed"
  case moved = "sheaf.persistence.moved"
}

/// The `data` of an event (CONTRACT.md, "Events").
struct EventData: Codable {
  struct Item: Codable {
    var id: String
    var kind: String
    var name: String
    var path: String
  }

  struct Version: Codable {
    var number: Int64
    var base: Int64?
    var size: Int64
    var cause: String
  }

  var item: Item
  var version: Version?
  var previousPath: String?
  var previousName: String?

  var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}

extension Library {
  /// Events kept open at most; the oldest are settled early.
  private static let pendingLimit = 4096

  func eventData(_ item: ItemRow, parent: Int64, name: [UInt8]) throws -> EventData {
    EventData(
      item: .init(
        id: item.uuid.text, kind: item.kind.word, name: String(decoding: name, as: UTF8.self),
        path: String(decoding: try path(parent, name), as: UTF8.self)))
  }

  /// Logs a deed in the running transaction.
  ///
  /// - Parameter opens: whether its meaning stays open until the program of `thread` ends or the window has passed. It
  ///   stays open in any case while an earlier deed on the item is.
  func logEvent(
    _ type: EventType, _ item: ItemRow, ino: Int64, _ data: EventData, owner: Int64, thread: Int32, opens: Bool,
    _ transaction: StoreTransaction
  ) throws {
    guard !item.isQuiet else { return }
    let row = EventRow(
      number: 0, uuid: .timeOrdered(clock()), type: type.rawValue, time: clock(), actor: owner, item: item.id,
      data: data.json, process: Int64(thread))
    if opens || events.has(item.id) {
      numbers.pending += 1
      var pending = row
      pending.number = numbers.pending
      try transaction.insertPending(pending)
      whenCommitted { [self] in events.append(.init(row: pending, thread: thread, ino: ino)) }
    } else {
      numbers.event += 1
      var settled = row
      settled.number = numbers.event
      try transaction.insert(settled)
    }
  }

  /// Logs the end of a session: `edit`, or nothing where `created` will tell of the version.
  func logSave(_ version: VersionRow, of item: ItemRow, inode: InodeRow, _ transaction: StoreTransaction) throws {
    if version.number == 1, events.has(item.id, type: .created) { return }
    var data = try eventData(item, parent: inode.parent, name: inode.name)
    data.version = .init(version)
    let thread = events.pending.last { $0.row.item == item.id }?.thread ?? 0
    let isOpen = events.has(item.id)
    try logEvent(.edit, item, ino: inode.ino, data, owner: version.author, thread: thread, opens: isOpen, transaction)
  }

  /// Takes back deeds on an item that turned out not to be what they looked like.
  func dropPending(_ item: Int64, types: [EventType]? = nil, _ transaction: StoreTransaction) throws {
    let dropped = events.pending.filter { event in
      event.row.item == item && types.map { $0.contains { $0.rawValue == event.row.type } } ?? true
    }
    for event in dropped { try transaction.removePending(event.row.number) }
    let numbers = Set(dropped.map(\.row.number))
    if !numbers.isEmpty { whenCommitted { [self] in events.remove(numbers) } }
  }

  /// Numbers the events whose meaning is settled: their program ended, or the window has passed.
  func settleEvents(all: Bool = false) throws {
    guard !events.pending.isEmpty else { return }
    let time = clock()
    var alive: [Int32: Bool] = [:]
    func isSettled(_ event: EventLog.Pending) -> Bool {
      if all || time.nanoseconds - event.row.time.nanoseconds >= Identity.window { return true }
      if let known = alive[event.thread] { return !known }
      let lives = event.thread != 0 && access("/proc/\(event.thread)", F_OK) == 0
      alive[event.thread] = lives
      return !lives
    }
    var ready = events.pending.filter(isSettled)
    if events.pending.count - ready.count > Self.pendingLimit { ready = events.pending }
    // The events of an item keep their order: an open one holds back those after it.
    var held: Set<Int64> = []
    let readyNumbers = Set(ready.map(\.row.number))
    for event in events.pending where !readyNumbers.contains(event.row.number) { held.insert(event.row.item) }
    ready.removeAll { held.contains($0.row.item) }
    // A file that is still being written has no version to tell of.
    if !all { ready.removeAll { inodes[$0.ino]?.session != nil && $0.row.type == EventType.created.rawValue } }
    guard !ready.isEmpty else { return }
    try transaction(.settle, freesSpace: true) { transaction in
      for event in ready { try settle(event, transaction) }
      let numbers = Set(ready.map(\.row.number))
      whenCommitted { [self] in events.remove(numbers) }
    }
  }

  private func settle(_ event: EventLog.Pending, _ transaction: StoreTransaction) throws {
    try transaction.removePending(event.row.number)
    guard var item = try transaction.item(event.row.item) else { return }
    var data = event.row.data
    if event.row.type == EventType.created.rawValue {
      guard var decoded = try? JSONDecoder().decode(EventData.self, from: Data(data.utf8)) else { return }
      if Identity.isTemporary(Array(decoded.item.name.utf8)) {
        item.isQuiet = true
        try transaction.update(item)
        let ino = event.ino
        whenCommitted { [self] in inodes[ino]?.item = nil }
        return
      }
      if let version = try transaction.version(item.id, 1) { decoded.version = .init(version) }
      data = decoded.json
    }
    if item.isQuiet { return }
    numbers.event += 1
    try transaction.insert(
      EventRow(
        number: numbers.event, uuid: event.row.uuid, type: event.row.type, time: event.row.time, actor: event.row.actor,
        item: item.id, data: data, process: 0))
  }
}

extension EventData.Version {
  init(_ version: VersionRow) {
    self.init(number: version.number, base: version.base, size: version.size, cause: version.cause.rawValue)
  }
}
