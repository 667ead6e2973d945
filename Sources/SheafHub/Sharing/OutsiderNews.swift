import SheafHubStore
import SheafModel
import SheafWire

/// What somebody hears of a share who takes no part in it: that they are invited, or were turned down. It becomes an
/// event of their own log, since they do not see that of the share.
struct OutsiderNews: Hashable, Sendable, Codable {
  let type: EventType
  let actor: Account
  let participant: EventDetails.Participant
  let title: String
  let kind: ItemKind
  /// Nanoseconds since 1970.
  let time: Int64

  /// - Returns: nil for a change that is told in the log of the share alone.
  init?(_ change: ShareEvents.Change, _ share: HubShare, _ action: ShareAction) {
    guard let participant = change.participant, change.type == .accessDeclined || change.isInvitation,
      let handle = try? AccountHandle(action.actor.handle)
    else { return nil }
    type = change.type
    actor = Account(handle: handle, name: action.actor.name ?? action.actor.handle)
    self.participant = participant
    title = share.title
    kind = share.kind
    time = action.time.nanoseconds
  }

  /// That the owner invites somebody to a share of another hub.
  ///
  /// - Parameters:
  ///   - offer: What that hub tells of the share.
  ///   - person: The handle of the person.
  init?(_ offer: InboxNote.Offer, by owner: String, to person: String, at time: Timestamp) {
    guard let handle = try? AccountHandle(owner) else { return nil }
    type = .shareUpdated
    actor = Account(handle: handle, name: offer.ownerName)
    participant = EventDetails.Participant(
      handle: person, name: person, role: offer.role.rawValue, permission: offer.permission.rawValue,
      acceptance: Acceptance.pending.rawValue)
    title = offer.title
    kind = offer.kind
    self.time = time.nanoseconds
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
