/// The role of a participant in a share.
public enum WireRole: String, Sendable, Codable, CaseIterable {
  case owner, administrator, privateUser, publicUser
}

/// The permission of a participant.
public enum WirePermission: String, Sendable, Codable, CaseIterable {
  case readOnly, readWrite
}

/// The permission of anyone who has a share's URL.
public enum WirePublicPermission: String, Sendable, Codable, CaseIterable {
  case none, readOnly, readWrite
}

/// Where somebody is between invitation and departure.
public enum WireAcceptance: String, Sendable, Codable, CaseIterable {
  case pending, accepted, removed
}

/// `PUT /v1/items/ITEM/share`: shares an item, or changes its share. Settings that are left out stay.
public struct ShareSettings: Hashable, Sendable, Codable {
  public var title: String?
  public var anyone: WirePublicPermission?
  /// The permission of people who are invited without one.
  public var permission: WirePermission?
  /// Whether participants may invite others, to no more than they may do themselves.
  public var allowInvites: Bool?
  /// Whether people who have the URL may ask for access.
  public var allowRequests: Bool?
  /// Whether the URL is replaced, so that the one before leads nowhere.
  public var newLink: Bool?
  /// Seconds from now in which strangers may join by the URL, or ask for access; 0 for ever.
  public var linkSeconds: Int64?
  /// Handles of people who are to be invited next: where one of this hub has no account, nothing changes.
  public var people: [String]?

  public init(
    title: String? = nil, anyone: WirePublicPermission? = nil, permission: WirePermission? = nil,
    allowInvites: Bool? = nil, allowRequests: Bool? = nil, newLink: Bool? = nil, linkSeconds: Int64? = nil,
    people: [String]? = nil
  ) {
    self.people = people
    self.title = title
    self.anyone = anyone
    self.permission = permission
    self.allowInvites = allowInvites
    self.allowRequests = allowRequests
    self.newLink = newLink
    self.linkSeconds = linkSeconds
  }
}

/// A participant of a share.
public struct ShareParticipant: Hashable, Sendable, Codable {
  public var handle: String
  /// The person's display name; the handle before they accepted.
  public var name: String
  public var role: WireRole
  public var permission: WirePermission
  public var acceptance: WireAcceptance

  public init(
    handle: String, name: String, role: WireRole, permission: WirePermission, acceptance: WireAcceptance
  ) {
    self.handle = handle
    self.name = name
    self.role = role
    self.permission = permission
    self.acceptance = acceptance
  }
}

/// A share as one of its participants sees it.
public struct ShareState: Hashable, Sendable, Codable {
  public var share: WireID
  public var item: WireID
  public var url: String
  public var title: String
  public var owner: String
  public var anyone: WirePublicPermission
  public var permission: WirePermission
  public var allowInvites: Bool
  public var allowRequests: Bool
  /// From when on no stranger joins by the URL, RFC 3339 in UTC; nil if it does not end.
  public var expires: String?
  /// The permissions in one phrase.
  public var summary: String
  /// The owner first. People who joined by the public permission see the owner and themselves.
  public var participants: [ShareParticipant]

  public init(
    share: WireID, item: WireID, url: String, title: String, owner: String, anyone: WirePublicPermission,
    permission: WirePermission, allowInvites: Bool, allowRequests: Bool, expires: String? = nil, summary: String,
    participants: [ShareParticipant]
  ) {
    self.share = share
    self.item = item
    self.url = url
    self.title = title
    self.owner = owner
    self.anyone = anyone
    self.permission = permission
    self.allowInvites = allowInvites
    self.allowRequests = allowRequests
    self.expires = expires
    self.summary = summary
    self.participants = participants
  }
}

/// `PUT /v1/shares/SHARE/participants/HANDLE`: invites somebody, or changes what they may do.
public struct ParticipantSettings: Hashable, Sendable, Codable {
  public var permission: WirePermission?
  /// `administrator` or `privateUser`.
  public var role: WireRole?

  public init(permission: WirePermission? = nil, role: WireRole? = nil) {
    self.permission = permission
    self.role = role
  }
}

/// `POST /v1/shares/SHARE/links`: asks for a link that one person can join by.
public struct OneTimeLinkSettings: Hashable, Sendable, Codable {
  public var permission: WirePermission?

  public init(permission: WirePermission? = nil) { self.permission = permission }
}

/// A link that one person can join by.
public struct OneTimeLinkFacts: Hashable, Sendable, Codable {
  public var url: String
  public var permission: WirePermission
  /// When it ends, RFC 3339 in UTC.
  public var expires: String

  public init(url: String, permission: WirePermission, expires: String) {
    self.url = url
    self.permission = permission
    self.expires = expires
  }
}

/// How many links that nobody used were revoked: one-time links of a share, or links for devices. Hubs with an older
/// program answer nothing.
public struct RevokedLinkFacts: Hashable, Sendable, Codable {
  public var revoked: Int

  public init(revoked: Int) { self.revoked = revoked }
}

/// `POST /v1/offers` and `POST /v1/acceptances`: the URL of a share, or a one-time link.
public struct ShareLink: Hashable, Sendable, Codable {
  public var url: String

  public init(url: String) { self.url = url }
}

/// The offer of a link to an account.
public struct ShareOfferFacts: Hashable, Sendable, Codable {
  /// The account's present part in the share, or how it would join.
  public enum Way: String, Sendable, Codable, CaseIterable {
    /// It takes part already.
    case member
    /// It joins by accepting.
    case join
    /// By accepting it asks for access.
    case ask
  }

  public var way: Way
  public var title: String
  public var owner: String
  public var ownerName: String
  public var kind: ItemKind
  public var permission: WirePermission
  /// From when on nobody new joins by the link; nil for one that does not end.
  public var expires: String?

  public init(
    way: Way, title: String, owner: String, ownerName: String, kind: ItemKind, permission: WirePermission,
    expires: String? = nil
  ) {
    self.expires = expires
    self.way = way
    self.title = title
    self.owner = owner
    self.ownerName = ownerName
    self.kind = kind
    self.permission = permission
  }
}

/// The outcome of accepting a link.
public struct ShareAcceptance: Hashable, Sendable, Codable {
  /// Whether access was asked for. Then nothing else is told.
  public var requested: Bool
  public var share: WireID?
  public var permission: WirePermission?

  public init(requested: Bool, share: WireID? = nil, permission: WirePermission? = nil) {
    self.requested = requested
    self.share = share
    self.permission = permission
  }
}

/// Somebody who asks for access to a share, or was blocked.
public struct ShareRequest: Hashable, Sendable, Codable {
  public var handle: String
  public var name: String
  /// When they asked, RFC 3339 in UTC.
  public var time: String
  public var isBlocked: Bool

  public init(handle: String, name: String, time: String, isBlocked: Bool) {
    self.handle = handle
    self.name = name
    self.time = time
    self.isBlocked = isBlocked
  }
}

/// Those who ask for access to a share, first come first.
public struct ShareRequests: Hashable, Sendable, Codable {
  public var requests: [ShareRequest]

  public init(requests: [ShareRequest]) { self.requests = requests }
}

/// `PUT /v1/shares/SHARE/requests/HANDLE`: lets somebody in, turns them down, or keeps them out.
public struct ShareAnswer: Hashable, Sendable, Codable {
  public enum Answer: String, Sendable, Codable, CaseIterable { case approve, deny, block }

  public var answer: Answer
  /// What somebody who is let in may do; nil for what the share gives people who are invited.
  public var permission: WirePermission?

  public init(answer: Answer, permission: WirePermission? = nil) {
    self.answer = answer
    self.permission = permission
  }
}

/// The part of an account in a share, as its inbox shows it.
public struct InboxEntry: Hashable, Sendable, Codable {
  public var share: WireID
  public var owner: String
  public var acceptance: WireAcceptance
  /// The rest is there for those who take part or are invited.
  public var offer: InboxOffer?
  /// What the account asks for that takes no part, and has no answer yet.
  public var asked: InboxRequest?
  /// The hub of the share if that is another one: `https://ADDRESS`. Devices prove themselves there.
  public var hub: String?

  public init(
    share: WireID, owner: String, acceptance: WireAcceptance, offer: InboxOffer?, asked: InboxRequest? = nil,
    hub: String? = nil
  ) {
    self.share = share
    self.owner = owner
    self.acceptance = acceptance
    self.offer = offer
    self.asked = asked
    self.hub = hub
  }
}

/// A request for access in the inbox of the account that made it.
public struct InboxRequest: Hashable, Sendable, Codable {
  /// As it was when the account asked, like all that follows.
  public var title: String
  public var ownerName: String
  public var kind: ItemKind
  /// When the account asked, RFC 3339 in UTC.
  public var time: String

  public init(title: String, ownerName: String, kind: ItemKind, time: String) {
    self.title = title
    self.ownerName = ownerName
    self.kind = kind
    self.time = time
  }
}

/// The facts of a share in an inbox.
public struct InboxOffer: Hashable, Sendable, Codable {
  public var url: String
  public var title: String
  public var ownerName: String
  public var kind: ItemKind
  public var role: WireRole
  public var permission: WirePermission
  public var anyone: WirePublicPermission
  /// People who wait for an answer; 0 for those who do not answer.
  public var requests: Int
  /// Another one whenever the account would be told something else of the share.
  public var tag: String?

  public init(
    url: String, title: String, ownerName: String, kind: ItemKind, role: WireRole, permission: WirePermission,
    anyone: WirePublicPermission, requests: Int, tag: String? = nil
  ) {
    self.tag = tag
    self.url = url
    self.title = title
    self.ownerName = ownerName
    self.kind = kind
    self.role = role
    self.permission = permission
    self.anyone = anyone
    self.requests = requests
  }
}

/// A page of an inbox, by the ids of shares.
public struct InboxPage: Hashable, Sendable, Codable {
  public var entries: [InboxEntry]
  /// Rises with each change of the inbox.
  public var number: Int64

  public init(entries: [InboxEntry], number: Int64) {
    self.entries = entries
    self.number = number
  }
}
