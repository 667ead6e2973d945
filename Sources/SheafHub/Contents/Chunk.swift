import Crypto
package import SheafWire

/// A piece of contents with its hash.
package struct Chunk: Sendable {
  package let hash: ChunkHash
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    guard let hash = ChunkHash(bytes: Array(SHA256.hash(data: bytes))) else { fatalError("SHA-256 has 32 bytes") }
    self.hash = hash
  }
}
