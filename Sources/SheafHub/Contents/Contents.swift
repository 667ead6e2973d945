package import SheafHubStore
import SheafModel
package import SheafWire

/// The chunks of zones: asked for, uploaded, read as parts of versions, collected.
package struct Contents: Sendable {
  /// For how long a chunk stays that no version uses, in nanoseconds.
  static let lease: Int64 = 86_400 * 1_000_000_000
  /// Chunks that one transaction of the collection takes.
  private static let collectionStep: Int64 = 256

  let database: any Database
  let clock: HubClock
  fileprivate let damage = FoundDamage()

  package init(database: any Database, clock: HubClock) {
    self.database = database
    self.clock = clock
  }

  /// Which of these chunks a zone does not have. Those that it has stay for a day.
  ///
  /// - Parameter bytes: Of chunks that are about to come.
  /// - Throws: ``HubError`` of kind `invalid`, or, if there is no room for these bytes, `quota` or `full`.
  package func missing(_ hashes: [ChunkHash], bytes: Int64 = 0, in zone: String) async throws -> [ChunkHash] {
    try Self.check(hashes, bytes: bytes)
    let lease = clock.now.nanoseconds + Self.lease
    return try await database.write { connection in
      var head = try ZoneHead.take(zone, expecting: bytes, in: &connection)
      try head.upload(bytes)
      return try Self.missing(hashes, lease: lease, of: zone, in: &connection)
    }
  }

  /// The same in a zone that the transaction has taken.
  ///
  /// - Parameter lease: Until when those stay that the zone has, in nanoseconds since 1970.
  static func missing(
    _ hashes: some Sequence<ChunkHash>, lease: Int64, of zone: String, in connection: inout any SQLConnection
  ) throws -> [ChunkHash] {
    try hashes.filter { hash in
      try connection.execute(
        "UPDATE chunks SET lease = $1 WHERE zone = $2 AND hash = $3",
        [.integer(lease), .text(zone), .blob(hash.bytes)]) == 0
    }
  }

  /// - Throws: ``HubError`` of kind `invalid`.
  static func check(_ hashes: [ChunkHash], bytes: Int64) throws {
    guard hashes.count <= WireLimits.hashesPerRequest else {
      throw HubError(.invalid, "hashes: \(WireLimits.hashesPerRequest) at most")
    }
    guard (0...WireLimits.documentBytes).contains(bytes) else {
      throw HubError(.invalid, "bytes: 0 to \(WireLimits.documentBytes)")
    }
  }

  /// Whether a chunk of this length may be uploaded, asked before its bytes come.
  ///
  /// - Throws: ``HubError`` of kind `tooLarge` or `quota`.
  package func checkRoom(for length: Int64, in zone: String) async throws {
    guard length <= WireLimits.chunkBytes else {
      throw HubError(.tooLarge, "a chunk has at most \(WireLimits.chunkBytes) bytes")
    }
    try await database.read { connection in
      var head = try ZoneHead.read(zone, in: &connection)
      try head.upload(max(0, length))
    }
  }

  /// Stores a chunk that has been verified to have this hash; once more is no harm.
  ///
  /// - Throws: ``HubError`` of kind `invalid` if the bytes have another hash, `tooLarge`, or `quota`.
  package func upload(_ bytes: [UInt8], hash: ChunkHash, to zone: String) async throws {
    let chunk = try Self.checked(bytes, hash)
    let now = clock.now
    try await database.write { connection in
      var head = try ZoneHead.take(zone, in: &connection)
      try Self.store(chunk, isAhead: true, lease: now, of: zone, in: &connection, &head)
      try head.write(zone, in: &connection)
    }
  }

  /// Bytes that have this hash.
  ///
  /// - Throws: ``HubError`` of kind `invalid` or `tooLarge`.
  static func checked(_ bytes: [UInt8], _ hash: ChunkHash) throws -> Chunk {
    guard (1...WireLimits.chunkBytes).contains(bytes.count) else {
      throw HubError(bytes.isEmpty ? .invalid : .tooLarge, "a chunk has 1 to \(WireLimits.chunkBytes) bytes")
    }
    let chunk = Chunk(bytes)
    guard chunk.hash == hash else { throw HubError(.invalid, "the bytes have another hash") }
    return chunk
  }

  /// Stores a chunk in a zone that the transaction has taken, or renews its lease.
  ///
  /// - Parameter isAhead: Whether it comes before its version.
  static func store(
    _ chunk: Chunk, isAhead: Bool = false, lease now: Timestamp, of zone: String,
    in connection: inout any SQLConnection, _ head: inout ZoneHead
  ) throws {
    let lease = SQLValue.integer(now.nanoseconds + Self.lease)
    let renewed = try connection.execute(
      "UPDATE chunks SET lease = $1 WHERE zone = $2 AND hash = $3", [lease, .text(zone), .blob(chunk.hash.bytes)])
    if renewed > 0 { return }
    if isAhead { try head.upload(Int64(chunk.bytes.count)) } else { try head.use(Int64(chunk.bytes.count)) }
    try connection.execute(
      "INSERT INTO chunks (zone, hash, length, uses, lease) VALUES ($1, $2, $3, 0, $4)",
      [.text(zone), .blob(chunk.hash.bytes), .integer(Int64(chunk.bytes.count)), lease])
    try connection.execute(
      "INSERT INTO chunk_bytes (zone, hash, bytes) VALUES ($1, $2, $3)",
      [.text(zone), .blob(chunk.hash.bytes), .blob(chunk.bytes)])
  }

  // MARK: - Reading

  /// A version of an item, with what its contents are made of.
  ///
  /// - Throws: ``HubError`` of kind `notFound`: chunks can be read only as parts of a version.
  package func version(
    _ version: WireID, of item: WireID, in zone: String
  ) async throws -> (facts: ItemVersion, manifest: Manifest) {
    try await database.read { connection in try Self.version(version, of: item, in: zone, connection) }
  }

  private static func version(
    _ version: WireID, of item: WireID, in zone: String, _ connection: any SQLConnection
  ) throws -> (facts: ItemVersion, manifest: Manifest) {
    var stored = StoredZone(zone: zone, connection: connection)
    let row = try row(of: version, of: item, &stored)
    guard let manifest = try stored.manifest(of: version) else {
      throw HubStoreError.corrupt("a version has no manifest")
    }
    return (row.facts, manifest)
  }

  private static func row(of version: WireID, of item: WireID, _ stored: inout StoredZone) throws -> VersionRow {
    guard let row = try stored.version(version), row.item == item, !row.isPurged else {
      throw HubError(.notFound, "the item has no such version")
    }
    return row
  }

  /// Looks whether an item still has a version.
  ///
  /// - Throws: ``HubError`` of kind `notFound`.
  fileprivate static func check(
    _ version: WireID, of item: WireID, in zone: String, _ connection: any SQLConnection
  ) throws {
    var stored = StoredZone(zone: zone, connection: connection)
    _ = try row(of: version, of: item, &stored)
  }

  /// The versions of an item, the oldest first, `limit` of them after the one of this number.
  package func versions(of item: WireID, after number: Int64, limit: Int, in zone: String) async throws -> VersionList {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      var stored = StoredZone(zone: zone, connection: connection)
      let labels = try stored.labels(of: item)
      return VersionList(
        versions: try stored.contents(of: item, after: number, limit: Int64(limit)).map { version in
          var facts = version.facts
          facts.label = labels[version.id]
          return facts
        },
        purged: try stored.purged(of: item, after: number, limit: limit))
    }
  }

  fileprivate static let damaged = HubStoreError.corrupt("a chunk is missing or damaged")

  /// Bytes of a chunk, verified.
  ///
  /// - Parameters:
  ///   - known: What the chunk has, if it was read just before.
  ///   - check: looks, in the same snapshot, whether the reader still may have them.
  fileprivate func chunk(
    _ hash: ChunkHash, in zone: String, known: [UInt8]?, _ check: @escaping ContentReader.Check
  ) async throws -> [UInt8] {
    if let known {
      try await database.read { connection in try check(&connection) }
      return known
    }
    let bytes = try await database.read { connection in
      try check(&connection)
      return try connection.query(
        "SELECT bytes FROM chunk_bytes WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)]
      ).first?.blob(0)
    }
    guard let bytes, Chunk(bytes).hash == hash else {
      damage.note(hash, in: zone, at: clock.now)
      throw Self.damaged
    }
    return bytes
  }

  // MARK: - Collecting

  /// Frees the chunks of a zone that no version uses and no device asked for within a day.
  ///
  /// - Returns: how many.
  @discardableResult package func collect(in zone: String) async throws -> Int {
    let now = clock.now.nanoseconds
    var freed = 0
    while true {
      let step = try await database.write { connection in
        var head = try ZoneHead.take(zone, in: &connection)
        let rows = try connection.query(
          "SELECT hash, length FROM chunks WHERE zone = $1 AND uses = 0 AND lease <= $2 LIMIT $3",
          [.text(zone), .integer(now), .integer(Self.collectionStep)])
        for row in rows {
          let key: [SQLValue] = [.text(zone), .blob(try row.blob(0))]
          try connection.execute("DELETE FROM chunks WHERE zone = $1 AND hash = $2", key)
          try connection.execute("DELETE FROM chunk_bytes WHERE zone = $1 AND hash = $2", key)
          head.used -= try row.integer(1)
        }
        try connection.execute(
          "DELETE FROM uploads WHERE zone = $1 AND lease <= $2", [.text(zone), .integer(now)])
        try head.write(zone, in: &connection)
        return rows.count
      }
      freed += step
      if step < Self.collectionStep { return freed }
    }
  }
}

/// Reads a part of a version's contents, one piece after the other.
package struct ContentReader: Sendable {
  /// Looks whether the reader still has the right.
  typealias Check = @Sendable (inout any SQLConnection) throws -> Void

  /// Bytes of a hole that one piece has at most.
  private static let holePiece: Int64 = 1 << 20

  private let contents: Contents
  private let zone: String
  private let extents: [Extent]
  private let end: Int64
  /// The extent that the next byte lies in, and where that begins.
  private var index = 0
  private var start: Int64 = 0
  private var position: Int64
  private let check: Check
  private var isBegun = false
  /// The chunk that was read last.
  private(set) var last: (hash: ChunkHash, bytes: [UInt8])?

  /// A reader of a version for its owner, who may purge it meanwhile.
  ///
  /// - Parameter range: The bytes to read; they lie within the manifest's size.
  package init(
    _ contents: Contents, _ manifest: Manifest, _ range: Range<Int64>, of version: WireID, _ item: WireID,
    in zone: String
  ) {
    self.init(contents, manifest, range, in: zone) { connection in
      try Contents.check(version, of: item, in: zone, connection)
    }
  }

  /// A reader of a version for a member of a share, who must see it at each piece.
  package init(
    _ contents: Contents, _ manifest: Manifest, _ range: Range<Int64>, of version: WireID, _ item: WireID,
    in place: SharedPlace
  ) {
    self.init(contents, manifest, range, in: place.zone) { connection in
      var reader = try SharedReader(.readHistory, place, &connection)
      _ = try reader.visible(version, of: item)
    }
  }

  private init(
    _ contents: Contents, _ manifest: Manifest, _ range: Range<Int64>, in zone: String, check: @escaping Check
  ) {
    self.contents = contents
    self.check = check
    self.zone = zone
    extents = manifest.extents
    position = max(0, range.lowerBound)
    end = min(range.upperBound, manifest.size)
  }

  /// Goes on with the chunk that another reader in the same zone read last.
  package mutating func follow(_ other: ContentReader) { if other.zone == zone { last = other.last } }

  /// The next bytes; nil at the end.
  ///
  /// - Throws: ``HubStoreError`` of kind `corrupt` at a chunk that is missing or damaged: before the first bytes where
  ///   that was found lately.
  package mutating func next() async throws -> [UInt8]? {
    guard position < end else { return nil }
    if !isBegun {
      isBegun = true
      if contents.damage.isKnown(of: extents, position..<end, in: zone, at: contents.clock.now) {
        throw Contents.damaged
      }
    }
    while position >= start + extents[index].length {
      start += extents[index].length
      index += 1
    }
    let stop = min(end, start + extents[index].length)
    guard let hash = extents[index].hash else { return try await nextOfHole() }
    let bytes = try await contents.chunk(hash, in: zone, known: last?.hash == hash ? last?.bytes : nil, check)
    guard Int64(bytes.count) == extents[index].length else { throw HubStoreError.corrupt("a chunk has another length") }
    last = (hash, bytes)
    defer { position = stop }
    return position == start && stop == start + extents[index].length
      ? bytes : Array(bytes[Int(position - start)..<Int(stop - start)])
  }

  /// The next bytes of a hole, however many extents it is made of.
  private mutating func nextOfHole() async throws -> [UInt8] {
    let first = position
    let most = min(end, first + Self.holePiece)
    while position < most, index < extents.count, extents[index].hash == nil {
      let next = start + extents[index].length
      position = min(most, next)
      if position == next { (start, index) = (next, index + 1) }
    }
    let check = check
    try await contents.database.read { connection in try check(&connection) }
    return [UInt8](repeating: 0, count: Int(position - first))
  }
}
