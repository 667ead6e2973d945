import Foundation
package import SheafModel
import SheafStore
import SheafWire

/// Notices: what others did, for an account, until the account clears them.
///
/// Rooms: `AccountTable`, `Numbers`, `ShareBook`.
extension Library {
  /// Events that notices are made of at most, and those that are looked at; of older ones `activity` tells.
  private static let (noticeEvents, noticesLookedAt) = (1_000, 50_000)

  /// The notices since the account cleared them last.
  package func notices(for account: AccountHandle) throws -> NoticeList {
    let (cleared, last, logs) = try locked {
      let id = try self.account(account).id
      return try read { rows in
        let logs = try rows.replicaLogs(of: id).map { ($0.log, $0.cleared) }
        return (try rows.noticed(id), numbers.event, Dictionary(uniqueKeysWithValues: logs))
      }
    }
    // What an account did itself, as unpacking an archive, hides nothing.
    let found = try latestEvents(
      before: last + 1, after: cleared, limit: Self.noticeEvents, of: Self.noticesLookedAt, for: account, in: .all,
      read: logs
    ) { Notice.tells(of: $0, account) || $0.passedOver != nil }
    let (invited, over, passedOver) = try locked {
      let id = try self.account(account).id
      return (
        try openInvitations(of: id), try withdrawnRequests(among: found).union(endedOffers(to: id, among: found)),
        try self.passedOver(by: found, account)
      )
    }
    // The latest invitation to something stands for those before it.
    let latest = Dictionary(
      found.filter { $0.isInvitation(of: account) }.map { ($0.subject, $0) },
      uniquingKeysWith: { $0.time < $1.time ? $1 : $0 }
    ).mapValues(\.id)
    // An invitation or an offer that was answered, or that ended, is no news. Nor is a request that was taken back.
    let events = found.filter { event in
      guard !over.contains(event.id) else { return false }
      guard event.isInvitation(of: account) else { return true }
      guard latest[event.subject] == event.id else { return false }
      return event.data.share.map { invited.contains($0.id) } ?? false
        || invited.contains(event.data.item.id)
    }
    return NoticeList(notices: Notice.notices(of: events, for: account, passedOver: passedOver), through: last)
  }

  /// The ids of the shares to which an account is invited, and has not answered.
  private func openInvitations(of account: Int64) throws -> Set<String> {
    let here = shares.pending(for: account).map(\.row.uuid.text)
    let atHub = try read { try $0.replicaShares(of: account) }.compactMap { row -> String? in
      let entry: InboxEntry = try ReplicaJSON.decode(row.entry)
      return entry.acceptance == .pending ? entry.share.description : nil
    }
    return Set(here + atHub)
  }

  /// The ids of the events that tell of offers to an account that it accepted or declined, or that were taken back. Of
  /// offers at hubs the hubs alone know.
  private func endedOffers(to account: Int64, among events: [Event]) throws -> Set<String> {
    let handle = try self.handle(account)
    let offers = events.filter { $0.isOffer(to: handle) }
    guard !offers.isEmpty, try read({ try $0.replica(account) }) == nil else { return [] }
    return Set(try offers.filter { try !isOffered($0.data.item.id, to: account) }.map(\.id))
  }

  /// Nanoseconds by which a request for access is older than its event at most: one clock is read twice.
  private static let requestDelay: Int64 = 1_000_000_000

  /// The ids of the events that tell of requests for access that were taken back since, as far as this library knows. Of
  /// requests at hubs the hubs alone know.
  private func withdrawnRequests(among events: [Event]) throws -> Set<String> {
    var withdrawn: Set<String> = []
    for event in events where event.type == .accessRequested {
      guard let uuid = UUID(uuidString: event.subject), let item = try read({ try $0.item(uuid: uuid) }),
        let person = accountTable.all.first(where: { $0.handle == event.data.actor.handle }),
        let time = try read({ try $0.withdrawn(item.id, person.id) }),
        (0..<Self.requestDelay).contains(event.time.nanoseconds &- time.nanoseconds),
        try !read({ try $0.accessRequests(item.id) }).contains(where: { $0.account == person.id })
      else { continue }
      withdrawn.insert(event.id)
    }
    return withdrawn
  }

  /// Of events whose save was not based on the version before it the number of that version, by their ids, as far as the
  /// document has it and the account may know of it.
  private func passedOver(by events: [Event], _ handle: AccountHandle) throws -> [String: Int64] {
    let caller = Caller.api(try account(handle).id)
    var passedOver: [String: Int64] = [:]
    for event in events {
      guard let number = event.passedOver, let uuid = UUID(uuidString: event.subject),
        let item = try read({ try $0.item(uuid: uuid) }), let row = try read({ try $0.inode(item: item.id) }),
        try read({ try $0.version(item.id, number) }) != nil,
        try number >= firstVisibleVersion(of: item.id, inode(row.ino), caller)
      else { continue }
      passedOver[event.id] = number
    }
    return passedOver
  }

  /// Clears the account's notices of events up to a sequence number.
  package func clearNotices(for account: AccountHandle, through sequence: Int64) throws {
    try locked {
      let id = try self.account(account).id
      let border = min(sequence, numbers.event)
      try makeChange(.accounts) { change in
        try change.rows.setNoticed(id, border)
        try clearLogs(of: id, through: border, change)
      }
    }
  }
}
