/// `PUT /v1/items/ITEM/transfer`: offers an item of the account to another account of the hub.
public struct TransferSettings: Hashable, Sendable, Codable {
  /// Of the account that is to own it.
  public var handle: String

  public init(handle: String) { self.handle = handle }
}

/// An item that its owner offers to another account.
public struct TransferFacts: Hashable, Sendable, Codable {
  /// Id of the offer.
  public var transfer: WireID
  /// Id of the item, for its owner alone.
  public var item: WireID?
  public var name: String
  public var kind: ItemKind
  public var owner: String
  public var ownerName: String
  /// The handle of the account to which it is offered.
  public var recipient: String
  public var recipientName: String
  /// When it was offered, RFC 3339 in UTC.
  public var time: String

  public init(
    transfer: WireID, item: WireID?, name: String, kind: ItemKind, owner: String, ownerName: String,
    recipient: String, recipientName: String, time: String
  ) {
    self.transfer = transfer
    self.item = item
    self.name = name
    self.kind = kind
    self.owner = owner
    self.ownerName = ownerName
    self.recipient = recipient
    self.recipientName = recipientName
    self.time = time
  }
}

/// The offers that wait for an answer, the latest first.
public struct TransferLists: Hashable, Sendable, Codable {
  /// Those that the account made.
  public var byMe: [TransferFacts]
  /// Those that others made to it.
  public var toMe: [TransferFacts]

  public init(byMe: [TransferFacts], toMe: [TransferFacts]) {
    self.byMe = byMe
    self.toMe = toMe
  }
}

/// How far the acceptance of an offer is.
public struct TransferProgress: Hashable, Sendable, Codable {
  /// Whether the item is the account's. If not, the request is to be made again, and goes on.
  public var isDone: Bool
  /// Id that the item has from then on.
  public var item: WireID?

  public init(isDone: Bool, item: WireID? = nil) {
    self.isDone = isDone
    self.item = item
  }
}
