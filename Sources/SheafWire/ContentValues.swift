/// `POST /v1/chunks/missing`: chunks that are asked for, and of those the ones that the hub does not have.
public struct ChunkHashes: Hashable, Sendable, Codable {
  public let hashes: [ChunkHash]

  public init(hashes: [ChunkHash]) { self.hashes = hashes }
}

/// Versions of an item, the oldest first.
public struct VersionList: Hashable, Sendable, Codable {
  public let versions: [ItemVersion]

  public init(versions: [ItemVersion]) { self.versions = versions }
}
