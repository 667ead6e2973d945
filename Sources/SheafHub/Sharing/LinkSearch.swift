import SheafHubStore
import SheafWire

/// A search for an item that has names on both sides of a share's border.
///
/// Items with several names are known from either side: from a folder, below which they lie, and from the zone, which
/// has a list of them. Neither is always short. So both ways are tried with a limit that grows, and finding out costs as
/// much as the shorter one, a few times over.
struct LinkSearch {
  /// Names and items that are looked at first, in each way, and by what that grows.
  private static let firstLook: Int64 = 256
  private static let growth: Int64 = 4

  private let zone: String
  private var connection: any SQLConnection

  init(zone: String, connection: any SQLConnection) { (self.zone, self.connection) = (zone, connection) }

  /// The result of searching in one way.
  private enum Finding {
    case item(WireID)
    case nothing
    /// That it takes longer.
    case undecided
  }

  /// An item for which `isAcross` holds, of those with several names; nil where there is none below the folders.
  mutating func item(below folders: [WireID], where isAcross: (WireID) throws -> Bool) throws -> WireID? {
    var limit = Self.firstLook
    while true {
      for finding in [try byList(limit, isAcross), try byWalking(folders, limit, isAcross)] {
        switch finding {
        case .item(let item): return item
        case .nothing: return nil
        case .undecided: continue
        }
      }
      limit *= Self.growth
    }
  }

  /// The items of a zone with several names, after one of them.
  static func items(
    of zone: String, after item: WireID?, limit: Int64, _ connection: inout any SQLConnection
  ) throws -> [WireID] {
    try connection.query(
      "SELECT item FROM linked_items WHERE zone = $1 AND item > $2 ORDER BY item LIMIT $3",
      [.text(zone), .blob(item?.bytes ?? []), .integer(limit)]
    ).map { try StoredZone.id($0.blob(0)) }
  }

  private mutating func byList(_ limit: Int64, _ isAcross: (WireID) throws -> Bool) throws -> Finding {
    let items = try Self.items(of: zone, after: nil, limit: limit + 1, &connection)
    guard items.count <= limit else { return .undecided }
    return try items.first(where: isAcross).map { .item($0) } ?? .nothing
  }

  private mutating func byWalking(
    _ tops: [WireID], _ limit: Int64, _ isAcross: (WireID) throws -> Bool
  ) throws -> Finding {
    var folders = tops
    var left = limit
    while let folder = folders.popLast() {
      var last: [UInt8] = []
      while true {
        guard left > 0 else { return .undecided }
        let page = min(left, Self.firstLook)
        let rows = try connection.query(
          """
          SELECT names.name, names.item, items.kind, linked_items.item
          FROM names LEFT JOIN items ON items.zone = names.zone AND items.item = names.item
          LEFT JOIN linked_items ON linked_items.zone = names.zone AND linked_items.item = names.item
          WHERE names.zone = $1 AND names.parent = $2 AND names.name > $3 ORDER BY names.name LIMIT $4
          """, [.text(zone), .blob(folder.bytes), .blob(last), .integer(page)])
        for row in rows {
          let item = try StoredZone.id(row.blob(1))
          if try row.optionalText(2) == ItemKind.folder.rawValue {
            folders.append(item)
          } else if try row.optionalBlob(3) != nil, try isAcross(item) {
            return .item(item)
          }
        }
        left -= Int64(rows.count) + 1
        guard rows.count == page, let end = rows.last else { break }
        last = try end.blob(0)
      }
    }
    return .nothing
  }
}
