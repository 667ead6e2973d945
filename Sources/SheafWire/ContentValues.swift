/// `POST /v1/chunks/missing`: chunks that are asked for, and of those the ones that the hub does not have.
public struct ChunkHashes: Hashable, Sendable, Codable {
  public let hashes: [ChunkHash]
  /// Bytes of chunks that are about to come, in a request; the hub refuses it if it has no room for them.
  public let bytes: Int64?

  public init(hashes: [ChunkHash], bytes: Int64? = nil) {
    self.hashes = hashes
    self.bytes = bytes
  }
}

/// `POST /v1/contents`: contents of several versions, to be answered in this order.
public struct ContentsRequest: Hashable, Sendable, Codable {
  /// The contents of a version, or a part of them.
  public struct Part: Hashable, Sendable, Codable {
    public let item: WireID
    public let version: WireID
    /// Where the part begins, in bytes; nil for the beginning.
    public let offset: Int64?
    /// Bytes of the part, which ends with the contents at the latest; nil for all that follow.
    public let length: Int64?

    public init(item: WireID, version: WireID, offset: Int64? = nil, length: Int64? = nil) {
      self.item = item
      self.version = version
      self.offset = offset
      self.length = length
    }
  }

  public let contents: [Part]

  public init(contents: [Part]) { self.contents = contents }
}

/// Versions of an item, the oldest first.
public struct VersionList: Hashable, Sendable, Codable {
  public let versions: [ItemVersion]
  /// Versions of which nothing is left, since they were destroyed for good.
  public let purged: [WireID]

  public init(versions: [ItemVersion], purged: [WireID] = []) {
    self.versions = versions
    self.purged = purged
  }
}

/// `PUT /v1/items/ITEM/versions/VERSION/label`: the label that a version is to have.
public struct SentLabel: Hashable, Sendable, Codable {
  public let label: String

  public init(label: String) { self.label = label }
}

/// `POST /v1/items/ITEM/comments`, and the same in a share.
public struct SentComment: Hashable, Sendable, Codable {
  /// Of its device's making: what comes again with it has no effect.
  public let id: WireID
  public let text: String
  /// The author's clock, in nanoseconds since 1970.
  public let time: Int64
  /// Whether it was made before the item entered the share that it is in, of whose people nobody hears of it; nil where
  /// it was not.
  public let outside: Bool?

  public init(id: WireID, text: String, time: Int64, outside: Bool? = nil) {
    self.id = id
    self.text = text
    self.time = time
    self.outside = outside
  }
}

/// `PUT /v1/events/read`: how far an account has read its notices.
public struct SentReadMarks: Hashable, Sendable, Codable {
  public struct Mark: Hashable, Sendable, Codable {
    /// The share whose log it is; null for the account's own.
    public let share: WireID?
    /// The number of the last event that was read.
    public let number: Int64

    public init(share: WireID?, number: Int64) {
      self.share = share
      self.number = number
    }
  }

  public let marks: [Mark]

  public init(marks: [Mark]) { self.marks = marks }
}
