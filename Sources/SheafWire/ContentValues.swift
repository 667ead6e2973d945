/// `POST /v1/chunks/missing`: chunks that are asked for, and of those the ones that the hub does not have.
public struct ChunkHashes: Hashable, Sendable, Codable {
  public let hashes: [ChunkHash]

  public init(hashes: [ChunkHash]) { self.hashes = hashes }
}

/// Versions of an item, the oldest first.
public struct VersionList: Hashable, Sendable, Codable {
  public let versions: [ItemVersion]
  /// Versions of which nothing is left, since they were destroyed for good.
  public let purged: [WireID]

  public init(versions: [ItemVersion], purged: [WireID] = []) {
    self.versions = versions
    self.purged = purged
  }
}
