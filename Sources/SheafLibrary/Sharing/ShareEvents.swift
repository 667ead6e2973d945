import Foundation
import SheafModel
import SheafStore

/// Events of shares, committed with what they tell of. They get their number at once: nobody undoes what they tell, but
/// for a departure that may be undone (``LeftEntry``).
///
/// Rooms: `EventLog`, `InodeTable`, `Numbers`.
extension Library {
  /// Logs what became of a share; returns the event's number.
  @discardableResult
  func logShareEvent(
    _ type: EventType, _ share: ShareBook.Entry, _ inode: Inode, participant: ParticipantRow? = nil, actor: Int64,
    _ change: Change
  ) throws -> Int64 {
    // People who join hear of nothing that was done before.
    try settleEvents(before: share.row.item, ofAll: type == .memberAdded, change)
    // What becomes of a share at a hub, the hub tells.
    if share.row.url != nil { return numbers.event }
    let (item, data) = try shareEventData(share, inode, participant)
    let time = clock()
    return try number(
      EventRow(
        number: 0, uuid: .timeOrdered(time), type: type.rawValue, time: time, actor: actor, owner: item.owner,
        item: item.id, data: data.json, share: data.share, process: 0), about: participant?.account, change)
  }

  /// Logs that someone left by taking an entry away, which the program of `thread` may undo; returns the number under
  /// which the event waits.
  func logDeparture(
    _ share: ShareBook.Entry, _ inode: Inode, _ participant: ParticipantRow, thread: Int32,
    _ change: Change
  ) throws -> Int64 {
    let (item, data) = try shareEventData(share, inode, participant)
    try logEvent(
      .memberRemoved, item, ino: inode.ino, data, actor: participant.account, thread: thread, opens: true, change)
    return numbers.pending
  }

  /// Numbers the pending events of a shared item, and of its whole share if someone joins, before the next event of the
  /// share, since their actions came before. If an editor is about to undo such an action, the undoing has an event,
  /// too.
  ///
  /// A document without its first version has no event yet but that it will be made.
  func settleEvents(before share: Int64, ofAll: Bool = false, _ change: Change) throws {
    if events.isEmpty { return }
    var waiting = events.of(share)
    if ofAll {
      // With what was done to the same items before, elsewhere: the events of an item keep their order.
      var items: Set<Int64> = []
      var gathering = SettlingScan(upTo: numbers.pending)
      while !gathering.isOver { items.formUnion(try waitingItems(in: share, &gathering)) }
      waiting = events.pending.filter { $0.row.item == share || items.contains($0.row.item) }
    }
    var held: Set<Int64> = []
    var heldEvents: Set<Int64> = []
    var settled: Set<Int64> = []
    for event in waiting {
      let waits =
        events.isHeld(event)
        || event.row.type == EventType.created.rawValue
          && (event.row.item == share
            ? hasNoVersionYet(event.ino)
            : isBeingMade(event) && !isMovedOrDeleted(event.row.item, after: event))
      guard !waits, !held.contains(event.row.item), !heldEvents.contains(event.row.number) else {
        held.insert(event.row.item)
        if let absorber = events.absorber(of: event.row.item) { heldEvents.insert(absorber) }
        continue
      }
      settled.insert(event.row.number)
      // This change may have settled it before.
      if try change.rows.pendingEvent(event.row.number) != nil { try settle(event, change) }
    }
    if !settled.isEmpty { change.whenRecorded { [self, settled] in events.remove(settled) } }
  }

  /// Items in a share of which events wait that a scan comes to next.
  func waitingItems(in share: Int64, _ scan: inout SettlingScan) throws -> Set<Int64> {
    try waitingItems(in: &scan) { try concerns($0, share) }
  }

  /// Whether an event that waits is of something in a share: where it was done, or where what was made lies by now.
  private func concerns(_ event: EventLog.Pending, _ share: Int64) throws -> Bool {
    if event.row.share?.share == share || event.row.previousShare?.share == share { return true }
    guard event.row.type == EventType.created.rawValue, let inode = inodes[event.ino] else { return false }
    return try self.share(of: inode)?.row.item == share
  }

  /// Whether the session that makes a document's first version goes on.
  private func hasNoVersionYet(_ ino: Int64) -> Bool {
    guard let inode = inodes[ino], inode.isRegular else { return false }
    return inode.drafts.contains { draft in
      draft.session.map { $0.number == 1 || $0.number == nil && inode.item?.version == 0 } ?? false
    }
  }

  private func shareEventData(
    _ share: ShareBook.Entry, _ inode: Inode, _ participant: ParticipantRow?
  ) throws -> (item: ItemRow, data: EventData) {
    guard let item = try item(of: inode) else { throw SheafError(.notFound) }
    let isWhole = inode.row.parent == 0
    var data = try eventData(item, parent: inode.row.parent, name: isWhole ? Array("Documents".utf8) : inode.row.name)
    data.share = ShareMark(
      share: share.row.item, depth: isWhole ? -1 : Int64(data.item.path.utf8.count { $0 == UInt8(ascii: "/") }))
    if let participant {
      let fact = try fact(participant)
      data.participant = .init(
        handle: fact.handle.description, name: fact.name, role: fact.role.rawValue,
        permission: fact.permission.rawValue,
        acceptance: fact.acceptance.rawValue)
    }
    return (item, data)
  }

  /// Logs whose standing a change of a share altered, and notes the numbers with those who went.
  func logChanges(
    of share: inout ShareBook.Entry, since before: ShareBook.Entry?, _ departed: [Int64], _ inode: Inode, actor: Int64,
    _ change: Change
  ) throws {
    for account in departed {
      guard var participant = share.participants[account] else { continue }
      participant.ended = try logShareEvent(
        .memberRemoved, share, inode, participant: participant, actor: actor, change)
      share.participants[account] = participant
    }
    for (account, participant) in share.participants.sorted(by: { $0.key < $1.key })
    where !departed.contains(account) && participant.acceptance != .removed {
      let old = before?.participants[account]
      guard participant.role != .owner,
        old?.acceptance != participant.acceptance
          || old?.permission != participant.permission || old?.role != participant.role
      else { continue }
      try logShareEvent(.shareUpdated, share, inode, participant: participant, actor: actor, change)
    }
  }
}
