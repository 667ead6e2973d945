public import Foundation

/// New contents of a document.
public struct SentVersion: Hashable, Sendable, Codable {
  public var id: WireID
  /// The version that its author saw; null for a first one.
  public var base: WireID?
  public var cause: VersionCause
  /// The author's clock, in nanoseconds since 1970.
  public var time: Int64
  /// The contents in order; with ``contents`` it may be left out.
  public var extents: [Extent]
  /// The bytes themselves, where they are few.
  public var contents: Data?

  public init(
    id: WireID, base: WireID?, cause: VersionCause, time: Int64, extents: [Extent] = [], contents: Data? = nil
  ) {
    self.id = id
    self.base = base
    self.cause = cause
    self.time = time
    self.extents = extents
    self.contents = contents
  }

  private enum CodingKeys: CodingKey { case id, base, cause, time, extents, contents }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(WireID.self, forKey: .id)
    base = try container.decodeIfPresent(WireID.self, forKey: .base)
    cause = try container.decode(VersionCause.self, forKey: .cause)
    time = try container.decode(Int64.self, forKey: .time)
    extents = try container.decodeIfPresent([Extent].self, forKey: .extents) ?? []
    contents = try container.decodeIfPresent(Data.self, forKey: .contents)
  }
}

/// A device's request to make, change or delete one item. Whatever it leaves out stays.
public struct Send: Hashable, Sendable, Codable {
  /// The device's number of it, rising from 1.
  public var serial: Int64
  public var item: WireID
  public var kind: ItemKind
  /// The zone's number of the item's state that the device knew; null where it knew none.
  public var base: Int64?
  /// The newest number of the feed that the device has read.
  public var read: Int64
  public var isDeletion: Bool
  /// All its names.
  public var places: [Place]?
  public var mode: Int?
  public var mtime: Int64?
  public var target: Data?
  public var attributes: [String: Data]?
  public var version: SentVersion?
  /// When it was made, got its names or was deleted: the author's clock, in nanoseconds since 1970.
  public var time: Int64?
  /// The name of the document in which its first contents could not be saved.
  public var previousName: String?

  public init(
    serial: Int64, item: WireID, kind: ItemKind, base: Int64? = nil, read: Int64 = 0, isDeletion: Bool = false,
    places: [Place]? = nil, mode: Int? = nil, mtime: Int64? = nil, target: Data? = nil,
    attributes: [String: Data]? = nil, version: SentVersion? = nil, time: Int64? = nil, previousName: String? = nil
  ) {
    self.serial = serial
    self.item = item
    self.kind = kind
    self.base = base
    self.read = read
    self.isDeletion = isDeletion
    self.places = places
    self.mode = mode
    self.mtime = mtime
    self.target = target
    self.attributes = attributes
    self.version = version
    self.time = time
    self.previousName = previousName
  }

  private enum CodingKeys: CodingKey {
    case serial, item, kind, base, read, isDeletion, places, mode, mtime, target, attributes, version, time
    case previousName
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    serial = try container.decode(Int64.self, forKey: .serial)
    item = try container.decode(WireID.self, forKey: .item)
    kind = try container.decode(ItemKind.self, forKey: .kind)
    base = try container.decodeIfPresent(Int64.self, forKey: .base)
    read = try container.decodeIfPresent(Int64.self, forKey: .read) ?? 0
    isDeletion = try container.decodeIfPresent(Bool.self, forKey: .isDeletion) ?? false
    places = try container.decodeIfPresent([Place].self, forKey: .places)
    mode = try container.decodeIfPresent(Int.self, forKey: .mode)
    mtime = try container.decodeIfPresent(Int64.self, forKey: .mtime)
    target = try container.decodeIfPresent(Data.self, forKey: .target)
    attributes = try container.decodeIfPresent([String: Data].self, forKey: .attributes)
    version = try container.decodeIfPresent(SentVersion.self, forKey: .version)
    time = try container.decodeIfPresent(Int64.self, forKey: .time)
    previousName = try container.decodeIfPresent(String.self, forKey: .previousName)
  }
}

/// Sends of one device. Those of a group are done together or not at all.
public struct SendRequest: Hashable, Sendable, Codable {
  public var groups: [[Send]]
  /// Every verdict up to this serial has arrived; the hub forgets them.
  public var confirmed: Int64

  public init(groups: [[Send]], confirmed: Int64 = 0) {
    self.groups = groups
    self.confirmed = confirmed
  }

  private enum CodingKeys: CodingKey { case groups, confirmed }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    groups = try container.decode([[Send]].self, forKey: .groups)
    confirmed = try container.decodeIfPresent(Int64.self, forKey: .confirmed) ?? 0
  }
}

/// The outcome of a send. It is the same however often the device repeats the send.
public struct Verdict: Hashable, Sendable, Codable {
  public enum Outcome: String, Sendable, Codable, CaseIterable {
    /// It is as the device wanted.
    case done
    /// Its contents are a document of their own, beside the one that another device saved.
    case beside
    /// Its contents and those that another device saved are one version, which is current.
    case merged
    /// It is one with an item that had the name already.
    case joined
    /// Its name was taken, and it has another one.
    case renamed
    /// The item to delete was changed meanwhile, and stays.
    case kept
    /// Nothing was done.
    case refused
  }

  public enum Reason: String, Sendable, Codable, CaseIterable {
    /// It contradicts itself or what the item is.
    case invalid
    /// The hub knows no such item.
    case unknown
    /// A parent is no folder that the hub knows.
    case noParent
    /// A folder would be inside of itself.
    case loop
    /// It is more than one send may do.
    case tooLarge
    /// A share would lie in another one, or a name of one document on each side of a share's border.
    case border
    /// The account's part in the share does not allow it.
    case denied
    /// The item, or the version, was destroyed for good.
    case purged
    /// Another send of its group was refused.
    case group
    /// Its verdict was confirmed before.
    case confirmed
  }

  public var serial: Int64
  public var outcome: Outcome
  public var reason: Reason?
  /// The item that it was about, or became.
  public var item: WireID
  /// The zone's number of that item's state; null where nothing was done.
  public var number: Int64?
  /// The version that was made. One that merges has the number after that of the version that was sent.
  public var version: WireID?
  /// The version's number.
  public var versionNumber: Int64?
  /// Its names, where they are not those of the send.
  public var places: [Place]?

  public init(
    serial: Int64, outcome: Outcome, reason: Reason? = nil, item: WireID, number: Int64? = nil,
    version: WireID? = nil, versionNumber: Int64? = nil, places: [Place]? = nil
  ) {
    self.serial = serial
    self.outcome = outcome
    self.reason = reason
    self.item = item
    self.number = number
    self.version = version
    self.versionNumber = versionNumber
    self.places = places
  }
}

extension Verdict {
  /// The number of the version that was sent; nil where none was made of it.
  public var sentNumber: Int64? { versionNumber.map { outcome == .merged ? max(1, $0 - 1) : $0 } }
}

/// A send that had no effect and may be repeated: chunks are missing, too many verdicts are not confirmed, or the request
/// had more to merge than one may have.
public struct Deferral: Hashable, Sendable, Codable {
  public var serial: Int64
  public var missing: [ChunkHash]

  public init(serial: Int64, missing: [ChunkHash]) {
    self.serial = serial
    self.missing = missing
  }
}

public struct SendAnswer: Hashable, Sendable, Codable {
  public var verdicts: [Verdict]
  public var later: [Deferral]
  /// The zone's newest number.
  public var number: Int64

  public init(verdicts: [Verdict], later: [Deferral], number: Int64) {
    self.verdicts = verdicts
    self.later = later
    self.number = number
  }
}
