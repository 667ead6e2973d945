/// The shares of an account, those of others that it joined, and invitations and requests without an answer.
package struct AccountShares: Hashable, Sendable, Codable {
  /// The account's own items, by path.
  package let byMe: [AccountShare]
  /// The shares that it joined, by path.
  package let withMe: [AccountShare]
  /// The invitations that it did not accept yet, the latest first.
  package let invitations: [ShareInvitation]
  /// The requests for access to items that it may share, by path.
  package let requests: [AccessRequest]
  /// What it asks others for itself, the latest first.
  package let ownRequests: [OwnRequest]
  /// The items that it offers to others, and others to it.
  package let transfers: TransferList
  /// What of that is missing since a hub could not be asked; nil, and left out in JSON, where nothing is.
  package var missing: MissingLists?

  package init(
    byMe: [AccountShare], withMe: [AccountShare], invitations: [ShareInvitation], requests: [AccessRequest],
    ownRequests: [OwnRequest] = [], transfers: TransferList = .none, missing: MissingLists? = nil
  ) {
    self.byMe = byMe
    self.withMe = withMe
    self.invitations = invitations
    self.requests = requests
    self.ownRequests = ownRequests
    self.transfers = transfers
    self.missing = missing
  }

  /// - Throws: `DecodingError`. The answer of an older process says nothing of own requests and transfers.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    byMe = try container.decode([AccountShare].self, forKey: .byMe)
    withMe = try container.decode([AccountShare].self, forKey: .withMe)
    invitations = try container.decode([ShareInvitation].self, forKey: .invitations)
    requests = try container.decode([AccessRequest].self, forKey: .requests)
    ownRequests = try container.decodeIfPresent([OwnRequest].self, forKey: .ownRequests) ?? []
    transfers = try container.decodeIfPresent(TransferList.self, forKey: .transfers) ?? .none
    missing = try container.decodeIfPresent(MissingLists.self, forKey: .missing)
  }

  /// The same, with what a hub knows, or why it could not be asked.
  package func with(
    requests others: Result<[AccessRequest], any Error>, transfers further: Result<TransferList, any Error>
  ) -> AccountShares {
    var (all, offers, missing) = (requests, transfers, MissingLists(lists: [], reason: ""))
    switch others {
    case .success(let requests): all = AccessRequest.inOrder(requests + all)
    case .failure(let error): missing = missing.with(.requests, "\(error)")
    }
    switch further {
    case .success(let transfers): offers = offers.with(transfers)
    case .failure(let error): missing = missing.with(.transfers, "\(error)")
    }
    return AccountShares(
      byMe: byMe, withMe: withMe, invitations: invitations, requests: all, ownRequests: ownRequests, transfers: offers,
      missing: missing.lists.isEmpty ? nil : missing)
  }

  package var isEmpty: Bool {
    byMe.isEmpty && withMe.isEmpty && invitations.isEmpty && requests.isEmpty && ownRequests.isEmpty
      && transfers.isEmpty
  }
}

/// The lists that lack what a hub knows.
package struct MissingLists: Hashable, Sendable, Codable {
  package enum List: String, Sendable, Codable {
    case requests, transfers
  }

  package let lists: [List]
  /// Why the hub could not be asked.
  package let reason: String

  fileprivate func with(_ list: List, _ reason: String) -> MissingLists {
    MissingLists(lists: lists + [list], reason: reason)
  }

  /// The same of one list alone; nil where that is not missing.
  package func only(_ list: List) -> MissingLists? {
    lists.contains(list) ? MissingLists(lists: [list], reason: reason) : nil
  }
}

/// A share in a list: as one of its participants sees it, without the people in it.
package struct AccountShare: Hashable, Sendable, Codable {
  /// The shared item's path for the account: `Documents/…` or `Shared/…`.
  package let path: String
  /// `document` or `folder`.
  package let kind: String
  package let title: String
  package let owner: AccountHandle
  package let url: String
  package let role: Role
  /// The permission of the account itself.
  package let permission: SharePermission
  package let `public`: PublicPermission
  /// From when on nobody new joins by the link; nil for a link that does not end.
  @OrNull package var expires: Timestamp?
  /// ``ShareSummary``.
  package let summary: String
  /// People who joined, the owner not counted; nil where the account may not know.
  @OrNull package var people: Int?
  /// People who were invited and have not accepted yet; nil where the account may not know, or an older process answers.
  package var invited: Int?
  /// Since when the account takes part.
  package let since: Timestamp

  package init(
    path: String, kind: String, title: String, owner: AccountHandle, url: String, role: Role,
    permission: SharePermission, public: PublicPermission, expires: Timestamp?, summary: String, people: Int?,
    invited: Int?, since: Timestamp
  ) {
    self.path = path
    self.kind = kind
    self.title = title
    self.owner = owner
    self.url = url
    self.role = role
    self.permission = permission
    self.public = `public`
    self.expires = expires
    self.summary = summary
    self.people = people
    self.invited = invited
    self.since = since
  }
}

/// An invitation that the account did not accept yet.
package struct ShareInvitation: Hashable, Sendable, Codable {
  package let title: String
  /// `document` or `folder`.
  package let kind: String
  package let owner: AccountHandle
  package let ownerName: String
  package let permission: SharePermission
  /// The account joins by it.
  package let url: String
  /// When the account was invited.
  package let since: Timestamp
  /// Reasons why title or owner may be taken for others.
  package let warnings: [String]

  package init(
    title: String, kind: String, owner: AccountHandle, ownerName: String, permission: SharePermission, url: String,
    since: Timestamp, warnings: [String]
  ) {
    self.title = title
    self.kind = kind
    self.owner = owner
    self.ownerName = ownerName
    self.permission = permission
    self.url = url
    self.since = since
    self.warnings = warnings
  }
}

/// A request for access that the account made, and that has no answer yet.
package struct OwnRequest: Hashable, Sendable, Codable {
  package let title: String
  /// `document` or `folder`.
  package let kind: String
  package let owner: AccountHandle
  package let ownerName: String
  /// When the account asked.
  package let time: Timestamp

  package init(title: String, kind: String, owner: AccountHandle, ownerName: String, time: Timestamp) {
    self.title = title
    self.kind = kind
    self.owner = owner
    self.ownerName = ownerName
    self.time = time
  }
}
