/// The status of one item, as `sheaf status PATH` prints it.
package struct ItemStatus: Sendable, Codable {
  package var id: String
  package var path: String
  /// `document`, `folder` or `symlink`.
  package var kind: String
  /// Number of the current version; nil for folders and symbolic links.
  @OrNull package var version: Int64?
  package var owner: AccountHandle
  /// Permission bits.
  package var mode: UInt32
  package var mtime: Timestamp
  /// `saved` or `edited`.
  package var state: String
  /// Whether `.sheafignore` names it, so that it has no versions, no events and no trash.
  @OrFalse package var ignored: Bool
  /// Number of the version that the current one was not based on; nil if there is no conflict.
  @OrNull package var conflict: Int64?
  /// Whether a hub put it beside another document; nil if it did not, or somebody renamed it since.
  @OrNull package var beside: HubCopy?
  /// The share that the item is in; nil if it is in none.
  @OrNull package var share: Share?
  /// The participants, each with the time of their latest change; empty if nothing is shared.
  package var people: [Collaborator]
  /// The latest changes, newest first.
  package var changes: [LatestChange]
  /// The operations that the asking account may do on it, in ``ShareOperation``'s words.
  package var can: [String]

  package init(
    id: String, path: String, kind: String, version: Int64?, owner: AccountHandle, mode: UInt32, mtime: Timestamp,
    state: String, ignored: Bool, conflict: Int64?, beside: HubCopy?, share: Share?, people: [Collaborator],
    changes: [LatestChange], can: [String]
  ) {
    self.beside = beside
    self.id = id
    self.path = path
    self.kind = kind
    self.version = version
    self.owner = owner
    self.mode = mode
    self.mtime = mtime
    self.state = state
    self.ignored = ignored
    self.conflict = conflict
    self.share = share
    self.people = people
    self.changes = changes
    self.can = can
  }
}

/// Someone in a share, as the collaboration view shows them.
package struct Collaborator: Hashable, Sendable, Codable {
  package let handle: AccountHandle
  package let name: String
  package let role: Role
  package let permission: SharePermission
  package let acceptance: Acceptance
  /// When `acceptance` got its present value.
  package let since: Timestamp
  /// When they last changed something; nil if they have not.
  @OrNull package var lastEdited: Timestamp?

  package init(_ participant: Participant, lastEdited: Timestamp?) {
    handle = participant.handle
    name = participant.name
    role = participant.role
    permission = participant.permission
    acceptance = participant.acceptance
    since = participant.since
    self.lastEdited = lastEdited
  }
}

/// One of the latest changes of an item or of what is in it.
package struct LatestChange: Hashable, Sendable, Codable {
  package let time: Timestamp
  package let actor: AccountHandle
  /// An event's type, such as `sheaf.change.edit`.
  package let type: String
  /// Name of the changed item.
  package let name: String
  /// Whether the item came back rather than being made.
  package let recovered: Bool
  /// The handle of the person whom a change of the participants is about.
  @OrNull package var participant: String?
  /// Whether that person had not accepted an invitation; nil where an older process answers.
  package var wasInvited: Bool?

  package init(
    time: Timestamp, actor: AccountHandle, type: String, name: String, recovered: Bool, participant: String?,
    wasInvited: Bool
  ) {
    self.participant = participant
    self.wasInvited = wasInvited
    self.time = time
    self.actor = actor
    self.type = type
    self.name = name
    self.recovered = recovered
  }
}

/// An item in a folder, as `sheaf send-copy` lists it.
package struct FolderItem: Hashable, Sendable, Codable {
  /// The name's bytes, percent-encoded.
  package let name: String
  /// `document`, `folder`, `symlink`, or `other` for an item that is not copied.
  package let kind: String
  /// Permission bits.
  package let mode: UInt32
  package let mtime: Timestamp
  /// Target of a symbolic link, percent-encoded; nil for anything else, and for a link that someone else made and that
  /// leads out of the share.
  package let target: String?

  package init(name: String, kind: String, mode: UInt32, mtime: Timestamp, target: String?) {
    self.name = name
    self.kind = kind
    self.mode = mode
    self.mtime = mtime
    self.target = target
  }
}
