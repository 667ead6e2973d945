import Foundation
package import SheafModel
import SheafStore

/// Thinning old history and giving its space back.
extension Library {
  /// Seconds for which deleted items can be recovered, and events are kept.
  static let deletedSeconds: Int64 = 30 * 86_400
  static let eventSeconds: Int64 = 90 * 86_400

  /// The spans of DESIGN.md: all versions for a day, hourly for a week, daily for a month, weekly for a year.
  private static let spans: [(age: Int64, interval: Int64)] = [
    (86_400, 0), (7 * 86_400, 3600), (30 * 86_400, 86_400), (365 * 86_400, 7 * 86_400),
  ]

  /// Thins history by the rules of retention, frees what nothing refers to, and shrinks the file.
  package func compact(progress: (SheafModel.Progress) -> Void) throws -> CompactReport {
    let before = store.fileBytes
    let thinned = try thin()
    progress(SheafModel.Progress(done: 1, total: 3))
    let freed = try sweep()
    progress(SheafModel.Progress(done: 2, total: 3))
    try store.shrink()
    store.reserve.establish()
    progress(SheafModel.Progress(done: 3, total: 3))
    return CompactReport(versionsThinned: thinned, chunksFreed: freed, bytesFreed: max(0, before - store.fileBytes))
  }

  /// Thins and sweeps while the library is in use, so that it does not grow for want of a command; started by upkeep
  /// every few hours. The file is not shrunk: what comes next takes the room.
  func tidy() throws {
    _ = try thin()
    _ = try sweep()
  }

  /// Versions and deleted items that one transaction of ``thin()`` takes away at most, so that nobody waits long.
  private static let thinBatch = 500

  /// Removes what retention has passed; returns how many versions.
  private func thin() throws -> Int {
    let time = clock()
    var removed = 0
    let surplus = try surplusVersions(at: time)
    for batch in stride(from: 0, to: surplus.count, by: Self.thinBatch) where !maintenance.isStopping {
      removed += try locked {
        try transaction(.thin, freesSpace: true) { transaction in
          // One that got a label meanwhile stays.
          try surplus[batch..<min(batch + Self.thinBatch, surplus.count)].reduce(0) {
            $0 + (try transaction.thinVersion($1.item, $1.number) ? 1 : 0)
          }
        }
      }
    }
    let border = Timestamp(seconds: time.seconds - Self.deletedSeconds)
    while !maintenance.isStopping {
      let count = try locked {
        let old = try read { try $0.deleted(before: border, limit: Self.thinBatch) }
        guard !old.isEmpty else { return 0 }
        try settleEvents(all: true)
        try transaction(.thin, freesSpace: true) { transaction in
          for row in old where try transaction.deleted(row.ino) != nil { try eraseDeleted(row, transaction) }
        }
        return old.count
      }
      if count == 0 { break }
    }
    try locked {
      try transaction(.thin, freesSpace: true) {
        try $0.dropEvents(before: Timestamp(seconds: time.seconds - Self.eventSeconds))
      }
    }
    return removed
  }

  /// The versions to remove, found while work goes on: of each interval the last one stays.
  private func surplusVersions(at time: Timestamp) throws -> [(item: Int64, number: Int64)] {
    var surplus: [(item: Int64, number: Int64)] = []
    var previous: (item: Int64, number: Int64, slot: Int64)?
    try store.snapshot { transaction in
      try transaction.thinnableVersions { item, number, made in
        let age = time.seconds - made.seconds
        guard let span = Self.spans.first(where: { age < $0.age }) else {
          surplus.append((item, number))
          previous = nil
          return
        }
        guard span.interval > 0 else {
          previous = nil
          return
        }
        let slot = made.seconds / span.interval &* 8 &+ Int64(Self.spans.firstIndex { $0.age == span.age } ?? 0)
        if let last = previous, last.item == item, last.slot == slot { surplus.append((last.item, last.number)) }
        previous = (item, number, slot)
      }
    }
    return surplus
  }

  /// Frees chunks that no version, inode, open file or reader of a version refers to; returns how many.
  ///
  /// What is referred to is found while writing goes on. Memory and store are looked at in one moment, and whatever is
  /// referred to later was so then, or was stored or found again meanwhile, which spares it. One sweep runs at a time.
  func sweep() throws -> Int { try sweeping.withLock { _ in try sweepAlone() } }

  private func sweepAlone() throws -> Int {
    defer { locked { sweepSpares = nil } }
    var marks = ChunkMarks(limit: 0)
    var dead: [Int64] = []
    try store.snapshot { transaction in
      let inMemory: [Int64] = try locked {
        sweepSpares = []
        // The snapshot's moment is that of its first reading.
        let limit = max(numbers.chunk, try transaction.highestNumbers().chunk)
        marks = ChunkMarks(limit: limit)
        let readers = versionReaders.values.compactMap(\.reader)
        return try inodes.values.flatMap { inode in
          try inode.drafts.flatMap { try $0.working?.referredChunks(self) ?? [] }
        }
          + readers.flatMap { try $0.copy.referredChunks(self) }
          + dirtyInodes.values.flatMap { inode in
            try inode.drafts.compactMap(\.session).flatMap { try Content($0.baseContent).referredChunks(self) }
          }
      }
      for chunk in inMemory { marks.insert(chunk) }
      try transaction.contents { content in
        if maintenance.isStopping { throw SheafError(.busy, subject: "the library", reason: "is being closed") }
        switch content {
        case .extents(let extents): for extent in extents { marks.insert(extent.chunk) }
        case .nodes(let nodes): for node in nodes { try markNode(node.chunk, &marks, transaction) }
        }
      }
      try transaction.chunkIDs { if marks.isDead($0) { dead.append($0) } }
    }
    var freed = 0
    for batch in stride(from: 0, to: dead.count, by: 500) {
      freed += try locked {
        let spared = sweepSpares ?? []
        let doomed = dead[batch..<min(batch + 500, dead.count)].filter { !spared.contains($0) }
        try transaction(.sweep, freesSpace: true) { for chunk in doomed { try $0.deleteChunk(chunk) } }
        for chunk in doomed { chunks.remove(chunk) }
        return doomed.count
      }
    }
    return freed
  }

  private func markNode(_ node: Int64, _ marks: inout ChunkMarks, _ transaction: StoreTransaction) throws {
    guard marks.expand(node) else { return }
    marks.insert(node)
    for extent in try StoredContent.decodeNode(transaction.chunkBytes(node)) { marks.insert(extent.chunk) }
  }
}

/// Which chunks are referred to: a bit each.
private struct ChunkMarks {
  private var bits: [UInt64]
  private var expanded: Set<Int64> = []
  private let limit: Int64

  init(limit: Int64) {
    self.limit = limit
    bits = Array(repeating: 0, count: Int(limit / 64) + 1)
  }

  /// Marks a chunk. Holes have none, and chunks newer than the sweep are none of its business.
  mutating func insert(_ chunk: Int64) {
    guard chunk > 0, chunk <= limit else { return }
    bits[Int(chunk / 64)] |= 1 << UInt64(chunk % 64)
  }

  /// Whether nothing refers to a chunk that was there when the sweep began.
  func isDead(_ chunk: Int64) -> Bool {
    (1...max(1, limit)).contains(chunk) && bits[Int(chunk / 64)] & (1 << UInt64(chunk % 64)) == 0
  }

  /// Notes that what a node lists is being marked; false where it was before.
  mutating func expand(_ node: Int64) -> Bool { expanded.insert(node).inserted }
}
