package import Foundation
package import SheafWire

/// An item of a zone, with what the rules need to know of it.
package struct ItemRow: Hashable, Sendable {
  package let item: WireID
  package let kind: ItemKind
  /// The zone's number of its newest change.
  package var number: Int64
  /// The device that made its newest change.
  package var device: String
  /// The number of the newest change that another device than ``device`` made; 0 for none.
  package var others: Int64
  /// When it was deleted, in nanoseconds; nil while it is there.
  package var deleted: Int64?
  /// Where it is, or was when it was deleted.
  package var places: [Place]
  package var mode: Int
  package var mtime: Int64
  package var target: [UInt8]?
  package var attributes: [String: Data]
  package var version: WireID?
  /// How many versions it has had.
  package var versions: Int64
  package var copyOf: WireID?

  /// The numbers of a share's feed, where the item is looked at for somebody who knows those alone.
  var shared: SharedNumbers?

  /// How many of its versions were purged.
  var purges: Int64 = 0
  /// How often labels of its versions changed; nil where none ever had one.
  var labels: Int64?
  /// Who made and placed it, as far as that is noted.
  var placement: Placement?

  package var isDeleted: Bool { deleted != nil }

  /// Whether it was destroyed for good, so that nothing but its id is left.
  package var isPurged: Bool { isDeleted && places.isEmpty }

  /// Whether another device changed it after the number that `device` knew.
  func isChanged(since number: Int64, unseenBy device: String) -> Bool {
    if let shared { return (device == shared.device ? shared.others : shared.number) > number }
    return (device == self.device ? others : self.number) > number
  }
}

/// An item's numbers in the feed of a share; zeros for one that nobody changed since its folder entered.
struct SharedNumbers: Hashable, Sendable {
  var number: Int64 = 0
  var device = ""
  /// The number of the newest change that another device than ``device`` made; 0 for none.
  var others: Int64 = 0
}

/// A version of a document, without its manifest.
package struct VersionRow: Hashable, Sendable {
  package let id: WireID
  package let item: WireID
  package let number: Int64
  package let base: WireID?
  package let cause: VersionCause
  package let time: Int64
  package let arrived: Int64
  package let size: Int64
  /// Hash of the manifest: equal for equal extents.
  package let digest: [UInt8]
  /// The handle of who saved it; nil for the owner of the zone, and where nobody asked.
  package var author: String?

  /// Whether its contents were destroyed for good.
  package var isPurged: Bool { digest.isEmpty }

  /// The same contents as a version of another document.
  func of(_ item: WireID, number: Int64, base: WireID?) -> VersionRow {
    VersionRow(
      id: id, item: item, number: number, base: base, cause: cause, time: time, arrived: arrived, size: size,
      digest: digest, author: author)
  }

  package var facts: ItemVersion {
    ItemVersion(
      id: id, number: number, base: base, cause: cause, time: time, arrived: arrived, size: size, author: author)
  }
}

/// The reads that the rules need of a zone as it was before a send.
package protocol ZoneReader {
  /// An item, deleted ones too.
  mutating func item(_ id: WireID) throws -> ItemRow?
  /// The item that another one became.
  mutating func alias(_ id: WireID) throws -> WireID?
  /// The item that has a name.
  mutating func occupant(of place: Place) throws -> WireID?
  /// Up to `limit` of the items in a folder.
  mutating func children(of folder: WireID, limit: Int) throws -> [WireID]
  mutating func version(_ id: WireID) throws -> VersionRow?
  /// The version of an item that its author saved at a time, in nanoseconds since 1970, with contents of a digest.
  mutating func version(of item: WireID, time: Int64, digest: [UInt8]) throws -> WireID?
  /// Whether who sends may learn of an item.
  mutating func isSeen(_ row: ItemRow) throws -> Bool
  /// Whether others than its owner may learn of an item.
  mutating func isShared(_ row: ItemRow) throws -> Bool
}

/// A zone with the changes that a group of sends makes, before they are written.
package struct ZoneDraft {
  private var reader: any ZoneReader
  /// Rows that were read or made; nil for what is not there.
  private var known: [WireID: ItemRow?] = [:]
  private var knownVersions: [WireID: VersionRow] = [:]
  /// Items as they were, in the order of their first change; nil for new ones.
  private(set) var changed: [(item: WireID, before: ItemRow?)] = []
  private var changes: Set<WireID> = []
  private(set) var newAliases: [(alias: WireID, item: WireID)] = []
  private(set) var newVersions: [VersionRow] = []
  /// Names that items took in this draft; those that they left are known by ``changed``.
  private var taken: [Place: [WireID]] = [:]

  package init(_ reader: any ZoneReader) { self.reader = reader }

  /// The id that an item has now.
  mutating func resolve(_ id: WireID) throws -> WireID {
    if let new = newAliases.last(where: { $0.alias == id }) { return new.item }
    if id == .root { return id }
    return try reader.alias(id) ?? id
  }

  mutating func item(_ id: WireID) throws -> ItemRow? {
    if let row = known[id] { return row }
    let row = try reader.item(id)
    known[id] = .some(row)
    return row
  }

  mutating func version(_ id: WireID) throws -> VersionRow? {
    if let row = knownVersions[id] { return row }
    return try reader.version(id)
  }

  /// The stored version that is the same save as one that is sent; nil for none.
  mutating func same(as version: SentVersion, _ digest: [UInt8], of item: WireID) throws -> VersionRow? {
    try reader.version(of: item, time: version.time, digest: digest).flatMap { try reader.version($0) }
  }

  /// Puts an item as it shall be.
  mutating func put(_ row: ItemRow) throws {
    let before = try item(row.item)
    if changes.insert(row.item).inserted { changed.append((row.item, before)) }
    for place in before?.places ?? [] { taken[place]?.removeAll { $0 == row.item } }
    if !row.isDeleted { for place in row.places { taken[place, default: []].append(row.item) } }
    known[row.item] = row
  }

  func isChanged(_ id: WireID) -> Bool { changes.contains(id) }

  mutating func isSeen(_ row: ItemRow) throws -> Bool { try reader.isSeen(row) }

  mutating func isShared(_ row: ItemRow) throws -> Bool { try reader.isShared(row) }

  func isNew(_ id: WireID) -> Bool { changed.contains { $0.item == id && $0.before == nil } }

  mutating func add(_ version: VersionRow) {
    newVersions.append(version)
    knownVersions[version.id] = version
  }

  mutating func add(alias: WireID, of item: WireID) { newAliases.append((alias, item)) }

  /// Takes back an item that became another one before it was written.
  mutating func withdraw(_ id: WireID) throws {
    for place in try item(id)?.places ?? [] { taken[place]?.removeAll { $0 == id } }
    known[id] = .some(nil)
    changes.remove(id)
    changed.removeAll { $0.item == id }
    newVersions.removeAll { $0.item == id }
  }

  /// The item that has a name, other than `except`.
  mutating func occupant(of place: Place, except: WireID) throws -> WireID? {
    if let id = taken[place]?.first(where: { $0 != except }) { return id }
    guard let id = try reader.occupant(of: place), id != except, let row = try item(id) else { return nil }
    return !row.isDeleted && row.places.contains(place) ? id : nil
  }

  /// The live items in a folder; nil where there are more than `limit`.
  mutating func children(of folder: WireID, limit: Int) throws -> [WireID]? {
    let stored = try reader.children(of: folder, limit: limit + 1)
    if stored.count > limit { return nil }
    var found = Set(stored)
    for (place, ids) in taken where place.parent == folder { found.formUnion(ids) }
    let live = try found.filter { id in
      guard let row = try item(id), !row.isDeleted else { return false }
      return row.places.contains { $0.parent == folder }
    }
    // In an order that does not depend on hashes, so that what follows from it is the same each time.
    return live.count > limit ? nil : live.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }
}
