package import SheafModel

/// A row of `packs`: similar chunks, each made from the one before (docs/FORMAT.md, "packs").
package struct Pack: Sendable {
  package let id: Int64
  /// The contents from which the first member is made: extents of chunks that are not packed themselves.
  package var base: StoredContent
  /// The members' chunks, in order.
  package var chunks: [Int64]
  /// The members' deltas, in order.
  package var deltas: [ArraySlice<UInt8>]

  /// Members of a pack at most, so that reading the last one is bounded.
  package static let limit = 1024
  /// Bytes of a member at most.
  package static let memberLimit: Int64 = 4 << 20
  /// Bytes of all members together at most: reading the last one copies as many.
  package static let copyLimit: Int64 = 1 << 30
  /// Bytes of all deltas together past which no member is added.
  package static let deltaLimit = 1 << 20
  /// Bytes of the deltas past which a row is not believed.
  static let dataLimit = 64 << 20

  package init(id: Int64, base: StoredContent, chunks: [Int64], deltas: [ArraySlice<UInt8>]) {
    self.id = id
    self.base = base
    self.chunks = chunks
    self.deltas = deltas
  }

  fileprivate init(_ row: Row) throws {
    try self.init(id: row[0], base: row.bytes(1), chunks: row.bytes(2), data: row.bytes(3))
  }

  /// - Throws: ``SheafError`` of kind `corrupt`.
  init(id: Int64, base: [UInt8], chunks: [UInt8], data: [UInt8]) throws {
    self.id = id
    self.base = try StoredContent(encoded: base)
    self.chunks = try Self.decodeChunks(chunks)
    guard let data = Zstandard.decompress(data, limit: Self.dataLimit) else { throw Self.damaged(id) }
    var reader = VarintReader(bytes: data[...])
    deltas = []
    while !reader.isAtEnd { deltas.append(try reader.bytes(reader.next())) }
    guard deltas.count == self.chunks.count else { throw Self.damaged(id) }
  }

  static func damaged(_ id: Int64) -> SheafError {
    SheafError(.corrupt, subject: "pack \(id)", reason: "is damaged", advice: "run sheaf check")
  }

  /// Bytes of all deltas.
  package var deltaBytes: Int { deltas.reduce(0) { $0 + $1.count } }

  /// The deltas as the row holds them.
  package var encodedDeltas: [UInt8] {
    get throws(SheafError) {
      var data: [UInt8] = []
      for delta in deltas {
        data.append(varint: Int64(delta.count))
        data.append(contentsOf: delta)
      }
      return try Zstandard.compress(data, level: Zstandard.packLevel)
    }
  }

  fileprivate var encodedChunks: [UInt8] {
    chunks.reduce(into: []) { $0.append(varint: $1) }
  }

  static func decodeChunks(_ bytes: [UInt8]) throws -> [Int64] {
    var reader = VarintReader(bytes: bytes[...])
    var chunks: [Int64] = []
    while !reader.isAtEnd { chunks.append(try reader.next()) }
    return chunks
  }
}

/// The place of a packed chunk's bytes.
package struct PackPlace: Hashable, Sendable {
  package let pack: Int64
  /// Place among the members, from 0.
  package let index: Int

  package init(pack: Int64, index: Int) {
    self.pack = pack
    self.index = index
  }

  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(varint: pack)
    bytes.append(varint: Int64(index))
    return bytes
  }

  init(encoded bytes: [UInt8]) throws {
    var reader = VarintReader(bytes: bytes[...])
    pack = try reader.next()
    index = Int(try reader.next())
  }
}

/// Makes the members of a pack, one after the other.
package struct PackReader {
  private let deltas: [ArraySlice<UInt8>]
  private var next = 0
  /// The bytes of the member that was made last; those of the base before the first.
  package private(set) var bytes: [UInt8]
  private var spare: [UInt8] = []

  package init(_ pack: Pack, base: [UInt8]) {
    deltas = pack.deltas
    bytes = base
  }

  /// Makes the next member; false after the last.
  ///
  /// - Throws: `corrupt`.
  package mutating func advance() throws(SheafError) -> Bool {
    guard next < deltas.count else { return false }
    try Delta.apply(deltas[next], to: bytes, into: &spare)
    swap(&bytes, &spare)
    next += 1
    return true
  }
}

extension StoreTransaction {
  /// The pack with this number.
  ///
  /// - Throws: `corrupt` where it is damaged.
  package func pack(_ id: Int64) throws -> Pack? {
    try first("SELECT id, base, chunks, data FROM packs WHERE id = ?", id, decode: Pack.init)
  }

  /// The space of each member in a pack, if all have an equal share; 0 if there is no pack.
  package func packShare(_ id: Int64) throws -> Int64 {
    try first("SELECT length(data), chunks FROM packs WHERE id = ?", id) {
      try ($0[0] as Int64) / Int64(max(1, Pack.decodeChunks($0.bytes(1)).count))
    } ?? 0
  }

  /// Number, base and members of every pack.
  package func packs(_ body: (_ id: Int64, _ base: StoredContent, _ chunks: [Int64]) throws -> Void) throws {
    try each("SELECT id, base, chunks FROM packs ORDER BY id") {
      try body($0[0], StoredContent(encoded: $0.bytes(1)), Pack.decodeChunks($0.bytes(2)))
      return true
    }
  }

  /// The number of the next pack.
  ///
  /// - Throws: `corrupt` where a pack has a number that no library gets to.
  package var nextPack: Int64 {
    get throws {
      let last = try first("SELECT max(id) FROM packs") { try ($0[0] as Int64?) ?? 0 } ?? 0
      guard (0..<Self.numberLimit).contains(last) else {
        throw SheafError(
          .corrupt, subject: "pack \(last)", reason: "has a number that is too large", advice: "run sheaf check")
      }
      return last + 1
    }
  }

  /// Writes a pack, new or not, and makes its members' chunks lead to it. `data` is its ``Pack/encodedDeltas``.
  package func set(_ pack: Pack, data: [UInt8]) throws {
    try run(
      """
      INSERT INTO packs (id, base, chunks, data) VALUES (?,?,?,?)
      ON CONFLICT DO UPDATE SET base = excluded.base, chunks = excluded.chunks, data = excluded.data
      """, pack.id, pack.base.encoded, pack.encodedChunks, data)
    for (index, chunk) in pack.chunks.enumerated() {
      // Id and hash, which are remembered, stay.
      try change(
        "UPDATE chunks SET encoding = 2, data = ? WHERE id = ?", PackPlace(pack: pack.id, index: index).encoded, chunk
      ) { _ in }
    }
  }

  package func deletePack(_ id: Int64) throws { try run("DELETE FROM packs WHERE id = ?", id) }

  /// The place of a chunk in its pack; nil for a chunk that is not packed, or not there.
  package func packPlace(_ chunk: Int64) throws -> PackPlace? {
    try first("SELECT data FROM chunks WHERE id = ? AND encoding = 2", chunk) { try PackPlace(encoded: $0.bytes(0)) }
  }

  /// The bytes of a pack's base.
  ///
  /// - Throws: `corrupt` where a chunk of it is missing, damaged or packed.
  package func baseBytes(_ base: StoredContent) throws -> [UInt8] {
    guard case .extents(let extents) = base, base.length <= Pack.memberLimit else { throw Delta.damaged }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(base.length))
    for extent in extents {
      guard extent.isStored, try packPlace(extent.chunk) == nil else { throw Delta.damaged }
      let chunk = try chunkBytes(extent.chunk)
      guard extent.offset + extent.length <= Int64(chunk.count) else { throw Delta.damaged }
      bytes += chunk[Int(extent.offset)..<Int(extent.offset + extent.length)]
    }
    return bytes
  }

  /// The bytes of a packed chunk.
  func packedBytes(_ chunk: Int64, at place: PackPlace) throws -> [UInt8] {
    guard let pack = try pack(place.pack), place.index < pack.chunks.count, pack.chunks[place.index] == chunk else {
      throw SheafError(.corrupt, subject: "chunk \(chunk)", reason: "is not in its pack", advice: "run sheaf check")
    }
    var reader = PackReader(pack, base: try baseBytes(pack.base))
    for _ in 0...place.index { _ = try reader.advance() }
    return reader.bytes
  }
}
