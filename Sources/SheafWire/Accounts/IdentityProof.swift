public import FoundationEssentials

/// A device's proof that one of the keys under a root hash is its own: the key, where it is among them, the hashes that
/// lead from it up to the root, and a signature over what the server asked to be signed.
///
/// A server that knows roots alone lets somebody in whose devices it has never heard of. Keys that are not used for a
/// proof stay hidden behind their hashes.
public struct IdentityProof: Hashable, Sendable, Codable {
  /// A P-256 key as an uncompressed point (SEC 1, section 2.3.3).
  public var publicKey: Data
  /// From 0.
  public var publicKeyIndex: Int
  /// The hashes beside the way up, the lowest first: each of 32 bytes.
  public var inclusionHashes: [Data]
  /// ECDSA with SHA-256, as DER.
  public var signature: Data

  public init(publicKey: Data, publicKeyIndex: Int, inclusionHashes: [Data], signature: Data) {
    self.publicKey = publicKey
    self.publicKeyIndex = publicKeyIndex
    self.inclusionHashes = inclusionHashes
    self.signature = signature
  }
}
