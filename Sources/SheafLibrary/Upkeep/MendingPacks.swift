import SheafModel
import SheafStore

/// Keeping packs and chunks as small as they should be: members that are gone leave their packs, and plain chunks are
/// compressed.
extension Library {
  /// Makes anew the packs that hold what nothing refers to any more; returns how many, and why one could not be that
  /// holds more of it than before.
  ///
  /// So what was purged is nowhere.
  func mendPacks(_ care: inout PackCare) throws -> (count: Int, refusal: SheafError?) {
    defer { care.forgetWaiting() }
    var count = 0
    var refusal: SheafError?
    for (id, gone, hasBase) in care.waiting where !maintenance.isStopping {
      do {
        if try mend(id, hasBase: hasBase) { count += 1 }
        care.noteMended(id)
      } catch let error as SheafError where error.kind == .corrupt || error.kind == .noSpace {
        // Nothing refers to what is left in it; where there is room, the next sweep tries again.
        log.warning("a pack could not be made anew", metadata: ["pack": "\(id)", "error": "\(error)"])
        guard care.noteRefused(id, gone: gone) else { continue }
        refusal = SheafError(
          error.kind, subject: "pack \(id) of the library",
          reason: "still holds what was purged, since it could not be made anew: \(error)",
          advice: error.kind == .noSpace ? "make room on the disk and run `sheaf compact`" : "run `sheaf check`")
      }
    }
    return (count, refusal)
  }

  /// Makes a pack anew; false where there is nothing to do.
  ///
  /// - Parameter hasBase: whether its base stays; else the first member takes its place.
  private func mend(_ id: Int64, hasBase: Bool) throws -> Bool {
    let found = try store.read { transaction in
      try transaction.pack(id).map { pack in
        let alive = try pack.chunks.enumerated().map { index, chunk in
          try transaction.packPlace(chunk) == PackPlace(pack: id, index: index)
        }
        return (pack: pack, alive: alive, base: try transaction.baseBytes(pack.base))
      }
    }
    guard let (pack, alive, base) = found, !hasBase || alive.contains(false) else { return false }
    var mended = Pack(id: id, base: hasBase ? pack.base : .empty, chunks: [], deltas: [])
    var newBase: (chunk: Int64, hash: ChunkHash, frame: [UInt8])?
    var reader = PackReader(pack, base: base)
    var last = (index: -1, bytes: base)
    for (index, chunk) in pack.chunks.enumerated() {
      _ = try reader.advance()
      guard alive[index] else { continue }
      if !hasBase, newBase == nil {
        let hash = try store.read { try $0.verifiedHash(reader.bytes, of: chunk) }
        newBase = (chunk, hash, try Zstandard.compress(reader.bytes, level: Zstandard.chunkLevel))
        mended.base = .extents([Extent(chunk: chunk, length: Int64(reader.bytes.count))])
      } else {
        mended.chunks.append(chunk)
        if last.index == index - 1 {
          mended.deltas.append(pack.deltas[index])
        } else {
          _ = try store.read { try $0.verifiedHash(reader.bytes, of: chunk) }
          mended.deltas.append(Delta.encode(reader.bytes, from: last.bytes)![...])
        }
      }
      last = (index, reader.bytes)
    }
    let data = try mended.encodedDeltas
    try locked {
      try makeChange(.pack, freesSpace: true) { change in
        if let newBase {
          try change.rows.recode(newBase.chunk, hash: newBase.hash, compressed: newBase.frame)
        }
        if mended.chunks.isEmpty {
          try change.rows.deletePack(id)
        } else {
          try change.rows.set(mended, data: data)
        }
      }
    }
    return true
  }

  // MARK: - Compressing

  /// Bytes that are read at a time, and of frames that one transaction writes.
  private static let compressionBatch: Int64 = 2 << 20

  /// Compresses the chunks that were stored since the last time, where that saves something.
  func compressChunks(_ progress: (Double) -> Void) throws {
    let (first, last) = try store.read {
      let last = try $0.highestNumbers().chunk
      return (max(0, min(try $0.numberSetting("chunksCompressed") ?? 0, last)) + 1, last)
    }
    var next = first
    while next <= last, !maintenance.isStopping {
      try packCare.withLock { _ in
        let batch = try store.read { try $0.plainChunks(from: next, through: last, limit: Self.compressionBatch) }
        var frames: [(chunk: Int64, hash: ChunkHash, frame: [UInt8])] = []
        for chunk in batch {
          // `check` reports damage; a chunk that was freed meanwhile needs nothing.
          guard let (bytes, hash) = try? store.read({ try $0.verifiedBytes(chunk) }) else { continue }
          let frame = try Zstandard.compress(bytes, level: Zstandard.chunkLevel)
          // Less would not be worth the decoding.
          if frame.count < bytes.count - bytes.count / 16 { frames.append((chunk, hash, frame)) }
        }
        let reached = batch.last ?? last
        try locked {
          try makeChange(.compress, freesSpace: true) { change in
            for (chunk, hash, frame) in frames { try change.rows.recode(chunk, hash: hash, compressed: frame) }
            try change.rows.setSetting("chunksCompressed", reached)
          }
        }
        next = reached + 1
      }
      progress(Double(next - first) / Double(last - first + 1))
    }
  }
}
