package import SheafModel
import SheafStore

/// The event log as readers see it: pages, and signals for readers that wait for more (``observeEvents(_:)``).
///
/// Rooms: `AccountTable`, `ConnectedAccounts`, `EventLog`, `EventObservers`, `Numbers`, `ShareBook`.
extension Library {
  /// Events that one page has at most, and rows of the log that are looked at for it.
  package static let eventPage = 1000

  /// The events after a sequence number that a reader sees, oldest first.
  ///
  /// The page may be empty though more follow: it ends after ``eventPage`` rows, no matter who sees them. The log goes
  /// on while `next` is below `last`.
  ///
  /// - Parameters:
  ///   - position: Nil to begin with the oldest event that is kept.
  ///   - account: the reader; nil for the library itself, which sees everything.
  ///   - isNews: whether what a hub had before the account was connected is left out.
  /// - Throws: `gone` as ``eventStart(after:)``; `notFound` for an unknown account.
  package func events(
    after position: Int64?, limit: Int, for account: AccountHandle?, in scope: EventScope = .all,
    isNews: Bool = false
  ) throws -> EventPage {
    try events(after: position, limit: limit, as: eventVisibility(account), in: scope, isNews: isNews)
  }

  /// As ``events(after:limit:for:in:isNews:)``; the page ends where the log did when `visibility` was so.
  func events(
    after position: Int64?, limit: Int, as visibility: EventVisibility, in scope: EventScope = .all,
    isNews: Bool = false
  ) throws -> EventPage {
    // Read beside the lock: writers do not wait for those who read the log.
    try store.snapshot { transaction in
      let start = try Self.eventStart(after: position, transaction).start
      var page = EventPage(events: [], next: start, last: max(start, visibility.last))
      for entry in try transaction.log(after: start, limit: Self.eventPage) where entry.number <= visibility.last {
        if !isNews || !entry.isPast, let event = try visibility.event(entry, transaction),
          scope.includes(event, entry)
        {
          page.events.append(event)
        }
        page.next = entry.number
        if page.events.count == limit { break }
      }
      return page
    }
  }

  /// The sequence number after which a reader goes on who read up to `position`; for nil that of the newest event that
  /// is not kept.
  ///
  /// - Throws: `gone` where retention dropped events after `position`, and where the log ends before it.
  package func eventStart(after position: Int64?) throws -> Int64 {
    try store.snapshot { try Self.eventStart(after: position, $0).start }
  }

  private static func eventStart(
    after position: Int64?, _ transaction: StoreTransaction
  ) throws -> (start: Int64, last: Int64) {
    let (dropped, last) = try transaction.eventBounds()
    guard let position else { return (dropped, last) }
    let advice = "begin anew: leave the position out, and the oldest event that is kept comes first"
    guard position >= dropped else {
      throw SheafError(.gone, subject: "events up to \(dropped)", reason: "were dropped after 90 days", advice: advice)
    }
    guard position <= last else {
      throw SheafError(
        .gone, subject: "event \(position)", reason: "is not in this log, which was perhaps restored from a backup",
        advice: advice)
    }
    return (position, last)
  }

  /// The latest events that an account sees, oldest first.
  ///
  /// - Parameters:
  ///   - position: Sequence number of the first event that is too new.
  ///   - start: Sequence number of the last event that is too old.
  /// - Returns: Last come those that the hub does not have yet, if no `position` is given.
  package func latestEvents(
    before position: Int64 = .max, after start: Int64 = 0, limit: Int, for account: AccountHandle?,
    in scope: EventScope = .all
  ) throws -> [Event] {
    try latestEvents(before: position, after: start, limit: limit, for: account, in: scope, read: [:]) { _ in true }
  }

  /// - Parameters:
  ///   - most: Events that are looked at.
  ///   - read: By the log of a hub, the number up to which its events are left out.
  ///   - isWanted: Which of the events that the account sees count.
  func latestEvents(
    before position: Int64, after start: Int64, limit: Int, of most: Int = .max, for account: AccountHandle?,
    in scope: EventScope, read: [[UInt8]: Int64], where isWanted: (Event) -> Bool
  ) throws -> [Event] {
    let visibility = try eventVisibility(account)
    return try store.snapshot { transaction in
      var events: [Event] = []
      if position == .max {
        for row in try transaction.waitingEvents(limit: limit).reversed() {
          guard let event = try visibility.waiting(row, transaction), scope.includes(event, .own(row)) else { continue }
          events.append(event)
        }
      }
      var border = min(position, visibility.last + 1)
      var left = most
      while events.count < limit, left > 0 {
        let entries = try transaction.log(before: border, limit: Self.eventPage).filter { $0.number > start }
        guard let oldest = entries.last else { break }
        for entry in entries where events.count < limit {
          if case .hub(let row) = entry, let number = read[row.log], row.number <= number { continue }
          if let event = try visibility.event(entry, transaction), scope.includes(event, entry), isWanted(event) {
            events.append(event)
          }
        }
        border = oldest.number
        left -= entries.count
      }
      return events.reversed()
    }
  }

  /// Calls `observer` whenever events were numbered or webhooks changed, from now on, with whom that concerns; returns
  /// a number for ``endObservingEvents(_:)``.
  ///
  /// The observer is called without the lock and must return at once; it reads the new events with
  /// ``events(after:limit:for:)``.
  package func observeEvents(_ observer: @escaping @Sendable (EventNews) -> Void) -> Int {
    locked { eventObservers.add(observer) }
  }

  /// Ends the calls of an observer of events.
  package func endObservingEvents(_ number: Int) { locked { eventObservers.remove(number) } }

  /// The number of the newest event.
  package var lastEvent: Int64 { locked { numbers.event } }

  /// The events that `path` selects: those of the item there, or that was deleted from there, and of everything below.
  ///
  /// - Throws: `notFound`, `accessDenied`.
  package func eventScope(_ path: ItemPath) throws -> EventScope {
    try locked {
      var inode: Inode
      do {
        inode = try resolve(path)
        try allow(.readHistory, inode, on: path)
      } catch let error as SheafError where error.kind == .notFound {
        guard let deleted = try? resolveDeleted(path) else { throw error }
        inode = try self.inode(deleted.ino)
      }
      guard let item = try item(of: inode) else {
        throw SheafError(.invalid, subject: "\(path)", reason: "is a special file, of which no event speaks")
      }
      let place = try place(inode.row.parent, inode.row.name, item: item.id)
      let (own, share) = (String(decoding: place.path, as: UTF8.self), place.share)
      let reader = try account(path.account).id
      let isOwner = reader == inode.row.owner
      let shareID = isOwner ? nil : share.flatMap { shares[$0.share]?.row.uuid.bytes }
      return EventScope(
        item: item.uuid.text,
        place: .init(
          path: isOwner ? own : share?.path(own) ?? own, owner: inode.row.owner, share: isOwner ? nil : share?.share,
          reader: connectedAccounts.contains(inode.row.owner) ? reader : nil, shareID: shareID))
    }
  }

  func eventVisibility(_ account: AccountHandle?) throws -> EventVisibility {
    try locked {
      let accounts = accountTable.all.map { ($0.id, Account(handle: $0.handle, name: $0.name)) }
      return EventVisibility(
        viewer: try account.map { try self.account($0) }, accounts: Dictionary(uniqueKeysWithValues: accounts),
        shares: shares.byItem, gone: shares.gone, library: id,
        publicAddress: try read { try $0.setting("publicAddress") }, last: numbers.event)
    }
  }
}
