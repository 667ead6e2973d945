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

  /// Bytes of which it is worth having two processors hash a half each.
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

extension StoreTransaction {
  /// The chunk with these contents.
  package func chunk(hash: ChunkHash) throws -> Int64? {
    try first("SELECT id FROM chunks WHERE hash = ?", [hash.bytes]) { $0[0] as Int64 }
  }

  /// Stores a chunk; `bytes` are copied by SQLite.
  package func insertChunk(_ id: Int64, hash: ChunkHash, bytes: UnsafeRawBufferPointer) throws {
    try run(
      "INSERT INTO chunks (id, hash, size, encoding, data) VALUES (?,?,?,0,?)",
      [id, hash.bytes, bytes.count, bytes])
  }

  /// The chunk's bytes.
  ///
  /// - Throws: ``SheafError`` of kind `corrupt` where it is missing or its encoding unknown.
  package func chunkBytes(_ id: Int64) throws -> [UInt8] {
    let bytes = try first("SELECT data, encoding FROM chunks WHERE id = ?", [id]) { row in
      guard row[1] as Int64 == 0 else { throw SheafError(.corrupt, subject: "chunk \(id)") }
      return try row.bytes(0)
    }
    guard let bytes else {
      throw SheafError(.corrupt, subject: "chunk \(id)", reason: "is missing", advice: "run sheaf check")
    }
    return bytes
  }

  package func deleteChunk(_ id: Int64) throws { try run("DELETE FROM chunks WHERE id = ?", [id]) }

  /// Ids of all chunks, ascending.
  package func chunkIDs(_ body: (Int64) throws -> Void) throws {
    try each("SELECT id FROM chunks ORDER BY id", []) {
      try body($0[0])
      return true
    }
  }

  /// The stored contents of every inode and version: the roots from which chunks are reached.
  package func contents(_ body: (StoredContent) throws -> Void) throws {
    for table in ["inodes", "versions"] {
      try each("SELECT content FROM \(table) WHERE content IS NOT NULL", []) {
        try body(StoredContent(encoded: $0.bytes(0)))
        return true
      }
    }
  }
}
