import Foundation
package import SheafHubStore
import SheafModel
package import SheafWire

/// The sends of devices to zones.
package struct Zones: Sendable {
  /// Verdicts that a device has not confirmed, at most.
  package static let openVerdicts: Int64 = 10_000

  let database: any Database
  let clock: HubClock
  private let merging: Merging

  package init(database: any Database, clock: HubClock) {
    self.database = database
    self.clock = clock
    merging = Merging(database: database)
  }

  /// Does what a device sends, each group once however often it is repeated.
  ///
  /// - Throws: ``HubError`` of kind `invalid`, `tooLarge`, `quota` or `notFound`. Nothing of the request is done then,
  ///   or nothing from a group on that had something to merge; what was done has its verdicts.
  package func send(_ request: SendRequest, to zone: String, by author: SendAuthor) async throws -> SendAnswer {
    try await send(request, to: zone, by: author, in: nil)
  }

  /// Does what a device of a member sends to a share. Its numbers are those of the share's feed, and what the member
  /// may not see is not there for it.
  ///
  /// - Throws: As the above, and as ``ShareAccess/require(_:_:_:)``.
  package func send(_ request: SendRequest, to place: SharedPlace, by author: SendAuthor) async throws -> SendAnswer {
    try await send(request, to: place.zone, by: author, in: place)
  }

  private func send(
    _ request: SendRequest, to zone: String, by author: SendAuthor, in place: SharedPlace?
  ) async throws -> SendAnswer {
    try SendCheck.check(request)
    var answer = SendAnswer(verdicts: [], later: [], number: 0)
    var tries = MergeTries()
    var start = 0
    while true {
      let (first, merges) = (start, tries)
      let step = try await database.write { connection in
        var sending = try Sending(zone: zone, author: author, place: place, merges: merges, connection: connection)
        return try sending.run(request, from: first)
      }
      answer.verdicts += step.answer.verdicts
      answer.later += step.answer.later
      answer.number = step.answer.number
      if step.conflicts.isEmpty { return answer }
      start = step.end
      if tries.isSpent {
        // What follows may build on what waits.
        answer.later += request.groups[start...].joined().map { Deferral(serial: $0.serial, missing: []) }
        return answer
      }
      for conflict in step.conflicts {
        let version = request.groups[start].compactMap(\.version).first { $0.id == conflict.sent }
        guard let version else { continue }
        tries.note(conflict, try await merging.merge(conflict, version, in: zone, place))
      }
    }
  }
}

/// What one transaction did of a request.
private struct SendStep: Sendable {
  var answer = SendAnswer(verdicts: [], later: [], number: 0)
  /// The group at which it ended.
  var end = 0
  /// What has to be merged before that group; empty where all of the request is done.
  var conflicts: [SaveConflict] = []
}

/// A request of sends in one transaction.
private struct Sending {
  private let zone: String
  private let author: SendAuthor
  private var connection: any SQLConnection
  private var head: ZoneHead
  private let confirmed: Int64
  private let book: VerdictBook
  /// Nil for the zone's own devices.
  private let access: ShareAccess?
  private let merges: MergeTries

  init(
    zone: String, author: SendAuthor, place: SharedPlace?, merges: MergeTries, connection: any SQLConnection
  ) throws {
    self.zone = zone
    self.author = author
    self.merges = merges
    self.connection = connection
    // Takes the zone, so that its changes come one after the other.
    head = try ZoneHead.take(zone, in: &self.connection)
    access = if let place { try ShareAccess.require(.read, place, &self.connection) } else { nil }
    book = VerdictBook(zone: zone, device: author.device, place: place)
    confirmed = try book.confirmed(&self.connection)
  }

  /// Does the groups of a request from one on, up to one in which something has to be merged first.
  mutating func run(_ request: SendRequest, from first: Int) throws -> SendStep {
    let watermark = max(confirmed, request.confirmed)
    if watermark > confirmed { try book.forget(through: watermark, &connection) }
    var step = SendStep()
    var open = try book.count(&connection)
    for (index, group) in request.groups.enumerated().dropFirst(first) {
      step.end = index
      if let known = try verdicts(of: group, watermark) {
        step.answer.verdicts += known
        continue
      }
      var made: [Verdict]
      if let access, let refusal = try refusal(of: group, access) {
        made = refusal
      } else {
        let missing = try missing(in: group)
        if !missing.isEmpty || open + Int64(group.count) > Zones.openVerdicts {
          step.answer.later += group.map { Deferral(serial: $0.serial, missing: missing) }
          continue
        }
        (made, step.conflicts) = try decide(group)
        if !step.conflicts.isEmpty { break }
      }
      for (send, verdict) in zip(group, made) { try book.keep(verdict, on: send, &connection) }
      open += Int64(made.count)
      step.answer.verdicts += made
    }
    try head.write(zone, in: &connection)
    step.answer.number =
      try access.map { try SharedHead.read($0.place.share, of: zone, &connection).number } ?? head.number
    return step
  }

  /// The verdicts of a member's group that is refused as it stands; nil where it is not.
  private mutating func refusal(of group: [Send], _ access: ShareAccess) throws -> [Verdict]? {
    let proposals = group.map { Proposal(send: $0) }
    guard access.allows(.write) else { return Decision.refuse(proposals, 0, .denied) }
    var changes = try SharedChanges(zone: zone, connection: connection)
    return try changes?.refusal(of: group, for: access).map { Decision.refuse(proposals, $0.index, $0.reason) }
  }

  /// The verdicts that a group got already; nil if it is new.
  private mutating func verdicts(of group: [Send], _ watermark: Int64) throws -> [Verdict]? {
    var known: [Verdict] = []
    for send in group {
      if let verdict = try book.verdict(on: send, &connection) {
        known.append(verdict)
      } else if send.serial <= watermark {
        known.append(Verdict(confirmed: send))
      }
    }
    if known.isEmpty { return nil }
    // Some of its serials were those of others: it is another group.
    guard known.count == group.count, !known.contains(where: { $0.reason == .confirmed }) else {
      return group.map { Verdict(confirmed: $0) }
    }
    return known
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
    var known: Set<ChunkHash> = []
    if let access, !wanted.isEmpty {
      var reader = try SharedReader(.write, access.place, &connection)
      for send in group where send.version != nil { known.formUnion(try reader.chunks(of: send.item)) }
    }
    for (hash, length) in wanted {
      // Knowing a hash gives nobody what has it.
      if let access, !known.contains(hash), try !isUploaded(hash, by: access.place) {
        missing.append(hash)
        continue
      }
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

  private mutating func isUploaded(_ hash: ChunkHash, by place: SharedPlace) throws -> Bool {
    try !connection.query(
      "SELECT lease FROM uploads WHERE zone = $1 AND share = $2 AND account = $3 AND hash = $4",
      [.text(zone), .blob(place.share.bytes), .text(place.account), .blob(hash.bytes)]
    ).isEmpty
  }

  // MARK: - Deciding

  /// - Returns: the verdicts, or what has to be merged first, when nothing is done.
  private mutating func decide(_ group: [Send]) throws -> (verdicts: [Verdict], conflicts: [SaveConflict]) {
    var manifests: [WireID: Manifest] = [:]
    /// Chunks that came with a version or were made for one.
    var chunks: [WireID: Chunk] = [:]
    var proposals: [Proposal] = []
    for send in group {
      guard let version = send.version else {
        proposals.append(Proposal(send: send))
        continue
      }
      let (found, chunk) = version.stored
      guard let manifest = found else { throw HubError(.invalid, "extents: out of bounds") }
      guard manifests.updateValue(manifest, forKey: version.id) == nil else {
        throw HubError(.invalid, "version: two sends have the same")
      }
      chunks[version.id] = chunk
      var merge = merges.merge(for: version.id)
      if let made = merge {
        chunks[made.merge.version] = made.chunk
        // The save goes beside, which needs no more room than it has.
        if !hasRoom(for: chunks.values, Array(manifests.values) + [made.manifest]) {
          (merge, chunks[made.merge.version]) = (nil, nil)
        }
        manifests[made.merge.version] = merge?.manifest
      }
      proposals.append(
        Proposal(send: send, digest: manifest.digest, size: manifest.size, merge: merge?.merge))
    }
    let reader = StoredZone(zone: zone, connection: connection, share: access?.place.share)
    var decision = Decision(author, on: reader, isForeign: access.map { !$0.isOwner } ?? false)
    var verdicts = try decision.decide(proposals)
    if verdicts.contains(where: { $0.outcome == .refused }) { return (verdicts, []) }
    // What can be merged needs no place beside a document that is shared alone.
    let conflicts = decision.conflicts.filter { !merges.isSettled($0) }
    if !conflicts.isEmpty { return ([], conflicts) }
    var draft = decision.draft
    var changes = try SharedChanges(zone: zone, connection: connection)
    try changes?.look(at: &draft)
    if let reason = try changes?.refusal(of: &draft, for: access) {
      return (Decision.refuse(proposals, 0, reason), [])
    }
    // What is refused leaves nothing.
    for chunk in draft.newVersions.compactMap({ chunks[$0.id] }) {
      try Contents.store(chunk, lease: author.now, of: zone, in: &connection, &head)
    }
    var stored = StoredZone(zone: zone, connection: connection)
    let numbers = try stored.write(&draft, manifests: manifests, device: author.device, &head)
    try stored.notePlacements(
      &draft, numbers, sends: group, by: access.flatMap { $0.isOwner ? nil : author.handle }, at: author.now)
    let former = changes == nil || access.map { !$0.isOwner } ?? false ? [] : try former(of: draft)
    let told = try changes?.tell(numbers, former: former, by: author.device) ?? [:]
    for index in verdicts.indices {
      let (item, row) = (verdicts[index].item, try draft.item(verdicts[index].item))
      if let access {
        verdicts[index].number = told[access.place.share]?[item] ?? row?.shared?.number
        verdicts[index].places = verdicts[index].places.map { access.shown($0, of: item) }
      } else {
        verdicts[index].number = numbers[item] ?? row?.number
      }
    }
    var writer = EventWriter(zone: zone, author: author, takenAlong: decision.takenAlong, sends: group)
    let standings = changes?.changes ?? []
    for event in try writer.events(of: &draft, standings) { try head.append(event, to: zone, in: &connection) }
    return (verdicts, [])
  }

  /// The items with versions that were saved before the sending device was one of the account.
  private mutating func former(of draft: ZoneDraft) throws -> Set<WireID> {
    if draft.newVersions.isEmpty { return [] }
    let added = try connection.query(
      "SELECT added FROM devices WHERE zone = $1 AND device = $2", [.text(zone), .text(author.device)]
    ).first?.integer(0)
    guard let added else { return [] }
    return Set(draft.newVersions.filter { $0.time < added }.map(\.item))
  }

  /// Whether the quota has room for versions with these manifests, and for chunks, none of which may be there.
  private func hasRoom(for chunks: some Sequence<Chunk>, _ manifests: [Manifest]) -> Bool {
    var head = head
    do {
      try head.use(chunks.reduce(0) { $0 + Int64($1.bytes.count) })
      try head.use(manifests.reduce(0) { $0 + VersionRow.bytes(manifest: $1.bytes.count) })
      return true
    } catch {
      return false
    }
  }
}
