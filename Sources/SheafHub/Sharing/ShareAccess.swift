import SheafHubStore
import SheafModel
package import SheafWire

/// Somebody's way to what is shared with them: the share, and the zone that it is thought to be in.
package struct SharedPlace: Hashable, Sendable {
  package let share: WireID
  package let zone: String
  package let account: String

  /// The key by which ``ZoneNews`` wakes those who wait for news of the share.
  var feed: String { "\(zone) \(share)" }
  /// What wakes those who wait for the share's events.
  var log: String { "\(feed) \(Hub.logWord)" }
}

/// The rights of somebody in a share, as they are in one transaction.
struct ShareAccess: Sendable {
  let place: SharedPlace
  /// The shared item.
  let item: WireID
  private let role: Role
  private let permission: SharePermission
  private let acceptance: Acceptance
  /// The number of the feed up to which they see nothing, since it was before they joined.
  let joined: Int64

  var isOwner: Bool { role == .owner }

  func allows(_ operation: ShareOperation) -> Bool {
    ShareRules.allows(operation, role: role, permission: permission, acceptance: acceptance)
  }

  /// Places as members see them: they do not learn where the owner keeps the shared item.
  func shown(_ places: [Place], of item: WireID) -> [Place] {
    item == self.item ? places.prefix(1).map { Place(parent: .root, name: $0.name) } : places
  }

  /// - Throws: ``HubError`` of kind `notFound` for strangers, for whom the share is none, and where what is shared was
  ///   deleted; `forbidden` for members who may not.
  static func require(
    _ operation: ShareOperation, _ place: SharedPlace, _ connection: inout any SQLConnection
  ) throws -> ShareAccess {
    let rows = try connection.query(
      """
      SELECT shares.item, participants.role, participants.permission, participants.acceptance, memberships.number
      FROM shares LEFT JOIN participants ON participants.zone = shares.zone AND participants.share = shares.share
      LEFT JOIN memberships ON memberships.zone = shares.zone AND memberships.share = shares.share
        AND memberships.account = participants.account
      WHERE shares.zone = $1 AND shares.share = $2 AND shares.active = 1 AND participants.account = $3
      """, [.text(place.zone), .blob(place.share.bytes), .text(place.account)])
    guard let row = rows.first, let role = Role(rawValue: try row.text(1)),
      let permission = SharePermission(rawValue: try row.text(2)),
      let acceptance = Acceptance(rawValue: try row.text(3)), acceptance != .removed
    else { throw HubShare.nothing }
    let item = try StoredZone.id(row.blob(0))
    if item != .root {
      var stored = StoredZone(zone: place.zone, connection: connection)
      guard let row = try stored.item(item), !row.isDeleted else { throw HubShare.nothing }
    }
    let access = ShareAccess(
      place: place, item: item, role: role, permission: permission, acceptance: acceptance,
      joined: try row.optionalInteger(4) ?? 0)
    guard access.allows(operation) else {
      throw HubError(.forbidden, "the account's part in the share does not allow it")
    }
    return access
  }
}
