import Foundation
package import SheafModel
import SheafReplica
import SheafStore
package import SheafWire

/// How far a log at a hub goes.
package struct HubLogHead: Hashable, Sendable {
  /// The share of somebody else whose log it is; nil for the account's own.
  package let share: WireID?
  package let last: Int64
  /// How far the account has read its notices in it.
  package let read: Int64

  package init(share: WireID?, last: Int64, read: Int64) {
    self.share = share
    self.last = last
    self.read = read
  }
}

/// How far this library has read a log at a hub.
package struct HubLogPosition: Hashable, Sendable {
  package let share: WireID?
  package let number: Int64
  /// The hub's word for that place; nil where nothing was read.
  package let token: String?
}

/// The logs of connected accounts, which are their hubs'.
///
/// Rules:
/// 1. What is done to the items of a connected account is told by the hub, to this machine as to all others: with the
///    hub's id and number, once. What was done here waits in `waiting_events` until the hub has it, and is told by the
///    hub then.
/// 2. An event takes its place in the library's log when it comes back, and keeps it. A reader of that log, such as the
///    sidecar, never meets it twice: not after a restart, not after a hub went back, not when the account is connected
///    anew.
/// 3. What was done before an account was connected is no news: it was told then, or it is not for this machine.
/// 4. If the hub went back, what it does not have any more is not shown. Machines send again what it lost, and the hub
///    tells of it anew: such an event takes the place of the one that told of the same deed.
///
/// Rooms: `EventObservers`, `Numbers`.
extension Library {
  /// What the hub calls the own log of an account, or that of a share.
  private func log(_ share: WireID?, of account: Int64) throws -> [UInt8] {
    try share?.bytes ?? connected(account).zone
  }

  // MARK: - Connecting

  /// Notes that an account is connected from now on. Of what was done before, everything that waited has its number.
  func beginLog(of account: Int64, _ zone: WireID, _ change: Change) throws {
    var log =
      try change.rows.replicaLog(of: account, zone.bytes)
      ?? ReplicaLogRow(log: zone.bytes, isShare: false, past: nil, since: change.time)
    log.since = change.time
    try change.rows.set(log, of: account)
  }

  /// Gives numbers to what was done here and the hub will never have.
  func endLog(of account: Int64, _ change: Change) throws {
    for row in try change.rows.waitingEvents(of: account) { try number(row, change) }
    try change.rows.removeWaitingEvents(of: account, all: true)
  }

  // MARK: - What was done here

  /// Keeps an event of an item of a connected account until the hub has it.
  ///
  /// - Parameter isLate: Whether its deed was done before this change.
  func keepWaiting(_ row: EventRow, isLate: Bool, _ change: Change) throws {
    guard let type = EventType(rawValue: row.type),
      [.created, .edit, .renamed, .moved, .deleted].contains(type)
    else { return }
    // The hub may have it by now: the meaning of a deed can stay open for longer than it takes to be sent.
    if isLate {
      guard let item = try change.rows.item(row.item) else { return }
      let isUnsent =
        try change.rows.hasReplicaChange(of: row.owner, item.uuid.bytes)
        || change.rows.countReplicaSends(of: row.owner) > 0
      if !isUnsent { return }
    }
    var waiting = row
    waiting.number = numbers.nextPending()
    try change.rows.insertWaiting(waiting)
  }

  /// Forgets what waited and is at the hub: everything that was sent has its verdict.
  func forgetTold(of account: Int64) throws {
    guard try read({ try $0.hasWaitingEvents(of: account) }) else { return }
    try makeChange(.replica) { try $0.rows.removeWaitingEvents(of: account) }
  }

  /// When the deed was done that a send is about, by this machine's clock; nil where nothing here says so.
  func time(of send: Send, _ account: Int64) throws -> Int64? {
    guard let inode = try replicaInode(send.item, of: account) else { return nil }
    if send.isDeletion { return try read { try $0.deleted(inode.ino) }?.time.nanoseconds }
    let mark = try read { try $0.replicaItem(of: account, send.item.bytes) }.mark
    guard send.places != nil, try mark.map({ try replicaTexts.decode($0) as ReplicaMark }) != .returning else {
      return nil
    }
    return try read { rows in
      let given = try rows.names(of: inode.ino).compactMap { place in
        try rows.entry(place.folder, hash: nameHash(place.name), name: place.name)?.since.nanoseconds
      }
      // Of several names one may be gone, and the others are older than that.
      let taken = try inode.row.item.flatMap {
        try rows.pastNames(of: $0, after: Timestamp(nanoseconds: .min), limit: 1).first?.until.nanoseconds
      }
      return (given + [taken].compactMap { $0 }).max()
    }
  }

  /// The name of the document in which the contents of an item could not be saved that the hub hears of for the first
  /// time.
  func previousName(of send: Send, _ account: Int64) throws -> String? {
    guard send.base == nil, send.places != nil, let inode = try replicaInode(send.item, of: account),
      let item = try item(of: inode), let name = try read({ try $0.waitingPreviousName(of: item.id) }),
      (1...WireLimits.nameBytes).contains(name.utf8.count)
    else { return nil }
    return name
  }

  // MARK: - What the hub tells

  /// Notes how far the logs go that an account may read, and how far it has read its notices in them.
  package func noteLogs(_ heads: [HubLogHead], of account: Int64) throws {
    try locked {
      let zone = try connected(account).zone
      guard let own = try read({ try $0.replicaLog(of: account, zone) }) else { return }
      let isFirst = own.past == nil
      try makeChange(.replica) { change in
        for head in heads {
          let known = try change.rows.replicaLog(of: account, head.share?.bytes ?? zone)
          var log =
            known
            ?? ReplicaLogRow(log: head.share?.bytes ?? zone, isShare: head.share != nil, past: nil, since: change.time)
          // A share that comes later is news from its beginning.
          if log.past == nil { log.past = isFirst ? head.last : 0 }
          log.read = max(log.read, head.read)
          log.cleared = max(log.cleared, log.read)
          if log != known { try change.rows.set(log, of: account) }
        }
      }
    }
  }

  /// How far an account has read its logs. Zones that it was connected to before have no part in this.
  package func logPositions(of account: Int64) throws -> [HubLogPosition] {
    try locked {
      let zone = try connected(account).zone
      return try read { try $0.replicaLogs(of: account) }.filter { $0.isShare || $0.log == zone }.map {
        HubLogPosition(share: $0.isShare ? WireID(bytes: $0.log) : nil, number: $0.number, token: $0.token)
      }
    }
  }

  /// Takes a page of a log.
  ///
  /// - Parameters:
  ///   - share: The share of somebody else whose log it is; nil for the account's own.
  ///   - device: By which the hub knows this machine.
  ///   - isAnew: Whether the page begins where the log of now parts from the one that was read before.
  /// - Throws: `invalid` for events that are none.
  package func note(
    _ page: LogPage<Event>, ofShare share: WireID?, of account: Int64, device: String, isAnew: Bool
  ) throws {
    try locked {
      let (zone, name) = (try connected(account).zone, try log(share, of: account))
      guard var log = try read({ try $0.replicaLog(of: account, name) }),
        let own = try read({ try $0.replicaLog(of: account, zone) })
      else { return }
      let arrivals = try page.events.map { try Arrival($0) }
      let known = arrivals
      let parting = isAnew ? (page.events.first.map { $0.sequence - 1 } ?? page.next) : log.number
      // Whose zone it is: an account of this library sees the same in its own log.
      let zones = try read { try $0.replicas() }.filter { $0.reader == nil }.map { $0.zone }
      try makeChange(.replica) { change in
        if isAnew {
          try change.rows.loseReplicaEvents(of: account, name, after: parting)
          try sendLostComments(of: account, name, ofShare: share, change)
          log.number = min(log.number, parting)
          log.cleared = min(log.cleared, parting)
          log.read = min(log.read, parting)
        }
        for arrival in known where arrival.event.sequence > parting {
          let event = arrival.event
          if try change.rows.hasReplicaEvent(arrival.id.bytes, in: name, of: account) { continue }
          let isOwn = event.data.device?.id == device
          if isOwn, event.type == .comment, let item = try change.rows.item(uuid: UUID(bytes: arrival.subject.bytes)) {
            try change.rows.removeWaitingEvent(arrival.id.bytes, of: item.id)
            // It was told while the account was not connected.
            if try change.rows.hasOwnEvent(arrival.id.bytes, of: item.id) { continue }
          }
          let isPast =
            isOwn ? event.time <= own.since : event.sequence <= (log.past ?? 0)
          let isElsewhere = share != nil && zones.contains { WireID(bytes: $0)?.description == arrival.zone }
          var row = ReplicaEventRow(
            sequence: numbers.event + 1, account: account, log: name, number: event.sequence, uuid: arrival.id.bytes,
            type: event.type.rawValue, time: event.time, subject: arrival.subject.bytes,
            share: event.data.share.flatMap { WireID($0.id) }?.bytes ?? share?.bytes, isPast: isPast,
            isRepeated: try isElsewhere || change.rows.hasReplicaEvent(arrival.id.bytes),
            event: try ReplicaJSON.encode(event))
          if let lost = try lost(event, arrival.subject, account, name, change) {
            row = ReplicaEventRow(
              sequence: lost.sequence, account: account, log: name, number: row.number, uuid: row.uuid, type: row.type,
              time: row.time, subject: row.subject, share: row.share, isPast: lost.isPast, isRepeated: lost.isRepeated,
              event: row.event)
            try change.rows.update(row)
          } else {
            _ = numbers.nextEvent()
            try change.rows.insert(row)
            eventObservers.note(account)
          }
        }
        log.number = max(log.number, page.next)
        log.token = page.token
        try change.rows.set(log, of: account)
      }
    }
  }

  /// Has comments of an account sent again that a hub which went back has lost. All machines of the account give one the
  /// same id, by which the hub does it once.
  private func sendLostComments(of account: Int64, _ log: [UInt8], ofShare share: WireID?, _ change: Change) throws {
    let followed = try read { try $0.replicas() }.first { $0.reader == account && $0.zone == share?.bytes }
    guard share == nil || followed != nil else { return }
    let (handle, owner) = (try key(account), followed?.account ?? account)
    var isAny = false
    for row in try change.rows.lostReplicaComments(of: account, log, type: EventType.comment.rawValue) {
      let event = try ReplicaJSON.decode(row.event) as Event
      guard event.data.actor.handle == handle, let text = event.data.comment else { continue }
      try change.rows.insert(
        ReplicaCommentRow(item: row.subject, id: row.uuid, time: row.time, text: text), of: owner)
      isAny = true
    }
    guard isAny else { return }
    // The items come first, where the hub has lost them, too.
    try reread(connected(owner), isGone: true, change)
    wakeReplica(of: owner, change)
  }

  /// An event of a hub's page, whose ids are ids.
  private struct Arrival {
    let event: Event
    let id: WireID
    let subject: WireID
    /// The zone whose event it is.
    let zone: String

    init(_ event: Event) throws {
      let source = "sheaf://"
      guard let id = WireID(event.id), let subject = WireID(event.subject), event.sequence > 0,
        event.source.hasPrefix(source), WireID(String(event.source.dropFirst(source.count))) != nil
      else {
        throw SheafError(
          .invalid, subject: "hub", reason: "tells of an event that is none", advice: "see whether it is as new as this"
        )
      }
      self.event = event
      self.id = id
      self.subject = subject
      zone = String(event.source.dropFirst(source.count))
    }
  }

  /// The event of the same deed that a hub that went back has lost, the oldest one.
  private func lost(
    _ event: Event, _ subject: WireID, _ account: Int64, _ log: [UInt8], _ change: Change
  ) throws -> ReplicaEventRow? {
    try change.rows.lostReplicaEvents(of: account, log, subject.bytes).first { row in
      guard row.type == event.type.rawValue else { return false }
      return try (ReplicaJSON.decode(row.event) as Event).tellsTheSame(as: event)
    }
  }

  // MARK: - Notices

  /// Notes that the account cleared its notices up to a place in the library's log, for its other machines to know.
  func clearLogs(of account: Int64, through sequence: Int64, _ change: Change) throws {
    var isNews = false
    for var log in try change.rows.replicaLogs(of: account) {
      let number = try change.rows.lastReplicaNumber(of: account, log.log, upTo: sequence)
      guard number > log.cleared else { continue }
      log.cleared = number
      isNews = true
      try change.rows.set(log, of: account)
    }
    if isNews { wakeReplica(of: account, change) }
  }

  /// How far the account has read its notices where the hub does not know it yet.
  package func readMarks(of account: Int64) throws -> [SentReadMarks.Mark] {
    try locked {
      let zone = try connected(account).zone
      return try read { try $0.replicaLogs(of: account) }.compactMap { log in
        // The log of another zone is one of another hub, or of a time before.
        guard log.cleared > log.read, log.isShare || log.log == zone else { return nil }
        return SentReadMarks.Mark(share: log.isShare ? WireID(bytes: log.log) : nil, number: log.cleared)
      }
    }
  }

  /// Notes that the hub knows how far the account has read its notices.
  package func noteRead(_ marks: [SentReadMarks.Mark], of account: Int64) throws {
    try locked {
      try makeChange(.replica) { change in
        for mark in marks {
          guard var log = try change.rows.replicaLog(of: account, self.log(mark.share, of: account)) else { continue }
          log.read = max(log.read, mark.number)
          try change.rows.set(log, of: account)
        }
      }
    }
  }
}

extension Event {
  /// Whether another event, by another id and number, tells of the same deed.
  fileprivate func tellsTheSame(as other: Event) -> Bool {
    type == other.type && subject == other.subject && data.actor.handle == other.data.actor.handle
      && data.item.path == other.data.item.path && data.previousPath == other.data.previousPath
      && data.version?.size == other.data.version?.size && data.comment == other.data.comment
      && data.mentioned?.handle == other.data.mentioned?.handle && data.participant == other.data.participant
  }
}
