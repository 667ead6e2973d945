/// What `sheaf status PATH` tells of one item.
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
  /// Number of the version that the current one was not based on; nil where there is none.
  @OrNull package var conflict: Int64?
  /// The share the item is in; nil where it is in none.
  @OrNull package var share: Share?
  /// Those who take part, with when they were last seen editing; empty where nothing is shared.
  package var people: [Collaborator]
  /// The latest changes, newest first.
  package var changes: [LatestChange]
  /// What who asks can do with it: ``ShareOperation``'s words.
  package var can: [String]

  package init(
    id: String, path: String, kind: String, version: Int64?, owner: AccountHandle, mode: UInt32, mtime: Timestamp,
    state: String, conflict: Int64?, share: Share?, people: [Collaborator], changes: [LatestChange], can: [String]
  ) {
    self.id = id
    self.path = path
    self.kind = kind
    self.version = version
    self.owner = owner
    self.mode = mode
    self.mtime = mtime
    self.state = state
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
  /// Since when `acceptance` is what it is.
  package let since: Timestamp
  /// When they changed something last; nil where they did not yet.
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
  /// Name of the item that it was.
  package let name: String
  /// Whether the item came back, and was not made.
  package let recovered: Bool

  package init(time: Timestamp, actor: AccountHandle, type: String, name: String, recovered: Bool) {
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
  /// `document`, `folder`, `symlink`, or `other` for what no copy is made of.
  package let kind: String
  /// Permission bits.
  package let mode: UInt32
  package let mtime: Timestamp
  /// Target of a symbolic link, percent-encoded; nil for all else, and where someone else made it and it leads out of the
  /// share.
  package let target: String?

  package init(name: String, kind: String, mode: UInt32, mtime: Timestamp, target: String?) {
    self.name = name
    self.kind = kind
    self.mode = mode
    self.mtime = mtime
    self.target = target
  }
}
