import Foundation
import SheafModel
import SheafStore

/// The one place that decides which account sees which event, and in which form (docs/REFERENCE.md, "Events").
///
/// - An account sees events of its own documents, with paths relative to its `Documents`.
/// - A participant sees events of the share from joining to departure, both included, with paths that begin with the
///   shared item's name. What was done before they joined, and is told later, they do not see. An item that comes into
///   the share is `created` for them, one that leaves it is `deleted`, and one that goes between two shares of theirs is
///   `moved`. People who see both documents learn that the contents of one went to the other.
/// - Only the owner learns where they keep the shared item; the others learn its name.
/// - The person that a membership event is about sees it, joined or not: an invitation, a removal. Public users see
///   none that is about another person. People who are out still see what they saw in their former role, as public
///   users or not.
/// - Owner and administrators see requests for access and the answers. The person who asked sees the answer, too, and
///   learns nothing from it but the title that the link told.
/// - The owner and the account to which an item is offered see what becomes of the offer, and nobody else does.
/// - Only the person mentioned sees a mention.
/// - The library itself, for the machine's owner and the sidecar, sees every event as the owner of the item sees it.
struct EventVisibility: Sendable {
  /// The account that looks; nil for the library itself.
  let viewer: AccountRow?
  let accounts: [Int64: Account]
  /// By shared item; those of items that are no more stand apart.
  let shares: [Int64: ShareBook.Entry]
  let gone: [Int64: ShareBook.Entry]
  let library: String
  let publicAddress: String?
  /// The number of the newest event when all this was so: of later ones it says nothing.
  let last: Int64

  /// The event of an entry of `log` as the viewer sees it; nil where the viewer does not.
  ///
  /// - Throws: `corrupt` where it makes no sense.
  func event(_ entry: LogEntry, _ log: StoreTransaction) throws -> Event? {
    switch entry {
    case .own(let row): try event(row, log)
    case .hub(let row): try event(row)
    }
  }

  /// An event of a hub's log. The hub has decided who sees it, and in which form.
  private func event(_ row: ReplicaEventRow) throws -> Event? {
    guard viewer.map({ $0.id == row.account }) ?? !row.isRepeated else { return nil }
    guard var event = try? JSONDecoder().decode(Event.self, from: Data(row.event.utf8)) else {
      throw SheafError(.corrupt, subject: "event \(row.sequence)", advice: "run sheaf check")
    }
    event.position = row.sequence
    return event
  }

  /// The event of a row of `log` as the viewer sees it; nil where the viewer does not.
  ///
  /// - Throws: `corrupt` where the row makes no sense.
  func event(_ row: EventRow, _ log: StoreTransaction) throws -> Event? {
    guard let viewer else { return try decoded(row) }
    if row.owner == viewer.id {
      guard row.type == EventType.mention.rawValue else { return try decoded(row) }
      let event = try decoded(row)
      return event.data.mentioned?.handle == viewer.handle ? event : nil
    }
    if row.type == EventType.accessDeclined.rawValue {
      let event = try decoded(row)
      if event.data.participant?.handle == viewer.handle.description { return requesterView(event, row) }
    }
    if row.type == EventType.shareUpdated.rawValue, row.share == nil {
      let event = try decoded(row)
      return event.data.participant?.handle == viewer.handle.description ? recipientView(event) : nil
    }
    guard row.share.map({ takesPart(viewer, $0) }) ?? false || row.previousShare.map({ takesPart(viewer, $0) }) ?? false
    else { return nil }
    let stored = try EventData(row)
    let event = try event(row, stored)
    if [.accessRequested, .accessDeclined].contains(event.type), !isAdministrator(viewer, row.share) { return nil }
    if event.type == .mention, event.data.mentioned?.handle != viewer.handle { return nil }
    if let participant = event.data.participant, try !sees(viewer, news: participant, row, log) { return nil }
    if event.data.participant?.handle != viewer.handle.description, !isMember(viewer, row.share, row, stored),
      !isMember(viewer, row.previousShare, row, stored)
    {
      return nil
    }
    return participantsView(event, row, stored, viewer)
  }

  // MARK: - Participants

  private func entry(_ share: Int64) -> ShareBook.Entry? { shares[share] ?? gone[share] }

  /// Whether the viewer takes or took part, or was asked to.
  private func takesPart(_ viewer: AccountRow, _ mark: ShareMark) -> Bool {
    entry(mark.share)?.participants[viewer.id] != nil
  }

  private func isAdministrator(_ viewer: AccountRow, _ mark: ShareMark?) -> Bool {
    mark.flatMap { entry($0.share)?.member(viewer.id) }?.role == .administrator
  }

  /// The answer to someone who asked for access, and was not let in.
  private func requesterView(_ event: Event, _ row: EventRow) -> Event {
    let title = row.share.flatMap { entry($0.share)?.row.title } ?? event.data.item.name
    var told = event
    told.data.item.name = title
    told.data.item.path = title
    told.data.share = nil
    return told
  }

  /// The offer of an item to the viewer: it tells no more of the place than the name.
  private func recipientView(_ event: Event) -> Event {
    var told = event
    told.data.item.path = told.data.item.name
    return told
  }

  /// Whether the viewer was a member of a share when something was done and when its event was logged.
  private func isMember(_ viewer: AccountRow, _ mark: ShareMark?, _ row: EventRow, _ stored: EventData) -> Bool {
    guard let mark, let participant = entry(mark.share)?.participants[viewer.id], let joined = participant.joined,
      row.number >= joined, stored.before.map({ joined < $0 }) ?? true
    else { return false }
    return participant.ended.map { row.number <= $0 } ?? true
  }

  /// Whether the viewer sees an event of someone's joining, leaving or standing.
  private func sees(
    _ viewer: AccountRow, news participant: EventDetails.Participant, _ row: EventRow, _ log: StoreTransaction
  ) throws -> Bool {
    if participant.handle == viewer.handle.description { return true }
    guard let mark = row.share, let share = entry(mark.share), let own = share.participants[viewer.id] else {
      return false
    }
    if own.acceptance == .accepted { return own.role != .publicUser }
    // Their present role says nothing about the past; the events of their joining and departure do.
    return try [own.joined, own.ended].contains { number in
      guard let row = try number.flatMap(log.event), row.share?.share == mark.share,
        let former = try decoded(row).data.participant
      else { return false }
      return former.handle == viewer.handle.description && former.role != Role.publicUser.rawValue
    }
  }

  /// The event without anything of what lies outside of the share; nil where all of it does.
  private func participantsView(
    _ event: Event, _ row: EventRow, _ stored: EventData, _ viewer: AccountRow
  ) -> Event? {
    var type = event.type
    var data = event.data
    let isAbout = data.participant?.handle == viewer.handle.description
    if let mark = row.share, isMember(viewer, mark, row, stored) || isAbout {
      data.item.path = mark.path(data.item.path)
      if let previous = row.previousShare, previous.share == mark.share || isMember(viewer, previous, row, stored),
        let former = data.previousPath.map(previous.path)
      {
        data.previousPath = former
        if previous.share == mark.share {
          // Participants do not learn where the owner keeps the shared item; they learn its name.
          if former == data.item.path { return nil }
          if type == .moved, Self.folder(of: former) == Self.folder(of: data.item.path) { type = .renamed }
        }
      } else {
        // It came from where the viewer does not see.
        if type == .moved || type == .renamed { type = .created }
        (data.previousPath, data.previousName) = (nil, nil)
      }
      data.contents = data.contents?.map { item in
        var item = item
        item.path = mark.path(item.path)
        return item
      }
    } else if let previous = row.previousShare {
      // It went to a place that the viewer does not see. If only its contents went there, its deletion has an event of
      // its own.
      if type == .edit { return nil }
      type = .deleted
      data.item.path = previous.path(data.previousPath ?? "")
      data.item.name = data.previousName ?? data.item.name
      data.share = share(previous)
      (data.previousPath, data.previousName, data.version, data.contents) = (nil, nil, nil, nil)
    }
    return Event(
      id: event.id, source: event.source, type: type, subject: event.subject, time: event.time,
      sequence: event.sequence, data: data)
  }

  /// An event of what the hub does not have yet, as the viewer sees it.
  func waiting(_ row: EventRow, _ log: StoreTransaction) throws -> Event? {
    var newest = row
    // It comes after all that has a number.
    newest.number = .max
    guard let event = try event(newest, log) else { return nil }
    var waiting = Event(
      id: event.id, source: event.source, type: event.type, subject: event.subject, time: event.time, sequence: 0,
      data: event.data)
    waiting.isWaiting = true
    return waiting
  }

  private static func folder(of path: String) -> Substring { path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }

  // MARK: - Rows

  private func decoded(_ row: EventRow) throws -> Event { try event(row, EventData(row)) }

  private func event(_ row: EventRow, _ stored: EventData) throws -> Event {
    guard let type = EventType(rawValue: row.type), let actor = accounts[row.actor] else {
      throw SheafError(.corrupt, subject: "event \(row.number)", advice: "run sheaf check")
    }
    var data = EventDetails(item: stored.item, actor: actor)
    data.share = row.share.flatMap(share)
    data.version = stored.version
    data.previousPath = stored.previousPath
    data.previousName = stored.previousName
    data.participant = stored.participant
    data.contents = stored.contents
    data.contentCount = stored.contentCount
    data.comment = stored.comment
    data.mentioned = stored.mentioned.flatMap { handle in accounts.values.first { $0.handle.description == handle } }
    return Event(
      id: row.uuid.text, source: "sheaf://\(library)", type: type, subject: stored.item.id, time: row.time,
      sequence: row.number, data: data)
  }

  private func share(_ mark: ShareMark) -> EventDetails.Share? {
    guard let share = entry(mark.share) else { return nil }
    // People who are out have no business with a link that may have been made since.
    if let viewer, share.participants[viewer.id]?.acceptance == .removed { return nil }
    let row = share.row
    return EventDetails.Share(
      id: row.uuid.text, url: row.url ?? row.token.url(address: publicAddress, library: library), title: row.title)
  }
}

extension ShareMark {
  /// The participants' form of an owner's path (docs/FORMAT.md, `depth`).
  func path(_ path: String) -> String {
    guard depth >= 0 else { return path.isEmpty || path == "Documents" ? "Documents" : "Documents/" + path }
    return path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(Int(depth)).joined(separator: "/")
  }
}

/// Which of the visible events are asked for: all, or those of an item and what is below it.
package struct EventScope: Sendable {
  /// Where an item is, as the reader sees paths.
  struct Place {
    let path: String
    /// In whose tree; several people have things of one path.
    let owner: Int64
    /// The share by which the reader sees it; nil for the owner.
    let share: Int64?
    /// The account whose hub tells of it, and the share's id there; nil where no hub does.
    let reader: Int64?
    let shareID: [UInt8]?
  }

  /// Id of the item; nil for all.
  let item: String?
  let place: Place?

  package static let all = EventScope(item: nil, place: nil)

  func includes(_ event: Event, _ entry: LogEntry) -> Bool {
    guard let item else { return true }
    if event.subject == item || event.data.contents?.contains(where: { $0.id == item }) ?? false { return true }
    guard let place else { return false }
    switch entry {
    case .own(let row):
      guard row.owner == place.owner else { return false }
      if let share = place.share, row.share?.share != share, row.previousShare?.share != share { return false }
    case .hub(let row):
      // Of the shares of others only the one by which the reader sees the item.
      guard row.account == place.reader, place.shareID == nil || row.share == place.shareID
      else { return false }
    }
    // Its contents went to another document.
    if event.type == .edit, event.data.previousPath == place.path { return true }
    let prefix = place.path.isEmpty ? "" : place.path + "/"
    return event.data.item.path.hasPrefix(prefix) || event.data.previousPath?.hasPrefix(prefix) ?? false
  }
}
