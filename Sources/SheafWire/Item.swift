public import Foundation

public enum ItemKind: String, Sendable, Codable, CaseIterable {
  case document, folder, symlink
}

/// A name in a folder. In JSON `{parent, name}`, or `{parent, nameBase64}` where the name is not UTF-8.
public struct Place: Hashable, Sendable, Codable {
  public var parent: WireID
  /// Bytes of the name, as file systems have them.
  public var name: [UInt8]

  public init(parent: WireID, name: [UInt8]) {
    self.parent = parent
    self.name = name
  }

  public init(parent: WireID, _ name: String) { self.init(parent: parent, name: Array(name.utf8)) }

  /// Whether a file system could have it.
  public var isValid: Bool {
    (1...WireLimits.nameBytes).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && name != Array(".".utf8) && name != Array("..".utf8)
  }

  private static let reserved = [".versions", ".deleted"].map { Array($0.utf8) }

  /// Whether mounts show something else under this name in each folder, so that no item can have it.
  public var isReserved: Bool { Self.reserved.contains(name) }

  private enum CodingKeys: CodingKey { case parent, name, nameBase64 }

  /// How a name that cannot be is told from other JSON that is wrong.
  package static let noName = "a name has 1 to 255 bytes without / and NUL, and is neither . nor .."

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    parent = try container.decode(WireID.self, forKey: .parent)
    if let text = try container.decodeIfPresent(String.self, forKey: .name) {
      name = Array(text.utf8)
    } else {
      name = [UInt8](try container.decode(Data.self, forKey: .nameBase64))
    }
    guard isValid else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: Self.noName))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(parent, forKey: .parent)
    if let text = String(validating: name, as: UTF8.self) {
      try container.encode(text, forKey: .name)
    } else {
      try container.encode(Data(name), forKey: .nameBase64)
    }
  }
}

extension Place: Comparable {
  /// By parent, then by the bytes of the name.
  public static func < (left: Place, right: Place) -> Bool {
    left.parent == right.parent ? left.name.lexicographicallyPrecedes(right.name) : left.parent < right.parent
  }
}

/// A part of a document's contents: a chunk, or a hole where `hash` is null.
public struct Extent: Hashable, Sendable, Codable {
  public var hash: ChunkHash?
  public var length: Int64

  public init(hash: ChunkHash?, length: Int64) {
    self.hash = hash
    self.length = length
  }
}

public enum VersionCause: String, Sendable, Codable, CaseIterable {
  case save, autosave, replace, restore, recover, merge
}

/// A version of a document as a hub tells of it.
public struct ItemVersion: Hashable, Sendable, Codable {
  public var id: WireID
  /// The hub's, by arrival, from 1.
  public var number: Int64
  public var base: WireID?
  public var cause: VersionCause
  /// The author's clock, in nanoseconds since 1970.
  public var time: Int64
  /// The hub's clock.
  public var arrived: Int64
  public var size: Int64
  /// The handle of who saved it; null for the owner of the zone.
  public var author: String?
  /// The name that a person gave it, unique in its document. Lists of versions have it, feeds do not.
  public var label: String?

  public init(
    id: WireID, number: Int64, base: WireID?, cause: VersionCause, time: Int64, arrived: Int64, size: Int64,
    author: String? = nil, label: String? = nil
  ) {
    self.label = label
    self.id = id
    self.number = number
    self.base = base
    self.cause = cause
    self.time = time
    self.arrived = arrived
    self.size = size
    self.author = author
  }
}

/// The newest state of an item, as feeds tell it.
public struct ItemState: Hashable, Sendable, Codable {
  /// The zone's number of its newest change.
  public var number: Int64
  public var item: WireID
  public var kind: ItemKind
  public var isDeleted: Bool
  /// Where it is; where it was if it is deleted.
  public var places: [Place]
  /// Permission bits.
  public var mode: Int
  /// In nanoseconds since 1970.
  public var mtime: Int64
  /// Where a symlink leads.
  public var target: Data?
  public var attributes: [String: Data]
  /// The current version of a document.
  public var version: ItemVersion?
  /// The document that this one was put beside.
  public var copyOf: WireID?
  /// Whether it was destroyed for good: then it has no place, and nothing of it is left.
  public var isPurged: Bool
  /// How many of its versions were destroyed for good; ``VersionList/purged`` has which.
  public var purges: Int64
  /// How often labels of its versions changed; null where none ever had one. ``ItemVersion/label`` has which.
  public var labels: Int64?
  /// When it was deleted, by the hub's clock, in nanoseconds since 1970; null while it is there.
  public var deleted: Int64?
  /// The handle of who made it; null for the owner of the zone.
  public var madeBy: String?
  /// The handle of who gave it its names, recovered or deleted it; null for the owner of the zone.
  public var placedBy: String?
  /// When it got its names, in nanoseconds since 1970: by the owner's clock, or if somebody else placed it by the hub's;
  /// null where the owner made it with them.
  public var placed: Int64?

  public init(
    number: Int64, item: WireID, kind: ItemKind, isDeleted: Bool, places: [Place], mode: Int, mtime: Int64,
    target: Data?, attributes: [String: Data], version: ItemVersion?, copyOf: WireID?, isPurged: Bool = false,
    purges: Int64 = 0, labels: Int64? = nil, deleted: Int64? = nil, madeBy: String? = nil, placedBy: String? = nil,
    placed: Int64? = nil
  ) {
    self.madeBy = madeBy
    self.placedBy = placedBy
    self.placed = placed
    self.labels = labels
    self.deleted = deleted
    self.number = number
    self.item = item
    self.kind = kind
    self.isDeleted = isDeleted
    self.places = places
    self.mode = mode
    self.mtime = mtime
    self.target = target
    self.attributes = attributes
    self.version = version
    self.copyOf = copyOf
    self.isPurged = isPurged
    self.purges = purges
  }
}

/// Some of a feed's rows, and where to go on.
public struct FeedPage: Hashable, Sendable, Codable {
  public var items: [ItemState]
  /// After which the next page begins.
  public var token: String
  /// Whether there are more rows already.
  public var hasMore: Bool
  /// What differs when `GET /v1/retentions` tells anything else; nil where an older hub answers.
  public var retentions: String?

  public init(items: [ItemState], token: String, hasMore: Bool, retentions: String? = nil) {
    self.items = items
    self.token = token
    self.hasMore = hasMore
    self.retentions = retentions
  }
}
