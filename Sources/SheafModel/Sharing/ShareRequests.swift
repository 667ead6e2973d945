/// The requests to the API's resources of shares. A value that is nil stays as it is.

/// Shares an item, or changes the share that is there.
package struct ShareChange: Hashable, Sendable, Codable {
  /// People to invite.
  package var with: [AccountHandle] = []
  /// The permission of those people; without any people, the permission of later invitations that name none.
  package var permission: SharePermission?
  package var anyone: PublicPermission?
  package var title: String?
  package var allowInvites: Bool?
  package var allowRequests: Bool?
  /// Whether the token is replaced.
  package var newLink: Bool = false
  /// Seconds from now on for which strangers can join, or ask, by the link; 0 for ever.
  package var linkSeconds: Int64?

  package init() {}

  /// Whether it changes the share itself, and does not only invite people.
  package var changesShare: Bool {
    anyone != nil || title != nil || allowInvites != nil || allowRequests != nil || newLink || linkSeconds != nil
      || permission != nil && with.isEmpty
  }
}

/// Adds a participant, or changes one.
package struct ParticipantChange: Hashable, Sendable, Codable {
  package var handle: AccountHandle
  package var permission: SharePermission?
  /// `administrator` or `privateUser`.
  package var role: Role?

  package init(handle: AccountHandle, permission: SharePermission? = nil, role: Role? = nil) {
    self.handle = handle
    self.permission = permission
    self.role = role
  }
}

/// Asks for a one-time link.
package struct InviteRequest: Hashable, Sendable, Codable {
  package let permission: SharePermission?

  package init(permission: SharePermission?) { self.permission = permission }
}

/// Names a share by its URL.
package struct LinkRequest: Hashable, Sendable, Codable {
  package let url: String

  package init(url: String) { self.url = url }
}

/// Answers someone who asks for access.
package struct RequestAnswer: Hashable, Sendable, Codable {
  package enum Answer: String, Sendable, Codable { case approve, deny, block }

  package let handle: AccountHandle
  package let answer: Answer
  /// What somebody who is let in may do; nil for what the share gives people who are invited.
  package let permission: SharePermission?

  package init(handle: AccountHandle, answer: Answer, permission: SharePermission? = nil) {
    self.handle = handle
    self.answer = answer
    self.permission = permission
  }
}
