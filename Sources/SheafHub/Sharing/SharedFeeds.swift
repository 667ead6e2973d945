import SheafHubStore
import SheafModel
package import SheafWire

/// The feeds that members read of shares. Each call reads one snapshot, and checks the member's right in it.
package struct SharedFeeds: Sendable {
  let database: any Database
  let clock: HubClock

  /// The changes in a share after a token. Without a token, the shared item, and the position from which changes
  /// follow.
  ///
  /// - Throws: ``HubError`` of kind `gone` for a token of another epoch or share, of a change that the feed does not
  ///   have, from before the account joined, or so old that something after it is forgotten.
  package func page(after position: SharedToken?, limit: Int, of place: SharedPlace) async throws -> SharedFeedPage {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      var reader = try SharedReader(.read, place, &connection)
      let (head, epoch) = (reader.head, try ZoneHead.read(place.zone, in: &connection).epoch)
      let mark = SharedToken.mark(place.share, epoch: epoch)
      func token(_ number: Int64, since: Int64) throws -> String {
        let change = try ChangeID.at(number, in: place.share, of: place.zone, &connection)
        return SharedToken(number: number, since: since, mark: mark, change: change).text
      }
      guard let position else {
        let next = try token(head.number, since: head.number)
        return SharedFeedPage(changes: [try reader.beginning()], token: next, hasMore: false)
      }
      guard position.mark == mark, position.number <= head.number, position.since >= max(head.horizon, head.opened),
        position.since >= reader.access.joined,
        try position.change == ChangeID.at(position.number, in: place.share, of: place.zone, &connection)
      else { throw HubError(.gone, "token: of another time; read everything anew") }
      let (told, hasMore) = try reader.changes(after: position.number, since: position.since, limit: limit)
      let last = hasMore ? told.last?.number ?? head.number : head.number
      let next = try token(last, since: hasMore ? position.since : last)
      return SharedFeedPage(changes: told, token: next, hasMore: hasMore)
    }
  }

  /// The newest number of a share's feed, for a member.
  func number(of place: SharedPlace) async throws -> Int64 {
    try await database.read { connection in try SharedReader(.read, place, &connection).head.number }
  }

  /// Which of some places are still open to their accounts.
  func open(_ places: Set<SharedPlace>) async throws -> Set<SharedPlace> {
    try await database.read { connection in
      try places.filter { place in
        do {
          _ = try ShareAccess.require(.read, place, &connection)
          return true
        } catch is HubError {
          return false
        }
      }
    }
  }

  /// The items in a shared folder whose names come after one.
  package func children(
    of folder: WireID, after name: [UInt8], limit: Int, of place: SharedPlace
  ) async throws -> SharedFolderPage {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      var reader = try SharedReader(.read, place, &connection)
      return try reader.children(of: folder, after: name, limit: limit)
    }
  }

  package func versions(
    of item: WireID, after number: Int64, limit: Int, of place: SharedPlace
  ) async throws -> VersionList {
    let limit = min(max(1, limit), WireLimits.rowsPerPage)
    return try await database.read { connection in
      var reader = try SharedReader(.readHistory, place, &connection)
      return try reader.versions(of: item, after: number, limit: limit)
    }
  }

  package func version(
    _ version: WireID, of item: WireID, of place: SharedPlace
  ) async throws -> (facts: ItemVersion, manifest: Manifest) {
    try await database.read { connection in
      var reader = try SharedReader(.readHistory, place, &connection)
      return try reader.version(version, of: item)
    }
  }

  // MARK: - Uploads

  /// The chunks among these that an account has not uploaded to a share. Nobody learns which other chunks the zone has.
  ///
  /// - Parameter bytes: Of chunks that are about to come.
  package func missing(_ hashes: [ChunkHash], bytes: Int64 = 0, of place: SharedPlace) async throws -> [ChunkHash] {
    try Contents.check(hashes, bytes: bytes)
    let lease = clock.now.nanoseconds + Contents.lease
    return try await database.write { connection in
      var head = try ZoneHead.take(place.zone, expecting: bytes, in: &connection)
      _ = try ShareAccess.require(.write, place, &connection)
      try head.upload(bytes)
      return try hashes.filter { hash in
        let renewed = try connection.execute(
          "UPDATE uploads SET lease = $1 WHERE zone = $2 AND share = $3 AND account = $4 AND hash = $5",
          [
            .integer(lease), .text(place.zone), .blob(place.share.bytes), .text(place.account), .blob(hash.bytes),
          ])
        if renewed == 0 { return true }
        return try connection.execute(
          "UPDATE chunks SET lease = $1 WHERE zone = $2 AND hash = $3",
          [.integer(lease), .text(place.zone), .blob(hash.bytes)]) == 0
      }
    }
  }

  /// Whether a member may upload a chunk of this length, asked before its bytes come.
  package func checkRoom(for length: Int64, of place: SharedPlace) async throws {
    guard length <= WireLimits.chunkBytes else {
      throw HubError(.tooLarge, "a chunk has at most \(WireLimits.chunkBytes) bytes")
    }
    try await database.read { connection in
      _ = try ShareAccess.require(.write, place, &connection)
      var head = try ZoneHead.read(place.zone, in: &connection)
      try head.upload(max(0, length))
    }
  }

  /// Stores a chunk that a member uploads in the owner's zone, whose quota counts it.
  package func upload(_ bytes: [UInt8], hash: ChunkHash, of place: SharedPlace) async throws {
    let chunk = try Contents.checked(bytes, hash)
    let now = clock.now
    try await database.write { connection in
      var head = try ZoneHead.take(place.zone, in: &connection)
      _ = try ShareAccess.require(.write, place, &connection)
      // Refused whether the zone has it or not, since nobody learns that by an upload.
      var full = head
      try full.upload(Int64(bytes.count))
      try Contents.store(chunk, lease: now, of: place.zone, in: &connection, &head)
      try connection.execute(
        """
        INSERT INTO uploads (zone, share, account, hash, lease) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (zone, share, account, hash) DO UPDATE SET lease = excluded.lease
        """,
        [
          .text(place.zone), .blob(place.share.bytes), .text(place.account), .blob(hash.bytes),
          .integer(now.nanoseconds + Contents.lease),
        ])
      try head.write(place.zone, in: &connection)
    }
  }
}
