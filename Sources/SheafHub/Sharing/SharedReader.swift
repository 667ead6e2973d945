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

  static var documents: ItemRow {
    ItemRow(
      item: .root, kind: .folder, number: 0, device: "", others: 0, deleted: nil,
      places: [Place(parent: .root, "Documents")], mode: 0o755, mtime: 0, target: nil, attributes: [:], version: nil,
      versions: 0, copyOf: nil)
  }

  /// An item's state as members see it: with the share's numbers, and without anything from outside.
  mutating func state(_ row: ItemRow, _ standing: Standing) throws -> ItemState {
    var row = row
    if !access.isOwner, let placement = row.placement {
      let isEntry = try finder.brought(row.item, into: access.place.share, at: standing.entered)
      row.placement = placement.seen(since: standing.entered, isEntry: isEntry)
    }
    var state = Feeds.state(row, nil)
    state.number = row.shared?.number ?? 0
    state.places = access.shown(row.places, of: row.item)
    // What others own gives nobody its owner's rights.
    if !access.isOwner { state.mode &= ~0o6000 }
    if let version = try row.version.flatMap({ try stored.version($0) }) {
      state.version = try facts(version, from: firstVersion(of: row, standing))
    }
    if row.purges > 0 {
      // Of what they never saw, members do not hear that it is gone.
      let first = try firstVersion(of: row, standing)
      state.purges = try stored.purges(of: row.item, from: first)
    }
    if row.labels != nil { state.labels = try stored.labelChanges(of: row.item, from: firstVersion(of: row, standing)) }
    if let original = row.copyOf, try item(original) == nil { state.copyOf = nil }
    return state
  }

  // MARK: - The feed

  /// The changes after a position as a page has them, and whether more follow.
  mutating func changes(
    after position: Int64, since: Int64, limit: Int
  ) throws -> (changes: [SharedChange], hasMore: Bool) {
    var changes: [SharedChange] = []
    var room = PageRoom(limit)
    while true {
      let count = room.next
      let rows = try stored.connection.query(
        """
        SELECT item, number FROM shared_rows WHERE zone = $1 AND share = $2 AND number > $3 ORDER BY number LIMIT $4
        """,
        [
          .text(zone), .blob(access.place.share.bytes), .integer(changes.last?.number ?? position),
          .integer(Int64(count)),
        ])
      for row in rows {
        let change = try change(of: StoredZone.id(row.blob(0)), row.integer(1), since: since)
        guard room.take(100 + ((change.state ?? change.deleted)?.wireBytes ?? 0)) else { return (changes, true) }
        changes.append(change)
      }
      if rows.count < count { return (changes, false) }
    }
  }

  private mutating func change(of id: WireID, _ number: Int64, since: Int64) throws -> SharedChange {
    guard let (row, standing) = try item(id), row.item == id else {
      let isPurged = try stored.item(id)?.isPurged ?? false
      return SharedChange(
        number: number, item: id, change: .left, state: nil, deleted: try isPurged ? nil : deleted(id),
        isPurged: try isPurged && finder.entry(of: id)?.share == access.place.share)
    }
    // An item that entered by itself since the reader was last complete is new to the reader, and so is everything
    // that it took along.
    let entry = try finder.entry(of: id)
    let isNew = entry?.share == access.place.share && entry?.told ?? 0 > since
    return SharedChange(
      number: number, item: id, change: isNew ? .entered : .changed, state: try state(row, standing))
  }

  /// An item that was deleted from the share, and that members may bring back; nil for everything else.
  private mutating func deleted(_ id: WireID) throws -> ItemState? {
    guard let row = try stored.item(id), row.item == id, let standing = try finder.deleted(row, in: &stored),
      standing.share == access.place.share
    else { return nil }
    var state = try state(row, standing)
    // Of what is deleted nobody reads contents.
    state.version = nil
    return state
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
    var items: [ItemState] = []
    var last = name
    var room = PageRoom(limit)
    while true {
      let count = room.next
      let rows = try stored.connection.query(
        "SELECT name, item FROM names WHERE zone = $1 AND parent = $2 AND name > $3 ORDER BY name LIMIT $4",
        [.text(zone), .blob(parent.item.bytes), .blob(last), .integer(Int64(count))])
      for row in rows {
        let child = try item(StoredZone.id(row.blob(1))).map { try state($0.row, $0.standing) }
        guard room.take(child?.wireBytes ?? 0) else {
          return SharedFolderPage(items: items, next: Hexadecimal.text(of: last))
        }
        last = try row.blob(0)
        if let child { items.append(child) }
      }
      if rows.count < count { return SharedFolderPage(items: items, next: nil) }
    }
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
    let labels = try stored.labels(of: row.item)
    return VersionList(
      versions: try versions.map { version in
        var facts = try facts(version, from: first)
        facts.label = labels[version.id]
        return facts
      },
      purged: row.purges == 0 ? [] : try stored.purged(of: row.item, after: after, limit: limit))
  }

  /// A version that members see.
  mutating func version(_ id: WireID, of item: WireID) throws -> (facts: ItemVersion, manifest: Manifest) {
    let (version, first) = try visible(id, of: item)
    guard let manifest = try stored.manifest(of: id) else { throw Self.noVersion }
    return (try facts(version, from: first), manifest)
  }

  private static let noVersion = HubError(.notFound, "the item has no such version")

  /// The row of a version that members see, and the number of the first one that they see of its item.
  ///
  /// - Throws: ``HubError`` of kind `notFound`.
  mutating func visible(_ id: WireID, of item: WireID) throws -> (version: VersionRow, first: Int64) {
    let (row, standing) = try require(item)
    let first = try firstVersion(of: row, standing)
    guard let version = try stored.version(id), version.item == row.item, version.number >= first, !version.isPurged
    else { throw Self.noVersion }
    return (version, first)
  }

  /// The chunks that a member may name in a new version of an item without uploading them: those of the current one.
  mutating func chunks(of id: WireID) throws -> Set<ChunkHash> {
    guard let row = try item(id)?.row, let version = row.version else { return [] }
    return try stored.manifest(of: version)?.hashes ?? []
  }
}
