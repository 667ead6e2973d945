import Crypto
import SheafHubStore
import SheafModel
import SheafWire

/// Reads what a member of a share may see, in one snapshot of the rows. It checks the right in the same snapshot, so
/// members learn nothing that came after its end.
struct SharedReader {
  let access: ShareAccess
  let head: SharedHead
  private let zone: String
  private var stored: StoredZone
  private var finder: ShareFinder

  /// - Throws: as ``ShareAccess/require(_:_:_:)``.
  init(_ operation: ShareOperation, _ place: SharedPlace, _ connection: inout any SQLConnection) throws {
    access = try ShareAccess.require(operation, place, &connection)
    head = try SharedHead.read(place.share, of: place.zone, &connection)
    zone = place.zone
    stored = StoredZone(zone: place.zone, connection: connection, share: place.share)
    finder = try ShareFinder(zone: place.zone, connection: connection)
  }

  private static let nothing = HubError(.notFound, "nothing in the share has this id")

  /// An item of the share; nil for everything else, and for what was deleted.
  mutating func item(_ id: WireID) throws -> (row: ItemRow, standing: Standing)? {
    if id == .root {
      guard access.item == .root else { return nil }
      let standing = Standing(share: access.place.share, item: .root, entered: head.since, told: head.opened)
      return (Self.documents, standing)
    }
    guard let row = try stored.item(try stored.alias(id) ?? id), !row.isDeleted,
      let standing = try finder.standing(of: row, in: &stored), standing.share == access.place.share
    else { return nil }
    return (row, standing)
  }

  /// - Throws: ``HubError`` of kind `notFound`, the same for what is not there and what is elsewhere.
  mutating func require(_ id: WireID) throws -> (row: ItemRow, standing: Standing) {
    guard let found = try item(id) else { throw Self.nothing }
    return found
  }

  private static var documents: ItemRow {
    ItemRow(
      item: .root, kind: .folder, number: 0, device: "", others: 0, deleted: nil,
      places: [Place(parent: .root, "Documents")], mode: 0o755, mtime: 0, target: nil, attributes: [:], version: nil,
      versions: 0, copyOf: nil)
  }

  /// An item's state as members see it: with the share's numbers, and without anything from outside.
  mutating func state(_ row: ItemRow, _ standing: Standing) throws -> ItemState {
    var state = Feeds.state(row, nil)
    state.number = row.shared?.number ?? 0
    state.places = access.shown(row.places, of: row.item)
    if let version = try row.version.flatMap({ try stored.version($0) }) {
      state.version = try facts(version, from: firstVersion(of: row, standing))
    }
    if row.purges > 0 {
      // Of what they never saw, members do not hear that it is gone.
      let first = try firstVersion(of: row, standing)
      state.purges = Int64(try stored.purged(of: row.item, after: first - 1, limit: Int(row.purges)).count)
    }
    if let original = row.copyOf, try item(original) == nil { state.copyOf = nil }
    return state
  }

  // MARK: - The feed

  /// The changes after a position.
  mutating func changes(after position: Int64, since: Int64, limit: Int) throws -> [SharedChange] {
    let rows = try stored.connection.query(
      """
      SELECT item, number FROM shared_rows WHERE zone = $1 AND share = $2 AND number > $3 ORDER BY number LIMIT $4
      """,
      [.text(zone), .blob(access.place.share.bytes), .integer(position), .integer(Int64(limit))])
    return try rows.map { row in
      let (id, number) = (try StoredZone.id(row.blob(0)), try row.integer(1))
      guard let (row, standing) = try item(id), row.item == id else {
        let isPurged = try stored.item(id)?.isPurged ?? false
        return SharedChange(
          number: number, item: id, change: .left, state: nil,
          isPurged: try isPurged && finder.entry(of: id)?.share == access.place.share)
      }
      // An item that entered by itself since the reader was last complete is new to the reader, and so is everything
      // that it took along.
      let entry = try finder.entry(of: id)
      let isNew = entry?.share == access.place.share && entry?.told ?? 0 > since
      return SharedChange(
        number: number, item: id, change: isNew ? .entered : .changed, state: try state(row, standing))
    }
  }

  /// The shared item, for a reader that knows nothing yet.
  mutating func beginning() throws -> SharedChange {
    let (row, standing) = try require(access.item)
    return SharedChange(number: head.number, item: row.item, change: .entered, state: try state(row, standing))
  }

  /// Items in a folder whose names come after one.
  mutating func children(of folder: WireID, after name: [UInt8], limit: Int) throws -> SharedFolderPage {
    let parent = try require(folder).row
    guard parent.kind == .folder else { throw HubError(.invalid, "item: not a folder") }
    let rows = try stored.connection.query(
      "SELECT name, item FROM names WHERE zone = $1 AND parent = $2 AND name > $3 ORDER BY name LIMIT $4",
      [.text(zone), .blob(parent.item.bytes), .blob(name), .integer(Int64(limit))])
    var items: [ItemState] = []
    for row in rows {
      guard let (child, standing) = try item(StoredZone.id(row.blob(1))) else { continue }
      items.append(try state(child, standing))
    }
    let last = rows.count == limit ? try rows.last?.blob(0) : nil
    return SharedFolderPage(items: items, next: last.map { SharedToken.hex($0) })
  }

  // MARK: - Versions

  /// The number of the first version that members see: the one that was current when the document entered.
  mutating func firstVersion(of row: ItemRow, _ standing: Standing) throws -> Int64 {
    access.isOwner ? 1 : try SharedRows.firstVersion(of: row, standing, in: zone, &stored.connection)
  }

  private mutating func facts(_ version: VersionRow, from first: Int64) throws -> ItemVersion {
    var facts = version.facts
    if let base = try version.base.flatMap({ try stored.version($0) }), base.item == version.item, base.number >= first
    {
      return facts
    }
    facts.base = nil
    return facts
  }

  /// The versions of an item that members see, the oldest first.
  mutating func versions(of id: WireID, after number: Int64, limit: Int) throws -> VersionList {
    let (row, standing) = try require(id)
    let first = try firstVersion(of: row, standing)
    let after = max(number, first - 1)
    let versions = try stored.contents(of: row.item, after: after, limit: Int64(limit))
    return VersionList(
      versions: try versions.map { try facts($0, from: first) },
      purged: row.purges == 0 ? [] : try stored.purged(of: row.item, after: after, limit: limit))
  }

  /// A version that members see.
  mutating func version(_ id: WireID, of item: WireID) throws -> (facts: ItemVersion, manifest: Manifest) {
    let (row, standing) = try require(item)
    let first = try firstVersion(of: row, standing)
    guard let version = try stored.version(id), version.item == row.item, version.number >= first, !version.isPurged,
      let manifest = try stored.manifest(of: id)
    else { throw HubError(.notFound, "the item has no such version") }
    return (try facts(version, from: first), manifest)
  }

  /// The chunks that a member may name in a new version of an item without uploading them: those of the current one.
  mutating func chunks(of id: WireID) throws -> Set<ChunkHash> {
    guard let row = try item(id)?.row, let version = row.version else { return [] }
    return try stored.manifest(of: version)?.hashes ?? []
  }
}

/// A position in a share's feed, opaque to devices.
package struct SharedToken: Hashable, Sendable {
  /// The number up to which the reader has read.
  let number: Int64
  /// The number at which it was last complete: items that entered since are new to it.
  let since: Int64
  /// Of the share and the epoch of its zone.
  let mark: [UInt8]
  /// The id of the change that has the number.
  let change: ChangeID

  init(number: Int64, since: Int64, mark: [UInt8], change: ChangeID) {
    self.number = number
    self.since = since
    self.mark = mark
    self.change = change
  }

  static func mark(_ share: WireID, epoch: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(data: share.bytes + epoch).prefix(16))
  }

  /// - Throws: ``HubError`` of kind `invalid` for a text that is no token.
  package init(_ text: String) throws {
    let invalid = HubError(.invalid, "token: none of this share's")
    guard let bytes = Self.bytes(text), bytes.count == 40 else { throw invalid }
    number = bytes[..<8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    since = bytes[8..<16].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    mark = Array(bytes[16..<32])
    change = ChangeID(bytes: Array(bytes[32...]))
    guard number >= 0, (0...number).contains(since) else { throw invalid }
  }

  package var text: String {
    let numbers = [number, since].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
    return Self.hex(numbers + mark + change.bytes)
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The bytes of hexadecimal digits in lower case; nil for any other text.
  static func bytes(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard !digits.isEmpty, digits.count.isMultiple(of: 2),
      digits.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { place in
      digits[place...(place + 1)].reduce(UInt8(0)) { $0 << 4 | ($1 < 97 ? $1 - 48 : $1 - 87) }
    }
  }
}
