import SheafModel
import SheafStore

/// Contents get their chunks from the library, and store new ones there.
extension Library: ChunkStorage {
  /// Bytes of a chunk up to which it is kept in memory when it is stored: who appends to a document has the last one read
  /// back each time.
  private static let shortChunk = 16 << 10

  func chunk(_ id: Int64) throws -> [UInt8] {
    if let bytes = chunks.value(id) { return bytes }
    let bytes = try read { try $0.chunkBytes(id) }
    chunks.insert(id, bytes)
    return bytes
  }

  func store(_ pieces: [UnsafeRawBufferPointer]) throws -> [Int64] {
    try zip(pieces, ChunkHash.each(of: pieces)).map { try store($0, hash: $1) }
  }

  private func store(_ bytes: UnsafeRawBufferPointer, hash: ChunkHash) throws -> Int64 {
    guard let current else { preconditionFailure("chunks are stored in transactions") }
    if let id = try current.chunk(hash: hash) {
      // Referred to twice now, be it by the same document.
      chunkOwners[id] = nil
      storedNow.remove(id)
      sweepSpares?.insert(id)
      return id
    }
    numbers.chunk += 1
    let id = numbers.chunk
    try current.insertChunk(id, hash: hash, bytes: bytes)
    if bytes.count <= Self.shortChunk {
      let copy = [UInt8](bytes)
      whenCommitted { [self] in chunks.insert(id, copy) }
    }
    storedNow.insert(id)
    sweepSpares?.insert(id)
    return id
  }
}
