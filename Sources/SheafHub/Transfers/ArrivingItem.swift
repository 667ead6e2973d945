import Crypto
import Foundation
import SheafWire

/// An item as it is to be in the zone of the account that took it over.
///
/// It has another id there, and so have its versions: a library in which both accounts are connected has each id once.
/// An id follows from the offer and the former id, so that copying can be repeated, and tells the same time.
struct ArrivingItem: Codable, Sendable {
  private let item: WireID
  private let kind: ItemKind
  private let deleted: Int64?
  private let places: [Place]
  private let mode: Int
  private let mtime: Int64
  private let target: Data?
  private let attributes: [String: Data]
  private let version: WireID?
  private let versions: Int64
  private let copyOf: WireID?
  /// The handle of who made it; nil for the new owner.
  let madeBy: String?
  /// The handle of who placed it last; nil for the new owner.
  let placedBy: String?
  /// When it got its names, in nanoseconds; nil where it was made with them.
  let placed: Int64?

  /// The bits of a mode that give a program another user's or group's rights.
  private static let setID = 0o6000

  /// - Parameters:
  ///   - row: The item in the zone that it comes from.
  ///   - tree: All that comes along.
  init(_ row: ItemRow, in tree: TransferredTree, by transfer: Transfer) {
    func id(_ id: WireID) -> WireID { Self.id(of: id, by: transfer.id) }
    item = id(row.item)
    kind = row.kind
    deleted = row.deleted
    let isTop = row.item == tree.top
    // Of what was deleted a name may be elsewhere.
    places = row.places.filter { isTop || tree.numbers[$0.parent] != nil }
      .map { Place(parent: isTop ? .root : id($0.parent), name: $0.name) }
    mode = row.mode & ~Self.setID
    mtime = row.mtime
    target = row.target.map { Data($0) }
    attributes = row.attributes
    version = row.version.map(id)
    versions = row.versions
    copyOf = row.copyOf.map(id)
    madeBy = transfer.author(row.placement?.madeBy)
    placedBy = transfer.author(row.placement?.placedBy)
    placed = row.placement?.time
  }

  /// The item's row.
  var row: ItemRow {
    ItemRow(
      item: item, kind: kind, number: 0, device: "", others: 0, deleted: deleted, places: places, mode: mode,
      mtime: mtime, target: target.map { [UInt8]($0) }, attributes: attributes, version: version, versions: versions,
      copyOf: copyOf)
  }

  /// The id that an item or a version has in the zone to which it goes.
  static func id(of id: WireID, by transfer: WireID) -> WireID {
    var hash = Array(SHA256.hash(data: transfer.bytes + id.bytes).prefix(16))
    // RFC 9562: where the time is, and what says so.
    hash.replaceSubrange(0..<6, with: id.bytes[0..<6])
    hash[6] = hash[6] & 0x0F | id.bytes[6] & 0xF0
    hash[8] = hash[8] & 0x3F | 0x80
    guard let id = WireID(bytes: hash) else { fatalError("an id has 16 bytes") }
    return id
  }
}
