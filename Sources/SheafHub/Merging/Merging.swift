import SheafHubStore
import SheafModel
import SheafWire

/// A merge with what it is stored as.
struct MadeMerge: Sendable {
  let merge: PreparedMerge
  let manifest: Manifest
  /// Nil where one of the two has the contents already.
  let chunk: Chunk?
}

/// Makes merges on a snapshot of the rows, while nobody has the zone.
struct Merging: Sendable {
  /// Versions between the base and the current one, at most.
  private static let versionLimit = 10_000

  let database: any Database

  private struct Found: Sendable {
    let base: [UInt8]
    let current: (text: [UInt8], manifest: Manifest)
    let sent: (text: [UInt8], manifest: Manifest)
  }

  /// Merges the text of a send and the current one of its document.
  ///
  /// - Parameter place: Where a member sends it to; nil for the zone's own devices. What they may not read is merged
  ///   with nothing.
  /// - Returns: nil where that cannot be.
  func merge(
    _ conflict: SaveConflict, _ version: SentVersion, in zone: String, _ place: SharedPlace?
  ) async throws -> MadeMerge? {
    let found = try await database.read { connection in
      var search = try MergeSearch(zone: zone, place: place, connection: connection)
      return try search.find(conflict, version).map { Found(base: $0, current: $1, sent: $2) }
    }
    guard let found,
      let text = MergeableText.merged(base: found.base, found.current.text, found.sent.text)
    else { return nil }
    for known in [found.current, found.sent] where known.text == text {
      return MadeMerge(merge: PreparedMerge(of: conflict, known.manifest), manifest: known.manifest, chunk: nil)
    }
    let chunk = Chunk(text)
    guard let manifest = Manifest([Extent(hash: chunk.hash, length: Int64(text.count))]) else { return nil }
    return MadeMerge(merge: PreparedMerge(of: conflict, manifest), manifest: manifest, chunk: chunk)
  }

  /// Whether the current version comes from the base by saves of which each was based on the one before, or merged.
  fileprivate static func comes(
    _ current: VersionRow, from base: VersionRow, _ stored: inout StoredZone
  ) throws -> Bool {
    let rows = try stored.connection.query(
      """
      SELECT version, item, number, base, cause, time, arrived, size, digest FROM versions
      WHERE zone = $1 AND item = $2 AND number > $3 AND number <= $4 ORDER BY number LIMIT $5
      """,
      [
        .text(stored.zone), .blob(base.item.bytes), .integer(base.number), .integer(current.number),
        .integer(Int64(versionLimit)),
      ])
    var reached: Set<WireID> = [base.id]
    var last = base
    for row in rows {
      let version = try StoredZone.version(row, from: 0)
      var parents = [version.base, try version.base.flatMap { try reached.contains($0) ? nil : stored.alias($0) }]
      // The hub's own merge has two: its base, and the version before.
      if let other = version.base, last.number + 1 == version.number,
        version.id == PreparedMerge.version(of: last.id, and: other)
      {
        parents.append(last.id)
      }
      if parents.contains(where: { $0.map(reached.contains) ?? false }) { reached.insert(version.id) }
      last = version
    }
    return reached.contains(current.id)
  }
}

/// Looks for the three texts of a merge on one snapshot.
private struct MergeSearch {
  private let zone: String
  private var stored: StoredZone
  private var finder: ShareFinder
  /// Nil for the zone's own devices.
  private var reader: SharedReader?

  init(zone: String, place: SharedPlace?, connection: any SQLConnection) throws {
    var connection = connection
    self.zone = zone
    stored = StoredZone(zone: zone, connection: connection)
    finder = try ShareFinder(zone: zone, connection: connection)
    reader = try place.map { try SharedReader(.write, $0, &connection) }
  }

  mutating func find(
    _ conflict: SaveConflict, _ version: SentVersion
  ) throws -> (base: [UInt8], current: ([UInt8], Manifest), sent: ([UInt8], Manifest))? {
    guard let row = try stored.item(conflict.item), row.version == conflict.current,
      let base = try stored.version(conflict.base), let current = try stored.version(conflict.current),
      base.item == row.item, max(base.size, current.size) <= Int64(TextMerge.byteLimit),
      let sent = version.stored.manifest, try isReadable(base, row), try MergeableText.allows(ways(up: row)),
      try Merging.comes(current, from: base, &stored),
      let start = try stored.manifest(of: base.id), let end = try stored.manifest(of: current.id),
      let baseText = try text(start), let currentText = try text(end),
      let sentText = try version.contents.map({ [UInt8]($0) }) ?? text(sent)
    else { return nil }
    return (baseText, (currentText, end), (sentText, sent))
  }

  /// Whether who sends may read the base, and with it all that came after.
  private mutating func isReadable(_ base: VersionRow, _ row: ItemRow) throws -> Bool {
    guard reader != nil else { return true }
    guard let standing = try reader?.item(row.item)?.standing, let first = try reader?.firstVersion(of: row, standing)
    else { return false }
    return base.number >= first
  }

  /// The names above each place of a document; where it is shared, up to what is shared.
  private mutating func ways(up row: ItemRow) throws -> [[[UInt8]]] {
    let top = try finder.standing(of: row, in: &stored)?.item
    var ways: [[[UInt8]]] = []
    for place in row.places {
      var (way, next, last) = ([place.name], place.parent, row.item)
      while next != .root, last != top, way.count <= Decision.depthLimit,
        let above = try stored.item(next)?.places.first
      {
        way.append(above.name)
        (last, next) = (next, above.parent)
      }
      ways.append(way)
    }
    return ways
  }

  /// The bytes of a small document without holes, verified.
  private mutating func text(_ manifest: Manifest) throws -> [UInt8]? {
    guard manifest.size <= Int64(TextMerge.byteLimit) else { return nil }
    var text: [UInt8] = []
    for extent in manifest.extents {
      guard let hash = extent.hash,
        let bytes = try stored.connection.query(
          "SELECT bytes FROM chunk_bytes WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)]
        ).first?.blob(0), Int64(bytes.count) == extent.length, Chunk(bytes).hash == hash
      else { return nil }
      text += bytes
    }
    return text
  }
}

/// The merges that were tried for one request.
struct MergeTries: Sendable {
  /// For one version, after which it goes beside.
  private static let versionLimit = 3
  /// For one request; what is left of it is sent again.
  private static let requestLimit = 32

  private var made: [WireID: MadeMerge] = [:]
  private var tried: [WireID: [SaveConflict]] = [:]
  private var count = 0

  var isSpent: Bool { count >= Self.requestLimit }

  mutating func note(_ conflict: SaveConflict, _ merge: MadeMerge?) {
    count += 1
    made[conflict.sent] = merge
    tried[conflict.sent, default: []].append(conflict)
  }

  /// What was made for a version last; nil where it could not be merged.
  func merge(for version: WireID) -> MadeMerge? { made[version] }

  /// Whether another try can change nothing, or there were enough.
  func isSettled(_ conflict: SaveConflict) -> Bool {
    let tried = tried[conflict.sent] ?? []
    return tried.last == conflict || tried.count >= Self.versionLimit
  }
}
