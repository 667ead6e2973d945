internal import Crypto
internal import Dispatch
internal import Foundation
internal import SheafModel

/// SHA-256 of a chunk's bytes.
package struct ChunkHash: Hashable, Sendable {
  package let bytes: [UInt8]

  package init(of data: UnsafeRawBufferPointer) {
    var hasher = SHA256()
    hasher.update(bufferPointer: data)
    bytes = Array(hasher.finalize())
  }

  fileprivate init(bytes: [UInt8]) { self.bytes = bytes }

  /// Bytes from which on two processors hash a half each.
  private static let parallelLimit = 256 << 10

  /// The hashes of several chunks, in their order.
  package static func each(of pieces: [UnsafeRawBufferPointer]) -> [ChunkHash] {
    let total = pieces.reduce(0) { $0 + $1.count }
    guard pieces.count > 1, total >= parallelLimit else { return pieces.map(ChunkHash.init) }
    var middle = 0
    var front = 0
    while front < total / 2 {
      front += pieces[middle].count
      middle += 1
    }
    let halves = [0..<middle, middle..<pieces.count]
    nonisolated(unsafe) let sources = pieces
    return [ChunkHash?](unsafeUninitializedCapacity: pieces.count) { target, count in
      target.initialize(repeating: nil)
      nonisolated(unsafe) let hashes = target
      // Each half writes elements of its own.
      DispatchQueue.concurrentPerform(iterations: 2) { half in
        for index in halves[half] { hashes[index] = ChunkHash(of: sources[index]) }
      }
      count = pieces.count
    }.map { $0! }
  }
}

/// The form in which a chunk's row holds its bytes: `chunks.encoding`.
enum ChunkEncoding: Int64 {
  /// As they are.
  case plain = 0
  /// A frame of ``Zstandard``.
  case compressed = 1
  /// In a pack; the row says where (``PackPlace``).
  case packed = 2
}

extension StoreTransaction {
  /// The chunk with these contents.
  package func chunk(hash: ChunkHash) throws -> Int64? {
    try known(connection.known?.chunks, hash, "SELECT id FROM chunks WHERE hash = ?", hash.bytes) { try $0[0] as Int64 }
  }

  /// Bytes of a chunk; nil if there is none.
  package func chunkSize(_ id: Int64) throws -> Int64? {
    try first("SELECT size FROM chunks WHERE id = ?", id) { try $0[0] as Int64 }
  }

  /// Where the bytes of a chunk are.
  package enum ChunkSpace: Hashable, Sendable {
    /// In its row, as many as it takes there.
    case bytes(Int64)
    /// In a pack.
    case pack(Int64)
  }

  /// The space that a chunk takes; nil if there is none.
  package func chunkSpace(_ id: Int64) throws -> ChunkSpace? {
    let row = try first(
      "SELECT length(data), encoding, CASE encoding WHEN 2 THEN data ELSE x'' END FROM chunks WHERE id = ?", id
    ) { (length: try $0[0] as Int64, encoding: try $0[1] as Int64, place: try $0.bytes(2)) }
    guard let row else { return nil }
    guard row.encoding == ChunkEncoding.packed.rawValue else { return .bytes(row.length) }
    return .pack(try PackPlace(encoded: row.place).pack)
  }

  /// Stores a chunk; `bytes` are copied by SQLite.
  package func insertChunk(_ id: Int64, hash: ChunkHash, bytes: UnsafeRawBufferPointer) throws {
    try change(
      "INSERT INTO chunks (id, hash, size, encoding, data) VALUES (?,?,?,0,?)", id, hash.bytes, bytes.count, bytes
    ) { $0.noteChunk(id, hash) }
  }

  /// Sizes of a chunk that are believed.
  private static let sizes = 0...Pack.memberLimit

  /// The bytes of a compressed chunk; nil where it is damaged.
  static func decompress(_ frame: [UInt8], size: Int64) -> [UInt8]? {
    sizes.contains(size) ? Zstandard.decompress(frame, limit: Int(size)) : nil
  }

  /// The size of a chunk whose row has its bytes as they are; nil for any other one.
  func plainSize(of id: Int64) throws -> Int64? {
    try first("SELECT encoding, size FROM chunks WHERE id = ?", id) {
      try ChunkEncoding(rawValue: $0[0]) == .plain ? $0[1] as Int64 : nil
    } ?? nil
  }

  /// The chunk's bytes.
  ///
  /// - Throws: ``SheafError`` of kind `corrupt` where it is missing, or cannot be decoded.
  package func chunkBytes(_ id: Int64) throws -> [UInt8] {
    let row = try first("SELECT data, encoding, size FROM chunks WHERE id = ?", id) {
      (data: try $0.bytes(0), encoding: try ChunkEncoding(rawValue: $0[1]), size: try $0[2] as Int64)
    }
    guard let row else {
      throw SheafError(.corrupt, subject: "chunk \(id)", reason: "is missing", advice: "run sheaf check")
    }
    let bytes: [UInt8]? =
      switch row.encoding {
      case .plain: row.data
      case .compressed: Self.decompress(row.data, size: row.size)
      case .packed: try packedBytes(id, at: PackPlace(encoded: row.data))
      case nil: nil
      }
    guard let bytes, Int64(bytes.count) == row.size else {
      throw SheafError(.corrupt, subject: "chunk \(id)", reason: "cannot be decoded", advice: "run sheaf check")
    }
    return bytes
  }

  /// The chunk's bytes with their hash, which is the chunk's: for callers that store them in another form.
  ///
  /// - Throws: ``SheafError`` of kind `corrupt`.
  package func verifiedBytes(_ id: Int64) throws -> (bytes: [UInt8], hash: ChunkHash) {
    let bytes = try chunkBytes(id)
    return (bytes, try verifiedHash(bytes, of: id))
  }

  /// The hash of bytes that should be a chunk's.
  ///
  /// - Throws: ``SheafError`` of kind `corrupt` if it is not the chunk's.
  package func verifiedHash(_ bytes: [UInt8], of id: Int64) throws -> ChunkHash {
    let hash = bytes.withUnsafeBytes { ChunkHash(of: $0) }
    guard try chunk(hash: hash) == id else {
      throw SheafError(
        .corrupt, subject: "chunk \(id)", reason: "does not have its hash", advice: "run sheaf check")
    }
    return hash
  }

  /// Chunks that are neither compressed nor packed, from `first` on, about `limit` bytes of them.
  package func plainChunks(from first: Int64, through last: Int64, limit: Int64) throws -> [Int64] {
    var bytes: Int64 = 0
    var chunks: [Int64] = []
    try each(
      "SELECT id, length(data) FROM chunks WHERE id BETWEEN ? AND ? AND encoding = 0 ORDER BY id", first, last
    ) {
      chunks.append(try $0[0])
      bytes += try $0[1] as Int64
      return bytes < limit
    }
    return chunks
  }

  /// Stores an existing chunk's bytes in another form: as they are, or as a frame of ``Zstandard``.
  ///
  /// - Parameter hash: the hash of the bytes; a chunk with another hash stays as it is.
  package func recode(_ id: Int64, hash: ChunkHash, compressed frame: [UInt8]) throws {
    // Id and hash, which are remembered, stay.
    try change("UPDATE chunks SET encoding = 1, data = ? WHERE id = ? AND hash = ?", frame, id, hash.bytes) { _ in }
  }

  /// Stores the bytes of a chunk again, if its row does not hold them.
  package func restoreChunk(_ id: Int64, bytes: UnsafeRawBufferPointer) throws {
    // Id and hash, which are remembered, stay.
    try change("UPDATE chunks SET size = ?, encoding = 0, data = ? WHERE id = ?", bytes.count, bytes, id) { _ in }
  }

  /// Stores a new chunk that ``set(_:data:)`` puts into a pack in the same transaction.
  package func insertPackedChunk(_ id: Int64, hash: ChunkHash, size: Int64) throws {
    try change("INSERT INTO chunks (id, hash, size, encoding, data) VALUES (?,?,?,2,x'')", id, hash.bytes, size) {
      $0.noteChunk(id, hash)
    }
  }

  package func deleteChunk(_ id: Int64) throws {
    try change("DELETE FROM chunks WHERE id = ?", id) { known in
      if case .some(.some(let hash)) = known.chunkHashes[id] {
        known.chunks.note(hash, nil)
        known.chunkHashes.note(id, nil)
      } else {
        known.chunks.forgetAll()
      }
    }
  }

  package func hasChunk(_ id: Int64) throws -> Bool {
    try first("SELECT 1 FROM chunks WHERE id = ?", id) { _ in true } ?? false
  }

  /// Ids of all chunks, ascending.
  package func chunkIDs(_ body: (Int64) throws -> Void) throws {
    try each("SELECT id FROM chunks ORDER BY id") {
      try body($0[0])
      return true
    }
  }

  /// The stored contents of every inode and version: the roots from which chunks are reached.
  package func contents(_ body: (StoredContent) throws -> Void) throws {
    for table in ["inodes", "versions"] {
      try contents(of: table, body)
    }
  }

  /// The stored contents of every inode: the current ones.
  package func currentContents(_ body: (StoredContent) throws -> Void) throws { try contents(of: "inodes", body) }

  private func contents(of table: String, _ body: (StoredContent) throws -> Void) throws {
    try each("SELECT content FROM \(table) WHERE content IS NOT NULL") {
      try body(StoredContent(encoded: $0.bytes(0)))
      return true
    }
  }
}
