import SheafModel
import SheafStore

/// Where the bytes of a read come from, as it was when the read began.
///
/// It is made with the library's lock held. Nothing that happens afterwards changes what it gives: chunks never change,
/// bytes in an area of the working file neither, and what lay in memory was copied. So the chunks may be fetched, and
/// the bytes be copied, without the lock; only that a chunk is still there is not said.
struct ReadPlan {
  private struct Piece {
    /// Its first byte's place in what is read.
    let place: Int
    let extent: Extent
    /// The bytes of the extent's chunk, once they are known.
    var bytes: [UInt8]?
    /// Whether its bytes are in the buffer already.
    var isCopied = false

    var isMissing: Bool { bytes == nil && !isCopied && !extent.isHole }
  }

  /// How many bytes the read gives.
  let count: Int
  private var pieces: [Piece] = []
  private var runs: [(place: Int, run: DirtyRuns.Run)] = []

  init(count: Int) { self.count = count }

  /// The bytes among them that are not on this machine.
  private(set) var absent: [Extent] = []

  /// Adds a run of stored bytes, or a hole, or of bytes that are not here.
  mutating func add(_ extent: Extent, at place: Int) {
    if extent.isAbsent { absent.append(extent) } else { pieces.append(Piece(place: place, extent: extent)) }
  }

  /// Adds what was written and is not stored.
  mutating func add(_ run: DirtyRuns.Run, at place: Int) { runs.append((place, run)) }

  /// Takes the bytes of chunks that are not known yet, where `find` has them.
  mutating func take(_ find: (Int64) throws -> [UInt8]?) rethrows {
    for index in pieces.indices where pieces[index].isMissing {
      pieces[index].bytes = try find(pieces[index].extent.chunk)
    }
  }

  /// Takes the bytes of all chunks that are not known yet.
  ///
  /// - Throws: `unreachable` where some of the bytes are not on this machine.
  mutating func fetch(from storage: any ChunkSource) throws {
    guard absent.isEmpty else {
      throw SheafError(.unreachable, subject: "contents", reason: "are not on this machine")
    }
    try take(storage.chunk)
  }

  /// The parts of chunks whose bytes are not known yet.
  var missing: [ChunkPart] { pieces.filter(\.isMissing).map { ChunkPart($0.extent, at: $0.place) } }

  /// Takes what was read of ``missing``.
  mutating func take(_ read: ChunkPartsRead) {
    for (part, index) in pieces.indices.filter({ pieces[$0].isMissing }).enumerated() {
      if read.copied.contains(part) {
        pieces[index].isCopied = true
      } else {
        pieces[index].bytes = read.chunks[pieces[index].extent.chunk]
      }
    }
  }

  /// Copies the bytes that are not in the buffer yet; all chunks must be known.
  ///
  /// - Throws: `corrupt` where a chunk is too short; `inputOutput` of the working file.
  func copy(to buffer: UnsafeMutableRawBufferPointer) throws {
    for piece in pieces where !piece.isCopied {
      let extent = piece.extent
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer[piece.place..<(piece.place + Int(extent.length))])
      guard let bytes = piece.bytes else {
        target.initializeMemory(as: UInt8.self, repeating: 0)
        continue
      }
      guard extent.offset + extent.length <= Int64(bytes.count) else {
        throw SheafError(
          .corrupt, subject: "chunk \(extent.chunk)", reason: "is too short", advice: "run sheaf check")
      }
      let offset = Int(extent.offset)
      bytes.withUnsafeBytes {
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<(offset + target.count)]))
      }
    }
    for (place, run) in runs {
      try run.copy(
        run.start..<run.end, to: UnsafeMutableRawBufferPointer(rebasing: buffer[place..<(place + run.count)]))
    }
  }
}
