import SheafHubStore
import SheafWire

extension Zone {
  /// Checks the rows and the contents of every zone.
  ///
  /// - Returns: one line for each finding.
  static func check(_ database: any Database) async throws -> [String] {
    let zones = try await database.read { connection in
      try connection.query("SELECT zone FROM zones").map { try $0.text(0) }
    }
    var findings: [String] = []
    for zone in zones { findings += try await check(zone, database) }
    return findings
  }

  static func check(_ zone: String, _ database: any Database) async throws -> [String] {
    try await database.read { connection in
      var check = ZoneCheck(zone: zone, connection: connection)
      return try check.run()
    }
  }
}

/// The check of one zone, on one snapshot.
private struct ZoneCheck {
  private static let page: Int64 = 100
  /// Each has a manifest of up to 2.6 MB.
  private static let versionPage: Int64 = 16

  private let zone: String
  private var connection: any SQLConnection
  private var findings: [String] = []
  /// Bytes of items and versions.
  private var rowBytes: Int64 = 0

  init(zone: String, connection: any SQLConnection) {
    self.zone = zone
    self.connection = connection
  }

  private mutating func find(_ text: String) { findings.append("\(zone): \(text)") }

  mutating func run() throws -> [String] {
    let head = try ZoneHead.read(zone, in: &connection)
    try checkItems(head)
    try checkEvents(head)
    try checkShares()
    let uses = try checkVersions()
    try checkArrivals()
    try checkChunks(head, uses)
    return findings
  }

  private mutating func checkItems(_ head: ZoneHead) throws {
    var stored = StoredZone(zone: zone, connection: connection)
    var last: Int64 = 0
    var (places, linked): (Int64, Int64) = (0, 0)
    while true {
      let rows = try connection.query(
        """
        SELECT item, number, device, others, kind, deleted, places, mode, mtime, target, attributes, version, versions,
          copy_of FROM items WHERE zone = $1 AND number > $2 ORDER BY number LIMIT $3
        """, [.text(zone), .integer(last), .integer(Self.page)])
      for row in rows {
        let item = try StoredZone.item(row)
        last = item.number
        if !item.isDeleted { places += Int64(item.places.count) }
        if item.isLinked { linked += 1 }
        rowBytes += item.bytes
        try check(item, &stored)
      }
      if rows.count < Self.page { break }
    }
    if last > head.number { find("an item has number \(last), and the zone \(head.number)") }
    let newest = try connection.query("SELECT MAX(number) FROM changes WHERE zone = $1", [.text(zone)])
    // A zone that an older program wrote, or that was imported, has none yet.
    if let change = try newest.first?.optionalInteger(0), change != head.number {
      find("the newest change with an id has number \(change), and the zone \(head.number)")
    }
    let names = try connection.query("SELECT COUNT(*) FROM names WHERE zone = $1", [.text(zone)])
    if try names.first?.integer(0) != places { find("there are other names than items have") }
    try checkLinks(linked, &stored)
    try checkPlacements(&stored)
    let aliases = try connection.query(
      """
      SELECT COUNT(*) FROM aliases WHERE zone = $1
        AND item NOT IN (SELECT item FROM items WHERE zone = $1)
        AND item NOT IN (SELECT version FROM versions WHERE zone = $1)
      """, [.text(zone)])
    if try aliases.first?.integer(0) != 0 { find("an id leads to an item or a version that is not there") }
  }

  private mutating func checkLinks(_ count: Int64, _ stored: inout StoredZone) throws {
    var finder = try ShareFinder(zone: zone, connection: connection)
    var found: Int64 = 0
    var last: WireID?
    while true {
      let page = try LinkSearch.items(of: zone, after: last, limit: Self.page, &connection)
      for id in page {
        guard let item = try stored.item(id), item.isLinked else {
          find("\(id): is listed as having several names")
          continue
        }
        found += 1
        if try finder.isAcross(item, in: &stored) { find("\(id): has names on both sides of a share's border") }
      }
      last = page.last
      if page.count < Self.page { break }
    }
    if found != count { find("an item with several names is not listed as such") }
  }

  private mutating func checkPlacements(_ stored: inout StoredZone) throws {
    var last: [UInt8] = []
    while true {
      let rows = try connection.query(
        "SELECT item FROM placements WHERE zone = $1 AND item > $2 ORDER BY item LIMIT $3",
        [.text(zone), .blob(last), .integer(Self.page)])
      for row in rows {
        last = try row.blob(0)
        let id = try StoredZone.id(last)
        if try stored.item(id)?.isPurged ?? true { find("\(id): was placed, and is not there") }
      }
      if rows.count < Self.page { return }
    }
  }

  private mutating func check(_ item: ItemRow, _ stored: inout StoredZone) throws {
    if item.others >= item.number { find("\(item.item): another device's change is newer than the newest") }
    if item.places.isEmpty != item.isPurged || (item.kind == .folder && item.places.count > 1)
      || item.places.contains(where: { !$0.isValid })
    {
      find("\(item.item): its names cannot be")
    }
    // What was deleted may have expired, or have been purged.
    let hasVersion = item.version != nil || (item.isDeleted && item.kind == .document)
    let hasTarget = item.target != nil || (item.isPurged && item.kind == .symlink)
    if hasVersion != (item.kind == .document) || hasTarget != (item.kind == .symlink) {
      find("\(item.item): has not what its kind has")
    }
    if let id = item.version {
      let version = try stored.version(id)
      if version?.item != item.item || version?.number != item.versions || version?.isPurged ?? true {
        find("\(item.item): its version is another one's")
      }
    }
    if item.isDeleted { return }
    for place in item.places {
      if try stored.occupant(of: place) != item.item { find("\(item.item): a name of it leads elsewhere") }
      try checkWay(up: place.parent, of: item.item, &stored)
    }
  }

  private mutating func checkWay(up parent: WireID, of item: WireID, _ stored: inout StoredZone) throws {
    var next = parent
    for _ in 0...Decision.depthLimit {
      if next == .root { return }
      guard let folder = try stored.item(next), folder.kind == .folder, !folder.isDeleted, next != item,
        let place = folder.places.first
      else { break }
      next = place.parent
    }
    find("\(item): no way leads up from it to the root")
  }

  private mutating func checkEvents(_ head: ZoneHead) throws {
    let rows = try connection.query("SELECT COUNT(*), MAX(sequence) FROM events WHERE zone = $1", [.text(zone)])
    guard let row = rows.first else { return }
    if try row.integer(0) != head.events || row.optionalInteger(1) ?? 0 != head.events {
      find("the numbers of its events have gaps")
    }
  }

  private mutating func checkShares() throws {
    var rows = ShareRows(zone: zone, connection: connection)
    var links: Int64 = 0
    for id in try rows.ids(activeOnly: false) {
      guard let share = try rows.share(id) else { continue }
      links += 1 + Int64(share.invitations.count)
      let owners = share.members.values.filter { $0.role == .owner }
      if owners.map(\.person.zone) != [zone] { find("share \(id): its owner is not the zone's account") }
      for hash in [HubShare.hash(share.token)] + share.invitations.keys {
        let leads = try connection.query("SELECT zone FROM links WHERE hash = $1", [.blob(hash)])
        if try leads.first?.text(0) != zone { find("share \(id): a link leads elsewhere") }
      }
    }
    let known = try connection.query("SELECT COUNT(*) FROM links WHERE zone = $1", [.text(zone)])
    if try known.first?.integer(0) != links { find("there are other links than shares have") }
    let lost = try connection.query(
      "SELECT COUNT(*) FROM participants WHERE zone = $1 AND share NOT IN (SELECT share FROM shares WHERE zone = $1)",
      [.text(zone)])
    if try lost.first?.integer(0) != 0 { find("somebody takes part in a share that is not there") }
    let strangers = try connection.query(
      "SELECT COUNT(*) FROM guests WHERE zone = $1 AND share NOT IN (SELECT share FROM shares WHERE zone = $1)",
      [.text(zone)])
    if try strangers.first?.integer(0) != 0 { find("a root lets into a share that is not there") }
    try checkFeeds(&rows)
  }

  private mutating func checkFeeds(_ rows: inout ShareRows) throws {
    for id in try rows.ids(activeOnly: false) {
      let head = try SharedHead.read(id, of: zone, &connection)
      let key: [SQLValue] = [.text(zone), .blob(id.bytes)]
      let newest = try connection.query("SELECT MAX(number) FROM shared_rows WHERE zone = $1 AND share = $2", key)
      if try newest.first?.optionalInteger(0) ?? 0 > head.number { find("share \(id): its feed is behind its rows") }
      let events = try connection.query(
        "SELECT COUNT(*), MAX(number) FROM shared_events WHERE zone = $1 AND share = $2", key)
      guard let row = events.first else { continue }
      if try row.integer(0) != head.events || row.optionalInteger(1) ?? 0 != head.events {
        find("share \(id): the numbers of its events have gaps")
      }
    }
    let lost = try connection.query(
      "SELECT COUNT(*) FROM entries WHERE zone = $1 AND item NOT IN (SELECT item FROM items WHERE zone = $1)",
      [.text(zone)])
    if try lost.first?.integer(0) != 0 { find("an item that is not there entered a share") }
  }

  private mutating func checkArrivals() throws {
    rowBytes += try ArrivalRows.bytes(of: zone, &connection)
    let lost = try connection.query(
      """
      SELECT COUNT(*) FROM arrivals WHERE zone = $1
        AND transfer NOT IN (SELECT transfer FROM transfer_offers WHERE zone = $1)
      """, [.text(zone)])
    if try lost.first?.integer(0) != 0 { find("an item arrives that nobody offers") }
  }

  /// - Returns: how many versions use each chunk.
  private mutating func checkVersions() throws -> [ChunkHash: Int64] {
    var uses: [ChunkHash: Int64] = [:]
    var purged: [WireID: Int64] = [:]
    var last: (item: [UInt8], number: Int64) = ([], 0)
    while true {
      let rows = try connection.query(
        """
        SELECT version, item, number, base, cause, time, arrived, size, digest, manifest FROM versions
        WHERE zone = $1 AND (item > $2 OR (item = $2 AND number > $3)) ORDER BY item, number LIMIT $4
        """, [.text(zone), .blob(last.item), .integer(last.number), .integer(Self.versionPage)])
      for row in rows {
        let version = try StoredZone.version(row, from: 0)
        last = (version.item.bytes, version.number)
        rowBytes += VersionRow.bytes(manifest: try row.blob(9).count)
        if version.isPurged {
          purged[version.item, default: 0] += 1
          if try version.size != 0 || !row.blob(9).isEmpty { find("\(version.item): a purged version has contents") }
          continue
        }
        guard let manifest = Manifest(bytes: try row.blob(9)), manifest.size == version.size,
          manifest.digest == version.digest
        else {
          find("\(version.item): version \(version.number) is damaged")
          continue
        }
        for hash in manifest.hashes { uses[hash, default: 0] += 1 }
      }
      if rows.count < Self.versionPage { break }
    }
    for row in try connection.query("SELECT item, versions FROM purges WHERE zone = $1", [.text(zone)]) {
      if try purged.removeValue(forKey: StoredZone.id(row.blob(0))) != row.integer(1) {
        find("purged versions are counted wrongly")
      }
    }
    if !purged.isEmpty { find("purged versions are not counted") }
    try checkLabels()
    try checkRetentions()
    return uses
  }

  private mutating func checkRetentions() throws {
    var stored = StoredZone(zone: zone, connection: connection)
    let folders = try FolderRetentions.folders(of: zone, &connection)
    if folders.count > WireLimits.retainingFolders { find("too many folders say for how long they keep things") }
    for folder in folders {
      if !folder.isSound || (folder.keepDeleted == nil && folder.keepVersions == nil) {
        find("\(folder.item): says to keep things for a time that cannot be")
      }
      if folder.item == .root { continue }
      let row = try stored.item(folder.item)
      if row?.kind != .folder || row?.isPurged ?? true { find("\(folder.item): keeps things, and is no folder") }
    }
  }

  private mutating func checkLabels() throws {
    var stored = StoredZone(zone: zone, connection: connection)
    var known: [WireID: Set<String>] = [:]
    let rows = try connection.query(
      "SELECT item, version, label FROM labels WHERE zone = $1 AND label IS NOT NULL", [.text(zone)])
    for row in rows {
      let item = try StoredZone.id(row.blob(0))
      if try stored.version(StoredZone.id(row.blob(1)))?.item != item {
        find("\(item): a label is of a version that is not there")
      }
      if try !known[item, default: []].insert(row.text(2)).inserted { find("\(item): two versions have one label") }
    }
  }

  private mutating func checkChunks(_ head: ZoneHead, _ uses: [ChunkHash: Int64]) throws {
    var missing = Set(uses.keys)
    var used = rowBytes
    var last: [UInt8] = []
    var stored: Int64 = 0
    while true {
      let rows = try connection.query(
        """
        SELECT chunks.hash, length, uses, bytes FROM chunks
        LEFT JOIN chunk_bytes ON chunk_bytes.zone = chunks.zone AND chunk_bytes.hash = chunks.hash
        WHERE chunks.zone = $1 AND chunks.hash > $2 ORDER BY chunks.hash LIMIT 16
        """, [.text(zone), .blob(last)])
      for row in rows {
        last = try row.blob(0)
        used += try row.integer(1)
        guard let bytes = try row.optionalBlob(3) else {
          find("the bytes of a chunk are missing")
          continue
        }
        stored += 1
        guard let hash = ChunkHash(bytes: last), Chunk(bytes).hash == hash, try row.integer(1) == Int64(bytes.count)
        else {
          find("a chunk is damaged")
          continue
        }
        missing.remove(hash)
        if try row.integer(2) != uses[hash] ?? 0 { find("a chunk is counted wrongly: \(hash)") }
      }
      if rows.count < 16 { break }
    }
    for hash in missing { find("a chunk is missing: \(hash)") }
    let all = try connection.query("SELECT COUNT(*) FROM chunk_bytes WHERE zone = $1", [.text(zone)])
    if try all.first?.integer(0) != stored { find("bytes are of no chunk") }
    if used != head.used { find("its bytes are counted as \(head.used), and are \(used)") }
  }
}
