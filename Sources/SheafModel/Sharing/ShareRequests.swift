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

/// What became of a link that was declined.
package struct DeclinedLink: Hashable, Sendable, Codable {
  package enum Kind: String, Sendable, Codable {
    /// An invitation, which nobody can accept any more.
    case invitation
    /// A request for access, which was taken back.
    case request
  }

  package let declined: Kind
  /// Of the share; nil for a request: whoever asked knows nothing of it.
  @OrNull package var title: String?

  package init(declined: Kind, title: String?) {
    self.declined = declined
    self.title = title
  }

  /// The failure for somebody who takes part already.
  ///
  /// - Parameter path: Of the entry; nil where it is not here yet.
  package static func takesPart(at path: String?) -> SheafError {
    SheafError(
      .invalid, subject: "the link", reason: "is of something in which you take part",
      advice: "leave it with: sheaf leave \(path?.shellWord ?? "PATH")")
  }
}
