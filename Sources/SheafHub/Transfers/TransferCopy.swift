import SheafHubStore
import SheafModel
import SheafWire

/// The copy of a tree in the zone of the account that takes it over.
///
/// Items wait in `arrivals`, which no feed tells. Their versions are in `versions` already, under ids that nobody knows.
/// Copying is repeated until the copy is what the giver's zone has, and then only what changed is copied again.
struct TransferCopy: Sendable {
  private static let page: Int64 = 16
  /// Items that one transaction makes visible in a step, or takes away.
  private static let step: Int64 = 100
  /// Bytes of chunks that are in memory.
  private static let mostBytes: Int64 = 8 << 20

  let database: any Database
  let clock: HubClock

  /// An item that is copied, with a version of it.
  private struct Source: Sendable {
    let zone: String
    let item: WireID
    let transfer: Transfer

    func id(_ id: WireID) -> WireID { ArrivingItem.id(of: id, by: transfer.id) }
  }

  /// That what is copied is another by now.
  private struct Outdated: Error {}

  // MARK: - Copying

  /// Copies a tree.
  ///
  /// - Returns: false where there is more to copy.
  /// - Throws: ``HubError`` of kind `notFound` where the offer ended, `quota` or `full`.
  func copy(_ tree: TransferredTree, _ transfer: Transfer, until deadline: ContinuousClock.Instant) async throws -> Bool
  {
    for (place, item) in tree.items.enumerated() {
      let source = Source(zone: transfer.giver.zone, item: item, transfer: transfer)
      do {
        // Each request does something, however late it is.
        guard try await copy(source, place: place, isTop: item == tree.top) else { continue }
      } catch is Outdated {
        continue
      }
      if ContinuousClock.now > deadline, place < tree.items.count - 1 { return false }
    }
    return true
  }

  /// - Returns: whether there was something to copy.
  private func copy(_ source: Source, place: Int, isTop: Bool) async throws -> Bool {
    let row = try await database.read { connection in
      var stored = StoredZone(zone: source.zone, connection: connection)
      return try stored.item(source.item)
    }
    guard let row, !row.isPurged else { return false }
    let arriving = ArrivingItem(row, isTop: isTop, by: source.transfer)
    let isNews = try await note(arriving, source, place: place, changed: row.number)
    guard isNews else { return false }
    var versions: Set<WireID> = []
    var last: Int64 = 0
    while true {
      let after = last
      let page = try await database.read { connection in
        var stored = StoredZone(zone: source.zone, connection: connection)
        return try stored.contents(of: source.item, after: after, limit: Self.page)
      }
      for version in page {
        try await copy(version, source)
        versions.insert(source.id(version.id))
      }
      guard page.count == Self.page, let end = page.last else { break }
      last = end.number
    }
    try await settle(source, versions: versions, changed: row.number)
    return true
  }

  /// Notes an item as it is to be.
  ///
  /// - Parameters:
  ///   - place: Its place among those that are copied.
  ///   - number: That of its newest change in the giver's zone.
  /// - Returns: whether there is something to copy.
  private func note(
    _ arriving: ArrivingItem, _ source: Source, place: Int, changed number: Int64
  ) async throws -> Bool {
    let (zone, item) = (source.transfer.recipient.zone, arriving.row)
    return try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var offers = TransferRows(zone: zone, connection: connection)
      guard try offers.hint(source.transfer.id)?.isOpen ?? false else {
        throw HubError(.notFound, "nothing is offered by this id, or no longer")
      }
      var rows = ArrivalRows(zone: zone, transfer: source.transfer.id, connection: connection)
      let former = try rows.row(item.item)
      if former?.copied == number { return false }
      try head.use(item.bytes - (former?.item.row.bytes ?? 0))
      try rows.write(arriving, place: place)
      try head.write(zone, in: &connection)
      return true
    }
  }

  private func copy(_ version: VersionRow, _ source: Source) async throws {
    let zone = source.transfer.recipient.zone
    let (manifest, base) = try await database.read { connection in
      var stored = StoredZone(zone: source.zone, connection: connection)
      let base = try version.base.flatMap { try stored.version($0) }
      return (
        try stored.manifest(of: version.id), base?.item == source.item && base?.isPurged == false ? base?.id : nil
      )
    }
    guard let manifest, manifest.digest == version.digest else { throw Outdated() }
    let copied = VersionRow(
      id: source.id(version.id), item: source.id(source.item), number: version.number, base: base.map(source.id),
      cause: version.cause, time: version.time, arrived: version.arrived, size: version.size, digest: version.digest,
      author: source.transfer.author(version.author))
    let isThere = try await database.read { connection in
      var stored = StoredZone(zone: zone, connection: connection)
      return try stored.version(copied.id) != nil
    }
    if isThere { return }
    while true {
      let missing = try await missing(manifest, in: zone)
      if missing.isEmpty { break }
      let chunks = try await chunks(missing, of: source.zone)
      let now = clock.now
      try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        for chunk in chunks { try Contents.store(chunk, lease: now, of: zone, in: &connection, &head) }
        try head.write(zone, in: &connection)
      }
    }
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var rows = ArrivalRows(zone: zone, transfer: source.transfer.id, connection: connection)
      // Another request may have taken all of it away, or may have copied this.
      guard try rows.row(copied.item) != nil else { throw Outdated() }
      var stored = StoredZone(zone: zone, connection: connection)
      guard try stored.version(copied.id) == nil else { return }
      try stored.add(copied, manifest, device: "", change: head.number, &head)
      try head.write(zone, in: &connection)
    }
  }

  /// The chunks of a version that a zone does not have, which keeps the others for a day.
  private func missing(_ manifest: Manifest, in zone: String) async throws -> [ChunkHash] {
    let hashes = manifest.hashes
    let lease = clock.now.nanoseconds + Contents.lease
    return try await database.write { connection in
      _ = try ZoneHead.take(zone, in: &connection)
      return try hashes.filter { hash in
        try connection.execute(
          "UPDATE chunks SET lease = $1 WHERE zone = $2 AND hash = $3",
          [.integer(lease), .text(zone), .blob(hash.bytes)]) == 0
      }
    }
  }

  /// The first ones of some chunks of a zone.
  private func chunks(_ hashes: [ChunkHash], of zone: String) async throws -> [Chunk] {
    try await database.read { connection in
      var chunks: [Chunk] = []
      var bytes: Int64 = 0
      for hash in hashes where bytes < Self.mostBytes {
        let row = try connection.query(
          "SELECT bytes FROM chunk_bytes WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)]
        ).first
        // Of a version that was thinned or purged a moment ago.
        guard let row else { throw Outdated() }
        let chunk = Chunk(try row.blob(0))
        guard chunk.hash == hash else { throw HubStoreError.corrupt("a chunk is missing or damaged") }
        bytes += Int64(chunk.bytes.count)
        chunks.append(chunk)
      }
      return chunks
    }
  }

  /// Drops what the giver's zone has no more of an item, and gives its versions their labels.
  private func settle(_ source: Source, versions: Set<WireID>, changed number: Int64) async throws {
    let (zone, item) = (source.transfer.recipient.zone, source.id(source.item))
    let labels = try await database.read { connection in
      var stored = StoredZone(zone: source.zone, connection: connection)
      return try stored.labels(of: source.item)
    }
    while true {
      let isDone = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        var rows = ArrivalRows(zone: zone, transfer: source.transfer.id, connection: connection)
        guard try rows.row(item) != nil else { throw Outdated() }
        var stored = StoredZone(zone: zone, connection: connection)
        guard try stored.drop(versionsOf: item, except: versions, &head) else {
          try head.write(zone, in: &connection)
          return false
        }
        try stored.dropLabels(of: item)
        for (version, label) in labels where versions.contains(source.id(version)) {
          try stored.setLabel(label, of: source.id(version), item)
        }
        try rows.noteCopied(item, changed: number)
        try head.write(zone, in: &connection)
        return true
      }
      if isDone { return }
    }
  }

  // MARK: - What becomes of it

  /// Makes a copy the account's own, in its `Documents`. Done once, however often it is repeated.
  func publish(_ transfer: Transfer) async throws {
    let (zone, now) = (transfer.recipient.zone, clock.now)
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var rows = ArrivalRows(zone: zone, transfer: transfer.id, connection: connection)
      var stored = StoredZone(zone: zone, connection: connection)
      var offers = TransferRows(zone: zone, connection: connection)
      var top: ItemRow?
      while true {
        let page = try rows.page(Self.step)
        for arrival in page {
          var row = arrival.row
          if top == nil, let place = row.places.first {
            let name = try stored.freeName(place, isFolder: row.kind == .folder)
            row.places = [Place(parent: place.parent, name: name)]
            row.deleted = nil
            head.used += row.bytes - arrival.row.bytes
            top = row
          }
          head.number += 1
          try stored.insert(row, number: head.number)
          try stored.notePlacement(arrival, of: row.item, number: head.number)
          try rows.remove(row.item)
        }
        if page.count < Self.step { break }
      }
      _ = try offers.end(transfer.id, at: now)
      guard let top else { return }
      var data = EventDetails(
        item: try Transfers.item(top, id: top.item, of: zone, connection), actor: try transfer.recipient.account)
      data.participant = transfer.participant(.accepted)
      try head.append(
        PendingEvent(id: WireID().description, type: .created, subject: top.item, time: now, data: data), to: zone,
        in: &connection)
      try head.write(zone, in: &connection)
    }
  }

  /// Takes away what was copied and is not to come.
  func discard(_ transfer: WireID, in zone: String) async throws {
    while true {
      let isDone = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        var rows = ArrivalRows(zone: zone, transfer: transfer, connection: connection)
        var stored = StoredZone(zone: zone, connection: connection)
        let page = try rows.page(Self.page)
        for arrival in page {
          let row = arrival.row
          guard try stored.drop(versionsOf: row.item, except: [], &head) else {
            try head.write(zone, in: &connection)
            return false
          }
          try stored.dropLabels(of: row.item)
          head.used -= row.bytes
          try rows.remove(row.item)
        }
        try head.write(zone, in: &connection)
        return page.count < Self.page
      }
      if isDone { return }
    }
  }
}

/// The items of a zone that arrive by an offer.
struct ArrivalRows {
  private let zone: String
  private let transfer: WireID
  private var connection: any SQLConnection

  init(zone: String, transfer: WireID, connection: any SQLConnection) {
    (self.zone, self.transfer, self.connection) = (zone, transfer, connection)
  }

  private var key: [SQLValue] { [.text(zone), .blob(transfer.bytes)] }

  /// - Returns: the item, and the number of its change in the giver's zone up to which all of it was copied; 0 before.
  mutating func row(_ item: WireID) throws -> (item: ArrivingItem, copied: Int64)? {
    try connection.query(
      "SELECT entry, copied FROM arrivals WHERE zone = $1 AND transfer = $2 AND item = $3", key + [.blob(item.bytes)]
    ).first.map { (try StoredZone.decoded($0.text(0)), try $0.integer(1)) }
  }

  /// The first ones, each after the folder that it is in.
  mutating func page(_ limit: Int64) throws -> [ArrivingItem] {
    try connection.query(
      "SELECT entry FROM arrivals WHERE zone = $1 AND transfer = $2 ORDER BY place, item LIMIT $3",
      key + [.integer(limit)]
    ).map { try StoredZone.decoded($0.text(0)) }
  }

  mutating func write(_ item: ArrivingItem, place: Int) throws {
    try connection.execute(
      """
      INSERT INTO arrivals (zone, transfer, item, copied, place, entry) VALUES ($1, $2, $3, 0, $4, $5)
      ON CONFLICT (zone, transfer, item) DO UPDATE SET copied = excluded.copied, place = excluded.place,
        entry = excluded.entry
      """,
      key + [.blob(item.row.item.bytes), .integer(Int64(place)), .text(try StoredZone.encoded(item))])
  }

  mutating func noteCopied(_ item: WireID, changed number: Int64) throws {
    try connection.execute(
      "UPDATE arrivals SET copied = $1 WHERE zone = $2 AND transfer = $3 AND item = $4",
      [.integer(number)] + key + [.blob(item.bytes)])
  }

  mutating func remove(_ item: WireID) throws {
    try connection.execute(
      "DELETE FROM arrivals WHERE zone = $1 AND transfer = $2 AND item = $3", key + [.blob(item.bytes)])
  }

  /// The bytes that all arriving items of a zone count as, beside their versions.
  static func bytes(of zone: String, _ connection: inout any SQLConnection) throws -> Int64 {
    var bytes: Int64 = 0
    var last: (transfer: [UInt8], item: [UInt8]) = ([], [])
    while true {
      let rows = try connection.query(
        """
        SELECT transfer, item, entry FROM arrivals
        WHERE zone = $1 AND (transfer > $2 OR (transfer = $2 AND item > $3)) ORDER BY transfer, item LIMIT 100
        """, [.text(zone), .blob(last.transfer), .blob(last.item)])
      for row in rows {
        last = (try row.blob(0), try row.blob(1))
        let item: ArrivingItem = try StoredZone.decoded(row.text(2))
        bytes += item.row.bytes
      }
      if rows.count < 100 { return bytes }
    }
  }
}

extension StoredZone {
  /// A name in a folder that nothing there has: its own, or with a number.
  fileprivate mutating func freeName(_ place: Place, isFolder: Bool) throws -> [UInt8] {
    if try occupant(of: place) == nil { return place.name }
    for number in 2...Decision.nameLimit {
      let name = MarkedName.numbered(place.name, number, isFolder: isFolder)
      if try occupant(of: Place(parent: place.parent, name: name)) == nil { return name }
    }
    throw HubError(.conflict, "too many items of this name are there")
  }

  /// Forgets the versions of an item, as many as one transaction may.
  ///
  /// - Returns: whether none is left.
  fileprivate mutating func drop(
    versionsOf item: WireID, except kept: Set<WireID>, _ head: inout ZoneHead
  ) throws -> Bool {
    var budget = Self.chunkStep
    var last: Int64 = 0
    while true {
      let page = try contents(of: item, after: last, limit: 100)
      for version in page where !kept.contains(version.id) {
        guard budget > 0 else { return false }
        try thin(version, &head, &budget)
        try connection.execute(
          "DELETE FROM version_changes WHERE zone = $1 AND item = $2 AND number = $3",
          [.text(zone), .blob(item.bytes), .integer(version.number)])
      }
      guard page.count == 100, let end = page.last else { return true }
      last = end.number
    }
  }

  /// Notes who made and placed an item that another account's zone had.
  fileprivate mutating func notePlacement(_ arrival: ArrivingItem, of item: WireID, number: Int64) throws {
    if arrival.madeBy == nil, arrival.placedBy == nil, arrival.placed == nil { return }
    try write(
      Placement(
        madeBy: arrival.madeBy, made: number, placedBy: arrival.placedBy, time: arrival.placed, placed: number),
      of: item)
  }
}
