import Foundation
package import SheafHubStore
import SheafModel
package import SheafWire

/// What devices send to zones, and read of them.
package struct Zones: Sendable {
  /// Verdicts that a device has not confirmed, at most.
  package static let openVerdicts: Int64 = 10_000

  let database: any Database
  let clock: HubClock

  package init(database: any Database, clock: HubClock) {
    self.database = database
    self.clock = clock
  }

  /// Does what a device sends, each group once however often it is repeated.
  ///
  /// - Throws: ``HubError`` of kind `invalid`, `tooLarge`, `quota` or `notFound`, when nothing of the request is done.
  package func send(_ request: SendRequest, to zone: String, by author: SendAuthor) async throws -> SendAnswer {
    try SendCheck.check(request)
    return try await database.write { connection in
      var sending = try Sending(zone: zone, author: author, connection: connection)
      return try sending.run(request)
    }
  }
}

/// One request of sends in its transaction.
private struct Sending {
  private let zone: String
  private let author: SendAuthor
  private var connection: any SQLConnection
  private var head: ZoneHead
  private let confirmed: Int64

  init(zone: String, author: SendAuthor, connection: any SQLConnection) throws {
    self.zone = zone
    self.author = author
    self.connection = connection
    // Takes the zone, so that its changes come one after the other.
    head = try ZoneHead.take(zone, in: &self.connection)
    confirmed =
      try self.connection.query(
        "SELECT confirmed FROM watermarks WHERE zone = $1 AND device = $2", [.text(zone), .text(author.device)]
      ).first?.integer(0) ?? 0
  }

  mutating func run(_ request: SendRequest) throws -> SendAnswer {
    let watermark = max(confirmed, request.confirmed)
    if watermark > confirmed { try forget(through: watermark) }
    var answer = SendAnswer(verdicts: [], later: [], number: 0)
    var open =
      try connection.query(
        "SELECT COUNT(*) FROM verdicts WHERE zone = $1 AND device = $2", [.text(zone), .text(author.device)]
      ).first?.integer(0) ?? 0
    for group in request.groups {
      if let known = try verdicts(of: group, watermark) {
        answer.verdicts += known
        continue
      }
      let missing = try missing(in: group)
      if !missing.isEmpty || open + Int64(group.count) > Zones.openVerdicts {
        answer.later += group.map { Deferral(serial: $0.serial, missing: missing) }
        continue
      }
      let verdicts = try decide(group)
      try keep(verdicts)
      open += Int64(verdicts.count)
      answer.verdicts += verdicts
    }
    try head.write(zone, in: &connection)
    answer.number = head.number
    return answer
  }

  private mutating func forget(through watermark: Int64) throws {
    let values: [SQLValue] = [.text(zone), .text(author.device), .integer(watermark)]
    try connection.execute(
      """
      INSERT INTO watermarks (zone, device, confirmed) VALUES ($1, $2, $3)
      ON CONFLICT (zone, device) DO UPDATE SET confirmed = excluded.confirmed
      """, values)
    try connection.execute("DELETE FROM verdicts WHERE zone = $1 AND device = $2 AND serial <= $3", values)
  }

  /// The verdicts that a group got already; nil if it is new.
  private mutating func verdicts(of group: [Send], _ watermark: Int64) throws -> [Verdict]? {
    var known: [Verdict] = []
    for send in group {
      let row = try connection.query(
        "SELECT verdict FROM verdicts WHERE zone = $1 AND device = $2 AND serial = $3",
        [.text(zone), .text(author.device), .integer(send.serial)]
      ).first
      if let row {
        known.append(try StoredZone.decoded(row.text(0)))
      } else if send.serial <= watermark {
        known.append(Verdict(serial: send.serial, outcome: .refused, reason: .confirmed, item: send.item))
      }
    }
    if known.isEmpty { return nil }
    guard known.count == group.count else {
      throw HubError(.invalid, "groups: a group was sent again with other serials")
    }
    return known
  }

  private mutating func keep(_ verdicts: [Verdict]) throws {
    for verdict in verdicts {
      try connection.execute(
        "INSERT INTO verdicts (zone, device, serial, verdict) VALUES ($1, $2, $3, $4)",
        [
          .text(zone), .text(author.device), .integer(verdict.serial), .text(try StoredZone.encoded(verdict)),
        ])
    }
  }

  // MARK: - Contents

  /// The chunks of a group that the zone does not have.
  private mutating func missing(in group: [Send]) throws -> [ChunkHash] {
    var wanted: [ChunkHash: Int64] = [:]
    for extent in group.flatMap({ $0.version?.extents ?? [] }) {
      guard let hash = extent.hash else { continue }
      guard wanted.updateValue(extent.length, forKey: hash) ?? extent.length == extent.length else {
        throw HubError(.invalid, "extents: one chunk has one length")
      }
    }
    var missing: [ChunkHash] = []
    for (hash, length) in wanted {
      let row = try connection.query(
        "SELECT length FROM chunks WHERE zone = $1 AND hash = $2", [.text(zone), .blob(hash.bytes)]
      ).first
      guard let row else {
        missing.append(hash)
        continue
      }
      guard try row.integer(0) == length else { throw HubError(.invalid, "extents: a chunk has another length") }
    }
    return missing.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  /// The manifest of a version, whose contents are stored if they came with it.
  private mutating func manifest(of version: SentVersion) throws -> Manifest {
    var extents = version.extents
    if let contents = version.contents, !contents.isEmpty {
      let chunk = Chunk(Array(contents))
      try Contents.store(chunk, lease: author.now, of: zone, in: &connection, &head)
      extents = [Extent(hash: chunk.hash, length: Int64(contents.count))]
    }
    guard let manifest = Manifest(extents) else { throw HubError(.invalid, "extents: out of bounds") }
    return manifest
  }

  // MARK: - Deciding

  private mutating func decide(_ group: [Send]) throws -> [Verdict] {
    var manifests: [WireID: Manifest] = [:]
    var proposals: [Proposal] = []
    for send in group {
      guard let version = send.version else {
        proposals.append(Proposal(send: send))
        continue
      }
      let manifest = try manifest(of: version)
      guard manifests.updateValue(manifest, forKey: version.id) == nil else {
        throw HubError(.invalid, "version: two sends have the same")
      }
      proposals.append(Proposal(send: send, digest: manifest.digest, size: manifest.size))
    }
    var decision = Decision(author, on: StoredZone(zone: zone, connection: connection))
    var verdicts = try decision.decide(proposals)
    if verdicts.contains(where: { $0.outcome == .refused }) { return verdicts }
    var draft = decision.draft
    var stored = StoredZone(zone: zone, connection: connection)
    let numbers = try stored.write(&draft, manifests: manifests, device: author.device, number: &head.number)
    for index in verdicts.indices {
      let row = try draft.item(verdicts[index].item)
      verdicts[index].number = numbers[verdicts[index].item] ?? row?.number
    }
    var writer = EventWriter(zone: zone, author: author, takenAlong: decision.takenAlong)
    for event in try writer.events(of: &draft) { try head.append(event, to: zone, in: &connection) }
    return verdicts
  }
}
