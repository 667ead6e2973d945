/// Someone in a share.
package struct Participant: Hashable, Sendable, Codable {
  package let handle: AccountHandle
  /// Display name.
  package let name: String
  package let role: Role
  package let permission: SharePermission
  package let acceptance: Acceptance
  /// When `acceptance` got its present value.
  package let since: Timestamp

  package init(
    handle: AccountHandle, name: String, role: Role, permission: SharePermission, acceptance: Acceptance,
    since: Timestamp
  ) {
    self.handle = handle
    self.name = name
    self.role = role
    self.permission = permission
    self.acceptance = acceptance
    self.since = since
  }

  /// The line of `user.sheaf.share.participants`.
  package var line: String { "\(handle)\t\(role.rawValue)\t\(permission.rawValue)\t\(acceptance.rawValue)" }
}

/// A share, as one of its participants sees it.
package struct Share: Hashable, Sendable, Codable {
  /// UUID in lower case.
  package let id: String
  package let url: String
  package let title: String
  package let owner: AccountHandle
  /// The shared item's path for the asking account: `Documents/…` or `Shared/…`.
  package let path: String
  package let `public`: PublicPermission
  /// The permission of invitations that name none.
  package let permission: SharePermission
  package let allowInvites: Bool
  package let allowRequests: Bool
  /// From when on no stranger joins by the link; nil if it does not end.
  @OrNull package var expires: Timestamp?
  /// ``ShareSummary``.
  package let summary: String
  /// The owner first.
  package let participants: [Participant]
  /// Reasons why title or handles may be taken for others.
  package let warnings: [String]

  package init(
    id: String, url: String, title: String, owner: AccountHandle, path: String, public: PublicPermission,
    permission: SharePermission, allowInvites: Bool, allowRequests: Bool, expires: Timestamp?, summary: String,
    participants: [Participant], warnings: [String]
  ) {
    self.id = id
    self.url = url
    self.title = title
    self.owner = owner
    self.path = path
    self.public = `public`
    self.permission = permission
    self.allowInvites = allowInvites
    self.allowRequests = allowRequests
    self.expires = expires
    self.summary = summary
    self.participants = participants
    self.warnings = warnings
  }
}

/// The offer of a share URL to an account, before it joins.
package struct ShareOffer: Hashable, Sendable, Codable {
  package let title: String
  package let owner: AccountHandle
  package let ownerName: String
  /// `document` or `folder`.
  package let kind: String
  /// The permission that the account would get by joining.
  package let permission: SharePermission
  /// The account's present acceptance; nil for one that was not invited and can join all the same.
  @OrNull package var acceptance: Acceptance?
  /// The item's path for the account; nil before it joined.
  @OrNull package var path: String?
  /// Whether joining only asks the owner for access, since the account has no right to join.
  package let asksFirst: Bool
  /// From when on nobody new joins by the link; nil for one that does not end, or of which the hub does not say so.
  @OrNull package var expires: Timestamp?
  /// Reasons why title or handle may be taken for others.
  package let warnings: [String]

  package init(
    title: String, owner: AccountHandle, ownerName: String, kind: String, permission: SharePermission,
    acceptance: Acceptance?, path: String?, asksFirst: Bool, expires: Timestamp?, warnings: [String]
  ) {
    self.expires = expires
    self.title = title
    self.owner = owner
    self.ownerName = ownerName
    self.kind = kind
    self.permission = permission
    self.acceptance = acceptance
    self.path = path
    self.asksFirst = asksFirst
    self.warnings = warnings
  }
}

/// The outcome of accepting a share URL.
package struct AcceptResult: Hashable, Sendable, Codable {
  /// `Shared/OWNER/NAME`; nil if access was only asked for.
  @OrNull package var path: String?
  @OrNull package var title: String?
  @OrNull package var owner: AccountHandle?
  @OrNull package var permission: SharePermission?
  /// Whether a request was filed that the owner has to answer.
  package let requested: Bool
  /// Reasons why title or handle may be taken for others.
  package let warnings: [String]

  package init(
    path: String?, title: String?, owner: AccountHandle?, permission: SharePermission?, requested: Bool,
    warnings: [String] = []
  ) {
    self.path = path
    self.title = title
    self.owner = owner
    self.permission = permission
    self.requested = requested
    self.warnings = warnings
  }
}

/// A link for one person without a known handle.
package struct OneTimeLink: Hashable, Sendable, Codable {
  package let url: String
  package let permission: SharePermission
  /// When it expires unclaimed.
  package let expires: Timestamp

  package init(url: String, permission: SharePermission, expires: Timestamp) {
    self.url = url
    self.permission = permission
    self.expires = expires
  }
}

/// How many one-time links were revoked.
package struct RevokedLinks: Hashable, Sendable, Codable {
  /// Nil where a hub or a process of an older program does not say.
  @OrNull package var revoked: Int?

  package init(count: Int?) { revoked = count }
}

/// A person who asks for access.
package struct AccessRequest: Hashable, Sendable, Codable {
  package let handle: AccountHandle
  package let name: String
  package let time: Timestamp
  /// Whether they were blocked, so that they cannot ask again.
  package let blocked: Bool
  /// The shared item's path for the account that is asked: `Documents/…` or `Shared/…`.
  package let path: String

  package init(handle: AccountHandle, name: String, time: Timestamp, blocked: Bool, path: String) {
    self.handle = handle
    self.name = name
    self.time = time
    self.blocked = blocked
    self.path = path
  }

  /// By the shared item, first come first.
  package static func inOrder(_ requests: [AccessRequest]) -> [AccessRequest] {
    requests.sorted { $0.path == $1.path ? $0.time < $1.time : $0.path < $1.path }
  }
}
