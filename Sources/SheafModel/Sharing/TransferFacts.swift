/// An item that its owner offers to another account, which may make it its own.
package struct TransferOffer: Hashable, Sendable, Codable {
  /// Id by which it is accepted: of the item, or at a hub that of the offer.
  package let id: String
  package let name: String
  /// `document` or `folder`.
  package let kind: String
  /// Where the owner has it; nil for the other account.
  @OrNull package var path: String?
  package let owner: AccountHandle
  package let ownerName: String
  /// The account to which it is offered.
  package let recipient: AccountHandle
  package let recipientName: String
  /// When it was offered.
  package let time: Timestamp

  package init(
    id: String, name: String, kind: String, path: String?, owner: AccountHandle, ownerName: String,
    recipient: AccountHandle, recipientName: String, time: Timestamp
  ) {
    self.id = id
    self.name = name
    self.kind = kind
    self.path = path
    self.owner = owner
    self.ownerName = ownerName
    self.recipient = recipient
    self.recipientName = recipientName
    self.time = time
  }
}

/// The offers that wait for an answer, the latest first.
package struct TransferList: Hashable, Sendable, Codable {
  /// Those that the account made.
  package let byMe: [TransferOffer]
  /// Those that others made to it.
  package let toMe: [TransferOffer]

  package init(byMe: [TransferOffer], toMe: [TransferOffer]) {
    self.byMe = byMe
    self.toMe = toMe
  }

  package static let none = TransferList(byMe: [], toMe: [])

  /// The same, with others.
  package func with(_ others: TransferList) -> TransferList {
    TransferList(
      byMe: (byMe + others.byMe).sorted { $0.time > $1.time }, toMe: (toMe + others.toMe).sorted { $0.time > $1.time })
  }

  package var isEmpty: Bool { byMe.isEmpty && toMe.isEmpty }
}

/// Offers an item to an account.
package struct TransferRequest: Hashable, Sendable, Codable {
  package let handle: AccountHandle

  package init(handle: AccountHandle) { self.handle = handle }
}

/// Names an offer.
package struct TransferAnswer: Hashable, Sendable, Codable {
  /// As ``TransferOffer/id``.
  package let id: String

  package init(id: String) { self.id = id }
}
