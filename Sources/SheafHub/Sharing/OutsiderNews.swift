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
}
