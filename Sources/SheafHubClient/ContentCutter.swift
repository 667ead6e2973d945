import Crypto
import Glibc
package import NIOCore
import SheafModel
package import SheafWire

/// Cuts the contents of a version, which come in pieces in order, into the extents by which a hub knows them.
///
/// Rules that never break:
/// 1. The extents follow from the bytes alone. Who cuts the same bytes in other pieces, or has zeros where another has
///    holes, gets the same extents, so that a hub has each chunk once.
/// 2. What follows a place depends on little of what comes before it: bytes that are inserted or removed change the
///    extents around them, and few others.
/// 3. Memory is that of the largest chunk and of one piece, beside the extents.
///
/// Chunks grow with their distance from the beginning: the contents of a version travel in a request with at most
/// ``WireLimits/extentsPerVersion`` extents. So a change near the beginning of a large document costs a small chunk, and
/// what is appended changes nothing that was there before. A run of zeros is a hole if it is as long as a usual chunk.
package struct ContentCutter {
  /// The error for contents that no version at a hub can have.
  package struct TooLarge: Error, Hashable, CustomStringConvertible {
    package let description: String
  }

  /// How contents are cut from a place on.
  private static let levels: [(start: Int64, boundaries: ChunkBoundaries)] = [
    (0, ChunkBoundaries(minimum: 32 << 10, normal: 64 << 10, maximum: 256 << 10)),
    (64 << 20, ChunkBoundaries(minimum: 128 << 10, normal: 256 << 10, maximum: 1 << 20)),
    (1 << 30, ChunkBoundaries(minimum: 512 << 10, normal: 1 << 20, maximum: WireLimits.chunkBytes)),
    // Few boundaries lie before the limit, so that as much as possible fits; bytes that moved are found again all the
    // same.
    (16 << 30, ChunkBoundaries(minimum: 2 << 20, normal: 4 << 20, maximum: WireLimits.chunkBytes)),
  ]

  /// Bytes of the shortest hole.
  package static let shortestHole = levels[0].boundaries.normal

  private static func boundaries(at position: Int64) -> ChunkBoundaries {
    // There is always a level that begins at 0.
    (levels.last { $0.start <= position } ?? levels[0]).boundaries
  }

  private var extents: [Extent] = []
  /// Where `pending` begins.
  private var position: Int64 = 0
  /// Bytes of which the chunks are not known yet.
  private var pending = ByteBuffer()
  /// Zeros that follow these: whether they are a hole is known when their run ends.
  private var zeros: Int64 = 0

  package init() {}

  /// Bytes and holes so far.
  package var length: Int64 { position + Int64(pending.readableBytes) + zeros }

  /// Takes the next bytes.
  ///
  /// - Parameter chunk: Gets each chunk that is known now, in order, with bytes of its own.
  /// - Throws: ``TooLarge``, or what `chunk` throws. The cutter must not be used any more then.
  package mutating func append(_ bytes: ByteBuffer, chunk: (ChunkHash, ByteBuffer) throws -> Void) throws {
    try checkRoom(for: Int64(bytes.readableBytes))
    try bytes.withUnsafeReadableBytes { bytes in
      var index = 0
      while index < bytes.count {
        let run = Zeros.length(bytes, at: index)
        zeros += Int64(run)
        index += run
        // The run goes on in the next piece, perhaps.
        guard index < bytes.count else { return }
        try endZeros(chunk)
        let end = Zeros.start(bytes, from: index, length: Self.shortestHole)
        try take(UnsafeRawBufferPointer(rebasing: bytes[index..<end]), chunk)
        index = end
      }
    }
  }

  /// Takes a hole, which reads as zeros.
  ///
  /// - Throws: ``TooLarge``.
  package mutating func hole(_ length: Int64) throws {
    try checkRoom(for: length)
    zeros += length
  }

  /// Takes extents that are known from the place on to which everything was cut, if there are any. What was taken after
  /// that place is forgotten: the next bytes are those at ``length``.
  ///
  /// - Throws: ``TooLarge``.
  package mutating func take(_ known: KnownExtents) throws {
    let run = known.run(at: position)
    guard !run.isEmpty else { return }
    (pending, zeros) = (ByteBuffer(), 0)
    for extent in run {
      try checkRoom(for: extent.length)
      try add(extent)
    }
  }

  /// The extents of all that was taken; the cutter is empty then.
  ///
  /// - Parameter chunk: Gets the last chunks.
  /// - Throws: ``TooLarge``, or what `chunk` throws.
  package mutating func finish(chunk: (ChunkHash, ByteBuffer) throws -> Void) throws -> [Extent] {
    try endZeros(chunk)
    while pending.readableBytes > 0 { try cut(chunk) }
    defer { self = ContentCutter() }
    return extents
  }

  private func checkRoom(for more: Int64) throws {
    guard more >= 0, more <= WireLimits.documentBytes - length else {
      throw TooLarge(description: "a hub takes documents of at most \(WireLimits.documentBytes) bytes")
    }
  }

  /// Ends a run of zeros: it is a hole, or bytes like all others.
  private mutating func endZeros(_ chunk: (ChunkHash, ByteBuffer) throws -> Void) throws {
    guard zeros > 0 else { return }
    let start = position + Int64(pending.readableBytes)
    if zeros >= Self.boundaries(at: start).normal {
      while pending.readableBytes > 0 { try cut(chunk) }
      try add(Extent(hash: nil, length: zeros))
    } else {
      pending.writeRepeatingByte(0, count: Int(zeros))
    }
    zeros = 0
    try cutWhole(chunk)
  }

  private mutating func take(
    _ bytes: UnsafeRawBufferPointer, _ chunk: (ChunkHash, ByteBuffer) throws -> Void
  ) throws {
    var rest = bytes
    while !rest.isEmpty {
      let room = Self.boundaries(at: position).maximum - pending.readableBytes
      let part = rest.prefix(max(1, room))
      pending.writeBytes(part)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
      try cutWhole(chunk)
    }
  }

  /// Cuts the chunks that no further byte can change.
  private mutating func cutWhole(_ chunk: (ChunkHash, ByteBuffer) throws -> Void) throws {
    while pending.readableBytes >= Self.boundaries(at: position).maximum { try cut(chunk) }
  }

  /// Cuts the first chunk of what is pending.
  private mutating func cut(_ chunk: (ChunkHash, ByteBuffer) throws -> Void) throws {
    let boundaries = Self.boundaries(at: position)
    // A copy: whoever keeps it keeps no more than the chunk.
    var bytes = ByteBuffer()
    let hash = pending.withUnsafeReadableBytes { pending in
      let whole = UnsafeRawBufferPointer(rebasing: pending.prefix(boundaries.firstChunkLength(pending)))
      bytes.writeBytes(whole)
      var hasher = SHA256()
      hasher.update(bufferPointer: whole)
      return ChunkHash(bytes: Array(hasher.finalize()))
    }
    guard let hash else { fatalError("SHA-256 has 32 bytes") }
    pending.moveReaderIndex(forwardBy: bytes.readableBytes)
    if pending.readerIndex > boundaries.maximum { pending.discardReadBytes() }
    try add(Extent(hash: hash, length: Int64(bytes.readableBytes)))
    try chunk(hash, bytes)
  }

  private mutating func add(_ extent: Extent) throws {
    guard extents.count < WireLimits.extentsPerVersion else {
      throw TooLarge(
        description: "a hub takes documents of at most \(WireLimits.extentsPerVersion) chunks and holes")
    }
    extents.append(extent)
    position += extent.length
  }
}

/// Runs of zeros.
private enum Zeros {
  /// The length of the run that begins at `start`; 0 where another byte is.
  static func length(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Int {
    var index = start
    while index + 8 <= bytes.count, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) == 0 { index += 8 }
    while index < bytes.count, bytes[index] == 0 { index += 1 }
    return index - start
  }

  /// Where the first run begins that is at least so long, or that goes to the end; the end where there is none.
  static func start(_ bytes: UnsafeRawBufferPointer, from start: Int, length: Int) -> Int {
    var index = start
    while index < bytes.count {
      guard let base = bytes.baseAddress, let found = memchr(base + index, 0, bytes.count - index) else { break }
      let zero = UnsafeRawPointer(found) - base
      let run = Self.length(bytes, at: zero)
      if run >= length || zero + run == bytes.count { return zero }
      index = zero + run
    }
    return bytes.count
  }
}
