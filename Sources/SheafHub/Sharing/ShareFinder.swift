import SheafHubStore
import SheafWire

/// Something in which items are found by id.
protocol ItemSource {
  mutating func item(_ id: WireID) throws -> ItemRow?
}

extension StoredZone: ItemSource {}
extension ZoneDraft: ItemSource {}

/// The share in which an item is, and since when: only the owner learns what was before.
struct Standing: Hashable, Sendable {
  let share: WireID
  /// The shared item; nil in a noted entry.
  var item: WireID?
  /// The zone's number of the change with which it entered.
  var entered: Int64
  /// The number of that change in the share's feed.
  var told: Int64

  func later(_ other: Standing?) -> Standing {
    guard let other, other.share == share else { return self }
    return Standing(share: share, item: item, entered: max(entered, other.entered), told: max(told, other.told))
  }
}

/// Finds out in which share items are.
///
/// An item is in the share of the folder that it is in, and a document that has several names only if they are all in
/// one share. The entry of a folder counts for all that is below it, so that entering costs one row however much that
/// is.
struct ShareFinder {
  private let zone: String
  private var connection: any SQLConnection
  /// The active shares by their items.
  private var shares: [WireID: Standing]
  private var entries: [WireID: Standing?] = [:]
  private var folders: [WireID: Standing?] = [:]

  init(zone: String, connection: any SQLConnection) throws {
    self.zone = zone
    self.connection = connection
    var shares: [WireID: Standing] = [:]
    let rows = try self.connection.query(
      """
      SELECT shares.item, shares.share, shared_feeds.since, shared_feeds.opened FROM shares
      LEFT JOIN shared_feeds ON shared_feeds.zone = shares.zone AND shared_feeds.share = shares.share
      WHERE shares.zone = $1 AND shares.active = 1
      """, [.text(zone)])
    for row in rows {
      let item = try StoredZone.id(row.blob(0))
      shares[item] = Standing(
        share: try StoredZone.id(row.blob(1)), item: item, entered: try row.optionalInteger(2) ?? 0,
        told: try row.optionalInteger(3) ?? 0)
    }
    self.shares = shares
  }

  var isEmpty: Bool { shares.isEmpty }

  /// The items that are shared.
  var items: [WireID] { Array(shares.keys) }

  func isShared(_ item: WireID) -> Bool { shares[item] != nil }

  /// Finds out what would be so if an item were shared, too.
  mutating func suppose(_ item: WireID) {
    shares[item] = Standing(share: WireID(), item: item, entered: 0, told: 0)
  }

  /// The entry that is noted of an item itself.
  mutating func entry(of item: WireID) throws -> Standing? {
    if let known = entries[item] { return known }
    let row = try connection.query(
      "SELECT share, number, told FROM entries WHERE zone = $1 AND item = $2", [.text(zone), .blob(item.bytes)]
    ).first
    let entry = try row.map {
      Standing(share: try StoredZone.id($0.blob(0)), entered: try $0.integer(1), told: try $0.integer(2))
    }
    entries[item] = .some(entry)
    return entry
  }

  /// Whether a change of the zone brought an item into a share, and not into one that began anew since.
  mutating func brought(_ item: WireID, into share: WireID, at number: Int64) throws -> Bool {
    guard let entry = try entry(of: item), entry.share == share, entry.entered == number else { return false }
    return !shares.values.contains { $0.share == share && $0.entered >= number }
  }

  /// Where an item is; nil for one that is in no share.
  mutating func standing(of row: ItemRow, in source: inout some ItemSource) throws -> Standing? {
    if let own = shares[row.item] { return own }
    return try above(row, in: &source)?.later(entry(of: row.item))
  }

  /// Where the folders are that an item is in; nil where they are in no share, or not all in one.
  mutating func above(_ row: ItemRow, in source: inout some ItemSource) throws -> Standing? {
    var found: Standing?
    for place in row.places {
      guard let standing = try standing(ofFolder: place.parent, in: &source),
        found.map({ $0.share == standing.share }) ?? true
      else { return nil }
      found = standing.later(found)
    }
    return found
  }

  /// Where an item was when it was deleted from a share, if the folder that it was in did not enter that since; nil for
  /// everything else.
  mutating func deleted(_ row: ItemRow, in source: inout some ItemSource) throws -> Standing? {
    guard row.isDeleted, let entry = try entry(of: row.item), let above = try above(row, in: &source),
      above.share == entry.share, row.number > above.entered
    else { return nil }
    return above.later(entry)
  }

  /// Whether some names of an item are in a share and others are not, or in another one.
  mutating func isAcross(_ row: ItemRow, in source: inout some ItemSource) throws -> Bool {
    if row.places.count < 2 { return false }
    if isShared(row.item) { return true }
    var found: Set<WireID?> = []
    for place in row.places { found.insert(try standing(ofFolder: place.parent, in: &source)?.share) }
    return found.count > 1
  }

  mutating func standing(ofFolder folder: WireID, in source: inout some ItemSource) throws -> Standing? {
    var passed: [WireID] = []
    var standing: Standing?
    var next = folder
    while true {
      if let known = folders[next] {
        standing = known
        break
      }
      if let own = shares[next] {
        standing = own
        break
      }
      if next == .root { break }
      passed.append(next)
      guard passed.count <= Decision.depthLimit + 1, let place = try source.item(next)?.places.first else { break }
      next = place.parent
    }
    for folder in passed.reversed() {
      standing = try standing?.later(entry(of: folder))
      folders[folder] = .some(standing)
    }
    return standing
  }
}
