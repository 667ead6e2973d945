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

  /// The acceptance that copies.
  private struct Source: Sendable {
    let transfer: Transfer
    let deadline: ContinuousClock.Instant

    var zone: String { transfer.giver.zone }
    var target: String { transfer.recipient.zone }

    func id(_ id: WireID) -> WireID { ArrivingItem.id(of: id, by: transfer.id) }
  }

  /// Why copying ends before it is done.
  private enum Interruption: Error {
    /// What is copied is another by now.
    case outdated
    /// It goes on with the next request.
    case late
    /// A later acceptance goes on with it, or the offer ended.
    case superseded
  }

  // MARK: - Copying

  /// Copies a tree.
  ///
  /// - Returns: whether the copy is what was read of the tree.
  /// - Throws: ``HubError`` of kind `quota`, `full`, or `conflict` where the account shares all that it has.
  func copy(_ tree: TransferredTree, _ transfer: Transfer, until deadline: ContinuousClock.Instant) async throws -> Bool
  {
    let source = Source(transfer: transfer, deadline: deadline)
    do {
      let copied = try await write(source) { rows, _, _ in try rows.copied() }
      for (place, item) in tree.items.enumerated() where copied[source.id(item)] != tree.numbers[item] {
        try await copy(item, in: tree, source, place: place)
        if ContinuousClock.now > deadline { throw Interruption.late }
      }
      return try await verify(tree, source)
    } catch is Interruption {
      return false
    }
  }

  /// A transaction of the zone that copies go to, if this acceptance is still the one that goes on.
  private func write<Value: Sendable>(
    _ source: Source,
    _ body: @escaping @Sendable (inout ArrivalRows, inout StoredZone, inout ZoneHead) throws -> Value
  ) async throws -> Value {
    let (zone, transfer) = (source.target, source.transfer)
    return try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      var offers = TransferRows(zone: zone, connection: connection)
      guard let hint = try offers.hint(transfer.id), hint.isOpen, hint.attempt == transfer.attempt else {
        throw Interruption.superseded
      }
      var rows = ArrivalRows(zone: zone, transfer: transfer.id, connection: connection)
      var stored = StoredZone(zone: zone, connection: connection)
      let value = try body(&rows, &stored, &head)
      try head.write(zone, in: &connection)
      return value
    }
  }

  private func copy(_ item: WireID, in tree: TransferredTree, _ source: Source, place: Int) async throws {
    let row = try await database.read { connection in
      var stored = StoredZone(zone: source.zone, connection: connection)
      return try stored.item(item)
    }
    guard let row, !row.isPurged, row.number == tree.numbers[item] else { throw Interruption.outdated }
    let arriving = ArrivingItem(row, in: tree, by: source.transfer)
    try await write(source) { rows, stored, head in
      var shares = ShareRows(zone: source.target, connection: stored.connection)
      guard try !shares.activeItems().contains(.root) else {
        throw HubError(.conflict, "the account shares all of its documents, so it takes over nothing")
      }
      let former = try rows.item(arriving.row.item)
      try head.use(arriving.row.bytes - (former?.row.bytes ?? 0))
      try rows.write(arriving, place: place)
    }
    var versions: Set<WireID> = []
    var last: Int64 = 0
    while true {
      let after = last
      let page = try await database.read { connection in
        var stored = StoredZone(zone: source.zone, connection: connection)
        return try stored.contents(of: item, after: after, limit: Self.page)
      }
      for version in page {
        versions.insert(source.id(version.id))
        // Each request does something, however late it is.
        guard try await copy(version, source) else { continue }
        if ContinuousClock.now > source.deadline { throw Interruption.late }
      }
      guard page.count == Self.page, let end = page.last else { break }
      last = end.number
    }
    try await settle(item, source, versions: versions, changed: row.number)
  }

  /// - Returns: whether there was something to copy.
  private func copy(_ version: VersionRow, _ source: Source) async throws -> Bool {
    let target = source.target
    let known = try await database.read { connection in
      var stored = StoredZone(zone: target, connection: connection)
      return try stored.version(source.id(version.id)) != nil
    }
    if known { return false }
    let found = try await database.read { connection -> (manifest: Manifest, base: WireID?)? in
      var stored = StoredZone(zone: source.zone, connection: connection)
      // It may have been thinned or purged a moment ago.
      guard let now = try stored.version(version.id), !now.isPurged else { return nil }
      guard let manifest = try stored.manifest(of: now.id), manifest.digest == now.digest else {
        throw HubStoreError.corrupt("a version has no manifest")
      }
      let base = try now.base.flatMap { try stored.version($0) }
      return (manifest, base?.item == now.item && base?.isPurged == false ? base?.id : nil)
    }
    guard let (manifest, base) = found else { return false }
    let copied = VersionRow(
      id: source.id(version.id), item: source.id(version.item), number: version.number, base: base.map(source.id),
      cause: version.cause, time: version.time, arrived: version.arrived, size: version.size, digest: version.digest,
      author: source.transfer.author(version.author))
    let lease = clock.now.nanoseconds + Contents.lease
    while true {
      try await copyChunks(of: manifest, version, source)
      let isAdded = try await write(source) { rows, stored, head in
        guard try rows.item(copied.item) != nil else { throw Interruption.outdated }
        if try stored.version(copied.id) != nil { return true }
        // The account may have destroyed one of its own meanwhile.
        let missing = try Contents.missing(manifest.hashes, lease: lease, of: target, in: &stored.connection)
        guard missing.isEmpty else { return false }
        try stored.add(copied, manifest, device: "", change: head.number, &head)
        return true
      }
      if isAdded { return true }
    }
  }

  /// Brings the chunks of a version that the zone does not have, some at a time.
  private func copyChunks(of manifest: Manifest, _ version: VersionRow, _ source: Source) async throws {
    let (hashes, target, now) = (manifest.hashes, source.target, clock.now)
    var missing = try await write(source) { _, stored, _ in
      try Contents.missing(hashes, lease: now.nanoseconds + Contents.lease, of: target, in: &stored.connection)
    }[...]
    while !missing.isEmpty {
      let chunks = try await chunks(Array(missing), of: version, source)
      try await write(source) { _, stored, head in
        for chunk in chunks { try Contents.store(chunk, lease: now, of: target, in: &stored.connection, &head) }
      }
      missing = missing.dropFirst(chunks.count)
      if !missing.isEmpty, ContinuousClock.now > source.deadline { throw Interruption.late }
    }
  }

  /// The first ones of some chunks of a version.
  private func chunks(_ hashes: [ChunkHash], of version: VersionRow, _ source: Source) async throws -> [Chunk] {
    try await database.read { connection in
      var chunks: [Chunk] = []
      var bytes: Int64 = 0
      for hash in hashes where bytes < Self.mostBytes {
        let row = try connection.query(
          "SELECT bytes FROM chunk_bytes WHERE zone = $1 AND hash = $2", [.text(source.zone), .blob(hash.bytes)]
        ).first
        guard let row else {
          var stored = StoredZone(zone: source.zone, connection: connection)
          // It may have been thinned or purged a moment ago.
          guard let now = try stored.version(version.id), !now.isPurged else { throw Interruption.outdated }
          throw HubStoreError.corrupt("a chunk is missing or damaged")
        }
        let chunk = Chunk(try row.blob(0))
        guard chunk.hash == hash else { throw HubStoreError.corrupt("a chunk is missing or damaged") }
        bytes += Int64(chunk.bytes.count)
        chunks.append(chunk)
      }
      return chunks
    }
  }

  /// Drops what the giver's zone has no more of an item, and gives its versions their labels.
  private func settle(_ item: WireID, _ source: Source, versions: Set<WireID>, changed number: Int64) async throws {
    let labels = try await database.read { connection in
      var stored = StoredZone(zone: source.zone, connection: connection)
      return try stored.labels(of: item)
    }
    let copied = source.id(item)
    while true {
      let isDone = try await write(source) { rows, stored, head in
        guard try rows.item(copied) != nil else { throw Interruption.outdated }
        guard try stored.drop(versionsOf: copied, except: versions, &head) else { return false }
        try stored.dropLabels(of: copied)
        for (version, label) in labels where versions.contains(source.id(version)) {
          try stored.setLabel(label, of: source.id(version), copied)
        }
        try rows.noteCopied(copied, changed: number)
        return true
      }
      if isDone { return }
    }
  }

  /// Looks whether the copy is a tree, item by item, and takes away what is not in it any more.
  ///
  /// - Returns: false where something is to be copied again.
  private func verify(_ tree: TransferredTree, _ source: Source) async throws -> Bool {
    let wanted = Dictionary(tree.items.map { (source.id($0), tree.numbers[$0] ?? 0) }) { $1 }
    while true {
      let isWhole = try await write(source) { rows, stored, head -> Bool? in
        let copied = try rows.copied()
        for (item, _) in copied where wanted[item] == nil {
          guard try Self.discard(item, &rows, &stored, &head) else { return nil }
        }
        var isWhole = true
        for (item, number) in wanted {
          guard copied[item] == number, let row = try rows.item(item)?.row else {
            isWhole = false
            continue
          }
          // Of what was deleted the hub may have forgotten the contents meanwhile.
          guard let version = row.version, try stored.version(version) == nil else { continue }
          try rows.noteCopied(item, changed: 0)
          isWhole = false
        }
        return isWhole
      }
      if let isWhole { return isWhole }
    }
  }

  /// Takes one item away.
  ///
  /// - Returns: false where more is left of it than one transaction takes.
  private static func discard(
    _ item: WireID, _ rows: inout ArrivalRows, _ stored: inout StoredZone, _ head: inout ZoneHead
  ) throws -> Bool {
    guard let row = try rows.item(item)?.row else { return true }
    guard try stored.drop(versionsOf: item, except: [], &head) else { return false }
    try stored.dropLabels(of: item)
    head.used -= row.bytes
    try rows.remove(item)
    return true
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
          if let place = row.places.first, place.parent == .root {
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
  ///
  /// - Parameter attempt: The acceptance that copied it, which does so only while it is the latest; nil for an offer that
  ///   ended.
  func discard(_ transfer: WireID, attempt: Int64? = nil, in zone: String) async throws {
    while true {
      let isDone = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        var offers = TransferRows(zone: zone, connection: connection)
        if let attempt, try offers.hint(transfer)?.attempt != attempt { return true }
        var rows = ArrivalRows(zone: zone, transfer: transfer, connection: connection)
        var stored = StoredZone(zone: zone, connection: connection)
        let page = try rows.page(Self.page)
        var isWhole = true
        for arrival in page where isWhole {
          isWhole = try Self.discard(arrival.row.item, &rows, &stored, &head)
        }
        try head.write(zone, in: &connection)
        return isWhole && page.count < Self.page
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

  mutating func item(_ item: WireID) throws -> ArrivingItem? {
    try connection.query(
      "SELECT entry FROM arrivals WHERE zone = $1 AND transfer = $2 AND item = $3", key + [.blob(item.bytes)]
    ).first.map { try StoredZone.decoded($0.text(0)) }
  }

  /// All of them, with the number of the change in the giver's zone up to which each was copied; 0 before all of it was.
  mutating func copied() throws -> [WireID: Int64] {
    let rows = try connection.query("SELECT item, copied FROM arrivals WHERE zone = $1 AND transfer = $2", key)
    return Dictionary(try rows.map { (try StoredZone.id($0.blob(0)), try $0.integer(1)) }) { $1 }
  }

  /// Whether something arrives in a zone.
  static func isAny(in zone: String, _ connection: inout any SQLConnection) throws -> Bool {
    try !connection.query("SELECT item FROM arrivals WHERE zone = $1 LIMIT 1", [.text(zone)]).isEmpty
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
    // Nothing else has that.
    return MarkedName.marked(place.name, WireID().description, isFolder: isFolder)
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
