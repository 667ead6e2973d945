package import NIOCore
package import SheafWire

/// What requests are about: the account's own zone, or a share of somebody else's.
package enum HubScope: Hashable, Sendable {
  case own
  case share(WireID)

  package var path: String {
    switch self {
    case .own: "/v1"
    case .share(let share): "/v1/shares/\(share)"
    }
  }
}

/// What a replica asks of a hub about its own zone or a share, beside reading the feed.
extension DeviceClient {
  /// Asks the hub to do groups of sends. If no answer came, the same may be asked again: the hub does a send once.
  ///
  /// - Parameters:
  ///   - groups: Up to ``WireLimits/sendsPerRequest`` sends whose serials rise, of ``WireLimits/bytesPerRequest`` bytes
  ///     of JSON.
  ///   - confirmed: Every verdict up to this serial has arrived and been kept.
  /// - Returns: For each send either its verdict, or why it is to be sent later; for all of a group the same of both.
  package func send(
    _ groups: [[Send]], confirmed: Int64, to scope: HubScope = .own
  ) async throws -> SendAnswer {
    try await pace.take(groups.joined().reduce(0) { $0 + ($1.version?.contents?.count ?? 0) })
    let request = try HubRequest(
      posting: SendRequest(groups: groups, confirmed: confirmed), to: "\(scope.path)/sends")
    let answer: SendAnswer = try await fetch(request)
    guard answer.isSound(for: groups) else { throw nonsense("gives verdicts that are none of what was sent") }
    return answer
  }

  /// The chunks among these that the hub does not have, in their order, each once. It keeps the others for a day.
  ///
  /// - Parameter bytes: Of chunks that are about to come; with none, it is asked for chunks alone.
  /// - Throws: ``HubFailure``, with the problem `quota` or `full` if the hub has no room for these bytes.
  package func missing(
    _ hashes: [ChunkHash], bytes: Int64 = 0, of scope: HubScope = .own
  ) async throws -> [ChunkHash] {
    var asked: Set<ChunkHash> = []
    let once = hashes.filter { asked.insert($0).inserted }
    var missing: Set<ChunkHash> = []
    let count = once.isEmpty && bytes > 0 ? 1 : once.count
    for start in stride(from: 0, to: count, by: WireLimits.hashesPerRequest) {
      let some = Array(once[start...].prefix(WireLimits.hashesPerRequest))
      let question = ChunkHashes(hashes: some, bytes: bytes > 0 ? bytes : nil)
      let answer: ChunkHashes = try await fetch(
        try HubRequest(posting: question, to: "\(scope.path)/chunks/missing"))
      guard answer.hashes.count <= some.count, asked.isSuperset(of: answer.hashes) else {
        throw nonsense("misses chunks that nobody asked for")
      }
      missing.formUnion(answer.hashes)
    }
    return once.filter { missing.contains($0) }
  }

  /// Uploads a chunk of at most ``WireLimits/chunkBytes``, which the hub keeps for a day before a version names it; once
  /// more is no harm.
  package func upload(_ hash: ChunkHash, _ bytes: ByteBuffer, to scope: HubScope = .own) async throws {
    try await pace.take(bytes.readableBytes)
    try await perform(HubRequest(putting: bytes, to: "\(scope.path)/chunks/\(hash)"))
  }

  /// Versions of an item, the oldest first: of those after a number ``DeviceClientLimits/versions`` at most. None for an
  /// item that the hub does not know.
  package func versions(
    of item: WireID, after number: Int64 = 0, in scope: HubScope = .own
  ) async throws -> VersionList {
    var (versions, purged, known): ([ItemVersion], [WireID], Set<WireID>) = ([], [], [])
    while versions.count < limits.versions {
      let limit = min(WireLimits.rowsPerPage, limits.versions - versions.count)
      let last = versions.last?.number ?? number
      let page: VersionList = try await fetch(
        "\(scope.path)/items/\(item)/versions?after=\(last)&limit=\(limit)")
      guard page.isSound(after: last, limit: limit) else { throw nonsense("lists versions that are none") }
      versions += page.versions
      purged += page.purged.filter { known.insert($0).inserted }
      if page.versions.count < limit { break }
    }
    return VersionList(versions: versions, purged: purged)
  }

  /// Which parts of a version another version of the item has, too, and where it has holes.
  ///
  /// - Parameters:
  ///   - size: Bytes of the version.
  ///   - base: The other version, and its bytes.
  package func copies(
    _ version: WireID, size: Int64, from base: (version: WireID, size: Int64), of item: WireID,
    in scope: HubScope = .own
  ) async throws -> [ContentCopies.Copy] {
    let answer: ContentCopies = try await fetch(
      "\(scope.path)/items/\(item)/versions/\(version)/copies?from=\(base.version)")
    guard answer.isSound(size: size, from: base.size) else { throw nonsense("copies what no version has") }
    return answer.copies
  }

  /// Gives a version a label, taking it from the one that has it.
  package func label(
    _ version: WireID, of item: WireID, as label: String, in scope: HubScope = .own
  ) async throws {
    try await perform(
      try HubRequest(.PUT, SentLabel(label: label), to: "\(scope.path)/items/\(item)/versions/\(version)/label"))
  }

  /// Tells the account's own hub that it takes part in a share of another one.
  package func acceptAbroad(_ share: WireID) async throws {
    try await perform(HubRequest("/v1/collaborations/\(share)/acceptance", method: .PUT))
  }

  /// For how long folders of the account keep things, and the hub where they say nothing.
  package func retentions() async throws -> RetentionList {
    let list: RetentionList = try await fetch("/v1/retentions")
    guard list.isSound else { throw nonsense("keeps things for times that cannot be") }
    return list
  }

  /// Sets what a folder says for how long it keeps things.
  package func retain(_ folder: FolderRetention) async throws {
    try await perform(
      try HubRequest(
        .PUT, SentRetention(keepDeleted: folder.keepDeleted, keepVersions: folder.keepVersions),
        to: "/v1/items/\(folder.item)/retention"))
  }

  /// Comments on an item. If no answer came, the same may be asked again: the hub does it once.
  package func comment(_ comment: SentComment, on item: WireID, in scope: HubScope = .own) async throws {
    try await perform(try HubRequest(posting: comment, to: "\(scope.path)/items/\(item)/comments"))
  }

  /// Tells the hub how far the account has read its notices.
  package func setRead(_ marks: [SentReadMarks.Mark]) async throws {
    try await perform(try HubRequest(.PUT, SentReadMarks(marks: marks), to: "/v1/events/read"))
  }

  /// Has a version destroyed for good; one that was destroyed before is no failure.
  package func purge(_ version: WireID, of item: WireID) async throws {
    try await perform(HubRequest("/v1/items/\(item)/versions/\(version)", method: .DELETE))
  }

  /// Has an item that was deleted destroyed for good, with all its versions.
  package func purge(_ item: WireID) async throws {
    try await perform(HubRequest("/v1/items/\(item)", method: .DELETE))
  }
}

extension SendAnswer {
  /// Whether it answers these groups: each send once, groups as a whole, and chunks that they name.
  package func isSound(for groups: [[Send]]) -> Bool {
    guard HubNumbers.range.contains(number), verdicts.count + later.count == groups.reduce(0, { $0 + $1.count }) else {
      return false
    }
    let (decided, deferred) = (Set(verdicts.map(\.serial)), Dictionary(grouping: later, by: \.serial))
    guard decided.count == verdicts.count, deferred.count == later.count, verdicts.allSatisfy(\.isSound) else {
      return false
    }
    return groups.allSatisfy { group in
      if group.allSatisfy({ decided.contains($0.serial) && deferred[$0.serial] == nil }) { return true }
      let chunks = Set(group.flatMap { $0.version?.extents ?? [] }.compactMap(\.hash))
      return group.allSatisfy { send in
        guard !decided.contains(send.serial), let missing = deferred[send.serial]?.first?.missing else { return false }
        return missing.count <= chunks.count && chunks.isSuperset(of: missing)
      }
    }
  }
}

extension Verdict {
  fileprivate var isSound: Bool {
    let isPlaced = places?.isEmpty != true && places?.contains(where: \.isReserved) != true
    let areNumbers = [number, versionNumber].allSatisfy { $0.map(HubNumbers.range.contains) ?? true }
    return areNumbers && item != .root && version != .root && isPlaced && (outcome == .refused) == (reason != nil)
  }
}

extension VersionList {
  /// Whether it is a page of a document's versions.
  package func isSound(after number: Int64, limit: Int) -> Bool {
    guard versions.count <= limit, purged.count <= limit else { return false }
    let numbers = [number] + versions.map(\.number)
    return zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }
      && versions.allSatisfy(\.isSound)
      && Set(versions.map(\.id) + purged).count == versions.count + purged.count
  }
}
