import SheafHubStore
import SheafModel
import SheafWire

/// The person who changes a share, and the time.
struct ShareAction: Sendable {
  let actor: Person
  let time: Timestamp
  /// Whether the log of the share goes next, so that its members hear of this in their own.
  var isLast = false

  /// The event of a change, with the item that is shared.
  func pending(_ event: ShareEvents.Change, _ share: HubShare, _ rows: inout ShareRows) throws -> PendingEvent {
    var stored = StoredZone(zone: rows.zone, connection: rows.connection)
    let row = share.item == .root ? nil : try stored.item(share.item)
    let name = row?.places.first.map { String(decoding: $0.name, as: UTF8.self) } ?? "Documents"
    let path = try EventWriter.path(row?.places.first, &stored)
    var data = EventDetails(
      item: .init(
        id: share.item.description, kind: share.kind.rawValue, name: name, path: path.isEmpty ? name : path),
      actor: Account(handle: try AccountHandle(actor.handle), name: actor.name ?? actor.handle))
    data.share = EventWriter.share(share.id)
    data.participant = event.participant
    var told = data
    told.item.path = name
    return PendingEvent(
      id: WireID().description, type: event.type, subject: share.item, time: time, data: data,
      shared: [
        SharedEvent(
          share: share.id, type: event.type, data: told, about: event.participant == nil ? nil : event.account)
      ])
  }
}

/// The events of a change of a share.
enum ShareEvents {
  struct Change {
    let type: EventType
    /// The account that it concerns; for a share that begins, its owner.
    var account: String?
    var participant: EventDetails.Participant?
    /// Whether it invites somebody who had no part in the share.
    var isInvitation = false
  }

  static func events(of share: HubShare, since before: HubShare?) -> [Change] {
    let wasActive = before?.isActive ?? false
    if !share.isActive { return wasActive ? [Change(type: .shareStopped)] + turnedDown(share, before) : [] }
    var changes: [Change] = []
    if !wasActive {
      changes.append(Change(type: .shareCreated, account: share.owner?.person.zone))
    } else if let before, settings(before) != settings(share) {
      changes.append(Change(type: .shareUpdated))
    }
    let former = wasActive ? before?.members ?? [:] : [:]
    for (account, member) in former.sorted(by: { $0.key < $1.key })
    where member.acceptance != .removed && share.members[account]?.acceptance ?? .removed == .removed {
      // Of an invitation it tells that they never took part.
      let acceptance = member.acceptance == .pending ? Acceptance.pending : .removed
      changes.append(change(.memberRemoved, account, member, acceptance: acceptance))
    }
    for (account, member) in share.members.sorted(by: { $0.key < $1.key })
    where member.role != .owner && member.acceptance != .removed {
      let old = former[account].flatMap { $0.acceptance == .removed ? nil : $0 }
      if member.acceptance == .accepted, old?.acceptance != .accepted {
        changes.append(change(.memberAdded, account, member, acceptance: .accepted))
      } else if old?.acceptance != member.acceptance || old?.role != member.role
        || old?.permission != member.permission
      {
        var change = change(.shareUpdated, account, member, acceptance: member.acceptance)
        change.isInvitation = old == nil && member.acceptance == .pending
        changes.append(change)
      }
    }
    return changes + answers(share, before)
  }

  /// Events of people who asked for access, and of the answers.
  private static func answers(_ share: HubShare, _ before: HubShare?) -> [Change] {
    share.asking.sorted { $0.key < $1.key }.compactMap { account, asking in
      let old = before?.asking[account]?.state
      guard old != asking.state, asking.state != .withdrawn else { return nil }
      // It has the time of the request that was taken back.
      if old == .withdrawn, asking.state == .asked, before?.asking[account]?.time == asking.time { return nil }
      let type = asking.state == .asked ? EventType.accessRequested : .accessDeclined
      // A person who was blocked without having asked was not turned down.
      if type == .accessDeclined, old != .asked { return nil }
      let member = Member(
        person: asking.person, role: .privateUser, permission: share.permission, acceptance: .pending,
        since: asking.time)
      return change(type, account, member, acceptance: .pending)
    }
  }

  /// The answer to those who still asked when the share ended.
  private static func turnedDown(_ share: HubShare, _ before: HubShare?) -> [Change] {
    (before?.asking ?? [:]).sorted { $0.key < $1.key }.compactMap { account, asking in
      guard asking.state == .asked else { return nil }
      let member = Member(
        person: asking.person, role: .privateUser, permission: share.permission, acceptance: .removed,
        since: asking.time)
      return change(.accessDeclined, account, member, acceptance: .removed)
    }
  }

  private static func change(
    _ type: EventType, _ account: String, _ member: Member, acceptance: Acceptance
  ) -> Change {
    Change(
      type: type, account: account,
      participant: EventDetails.Participant(
        handle: member.person.handle, name: member.person.name ?? member.person.handle, role: member.role.rawValue,
        permission: member.permission.rawValue, acceptance: acceptance.rawValue))
  }

  private static func settings(_ share: HubShare) -> [String] {
    [
      share.title, share.anyone.rawValue, share.permission.rawValue, "\(share.allowsInvites)",
      "\(share.allowsRequests)", share.token.text, share.linkEnd?.secondsText ?? "",
    ]
  }
}

extension OutsiderNews {
  /// - Parameter isHeard: Whether it is told in any case.
  /// - Returns: nil for a change that is told in the log of the share alone.
  init?(_ change: ShareEvents.Change, _ share: HubShare, _ action: ShareAction, isHeard: Bool = false) {
    guard let participant = change.participant, isHeard || change.type == .accessDeclined || change.isInvitation,
      let handle = try? AccountHandle(action.actor.handle)
    else { return nil }
    type = change.type
    actor = Account(handle: handle, name: action.actor.name ?? action.actor.handle)
    self.participant = participant
    title = share.title
    kind = share.kind
    time = action.time.nanoseconds
  }

  /// What members hear of a share that ends with all of its owner's account.
  static func ending(_ share: HubShare, _ before: HubShare?, _ action: ShareAction) -> [String: OutsiderNews] {
    guard action.isLast, let before, before.isActive, !share.isActive else { return [:] }
    return before.members.filter { $0.value.role != .owner && $0.value.acceptance == .accepted }.compactMapValues {
      let participant = EventDetails.Participant(
        handle: $0.person.handle, name: $0.person.name ?? $0.person.handle, role: $0.role.rawValue,
        permission: $0.permission.rawValue, acceptance: Acceptance.removed.rawValue)
      return OutsiderNews(
        ShareEvents.Change(type: .shareStopped, participant: participant), before, action, isHeard: true)
    }
  }

  /// The event, whose item has the id of the share: outsiders learn no other one.
  func event(of share: WireID) -> PendingEvent {
    var data = EventDetails(
      item: .init(id: share.description, kind: kind.rawValue, name: title, path: title), actor: actor)
    // To somebody who was turned down there is no share.
    if type == .shareUpdated { data.share = EventWriter.share(share) }
    data.participant = participant
    return PendingEvent(
      id: WireID().description, type: type, subject: share, time: Timestamp(nanoseconds: time), data: data)
  }
}
