import SheafModel
import SheafStore

/// Contents get their chunks from the library.
///
/// Rooms: `Chunks`, `Numbers`.
extension Library: ChunkSource {
  /// Bytes of a chunk up to which it is kept in memory when it is stored: each write that appends to a
  /// document reads its last chunk back.
  private static let shortChunk = 16 << 10

  func chunk(_ id: Int64) throws -> [UInt8] {
    if let bytes = chunks.cache.value(id) { return bytes }
    let bytes = try read { try $0.chunkBytes(id) }
    chunks.cache.insert(id, bytes)
    return bytes
  }

  /// The ids of chunks with these bytes, each stored by `change` if it was not yet.
  fileprivate func store(_ pieces: [UnsafeRawBufferPointer], _ change: Change) throws -> [Int64] {
    try zip(pieces, ChunkHash.each(of: pieces)).map { try store($0, hash: $1, change) }
  }

  private func store(_ bytes: UnsafeRawBufferPointer, hash: ChunkHash, _ change: Change) throws -> Int64 {
    if let id = try change.rows.chunk(hash: hash) {
      try verify(id, bytes, change)
      // Referred to twice now, perhaps by one document.
      chunks.noteFound(id)
      change.noteFound(id)
      return id
    }
    let id = numbers.nextChunk()
    try change.rows.insertChunk(id, hash: hash, bytes: bytes)
    if bytes.count <= Self.shortChunk {
      let copy = [UInt8](bytes)
      change.whenRecorded { [self] in chunks.cache.insert(id, copy) }
    }
    chunks.noteStored(id)
    change.noteStored(id)
    return id
  }

  /// Makes sure that a chunk that was there before holds the bytes of its hash: saving them again mends damage.
  private func verify(_ id: Int64, _ bytes: UnsafeRawBufferPointer, _ change: Change) throws {
    guard !chunks.isSound(id) else { return }
    let present: [UInt8]?
    do {
      present = try chunks.cache.value(id) ?? change.rows.chunkBytes(id)
    } catch let error as SheafError where error.kind == .corrupt {
      present = nil
    }
    if let present, present.elementsEqual(bytes) { return chunks.noteSound(id) }
    log.warning("a damaged chunk was stored anew", metadata: ["chunk": "\(id)"])
    try change.rows.restoreChunk(id, bytes: bytes)
    chunks.cache.remove(id)
    change.whenRecorded { [self] in
      chunks.noteSound(id)
      store.noteMended()
    }
  }
}

/// A change stores the chunks of contents that it makes.
extension Change: ChunkStorage {
  func chunk(_ id: Int64) throws -> [UInt8] { try library.chunk(id) }

  func store(_ pieces: [UnsafeRawBufferPointer]) throws -> [Int64] { try library.store(pieces, self) }
}
