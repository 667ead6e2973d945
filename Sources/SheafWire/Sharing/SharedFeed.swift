/// A change of an item in a share's feed.
public struct SharedChange: Hashable, Sendable, Codable {
  public enum Kind: String, Sendable, Codable, CaseIterable {
    /// The item is new to the reader. A folder's contents are to be listed.
    case entered
    /// The item is as the state says.
    case changed
    /// The item is not in the share any more, with all that is below it.
    case left
  }

  /// The share's number of the change.
  public var number: Int64
  public var item: WireID
  public var change: Kind
  /// Null for what left.
  public var state: ItemState?
  /// What left as it was when it was deleted from the share, without its version; null for what left in another way. A
  /// member who may edit brings it back by a send.
  public var deleted: ItemState?
  /// Whether it was destroyed for good after it was deleted from the share.
  public var isPurged: Bool

  public init(
    number: Int64, item: WireID, change: Kind, state: ItemState?, deleted: ItemState? = nil, isPurged: Bool = false
  ) {
    self.number = number
    self.item = item
    self.change = change
    self.state = state
    self.deleted = deleted
    self.isPurged = isPurged
  }
}

/// Some of what changed in a share, and where to go on.
public struct SharedFeedPage: Hashable, Sendable, Codable {
  public var changes: [SharedChange]
  /// After which the next page begins.
  public var token: String
  /// Whether there are more changes already.
  public var hasMore: Bool

  public init(changes: [SharedChange], token: String, hasMore: Bool) {
    self.changes = changes
    self.token = token
    self.hasMore = hasMore
  }
}

/// Some of the items in a shared folder, by the bytes of their names.
public struct SharedFolderPage: Hashable, Sendable, Codable {
  public var items: [ItemState]
  /// After which the next page begins; null at the end.
  public var next: String?

  public init(items: [ItemState], next: String?) {
    self.items = items
    self.next = next
  }
}
